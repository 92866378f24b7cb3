"""Processes in rounds in words: a cell's name, and lines for a terminal of 80 columns."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from analysis.rounds import CALLS, Arm, Range, on_slow_cores
from measurement.flags import OTHER_LOAD, STEAL
from measurement.starts import EAGER
from measurement.text import plain, times
from records.process import ProcessRecord
from reports.names import in_words

WIDTH, MOST_LINES = 80, 3  # of a text on a terminal
MOST_UNDECIDED = 2
# By flag.
SAID = {
    "partial": "only a part of the model runs in graphs.",
    "compiled_again": "the process compiles code that its cache lacks.",
}


def title(record: ProcessRecord) -> str:
    """Return the framework with its version, the workload, all else in the name of the cell, and policies."""
    version = f" {record.framework_version}" if record.framework_version else ""
    rest = in_words(record.cell.removeprefix(f"{record.framework}/{record.workload}/"))
    policies = f", {record.policies.replace(',', ', ')}" if record.policies else ""
    return f"{record.framework}{version} {record.workload}, {rest}{policies}"


def conditions(records: Sequence[ProcessRecord]) -> list[str]:
    """Return a sentence on processes on slow host cores or with other work on the machine; nothing without any."""
    raised = Counter(name for one in records for name in (one.flags or "").split(";"))
    counts = {
        "the host was slow in": len(on_slow_cores(records)),
        "other programs ran in": raised[OTHER_LOAD],
        "the hypervisor took CPU time in": raised[STEAL],
    }
    parts = [f"{words} {count}" for words, count in counts.items() if count]
    found = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
    timed = times(sum(1 for one in records if one.host_loop_ms), "process", "processes")
    return [f"{found[0].upper()}{found[1:]} of {timed}, whose times count."] if found else []


def said(one: Arm) -> list[str]:
    """Return why processes of a strategy failed, else a sentence for each flag on its graphs."""
    raised = {flag for record in one.records for flag in (record.flags or "").split(";")}
    texts = [one.reason] if one.reason else [text for flag, text in SAID.items() if flag in raised]
    return [f"{one.name}: {text}" for text in texts]


def pays(one: Arm) -> str:
    """Return the calls at which a strategy is shown to pay, or up to or from which it is shown not to.

    It is empty where the time of many calls is unknown, as with fewer than three pairs.
    """
    if not one.extrapolates or one.pays:
        return ranges(one.pays)
    if not one.undecided:
        return "none"
    first, last = one.undecided[-1]
    if not math.isinf(last):
        return f"none from {calls_text(last)}"
    return "inconclusive" if first == 1 else f"none up to {calls_text(first)}"


def ranges(found: Sequence[Range]) -> str:
    """Return ranges of calls: `from 2,000`, `up to 38,000`, `60 to 700` or `all`."""
    return ", ".join(map(_range, found))


def _range(found: Range) -> str:
    low, high = found
    if math.isinf(high):
        return "all" if low == 1 else f"from {calls_text(low)}"
    return f"{'up' if low == 1 else calls_text(low)} to {calls_text(high)}"


def calls_text(calls: float) -> str:
    """Return a number of calls to two digits."""
    if calls < 100:
        return f"{calls:.0f}"
    digits = 10 ** (math.floor(math.log10(calls)) - 1)
    return f"{round(calls / digits) * digits:,.0f}"


def choices(begin: str, choice: Callable[[int], Sequence[str]], order: Sequence[str]) -> str:
    """Return a sentence with the recommended strategy by the number of calls; empty without any.

    Where intervals do not separate strategies, it names two.
    """
    found = [(number, named(names, order)) for number in CALLS if (names := choice(number))]
    parts: list[str] = []
    for names, alike in itertools.groupby(found, key=lambda one: one[1]):
        first, *rest = (number for number, _ in alike)
        numbers = f"{first:,}{f' to {rest[-1]:,}' if rest else ''}"
        parts.append(f"{numbers}{'' if parts else ' call' if numbers == '1' else ' calls'}: {names}")
    return f"{begin} {'; '.join(parts)}." if parts else ""


def named(names: Sequence[str], order: Sequence[str]) -> str:
    """Return the strategies to take: `eager or dynamic`; of more than two, whether eager mode is one, and the first."""
    if len(names) <= MOST_UNDECIDED:
        return " or ".join(sorted(names, key=order.index))
    return f"{'inconclusive' if EAGER in names else 'not eager'} ({', '.join(names[:MOST_UNDECIDED])}, …)"


class Words(NamedTuple):
    """The texts on a cell of a command: heading, columns and rows of the table, and sentences on the results."""

    heads: Sequence[str]
    heading: Callable[[Any], str]
    rows: Callable[[Any], Sequence[Sequence[str]]]
    sentences: Callable[[Any], Iterable[str]]

    def block(self, cell: Any) -> list[str]:
        """Return lines of at most 80 columns: a table without empty columns; only long texts are cut."""
        rows = self.rows(cell)
        kept = [place for place in range(len(self.heads)) if any(row[place] for row in rows)]
        table = [[row[place] for place in kept] for row in (self.heads, *rows)] if kept else []
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        found = wrapped(self.heading(cell))
        for first, *texts in table:
            cells = (text.rjust(width) for text, width in zip(texts, widths[1:], strict=True))
            found.append("  ".join([first.ljust(widths[0]), *cells]).rstrip()[:WIDTH])
        return [*found, *(line for text in self.sentences(cell) for line in wrapped(text))]


def wrapped(text: str) -> list[str]:
    """Return the lines of a text on the terminal."""
    return textwrap.wrap(plain(text), WIDTH, subsequent_indent="  ", max_lines=MOST_LINES, placeholder=" …")
