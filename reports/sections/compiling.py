"""What compiling costs, and after how many calls it has paid for itself."""

from __future__ import annotations

from reports import charts, facts
from reports.content import Chart, Figure, Panel, Row, Section, Table, number, text_of
from reports.material import FEW_LAUNCHES, Material
from reports.points import Point, grouped

MOST_SHAPES = 4  # of a mode that are named above a chart
CALLS = (100, 1_000, 10_000)
COLUMNS = (
    *("shape", "mode", "first call eager, s", "first call graph, s", "saved per call, ms"),
    *("break-even, calls", "range"),
    *(f"pays at {calls:,}?" for calls in CALLS),
)
SENTENCES = (
    "The first call of a graph mode compiles; in engines that compile ahead of time loading the model does, and counts "
    "as a part of it. It has paid for itself once the calls after it have saved as much time: "
    "the break-even. A point left of the dashed line pays in a process that makes 1,000 calls.",
    "What a call saves is eager's median × (1 − 1/speedup), where the speedup is made of ratios taken pair by pair "
    "(the geometric mean of the launches' medians), not the quotient of two medians. "
    "The CSV's break_even_calls is made from the two medians and may differ.",
    "The range is the break-even at both ends of the speedup's interval; it is open where the graph may be no faster. "
    "“Cannot be told” is said where the range holds that number of calls.",
    "A mode whose speedup is not above 1, or not known, has no break-even and so no point. A mode whose first call "
    "takes no longer than eager's has no point either, for its break-even is 0; it is named above the chart.",
)
FEW_PAY = "What is said of paying rests on the same difference, and holds no further."


def section(material: Material) -> Section | None:
    """One panel for each setting with pairs whose first calls are known."""
    known = [pair for pair in material.pairs if pair.extra_s is not None]
    groups: dict[str, list[facts.Pair]] = {}
    for pair in known:
        groups.setdefault(pair.graph.setting, []).append(pair)
    if not groups:
        return None
    caches = {pair.graph["compile_cache"] for pair in known}
    cold = (
        ()
        if caches - {"cold"}
        else ("Compile caches were empty before the first launch; later ones load what it compiled.",)
    )
    few = [FEW_LAUNCHES, FEW_PAY] if any(pair.few_launches and pair.gain_s for pair in known) else []
    names = material.points.series
    return Section.of(
        "compiling",
        "What compiling costs, and when it pays",
        (*SENTENCES, *few, *cold),
        list(groups.values()),
        lambda group: _panel(group, names),
    )


def _panel(group: list[facts.Pair], names: list[str]) -> Panel:
    table = Table.of(COLUMNS, group, _row)
    several = len({pair.graph.shape for pair in group}) > 1
    drawn = []
    for pair in group[: len(table.rows)]:
        calls, ends = pair.pays_after, pair.break_even
        if calls:  # 0 has no place on a logarithmic axis
            drawn.append(
                {
                    "row": pair.graph.shape if several else pair.graph.series,
                    "series": pair.graph.series,
                    "framework": pair.graph["framework"],
                    "value": calls,
                    "low": ends[0] if ends and ends[1] else None,
                    "high": ends[1] if ends and ends[1] else None,
                }
            )
    setting = group[0].graph.setting
    drawing = charts.dots(drawn, "calls until compiling has paid", names, mark=(1000, "1,000 calls"))
    words = f"Calls until compiling has paid for itself: {setting}. The table holds the same figures."
    return Panel(setting, table, Chart(drawing, words) if drawing else None, _at_once(group))


def _at_once(group: list[facts.Pair]) -> str:
    """The modes whose break-even is 0, each with its shapes."""
    told: dict[bool, list] = {True: [], False: []}
    for pair in group:
        if pair.pays_after == 0:
            told[pair.verdict == facts.FASTER].append(pair.graph)
    begun = {True: "Pays from the first call", False: "Pays from the first call if it is faster, which was not shown"}
    return " ".join(f"{begun[sure]}: {_named(points)}." for sure, points in told.items() if points)


def _named(points: list[Point]) -> str:
    modes = grouped(points, lambda point: point.series).items()
    return ", ".join(f"{series} ({_some([point.shape for point in own])})" for series, own in modes)


def _some(shapes: list[str]) -> str:
    more = f"; {len(shapes) - MOST_SHAPES:,} more in the table" if len(shapes) > MOST_SHAPES else ""
    return "; ".join(shapes[:MOST_SHAPES]) + more


def _row(pair: facts.Pair) -> Row:
    graph, calls, saving_s = pair.graph, pair.pays_after, pair.saving_s
    cells = (
        graph.shape,
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
    if answer == facts.UNCERTAIN:
        return answer
    return f"{answer}, {'saves' if saved.value > 0 else 'costs'} {text_of(abs(saved.value))} s"


def _never(pair: facts.Pair) -> str:
    """What is said where no call saves anything: that it never pays is known only of a graph that is slower."""
    if pair.saving_s is None:
        return facts.UNCERTAIN
    if pair.verdict != facts.SLOWER:
        return "not shown to be faster"
    told = "never: slower" if pair.extra_s >= 0 else "slower, but for its first call"
    return told + facts.within(pair.few_launches)
