"""What compiling costs: total time over the number of calls, and after how many calls it has paid for itself."""

from __future__ import annotations

from reports import drawing, facts
from reports.content import Chart, Figure, Panel, Row, Section, Table, number, text_of
from reports.material import FEW_LAUNCHES, Material
from reports.points import Point
from reports.sections.answer import busiest, tags
from reports.verdict import Verdict
from reports.verdict.places import Shape

CALLS = (100, 1_000, 10_000)
COLUMNS = (
    *("shape", "mode", "first call eager, s", "graph, s", "saved per call, ms", "pays after calls", "range"),
    *(f"at {calls:,} calls" for calls in CALLS),
)
SENTENCES = (
    "The first call of a graph mode compiles; in engines that compile ahead of time, loading the model does and is "
    "counted with it.",
    "What a call saves is eager's median × (1 − 1/speedup). The range is the break-even at both ends of the speedup's "
    "interval, open where the graph may be no faster; “cannot be told” where the range holds that number of calls.",
)
ENDS = (1, 100_000)  # calls in the chart
STEPS = 10
AXES = (
    "seconds from the first call on, over number of calls; both axes logarithmic; where a mode's line falls below "
    "eager's, compiling has paid for itself"
)


def section(material: Material) -> Section | None:
    """A panel for each setting with pairs whose first calls are known."""
    groups = []
    for key, verdict in enumerate(material.verdicts):
        pairs = [pair for point in verdict.setting.points if (pair := material.pair_of.get(id(point)))]
        if known := [pair for pair in pairs if pair.extra_s is not None]:
            groups.append((str(key), verdict, known))
    if not groups:
        return None
    pairs = [pair for *_, known in groups for pair in known]
    caches = {pair.graph["compile_cache"] for pair in pairs}
    cold = ["Compile caches were empty before the first launch; later ones load what it compiled."]
    few = [FEW_LAUNCHES] if any(pair.few_launches and pair.gain_s for pair in pairs) else []
    sentences = (*SENTENCES, *few, *([] if caches - {"cold"} else cold))
    return Section.of("compiling", "Cost of compiling", sentences, groups, lambda group: _panel(material, *group))


def _panel(material: Material, key: str, verdict: Verdict, pairs: list[facts.Pair]) -> Panel:
    charts = []
    first = busiest(verdict)
    shapes = verdict.setting.shapes
    for shape in [one for one in shapes if one in (shapes[0], first, shapes[-1])]:
        points = {id(point) for point in verdict.setting.at[shape]}
        here = [pair for pair in pairs if id(pair.graph) in points]
        if here:
            words = f"Total time over the number of calls at {shape.text}"
            charts.append(Chart(_curves(material, here), words, tags(shape), first=shape is first))
    legend = drawing.legend({material.mode(p): p.series for pair in pairs for p in (pair.eager, pair.graph)})
    table = Table.of(COLUMNS, pairs, _row)
    return Panel(verdict.setting.name, table, tuple(charts), setting=key, legend=legend, axes=AXES)


def _curves(material: Material, pairs: list[facts.Pair]) -> str:
    eager = list({id(pair.eager): pair.eager for pair in pairs}.values())
    rows = [_curve(material, point, 0.0) for point in eager if facts.first_s(point) is not None]
    rows += [_curve(material, pair.graph, pair.saving_s, pair.eager) for pair in pairs]
    return drawing.curves(rows)


def _curve(material: Material, point: Point, saving_s: float | None, eager: Point | None = None) -> drawing.Curve:
    """Total seconds; a graph's calls take eager's time less what its paired speedup saves."""
    each = point["latency_ms_median"] / 1e3
    if eager is not None and saving_s is not None:
        each = eager["latency_ms_median"] / 1e3 - saving_s
    low, high = ENDS
    calls = [low * (high / low) ** (n / STEPS) for n in range(STEPS + 1)]
    places = tuple((count, facts.first_s(point) + (count - 1) * each) for count in calls)
    return drawing.Curve(point.series, material.mode(point), places)


def _row(pair: facts.Pair) -> Row:
    graph, calls, saving_s = pair.graph, pair.pays_after, pair.saving_s
    cells = (
        Shape.of(graph.record).text,
        graph.series,
        number(facts.first_s(pair.eager)),
        number(facts.first_s(graph)),
        number(None if saving_s is None else saving_s * 1e3),
        Figure(f"{calls:,.0f}", calls) if calls is not None else _never(pair),
        _range(pair) if calls is not None else "",
        *(_paid(pair, number_of_calls) for number_of_calls in CALLS),
    )
    return Row(cells, graph.tags)


def _range(pair: facts.Pair) -> str:
    if pair.break_even is None:
        return ""
    low, high = pair.break_even
    return f"{low:,.0f} to {'never' if high is None else f'{high:,.0f}'}{facts.within(pair.few_launches)}"


def _paid(pair: facts.Pair, calls: int) -> str:
    saved, answer = pair.saved_s(calls), pair.pays(calls)
    if saved is None or answer == facts.UNCERTAIN:
        return answer
    return f"{answer}, {'saves' if saved.value > 0 else 'costs'} {text_of(abs(saved.value))} s"


def _never(pair: facts.Pair) -> str:
    """What is said where no call saves anything: that it never pays is known only of a graph that is slower."""
    if pair.saving_s is None:
        return facts.UNCERTAIN
    if pair.verdict != facts.SLOWER:
        return "not shown to be faster"
    if pair.extra_s is None:
        return facts.UNCERTAIN
    told = "never: slower" if pair.extra_s >= 0 else "slower, but for its first call"
    return told + facts.within(pair.few_launches)
