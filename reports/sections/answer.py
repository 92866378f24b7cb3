"""The answer for each setting: a recommendation at each shape, a chart, and all figures in one table."""

from __future__ import annotations

from collections.abc import Iterable

from analysis import facts
from analysis.answers import Answer, Trust
from analysis.points import Point
from analysis.rules import USE, Choice
from analysis.settings import Setting, Shape
from reports import answers, drawing
from reports.content import MOST_CHARTS, Card, Chart, Figure, Item, Panel, Row, Section, Table, number
from reports.numbers import SLOWED, in_ms, marked, multiple, plus_minus
from reports.numbers import speedup as in_a_table
from reports.remarks import unequal_machines
from reports.report_data import ReportData

COLUMNS = (
    *("mode", "shape", "ms", "±", "× eager", "share of bound", "first call, s", "pays after calls", "memory, MB"),
    "bottleneck",
)
AXIS = "Lower is better. The axis is logarithmic, lines are 95 % intervals, and hollow marks are eager modes."
SENTENCES = (
    "± is half the width of the 95 % interval. The speedup is eager's time over the mode's, from interleaved calls "
    "in the same processes; it is not the quotient of the two medians. Compare frameworks by milliseconds.",
    "The first call compiles. Compiling pays for itself after the calls whose savings equal the extra time of the "
    "first call; the 95 % interval is in brackets.",
    "The bottleneck is compute or bandwidth if this explains at least 40 % of the time at measured peaks. Otherwise "
    "it is latency (operators far from any peak) or overhead (mostly Python on the host).",
    "Memory is the peak that the framework reports: compare modes of one framework. A mode's bound is the largest "
    "speedup that the machine's peaks allow (roofline), or for a replay of eager's kernels the device's busy time.",
)


def section(data: ReportData) -> Section:
    """Return a panel for each setting."""
    remarks = unequal_machines(point.record for point in data.points.all)
    if not data.answers:
        profiles = "These runs contain profiles only." if data.profiles else ""
        remarks.insert(0, profiles or "Nothing was measured.")
    elif any(_unlike(found[0].setting) for found in data.answers):
        remarks.append(answers.LIBRARY)
    groups = list(enumerate(data.answers))
    sentences = (*remarks, *(SENTENCES if groups else ()))
    return Section.make("answer", "The answer", sentences, groups, lambda group: _panel(data, str(group[0]), group[1]))


def _unlike(setting: Setting) -> bool:
    """Return whether frameworks are ranked by their libraries' models."""
    frameworks = {point.record.framework for point in setting.points}
    return setting.points[0].record.implementation == "library" and len(frameworks) > 1


def _panel(data: ReportData, key: str, found: list[Answer]) -> Panel:
    first = busiest(found)
    drawn = [answer for n, answer in enumerate(found) if n < MOST_CHARTS or answer is first]
    charts = tuple(_chart(data, answer, answer is first) for answer in drawn)
    rows = [(answer, point) for answer in found for point in sorted(answer.points, key=lambda point: point.median_ms)]
    table = Table.make(COLUMNS, rows, lambda row: _row(*row)).filled()
    notes = tuple(line for answer in found for line in in_words(answer))
    return Panel(found[0].setting.name, table, charts, notes, key, axes=AXIS)


def busiest(found: list[Answer]) -> Answer:
    """Return the first of the answers with most frameworks, here or elsewhere."""
    return max(found, key=lambda answer: len(answer.choices) + len(answer.elsewhere))


def in_words(answer: Answer) -> Iterable[str]:
    """Yield the recommendation at a shape, one sentence per framework, then the fastest; for Markdown."""
    for choice in answer.choices:
        yield f"{choice.framework} at {answer.shape.text}: {answers.what_to_do(choice)}, {_figures(choice)}."
    yield from filter(None, (answers.fastest(answer), *answers.pays(answer), *answers.rest(answer)))
    yield from answers.again(answer)


