"""Processes in rounds in words: a cell's name, and lines for a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from analysis.rounds import on_slow_cores
from measurement.flags import OTHER_LOAD, STEAL
from measurement.text import plain, times
from records.process import ProcessRecord
from reports.names import in_words

WIDTH, MOST_LINES = 80, 3  # of a text on a terminal


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
