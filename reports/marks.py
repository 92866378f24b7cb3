"""One cell's figures on a terminal: latency, speedup with its interval, and the marks that stand beside a colour."""

from __future__ import annotations

from rich.text import Text

from measurement.exclusion import CONSTANT, PROGRAM_DIFFERS, ZERO, excluded
from measurement.schema import MEASURED, Record, figure_status, is_baseline
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
    return figure_status(record, figure) in ("noisy", "disturbed")


def direction(record: Record) -> str:
    """Faster or slower than eager as far as the interval tells; empty where it tells neither."""
    low, high = record.get("speedup_ci_low"), record.get("speedup_ci_high")
    if low is None or high is None or excluded(record):
        return ""
    return FASTER if low > 1 else SLOWER if high < 1 else ""


def figures(record: Record, fastest: bool = False) -> list[Text]:
    """Latency, speedup and interval of a cell as far as it has them, or how it ended."""
    if record["status"] not in MEASURED:
        return [Text(record["status"], style="yellow")]
    latency = Text(text_of(record["latency_ms_median"]), style="bold" if fastest else "")
    latency.append(FASTEST if fastest else "")
    latency.append(UNCERTAIN if is_uncertain(record, "latency") else "", style=STYLES[UNCERTAIN])
    if is_baseline(record) or record.get("speedup_vs_eager") is None:
        return [latency]
    mark = direction(record)
    speedup = Text(f"{ratio(record['speedup_vs_eager'])}×{mark}", style=STYLES.get(mark, ""))
    speedup.append(UNCERTAIN if is_uncertain(record, "ratio") else "", style=STYLES[UNCERTAIN])
    if record.get("speedup_ci_low") is None:
        return [latency, speedup]
    return [latency, speedup, Text(span(record["speedup_ci_low"], record["speedup_ci_high"], ratio))]


def in_a_line(record: Record) -> Text:
    """The same in a line, figures under each other, and the first flag that is the cell's own."""
    shown = figures(record)
    if record["status"] not in MEASURED:
        return shown[0]
    latency, *others = shown
    line = Text(" " * max(0, 8 - len(latency.plain.rstrip(UNCERTAIN)))) + latency.append(" ms", style="")
    line.pad_right(max(0, 12 - len(line.plain)))
    for text, width in zip(others, (9, 13), strict=False):
        line = line + " " + text
        line.pad_right(max(0, width - len(text.plain)))
    flags = [name for name in (record.get("flags") or "").split(";") if name in OF_THE_CELL]
    if flags:
        line = line + Text(f" {flags[0]}", style=STYLES[UNCERTAIN])
    line.rstrip()
    return line
