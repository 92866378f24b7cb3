"""The answer in three sentences: does graph mode help, who is fastest, does compiling pay."""

from __future__ import annotations

from collections import Counter
from statistics import median

from reports import facts
from reports.content import Section, text_of, times
from reports.material import Material
from reports.points import grouped

CALLS = (100, 1_000, 10_000)
MOST_NAMED = 6


def section(material: Material) -> Section:
    """Three sentences, and more on what they leave out and how far they hold."""
    points = material.points
    pairs = material.pairs
    few = _few_launches(pairs, material.contests)
    sentences = [_graph(pairs, points.series), _fastest(material), _pays(pairs), *few]
    sentences += [*facts.unequal_machine(point.record for point in points.all), *_caution(points)]
    return Section("answer", "The answer", tuple(sentences))


def _graph(pairs: list[facts.Pair], names: list[str]) -> str:
    if not pairs:
        return "No graph mode was measured beside eager, so nothing is said of what it brings."
    found = Counter(pair.verdict for pair in pairs)
    parts = [f"faster than eager in {found[facts.FASTER]:,}", f"slower in {found[facts.SLOWER]:,}"]
    if found[facts.UNTOLD]:
        parts.append(f"no different as far as can be told in {found[facts.UNTOLD]:,}")
    if found[facts.NO_INTERVAL]:
        parts.append(f"without an interval in {found[facts.NO_INTERVAL]:,}")
    ranges = []
    groups = grouped((pair.graph for pair in pairs), lambda point: point.series)
    for series in (name for name in names if name in groups):
        speedups = [speedup for point in groups[series] if (speedup := point["speedup_vs_eager"]) is not None]
        if speedups:
            low, high = text_of(min(speedups)), text_of(max(speedups))
            ranges.append(f"{series} {low}×" if low == high else f"{series} {low}× to {high}×")
    more = f", and {len(ranges) - MOST_NAMED} more modes" if len(ranges) > MOST_NAMED else ""
    whole = f"Of {times(len(pairs), 'comparison')}, graph mode is {', '.join(parts[:-1])} and {parts[-1]}"
    return f"{whole}; its speed over eager's: {', '.join(ranges[:MOST_NAMED])}{more}."


def _fastest(material: Material) -> str:
    points, contests = material.points, material.contests
    if not contests:
        machines = " on one machine" if len(points.machines) > 1 else ""
        way_out = "; ACROSS=1 compares machines" if facts.only_across_machines(points.measured) else ""
        return (
            f"No shape was run by more than one framework{machines}, so nothing is said of which is fastest{way_out}."
        )
    if len(contests) <= 2:
        return "Fastest: " + "; ".join(_contest(ranks) for ranks in contests) + "."
    winners: Counter[str] = Counter()
    for ranks in contests:
        apart = facts.runner_up(ranks).told_apart
        winners[_name(ranks[0].point, points) if apart else ""] += 1
    untold = winners.pop("", 0)
    parts = [f"{name} at {count:,}" for name, count in winners.most_common()]
    parts += [f"at {untold:,} the two fastest cannot be told apart"] if untold else []
    return f"Of {len(contests):,} shapes that several frameworks ran, the fastest is {', '.join(parts)}."


def _contest(ranks: list[facts.Rank]) -> str:
    first, second = ranks[0].point, facts.runner_up(ranks)
    real = f"they differ{facts.within(second.few_launches)}" if second.few_launches else "the difference is real"
    apart = real if second.told_apart else "the two cannot be told apart"
    own, other = text_of(first["latency_ms_median"]), text_of(second.point["latency_ms_median"])
    return (
        f"{first.series} at {first.setting}, {first.shape}, with {own} ms before {second.point.series} with {other} ms "
        f"({apart})"
    )


def _name(point, points) -> str:
    """Whom a win is counted for."""
    return point["framework"] + (point.series.partition(" on ")[2] and f" on {point.series.partition(' on ')[2]}")


def _pays(pairs: list[facts.Pair]) -> str:
    known = {pair: extra for pair in pairs if (extra := pair.extra_s) is not None}
    if not known:
        return "What compiling costs is not known here."
    extras = list(known.values())
    low, middle, high = (_more(value) for value in (min(extras), median(extras), max(extras)))
    span = low if low == high else f"{middle} (the median; from {low} to {high})"
    sure = [(pair.gain_s.low, extra) for pair, extra in known.items() if pair.gain_s]
    shares = [f"{sum(n * gain > extra for gain, extra in sure):,} after {n:,} calls" for n in CALLS]
    certainly = "" if any(pair.few_launches for pair in known) else "certainly "
    return (
        f"The first call of a graph mode takes {span} than eager's; of {times(len(known), 'comparison')}, "
        f"compiling has {certainly}paid for itself in {', in '.join(shares[:-1])}, and in {shares[-1]}."
    )


def _more(seconds: float) -> str:
    return f"{text_of(abs(seconds))} s {'more' if seconds >= 0 else 'less'}"


def _few_launches(pairs: list[facts.Pair], contests: list[list[facts.Rank]]) -> list[str]:
    """What the three sentences may be taken for where differences were seen in few launches."""
    told = [pair for pair in pairs if pair.verdict in facts.DIFFERENT]
    told += [second for ranks in contests if (second := facts.runner_up(ranks)).told_apart]
    few = [one for one in told if one.few_launches]
    if not few:
        return []
    share = "All" if len(few) == len(told) else f"{len(few):,}"
    whole = f"{share} of the {len(told):,} differences told here come" if len(told) > 1 else "This comes"
    return [
        f"{whole} from fewer than three launches (fresh processes): yes within those, but the next may differ by more "
        "than the intervals say; PROFILE=standard tells across processes."
    ]


def _caution(points) -> list[str]:
    noisy = sum(point["status"] == "noisy" for point in points.all)
    failed = sum(not point.measured for point in points.all)
    parts = [f"{times(noisy, 'cell')} of {len(points.all):,} noisier than the profile promises"] if noisy else []
    parts += [f"{times(failed, 'cell')} without figures (see the end)"] if failed else []
    return [f"To be read with care: {', '.join(parts)}."] if parts else []
