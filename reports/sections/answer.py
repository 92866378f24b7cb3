"""The answer for each setting: what to do, what is fastest, when it pays, whether to trust it, and a chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from analysis import facts
from analysis.points import Point
from analysis.rules import STAY, USE
from analysis.settings import Shape
from measurement.statistics import ENOUGH_LAUNCHES, INCONCLUSIVE
from measurement.text import times
from reports import drawing
from reports.content import MOST_CHARTS, Card, Chart, Panel, Row, Section, Table, number
from reports.material import Material
from reports.numbers import ratio, span, text_of
from reports.remarks import unequal_machines, within
from reports.verdict import Fastest, Verdict, wording

COLUMNS = ("shape", "fastest", "ms", "next framework", "ms ", "times as long (95 %)", "real?", "elsewhere")
AXIS = "ms per call, less is better; the axis is logarithmic, bars are 95 % intervals"
STRANGERS = (
    "Machines are not compared: a framework that ran a shape on another one is named with its time, and is not ranked. "
    "ACROSS=1 ranks all machines together."
)
KINDS = {USE: ("Yes", "good"), STAY: ("No", "bad"), INCONCLUSIVE: ("Inconclusive", "unsure")}


def section(material: Material) -> Section:
    """Return a panel for each setting."""
    remarks = unequal_machines(point.record for point in material.points.all)
    if not material.verdicts:
        remarks.insert(0, "Nothing was measured, so nothing is said.")
    if any(verdict.setting.strangers for verdict in material.verdicts):
        remarks.append(STRANGERS)
    groups = list(enumerate(material.verdicts))
    return Section.make(
        "answer", "The answer", remarks, groups, lambda group: _panel(material, str(group[0]), group[1])
    )


def _panel(material: Material, key: str, verdict: Verdict) -> Panel:
    shapes = list(verdict.fastest)
    first = busiest(verdict)
    drawn = [shape for n, shape in enumerate(shapes) if n < MOST_CHARTS or shape is first]
    charts = tuple(_chart(material, verdict, shape, shape is first) for shape in drawn)
    table = Table.make(COLUMNS, [verdict.fastest[shape] for shape in shapes], _fastest_row).filled()
    sentences = [*verdict.sentences, *verdict.contradictions] or ["No mode was measured beside eager mode."]
    sentences += [verdict.unlike] if verdict.unlike else []
    return Panel(verdict.setting.name, table, charts, tuple(sentences), key, axes=AXIS)


def busiest(verdict: Verdict) -> Shape | None:
    """Return the first of the shapes that most frameworks ran, here or elsewhere."""
    count = lambda one: len({rank.point.record.framework for rank in one.ranks}) + len(one.absent)  # noqa: E731
    return max(verdict.fastest, key=lambda shape: count(verdict.fastest[shape]), default=None)


def tags(shape: Shape) -> dict[str, str]:
    """Return what a picture of this shape is chosen by."""
    known = {"batch": shape.batch, "tokens": shape.length, "shape": shape.rest or None}
    return {name: str(value) for name, value in known.items() if value is not None}


def _chart(material: Material, verdict: Verdict, shape: Shape, first: bool) -> Chart:
    fastest = verdict.fastest[shape]
    ranked = [rank.point for rank in fastest.ranks]
    excluded = [point for point in verdict.setting.at[shape] if point.excluded]
    rows = [_dot(material, point) for point in ranked]
    rows += [_dot(material, point, note=f"excluded: {point.excluded}") for point in excluded]
    rows.sort(key=lambda row: row.value)
    rows += [  # last, for the first row is read as the fastest
        _dot(material, absent.point, note=f"not ranked: {absent.machine}", absent=True) for absent in fastest.absent
    ]
    words = f"Latency of every mode at {shape.text}, the fastest first"
    return Chart(drawing.dots(rows), words, tags(shape), tuple(_cards(verdict, shape, fastest)), first)


def _dot(material: Material, point: Point, note: str = "", absent: bool = False) -> drawing.Dot:
    text = f"{text_of(point.median_ms)} ms"
    ends = point.record.latency_ms_ci_low, point.record.latency_ms_ci_high
    name = f"{point.record.framework} {point.record.mode}" if absent else point.series
    value, mode = point.median_ms, material.mode(point)
    return drawing.Dot(name, material.look(point), value, text, *ends, note=note, mode=mode, absent=absent)


def _cards(verdict: Verdict, shape: Shape, fastest: Fastest) -> Iterable[Card]:
    here = [(advice, judged) for advice in verdict.advice for judged in advice.judged if judged.shape == shape]
    if here:
        kinds = {advice.kind for advice, _ in here}
        answer, kind = KINDS[kinds.pop()] if len(kinds) == 1 else ("It depends", "unsure")
        yield Card("Compile?", answer, tuple(_advised(advice, judged) for advice, judged in here), kind)
    first = fastest.ranks[0].point
    others = [fastest.second] if fastest.second else []
    lines = [f"95 %: {span(first.latency.low, first.latency.high)} ms"] if first.latency else []
    lines += [f"{point.series}, {text_of(point.median_ms)} ms, may be as fast" for point in fastest.alike]
    lines += [
        f"then {rank.point.series}, {text_of(rank.point.median_ms)} ms"
        + (
            f" ({ratio(rank.ratio.value)}× the time, {wording.certain(rank.ratio)})"
            if rank.ratio and rank.told_apart
            else ", not shown to be slower"
        )
        for rank in others
    ]
    lines += [absent.sentence for absent in fastest.absent]
    yield Card("Fastest", f"{first.series}, {text_of(first.median_ms)} ms", tuple(lines))
    costs = [(advice.framework, text) for advice, judged in here if (text := wording.pays_at(advice, judged))]
    if costs:
        # Of the fastest framework, where it compiles.
        costs.sort(key=lambda cost: cost[0] != first.record.framework)
        (framework, text), *rest = costs
        answer, _, more = text.partition(" (")
        lines = [f"{framework}{f', {more[:-1]}' if more else ''}", *(f"{name}: {text}" for name, text in rest)]
        yield Card("Does compiling pay?", answer[:1].upper() + answer[1:], tuple(lines))
    yield _trust(verdict.setting.at[shape])


def _advised(advice, judged) -> str:
    point = judged.mode(advice.mode) if advice.kind == USE else None
    if advice.kind == STAY:
        return f"{advice.framework}: eager, {text_of(judged.eager.median_ms)} ms"
    if point is None:
        return f"{advice.framework}: {INCONCLUSIVE}"
    call = f"{advice.framework}: {advice.words.call or advice.mode}"
    if not advice.deployed or not point.speedup:
        return call
    return f"{call}, {ratio(point.speedup.value)}× as fast as eager ({wording.certain(point.speedup)})"


def _fastest_row(fastest: Fastest) -> Row:
    first = fastest.ranks[0].point
    second = fastest.second
    cells = (
        fastest.shape.text,
        first.series,
        number(first.median_ms),
        second.point.series if second else "",
        number(second.point.median_ms) if second else "",
        number(second.point.median_ms / first.median_ms, second.ratio, ratio) if second else "",
        _is_real(second) if second else "",
        "; ".join(absent.time for absent in fastest.absent),
    )
    return Row(cells, tags(fastest.shape))


def _is_real(rank: facts.Rank) -> str:
    """Return whether a mode is shown to be slower than the fastest."""
    return "yes" + within(rank.few_launches) if rank.told_apart else INCONCLUSIVE


def _trust(points: Sequence[Point]) -> Card:
    """Return whether the figures of one shape may be trusted, with what was checked and what speaks against them."""
    compared = sum(point.record.parity_reference is not None for point in points)
    unsure = sum(not point.record.on_target for point in points)
    fewest = min((point.record.launches or 1 for point in points), default=1)
    machines = len({point.record.machine for point in points})
    excluded = Counter(point.excluded for point in points if point.excluded)
    alone = sum(not point.eager and point.record.speedup_vs_eager is None for point in points)
    unknown = sum(point.record.program == "unknown" for point in points)
    processes = "one process" if fewest == 1 else f"{fewest} processes or more"
    lines = [f"{unsure} of {len(points)} figures miss their half-width" if unsure else "every figure is on target"]
    lines += [f"{compared} of {len(points)} outputs compared with a reference{', all agree' if compared else ''}"]
    lines += [f"{processes} each, {'one machine' if machines == 1 else f'{machines} machines'}"]
    against = [f"{count} excluded: {reason}" for reason, count in excluded.items()]
    against += [f"{times(alone, 'graph')} not timed in turn with eager mode"] if alone else []
    against += [f"the program of {times(unknown, 'graph')} is not known"] if unknown else []
    sure = not unsure and not against and machines == 1 and fewest >= ENOUGH_LAUNCHES
    answer, kind = ("Yes", "good") if sure else ("With care", "unsure")
    return Card("Can I trust it?", answer, (*lines, *against), kind)
