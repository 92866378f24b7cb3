"""One cell's figures on a terminal: latency, speedup with its interval, and the marks that stand beside a colour."""

from __future__ import annotations

from rich.text import Text

from records.record import Record
from records.statuses import CONSTANT, PROGRAM_DIFFERS, ZERO
from reports.numbers import ratio, span, text_of

UNCERTAIN, FASTER, SLOWER, FASTEST = "~", "▲", "▼", "*"
WIDTH = 36  # of what `in_a_line` makes, but for a flag and for figures of more digits than usual
STYLES = {FASTER: "green", SLOWER: "red", UNCERTAIN: "yellow"}
# Flags that speak of the cell itself and not of the machine, which are told where they are raised.
OF_THE_CELL = (
    *("recompiled", PROGRAM_DIFFERS, "threads_exceeded", "roofline_exceeded", "not_compared"),
    *(ZERO, CONSTANT),
)


def is_uncertain(record: Record, figure: str) -> bool:
    """Return whether `latency` or `ratio` is less certain than the profile promises, or was disturbed."""
    return record.figure_status(figure) in ("noisy", "disturbed")


def direction(record: Record) -> str:
    """Return faster or slower than eager as far as the interval tells; empty where it tells neither."""
    interval = None if record.excluded else record.speedup
    if interval is None:
        return ""
    return FASTER if interval.low > 1 else SLOWER if interval.high < 1 else ""


def figures(record: Record, fastest: bool = False) -> list[Text]:
    """Return latency, speedup and interval of a cell as far as it has them, or how it ended."""
    if not record.is_measured:
        return [Text(record.status, style="yellow")]
    latency = Text(text_of(record.median_ms), style="bold" if fastest else "")
    latency.append(FASTEST if fastest else "")
    latency.append(UNCERTAIN if is_uncertain(record, "latency") else "", style=STYLES[UNCERTAIN])
    if record.is_baseline or record.speedup_vs_eager is None:
        return [latency]
    mark = direction(record)
    speedup = Text(f"{ratio(record.speedup_vs_eager)}×{mark}", style=STYLES.get(mark, ""))
    speedup.append(UNCERTAIN if is_uncertain(record, "ratio") else "", style=STYLES[UNCERTAIN])
    interval = record.speedup
    return [latency, speedup, *([Text(span(interval.low, interval.high, ratio))] if interval else [])]


def in_a_line(record: Record) -> Text:
    """Return the same in a line, figures under each other, and the first flag that is the cell's own."""
    shown = figures(record)
    if not record.is_measured:
        return shown[0]
    latency, *others = shown
    line = Text(" " * max(0, 8 - len(latency.plain.rstrip(UNCERTAIN)))) + latency.append(" ms", style="")
    line.pad_right(max(0, 12 - len(line.plain)))
    for text, width in zip(others, (9, 13), strict=False):
        line = line + " " + text
        line.pad_right(max(0, width - len(text.plain)))
    flags = [name for name in (record.flags or "").split(";") if name in OF_THE_CELL]
    if flags:
        line = line + Text(f" {flags[0]}", style=STYLES[UNCERTAIN])
    line.rstrip()
    return line
