"""What to do with a setting: which mode to use at which shapes, what is fastest, and what is inconclusive.

docs/reports.md states the rules. `verdicts_of(points, known)` gives a `Verdict` for every setting; the terminal, the
page, the Markdown and the README print its sentences.
"""

from analysis.rules import Advice
from analysis.settings import Setting, Words
from reports.verdict.whole import Fastest, Verdict, sentences, verdicts_of

__all__ = ["Advice", "Fastest", "Setting", "Verdict", "Words", "sentences", "verdicts_of"]