def _figures(choice: Choice) -> str:
    """Return `0.768 ms ±0.3 %, 5.27× eager (4.28–6.49)`."""
    point, beside = choice.point, choice.compared
    parts = [marked(in_ms(point.median_ms, point.latency), point.record.slowed)]
    if beside and beside.speedup and beside.record.headline:
        named = "" if choice.kind == USE else f"{beside.record.mode} "
        parts.append(f"{named}{multiple(beside.speedup).replace('×', '× eager', 1)}")
    return ", ".join(parts)


def tags(shape: Shape) -> dict[str, str]:
    """Return the values by which the page selects a picture of this shape."""
    known = {"batch": shape.batch, "tokens": shape.length, "shape": shape.rest or None}
    return {name: str(value) for name, value in known.items() if value is not None}


def _chart(data: ReportData, answer: Answer, first: bool) -> Chart:
    idle = {id(point) for point in answer.undeployed}
    points = sorted((p for p in answer.points if id(p) not in idle), key=lambda point: point.median_ms)
    rows = [_dot(data, point) for point in points]
    words = f"Latency of every mode at {answer.shape.text}, the fastest first"
    notes = (*answers.folded(answer), *answers.again(answer))
    return Chart(drawing.dots(rows), words, tags(answer.shape), _card(answer), notes, first)


def _dot(data: ReportData, point: Point) -> drawing.Dot:
    text = in_ms(point.median_ms, point.latency)
    ends = point.record.latency_ms_ci_low, point.record.latency_ms_ci_high
    note = f"excluded: {point.excluded}" if point.excluded else SLOWED if point.record.slowed else ""
    return drawing.Dot(point.series, data.look(point), point.median_ms, text, *ends, note=note, mode=data.mode(point))


def _card(answer: Answer) -> Card:
    items = (
        Item(
            choice.framework,
            choice.words.call if choice.kind == USE and choice.words.call else answers.what_to_do(choice),
            choice.kind == USE and bool(choice.words.call),
            _figures(choice),
            choice.kind,
        )
        for choice in answer.choices
    )
    sentences = filter(
        None,
        (
            answers.fastest(answer),
            *answers.pays(answer),
            *answers.besides(answer),
        ),
    )
    trust = answers.trust(Trust.from_records([point.record for point in answer.points]))
    return Card(tuple(items), (*sentences, f"Trust: {trust}."))


def _row(answer: Answer, point: Point) -> Row:
    compared = answer.compares(point)
    pair = answer.pair(point) if compared else None
    excluded = f"excluded: {point.excluded}" if point.excluded else ""
    cells = (
        point.series,
        answer.shape.text if len(answer.setting.shapes) > 1 else "",
        number(point.median_ms),
        Figure(plus_minus(point.latency), point.latency.relative_half_width) if point.latency else "",
        excluded or (_speedup(point) if compared or point.record.slowed else ""),
        _reached(point) if compared and not excluded else "",
        number(facts.first_s(point)),
        _pays(pair) if pair else "",
        number(point.record.peak_memory_mb),
        point.record.bottleneck or "",
    )
    return Row(cells, {"mode": point.series, **tags(answer.shape)})


def _speedup(point: Point) -> str | Figure:
    """Return a mode's speedup, or that the host was too slow for it or for the mode's own time."""
    value = None if point.eager else point.record.speedup_vs_eager
    if point.record.slowed or (value is not None and not point.record.headline):
        return SLOWED
    return "" if value is None else Figure(in_a_table(value, point.speedup), value)


def _reached(point: Point) -> str | Figure:
    """Return a mode's share of the largest possible speedup."""
    share = None if point.eager else facts.reached(point.record)
    return "" if share is None else Figure(f"{100 * share:.0f} %", share)


def _pays(pair: facts.Pair) -> str | Figure:
    """Return the calls after which compiling has paid; empty where a faster graph's first call takes no longer.

    `never` is only for a slower graph.
    """
    if pair.pays_after is not None:
        return Figure(answers.break_even(pair), pair.pays_after)
    if pair.extra_s is None or pair.saving_s is None:
        return ""
    return {facts.SLOWER: "never", facts.FASTER: ""}.get(pair.verdict, "not shown to be faster")
