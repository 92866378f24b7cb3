"""An answer in words: the call to type, milliseconds, speedup, ranking, when compiling pays, basis of the figures.

The terminal, the Markdown and the page print these lines; `analysis` decides their contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from analysis import facts, sensitivity
from analysis.answers import Answer, Trust
from analysis.points import Point
from analysis.rules import STAY, USE, Choice
from analysis.settings import Setting
from measurement.statistics import INCONCLUSIVE, Interval
from measurement.text import times
from records.record import Record
from records.statuses import WORDS
from reports.numbers import (
    SLOWED,
    UNCHECKED,
    estimate,
    marked,
    multiple,
    plus_minus,
    ratio,
    rounded,
    speedup,
    text_of,
    width,
)
from reports.remarks import recompilation

# Meaning of flags on the machine, in the line on the basis of figures.
CONDITIONS = {
    "other_load": "other programs in",
    "steal": "steal in",
    "frequency": "changed clock in",
    "host_slowed": "slowed host in",
    "throttled": "throttled GPU in",
}
LIBRARY = "Library models differ between frameworks; IMPL=plain runs the same operators in each."


@dataclass(frozen=True)
class Line:
    """A framework at a shape: the mode to use, its call, and its figures as they are printed."""

    framework: str
    mode: str
    call: str
    ms: str
    width: str
    gain: str
    first: str
    kind: str = ""  # of the answer: use, stay or inconclusive


def lines(answer: Answer) -> Iterable[Line]:
    """Yield a line for each framework, the fastest first; below it the default mode where another one is better."""
    for choice in answer.choices:
        yield _line(choice)
        if choice.default:
            gain = _gain(choice.default) if choice.deployed else ""
            yield Line("", choice.default.record.mode, "", *_figures(choice.default, gain))


def _line(choice: Choice) -> Line:
    point = choice.point
    mode, gain = point.record.mode, ""
    if choice.compared:
        named = "" if choice.kind == USE else f"{choice.compared.record.mode} "
        gain = named + (_gain(choice.compared) or "no interval")
    if choice.kind == INCONCLUSIVE and choice.beside:
        mode, gain = what_to_do(choice), _gain(choice.beside) or "no interval"
    call = choice.words.call if choice.kind == USE else ""
    return Line(choice.framework, mode, call, *_figures(point, gain), choice.kind)


def _gain(point: Point) -> str:
    if not point.record.headline:
        return SLOWED
    return speedup(point.record.speedup_vs_eager, point.speedup)


def _figures(point: Point, gain: str) -> tuple[str, str, str, str]:
    first = None if point.eager else facts.first_s(point)
    seconds = "" if first is None else f"{rounded(first)} s"
    return text_of(point.median_ms), plus_minus(point.latency), _marked(gain, point), seconds


def _marked(gain: str, point: Point) -> str:
    """Return the gain in a point's row, marked once if a slow host lengthened the time of the point."""
    if not point.record.slowed or SLOWED in gain:
        return gain
    return marked(gain, True) if gain else SLOWED


def what_to_do(choice: Choice) -> str:
    """Return a choice in a few words: `use torch.compile(model)`, `stay with eager`."""
    if choice.kind == USE:
        return f"use {choice.words.call or choice.point.record.mode}"
    if choice.kind == STAY:
        return "stay with eager"
    if choice.kind == INCONCLUSIVE and choice.beside:
        return f"{choice.point.record.mode} or {choice.beside.record.mode}: inconclusive"
    return f"{choice.point.record.mode}, not compared"


def fastest(answer: Answer) -> str:
    """Return which framework is fastest, and by how much; several where intervals overlap; empty for one alone.

    Choices whose time a slow host lengthened are named as not ranked.
    """
    if len(answer.choices) < 2:
        return ""
    slowed = ", ".join(name(choice.point) for choice in answer.slowed)
    parts = [*_leading(answer), *([f"not ranked, {SLOWED}: {slowed}"] if slowed else [])]
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _leading(answer: Answer) -> list[str]:
    """Return the clauses on the ranked choices: the fastest, and how much longer the next one takes."""
    leaders = [name(choice.point) for choice in answer.fastest]
    if not leaders:
        return []
    said = f"Fastest: {' or '.join(leaders)}"
    if len(leaders) > 1:
        return [said, "the difference is within the uncertainty"]
    behind = answer.next
    if behind is None or behind.ratio is None:
        return [said]
    longer, _, interval = multiple(behind.ratio).partition(" ")
    return [said, f"{name(behind.point)} takes {longer} as long {interval}"]


