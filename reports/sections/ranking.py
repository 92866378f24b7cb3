"""Framework against framework: the latency of every mode at each shape that several of them ran."""

from __future__ import annotations

from functools import partial

from measurement.schema import is_noisy
from reports import charts, facts
from reports.content import Chart, Panel, Row, Section, Table, number, span, times
from reports.material import FEW_LAUNCHES, Material

SENTENCES = (
    "Only cells whose outputs agree with the reference are here. The fastest stands first.",
    "A difference from the fastest is real where the interval of the ratio of both times lies above 1 and comes "
    "from three launches or more; it is made from the intervals of the two, which were not timed in turn, so a few "
    "percent may also be the machine's.",
)
LIBRARY = "Library models differ in more than their framework; the plain implementation compares the frameworks alone."
OVERVIEW = ("setting", "shape", "fastest", "ms", "next framework", "ms ", "times as long", "95 % interval", "real?")
COLUMNS = ("mode", "latency, ms", "95 % interval", "times the fastest", "95 % interval ", "slower?")


def section(material: Material) -> Section | None:
    """The fastest at each shape in one table, then a panel a shape."""
    contests = material.contests
    if not contests:
        frameworks = {point["framework"] for point in material.points.measured}
        if len(frameworks) < 2:
            return None
        why = (
            "The frameworks ran the same shapes on different machines, which are compared if ACROSS=1 asks for it."
            if facts.only_across_machines(material.points.measured)
            else "No two frameworks ran the same shape."
        )
        return Section("frameworks", "Which framework is fastest", (why,))
    few = [FEW_LAUNCHES] if any(rank.told_apart and rank.few_launches for ranks in contests for rank in ranks) else []
    library = [LIBRARY] if any(ranks[0].point["implementation"] == "library" for ranks in contests) else []
    across = {rank.point["machine_id"] for ranks in contests for rank in ranks}
    machines = (
        ["Asked for: this section compares different machines; each mode's name says which."]
        if any(len({rank.point["machine_id"] for rank in ranks}) > 1 for ranks in contests) and len(across) > 1
        else []
    )
    panels = [_overview] + [partial(_panel, names=material.points.series)] * len(contests)
    groups = list(zip(panels, [contests, *contests], strict=True))
    return Section.of(
        "frameworks",
        "Which framework is fastest",
        (*machines, *SENTENCES, *few, *library),
        groups,
        lambda pair: pair[0](pair[1]),
    )


def _overview(contests: list[list[facts.Rank]]) -> Panel:
    table = Table.of(OVERVIEW, contests, _winner)
    return Panel(f"Fastest at each of {times(table.total, 'shape')}", table)


def _winner(ranks: list[facts.Rank]) -> Row:
    first, second = ranks[0].point, facts.runner_up(ranks)
    ratio = second.ratio
    tags = {axis: value for axis, value in first.tags.items() if axis != "framework"}
    cells = (
        first.setting,
        first.shape,
        first.series,
        number(first["latency_ms_median"]),
        second.point.series,
        number(second.point["latency_ms_median"]),
        number(second.point["latency_ms_median"] / first["latency_ms_median"]),
        span(ratio.low, ratio.high) if ratio else "",
        second.slower,
    )
    return Row(cells, tags)


def _panel(ranks: list[facts.Rank], names: list[str]) -> Panel:
    point = ranks[0].point
    title = f"{point.setting}, {point.shape}"
    drawn = [
        {
            "row": rank.point.series,
            "series": rank.point.series,
            "framework": rank.point["framework"],
            "value": rank.point["latency_ms_median"],
            "low": rank.point["latency_ms_ci_low"],
            "high": rank.point["latency_ms_ci_high"],
            "thin": facts.few_launches(rank.point) is not None,
        }
        for rank in ranks
    ]
    drawing = charts.dots(drawn, "latency, ms (less is better)", names, zero=True)
    words = f"Latency with 95 % intervals: {title}. The table holds the same figures."
    return Panel(title, Table.of(COLUMNS, ranks, _row), Chart(drawing, words))


def _row(rank: facts.Rank) -> Row:
    point, ratio = rank.point, rank.ratio
    slower = "fastest" if rank.fastest else rank.slower
    cells = (
        point.series,
        number(point["latency_ms_median"]),
        span(point["latency_ms_ci_low"], point["latency_ms_ci_high"]),
        number(ratio.value) if ratio else "",
        span(ratio.low, ratio.high) if ratio else "",
        slower + (" (noisy)" if is_noisy(point.record, "latency") else ""),
    )
    return Row(cells, point.tags)
