"""How close cells come to what the machine can do, and what their time is spent on."""

from __future__ import annotations

from reports import charts
from reports.content import Chart, Panel, Row, Section, Table, number
from reports.material import Material
from reports.points import Point, grouped, machine_of

ROOFLINE = (
    "Each point is a cell: how much arithmetic it does per byte it moves, and how much of it per second. The dashed "
    "lines are what the machine reached with a large matrix product and a large copy, measured in the same run.",
    "A point near a line cannot be much faster. One far below waits for something else, such as the host.",
)
REGIMES = (
    "What a cell's time is spent on: compute (arithmetic) or bandwidth (moving data), where that explains at least "
    "40 % of the time at the machine's peaks; else latency (operators far from any roof) or overhead (around them, "
    "as a rule the host). Graph mode helps most where it is overhead. Records of earlier versions may say mixed.",
)
COLUMNS = (
    "workload",
    "shape",
    "mode",
    "FLOP per byte",
    "TFLOP/s",
    "peak, TFLOP/s",
    "% of peak",
    "% explained",
    "regime",
)


def roofline_section(material: Material) -> Section | None:
    """One panel for each device, dtype and number of threads whose peaks were measured."""
    known = [p for p in material.points.measured if p["intensity"] and p["achieved_tflops"] and p["peak_tflops"]]
    groups = list(grouped(known, lambda p: (p["device"], p["dtype"], p["threads"], machine_of(p.record))).values())
    if not groups:
        return None
    make = lambda group: _roofline(group, material)  # noqa: E731
    return Section.of("roofline", "Roofline", ROOFLINE, groups, make)


def _roofline(group: list[Point], material: Material) -> Panel:
    first = group[0]
    title = f"{first['device']} {first['dtype']}, {first['threads']} threads"
    if len(material.points.machines) > 1:
        title += f", on {material.points.machines[machine_of(first.record)]}"
    table = Table.of(COLUMNS, group, _roofline_row)
    drawn = [
        {
            "series": p.series,
            "shape": f"{p['workload']} {p['implementation']}, {p.shape}",
            **p.tags,
            "intensity": p["intensity"],
            "achieved": p["achieved_tflops"],
        }
        for p in group[: len(table.rows)]
    ]
    peaks = dict.fromkeys((_whose(p), p["peak_tflops"], p["peak_gb_per_s"]) for p in group)
    roofs = [
        {"name": f"peak {whose}: {tflops:.3g} TFLOP/s, {rate:.0f} GB/s", "tflops": tflops, "gb_per_s": rate}
        for whose, tflops, rate in peaks
        if rate
    ]
    words = f"Roofline of {title}. The table holds the same figures."
    return Panel(title, table, Chart(charts.roofline(drawn, roofs, material.points.series), words))


def _whose(point: Point) -> str:
    """Earlier records know no peak but their framework's."""
    return "with any framework" if point["framework_peak_tflops"] else f"with {point['framework']}"


def _roofline_row(point: Point) -> Row:
    cells = (
        f"{point['workload']} {point['implementation']}",
        point.shape,
        point.series,
        number(point["intensity"]),
        number(point["achieved_tflops"]),
        number(point["peak_tflops"]),
        number(point["mfu_pct"]),
        number(None if point["explained_share"] is None else 100 * point["explained_share"]),
        point["regime"] or "",
    )
    return Row(cells, point.tags)


def regime_section(material: Material) -> Section | None:
    """One panel for each setting with cells whose regime is known."""
    known = [point for point in material.points.measured if point["regime"]]
    groups = list(grouped(known, lambda point: point.setting).values())
    return Section.of("regimes", "Regime map", REGIMES, groups, _regimes) if groups else None


def _regimes(group: list[Point]) -> Panel:
    shapes = list(dict.fromkeys(point.shape for point in group))
    rows, drawn = [], []
    for series, own in grouped(group, lambda point: point.series).items():
        found = {point.shape: point["regime"] for point in own}
        rows.append(Row((series, *(found.get(shape, "") for shape in shapes)), own[0].tags))
        drawn += [
            {
                "series": series,
                "framework": own[0]["framework"],
                "column": shape,
                "regime": regime,
                "letter": regime[0].upper(),
            }
            for shape, regime in found.items()
        ]
    words = f"Regime of every mode at every shape: {group[0].setting}. The table holds the same."
    table = Table.of(("mode", *shapes), rows)
    return Panel(group[0].setting, table, Chart(charts.tiles(drawn), words))