def name(point: Point) -> str:
    """Return `torch inductor`."""
    return point.series


def pays(answer: Answer) -> list[str]:
    """Return after how many calls each recommended mode has paid for its first call."""
    return [sentence for choice, pair in answer.used if (sentence := _pays(choice, pair))]


def _pays(choice: Choice, pair: facts.Pair) -> str:
    calls = pair.pays_after
    if calls is None:
        return ""
    if calls < 1:
        return f"{name(choice.point)} pays for itself from the first call."
    after, _, ends = break_even(pair).partition(" (")
    seconds = f"{rounded(calls * pair.eager.median_ms / 1e3)} s of eager calls"
    about = f"{ends.rstrip(')')}; {seconds}" if ends else seconds
    return f"{name(choice.point)} pays for itself after {after} calls ({about})."


def break_even(pair: facts.Pair) -> str:
    """Return the calls after which a mode has paid, with the ends of their interval: `850 (820–890)`."""
    if pair.pays_after is None:
        return ""
    calls = rounded(pair.pays_after)
    if pair.break_even is None or pair.pays_after < 1:
        return calls
    low, high = ("never" if end is None else rounded(end) for end in pair.break_even)
    return calls if low == high else f"{calls} ({low}–{high})"


def rest(answer: Answer) -> list[str]:
    """Return a line each on the modes that no row shows."""
    also = {
        "Also": [_also(point, answer.compares(point)) for point in answer.others],
        "Excluded": [f"{name(p)} ({WORDS.get(p.excluded or '', p.excluded)})" for p in answer.excluded],
    }
    return [*_listed(also), *folded(answer)]


def folded(answer: Answer) -> list[str]:
    """Return a line each on modes that no chart shows, on contradictions, and on programs that are not known."""
    unknown = [one.point for one in answer.choices if one.point.record.program == "unknown"]
    return _listed(
        {
            "Not for deployment": [_timed(point) for point in answer.undeployed],
            "Not ranked, from another machine": [_timed(point) for point in answer.elsewhere],
            "Paired speedups and medians contradict each other": [
                name(p) for one in answer.choices for p in one.contradicting
            ],
            "Unknown whether the program is eager mode's": list(map(name, unknown)),
        }
    )


def again(answer: Answer) -> list[str]:
    """Return which modes compiled again, how often, and by which guard."""
    return [f"{p.record.framework} {text}" for p in answer.points if (text := recompilation(p.record))]


def _listed(parts: dict[str, list[str]]) -> list[str]:
    return [f"{title}: {', '.join(names)}." for title, names in parts.items() if names]


def _also(point: Point, compared: bool) -> str:
    gain = _gain(point) if compared and not point.eager else ""
    return _timed(point, gain)


def _timed(point: Point, gain: str = "") -> str:
    """Return `torch inductor 2.4 ms (1.20× ±2 %)`: a point in a list, with its gain and the mark of a slow host."""
    gain = _marked(gain, point)
    text = f"{name(point)} {text_of(point.median_ms)} ms"
    return f"{text} ({gain})" if gain else text


def besides(answer: Answer) -> list[str]:
    """Return the lines on bounds of a speedup, on several ranks and on energy."""
    return [*limits(answer), *scaling(answer), *energy(answer)]


def scaling(answer: Answer) -> list[str]:
    """Return a line on the modes that ran on several ranks: the share of single-rank speed that each rank keeps."""
    known = [point for point in answer.points if not point.excluded]
    parts = [f"{name(point)} {kept}" for point in known if (kept := share_kept(point.record, _percent))]
    return [f"Each rank keeps of the speed on one rank: {', '.join(parts)}."] if parts else []


def share_kept(record: Record, show: Callable[[Interval], str]) -> str:
    """Return the share of one rank's speed in percent, that the host is slow, or nothing without an interval."""
    if record.efficiency:
        return show(record.efficiency.map(lambda share: 100 * share))
    return SLOWED if record.scaling_efficiency is not None and record.slowed else ""


