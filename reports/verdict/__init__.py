"""What to do with a setting: which mode to use at which shapes, what is fastest, and what is inconclusive.

docs/reports.md states the rules. `of(points, known)` gives a `Verdict` for every setting; its sentences are what the
terminal, the page, the Markdown and the README print.
"""

from analysis.rules import Advice
from analysis.settings import Setting, Words
from reports.verdict.whole import Fastest, Verdict, of, sentences

__all__ = ["Advice", "Fastest", "Setting", "Verdict", "Words", "of", "sentences"]
