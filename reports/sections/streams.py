"""A page on streams: cumulated time over calls by strategy, and a table of each strategy's costs."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.streams import Arm, Cell
from measurement.streams import COLD, EAGER, STRATEGIES
from measurement.text import percent
from reports import rounds as words
from reports import streams
from reports.content import Figure, Panel, Row, Section, Table
from reports.numbers import multiple, text_of
from reports.sections import rounds

SENTENCES = (
    "Each process is fresh and serves the same calls one after the other; a call is timed until its output is there. "
    "In each round every strategy serves once, in random order, and ratios are paired by round.",
    "Outputs of padded calls are compared with those of eager mode without padding.",
    "Beyond the stream's end, times are extrapolated: each length that it lacks occurs once, and then no shape is new.",
)
AXES = "vertical: seconds of the stream; horizontal: calls; both logarithmic, with bands for 95 % intervals"
COLUMNS = (
    *("strategy", "caches", "s in all", "speedup", "p50 ms", "p99 ms", "longest s", "new shapes s"),
    *("calls over eager's median", "compilations", "framework's count", "CUDA graphs", "s compiling", "shapes"),
    *("host MB", "host MB growth", "GPU MB growth"),
    *("padding", "tokens/s", "pays, calls", "eager from call"),
)


def html(cells: Sequence[Cell], title: str, command: str) -> str:
    """Return the whole page of a run, with a panel for each cell."""
    section = Section.make("streams", "Calls of different lengths", SENTENCES, cells, _panel)
    return rounds.html(section, STRATEGIES, list(map(streams.heading, cells)), title, command)


def _panel(cell: Cell) -> Panel:
    caches = COLD if any(arm.records for arm in cell.with_caches(COLD)) else cell.arms[0].caches
    drawn = {arm.name: rounds.curve(arm) for arm in cell.with_caches(caches) if arm.records}
    charts, legend = rounds.charts(drawn, STRATEGIES, f"Seconds over calls with {caches} caches, by strategy")
    notes = tuple(streams.sentences(cell))
    table = Table.make(COLUMNS, [arm for arm in cell.arms if arm.records], _row).filled()
    return Panel(streams.heading(cell), table, charts, notes, legend=legend, axes=AXES if charts else "")


def _row(arm: Arm) -> Row:
    def figure(name: str, scale: float = 1.0) -> str | Figure:
        value = arm.average(lambda record: getattr(record, name))
        return "" if value is None else Figure(text_of(value * scale), value * scale)

    speedup = "" if arm.name == EAGER or arm.ratio is None else multiple(arm.ratio)
    slower = arm.slower
    padding = arm.average(lambda record: record.padded_share) or 0.0
    return Row(
        (
            arm.name,
            arm.caches,
            Figure(streams.total(arm), arm.average(lambda record: record.total_s) or 0.0),
            speedup,
            *(figure(name) for name in ("p50_ms", "p99_ms")),
            figure("longest_ms", 1e-3),
            figure("new_shapes_s"),
            "" if slower is None else Figure(text_of(slower), slower),
            *(figure(name) for name in ("compilations", "reported")),
            figure("recorded") if arm.average(lambda record: record.recorded) else "",
            figure("compile_s"),
            figure("shapes"),
            *(figure(name, 1e-6) for name in ("memory_bytes", "memory_growth_bytes", "device_growth_bytes")),
            Figure(percent(padding), padding) if padding else "",
            figure("tokens_per_s"),
            "" if arm.name == EAGER or arm.fell_back else words.pays(arm),
            "" if arm.fell_back is None else Figure(f"{arm.fell_back:,}", arm.fell_back),
        )
    )