def _percent(share: Interval) -> str:
    return estimate(share, " %")


def energy(answer: Answer) -> list[str]:
    """Return a line on each mode whose energy was measured, or why none was; empty where not requested."""
    points = [point for point in answer.points if point.record.energy_source and not point.excluded]
    lines = list(filter(None, map(_energy, points)))
    if points and not lines:
        source = str(points[0].record.energy_source)
        return [f"Energy: {source if source.startswith('unsupported:') else 'too few processes'}."]
    return lines


def _energy(point: Point) -> str:
    record = point.record
    if record.energy is None or record.power_w is None:
        return ""
    figure = f"{name(point)} {text_of(record.energy.value)} J per call {plus_minus(record.energy)}"
    if record.energy_unchecked:
        return f"Energy: {figure}, {UNCHECKED}: integrated power differs by more than 5 %."
    if record.energy_saving is None or record.power_ratio is None or not record.headline:
        idle = f" (idle: {text_of(record.idle_power_w)} W)" if record.idle_power_w is not None else ""
        figure = marked(f"{figure} at {text_of(record.power_w)} W{idle}", record.slowed)
        return f"Energy ({record.energy_source}): {figure}."
    saving, power = multiple(record.energy_saving), multiple(record.power_ratio)
    return f"Energy: {figure}, eager uses {saving} as much; power {power} that of eager."


def limits(answer: Answer) -> list[str]:
    """Return bounds on any speedup in one line, and a line on each eager mode that waits for the host."""
    deployed = [choice for choice in answer.choices if choice.eager and choice.deployed]
    bounds = list(filter(None, (_bounds(choice.eager) for choice in deployed if choice.eager)))
    largest = [f"Bounds: {'; '.join(bounds)}."] if bounds else []
    return [*largest, *filter(None, map(_on_slower_core, deployed))]


def _bounds(eager: Point) -> str:
    replay, roofline = eager.record.bound_replay, eager.record.bound_roofline
    parts = [f"{ratio(roofline)}× for any graph (roofline)"] if roofline else []
    parts += [f"{ratio(replay)}× for a replay of eager's kernels"] if replay else []
    return f"{eager.record.framework} {', '.join(parts)}" if parts else ""


def _on_slower_core(choice: Choice) -> str:
    if choice.kind != USE or choice.eager is None:
        return ""
    there = sensitivity.slowed(choice.eager.record, choice.point.record)
    here = choice.point.record.speedup_vs_eager
    if there is None or here is None:
        return ""
    return f"{name(choice.point)}: {rounded(here)}× here; on a core half as fast about {rounded(there)}×."


def trust(found: Trust) -> str:
    """Return the basis of figures in one line: processes, outputs, precision, the machine's conditions."""
    fewest, most = found.processes
    processes = times(fewest, "process", "processes") if fewest == most else f"{fewest} to {most} processes"
    parts = [f"95 % intervals (±) over {processes}"]
    parts[0] += " (further ones may differ)" if found.few else ""
    some = f"{found.compared} of {found.cells} outputs compared" if found.compared else "no output compared"
    parts.append("outputs agree" if found.compared == found.cells else some)
    within, of = found.within
    if of:
        target = width(found.target) if found.target else "their targets"
        parts.append(f"{within} of {of} cells within {target}")
    conditions = ", ".join(f"{CONDITIONS[flag]} {count}" for flag, count in found.conditions.items())
    return " · ".join([*parts, *([f"{conditions} of {times(found.cells, 'cell')}"] if conditions else [])])


def heading(settings: Sequence[Setting]) -> tuple[str, list[str]]:
    """Return the facts that all settings share, and each one's own; the workload is always its own."""
    names = settings[0].facts.keys() if settings else ()
    always = ("workload", "implementation", "parameters")
    own = [key for key in names if key in always or len({s.facts[key] for s in settings}) > 1]
    shared = " · ".join(filter(None, (settings[0].facts[key] for key in names if key not in own)))
    return shared, [", ".join(filter(None, (setting.facts[key] for key in own))) for setting in settings]
