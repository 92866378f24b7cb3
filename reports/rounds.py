"""Processes in rounds in words: a cell's name, and a table for a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from analysis.rounds import on_slow_cores
from measurement.flags import OTHER_LOAD, STEAL
from measurement.text import plain, times
from records.process import ProcessRecord

WIDTH = 80


def title(record: ProcessRecord) -> str:
    """Return the framework with its version, and the workload."""
    version = f" {record.framework_version}" if record.framework_version else ""
    return f"{record.framework}{version} {record.workload}"


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


def cut(text: str) -> str:
    """Return a text that fits the terminal."""
    return textwrap.shorten(plain(text), WIDTH, placeholder=" …")


def lines(heading: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a heading and a table; a row of two texts has no figures but the reason why."""
    full = [row for row in (head, *rows) if len(row) == len(head)]
    widths = [max(len(row[place]) for row in full) for place in range(len(head))]
    widths[0] = max(len(row[0]) for row in (head, *rows))
    found = [cut(heading)]
    for row in (head, *rows):
        if len(row) == len(head):
            cells = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
            found.append("  ".join([row[0].ljust(widths[0]), *cells]).rstrip()[:WIDTH])
        else:
            found.append(cut(": ".join(row)))
    return found
