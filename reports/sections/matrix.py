"""All modes at all shapes of a setting: one axis of milliseconds, and every figure in one table."""

from __future__ import annotations

from html import escape

from analysis import facts
from analysis.points import Point
from analysis.settings import Shape
from measurement.statistics import INCONCLUSIVE
from reports import drawing
from reports.content import Chart, Figure, Panel, Row, Section, Table, number
from reports.material import Material
from reports.numbers import ratio, text_of
from reports.remarks import within
from reports.sections.answer import tags
from reports.verdict import Verdict

COLUMNS = (
    *("shape", "mode", "ms (95 %)", "× eager (95 %)", "than eager"),
    *("first call, s", "pays after calls", "items/s", "p95, ms", "p99, ms"),
    *("time goes to", "% of peak", "memory, MB", "error"),
)
SENTENCES = (
    "Milliseconds per call; speedup is eager's time over the mode's, from calls timed in turn in one process. Compare "
    "milliseconds, not speedups, between frameworks: a speedup says as much of eager mode as of the graph.",
    "Where the speedup's interval crosses 1, no difference was shown. The speedup is made of ratios taken pair by pair "
    "(the geometric mean of the launches' medians), so it is not the quotient of the two medians.",
    "The first call of a graph mode compiles; in engines that compile ahead of time, loading the model does and is "
    "counted with it. A call saves eager's median × (1 − 1/speedup); compiling pays after as many calls as save what "
    "the first call costs more than eager's, in brackets at both ends of the speedup's interval.",
    "Time goes to compute (arithmetic) or bandwidth (moving data) where that explains at least 40 % of it at the "
    "machine's measured peaks; else to latency (operators far from any peak) or overhead (around them, as a rule "
    "Python on the host). Compiling helps most where it is overhead. Records of earlier versions may say mixed.",
    "p95 and p99 are of single calls, each waited for. % of peak is of the best matrix product of the same run. Peak "
    "memory is the framework's own count, one reading per launch: compare modes of one framework.",
    "The error is the root mean square of the outputs' differences from a reference in float64, as a share of the "
    "outputs' own; errors within a quarter of each other are alike.",
)
COLD = "Compile caches were empty before the first launch; later ones load what it compiled."
FEW_LAUNCHES = (
    "“In 1 launch” (or 2) says that a difference was seen within one process (or two) of a framework, and holds there: "
    "the next process of the same code may be faster or slower by more than the interval."
)
MOST_SHAPES = 40
FLOAT64 = ("numpy", "its own eager mode in float64")  # references that errors are known against
AXIS = "ms per call, less is better; the axis is logarithmic"


def section(material: Material) -> Section | None:
    """Return a panel for each setting that was measured."""
    if not material.verdicts:
        return None
    few = any(facts.few_launches(point) and _compared(point) in facts.DIFFERENT for point in material.points.measured)
    groups = list(enumerate(material.verdicts))
    caches = {point.record.compile_cache for point in material.points.measured if not point.eager}
    sentences = (*SENTENCES, *([COLD] if caches == {"cold"} else []), *([FEW_LAUNCHES] if few else []))
    make = lambda group: _panel(material, str(group[0]), group[1])  # noqa: E731
    return Section.make("matrix", "All figures", sentences, groups, make)


def _panel(material: Material, key: str, verdict: Verdict) -> Panel:
    setting = verdict.setting
    points = [point for shape in setting.shapes for point in _by_time(setting.at[shape])]
    table = Table.make(COLUMNS, points, lambda point: _row(point, material.pair_of.get(id(point)))).filled()
    if len(setting.shapes) == 1:  # which the answer draws
        return Panel(setting.name, table, setting=key)
    rows = [
        (shape.text, tags(shape), [_dot(material, point) for point in _by_time(setting.at[shape])])
        for shape in setting.shapes[:MOST_SHAPES]
    ]
    series = {point.series: point for point in points}
    legend = "".join(_key(material, point) for point in series.values())
    picture = Chart(drawing.spread(rows), "Latency of every mode at every shape; the table holds the same figures")
    return Panel(setting.name, table, (picture,), setting=key, legend=f'<ul class="legend">{legend}</ul>', axes=AXIS)


def _by_time(points: list[Point]) -> list[Point]:
    return sorted(points, key=lambda point: point.median_ms)


def _key(material: Material, point: Point) -> str:
    symbol = f'<svg viewBox="-8 -8 16 16">{drawing.mark(material.look(point))}</svg>'
    return f'<li data-mode="{material.mode(point)}">{symbol} {escape(point.series)}</li>'


def _dot(material: Material, point: Point) -> drawing.Dot:
    value = point.median_ms
    return drawing.Dot(point.series, material.look(point), value, f"{text_of(value)} ms", mode=material.mode(point))


def _compared(point: Point) -> str:
    if point.eager:
        return ""
    return "not beside eager" if point.record.speedup_vs_eager is None else facts.verdict(point.speedup)


def _row(point: Point, pair: facts.Pair | None) -> Row:
    judged = _compared(point)
    judged += within(facts.few_launches(point)) if judged in facts.DIFFERENT else ""
    judged = f"excluded: {point.excluded}" if point.excluded else judged
    speedup = None if point.eager else point.record.speedup_vs_eager
    cells = (
        Shape.of(point.record).text,
        point.series,
        number(point.median_ms, point.latency),
        number(speedup, point.speedup, ratio),
        judged,
        number(facts.first_s(point)),
        _pays(pair) if pair else "",
        number(point.record.items_per_s),
        number(point.record.latency_call_ms_p95),
        number(point.record.latency_call_ms_p99),
        point.record.bottleneck or "",
        number(point.record.mfu_pct),
        number(point.record.peak_memory_mb),
        number(point.record.parity_rel_rms_err) if point.record.parity_reference in FLOAT64 else "",
    )
    return Row(cells, point.tags)


def _pays(pair: facts.Pair) -> str | Figure:
    """Return the calls after which compiling has paid, and their range; that it never pays only of a slower graph."""
    calls, extra_s = pair.pays_after, pair.extra_s
    if extra_s is None:
        return ""
    if calls is not None:
        if pair.break_even is None or calls == 0:
            return Figure(f"{calls:,.0f}", calls)
        low, high = pair.break_even
        return Figure(f"{calls:,.0f} ({low:,.0f} to {'never' if high is None else f'{high:,.0f}'})", calls)
    if pair.saving_s is None:
        return INCONCLUSIVE
    if pair.verdict != facts.SLOWER:
        return "not shown to be faster"
    return "never: slower" if extra_s >= 0 else "slower, but for its first call"
