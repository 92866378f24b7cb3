"""Whether a setting's figures may be trusted: what was checked, and what speaks against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from measurement.exclusion import unknown_program
from measurement.statistics import ENOUGH_LAUNCHES
from measurement.text import times
from reports.content import Card
from reports.points import Point, machine_of
from reports.verdict import Setting

YES, BUT = "✓", "!"


def card(points: Sequence[Point]) -> Card:
    """Whether the figures of one shape may be trusted."""
    unsure = sum(point["status"] != "ok" for point in points)
    fewest = min((point["launches"] or 1 for point in points), default=1)
    excluded = sum(point.excluded is not None for point in points)
    machines = len({machine_of(point.record) for point in points})
    lines = [f"{unsure} of {len(points)} figures are noisy or disturbed" if unsure else "no figure is noisy"]
    processes = "one process" if fewest == 1 else f"{fewest} processes or more"
    lines.append(f"{processes} each, {'one machine' if machines == 1 else f'{machines} machines'}")
    lines += [f"{excluded} {'is' if excluded == 1 else 'are'} excluded"] * (excluded > 0)
    unknown = sum(unknown_program(point.record) for point in points)
    lines += [f"the program of {times(unknown, 'graph')} is not known"] * (unknown > 0)
    sure = not unsure and not excluded and not unknown and machines == 1 and fewest >= ENOUGH_LAUNCHES
    return Card("Can I trust it?", "Yes" if sure else "With care", tuple(lines), "good" if sure else "unsure")


def checks(setting: Setting) -> list[str]:
    """The checks of a whole setting in few words each, with a tick or an exclamation mark before them."""
    points = setting.points
    checked = sum(point["parity_reference"] is not None for point in points)
    mark, agree = YES if checked == len(points) else BUT, ", all agree" if checked else ""
    lines = [f"{mark} {checked} of {len(points)} outputs compared with a reference{agree}"]
    graphs = [point for point in points if not point.eager]
    paired = sum(point["speedup_vs_eager"] is not None for point in graphs)
    if graphs:
        mark = YES if paired == len(graphs) else BUT
        lines.append(f"{mark} {paired} of {len(graphs)} compiled figures timed in turn with eager's")
    launches = [point["launches"] for point in points if point["launches"]]
    if launches:
        fewest = min(launches)
        processes = "one process each" if fewest == 1 else f"{times(fewest, 'process', 'processes')} or more each"
        lines.append(f"{YES if fewest >= ENOUGH_LAUNCHES else BUT} {processes}")
    excluded = Counter(point.excluded for point in points if point.excluded)
    lines += [f"{BUT} {count} excluded: {reason}" for reason, count in excluded.items()]
    unknown = sum(unknown_program(point.record) for point in points)
    lines += [f"{BUT} {times(unknown, 'program')} not known"] if unknown else []
    noisy = sum(point["status"] == "noisy" for point in points)
    disturbed = sum(point["status"] == "disturbed" for point in points)
    unsure = [f"{count} {name}" for count, name in ((noisy, "noisy"), (disturbed, "disturbed")) if count]
    lines += [f"{BUT} of {len(points)} figures {', '.join(unsure)}"] if unsure else [f"{YES} no figure is noisy"]
    return lines
