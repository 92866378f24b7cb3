"""Advice in sentences: which shapes, which call, how many times eager, how many milliseconds, when it pays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from analysis import facts
from analysis.points import Point
from analysis.rules import GAIN, STAY, USE, Advice, Judged
from analysis.settings import Shape
from analysis.significance import over_runs
from measurement.statistics import INCONCLUSIVE, Interval
from records.statuses import WORDS
from reports.numbers import certain, estimate, multiple, range_of, ratio, text_of
from reports.remarks import recompilations


def milliseconds(points: Iterable[Point]) -> str:
    """Return the median latency, or the range of several."""
    return range_of((point.median_ms for point in points), " ms")


def where(shapes: Sequence[Shape]) -> str:
    """Return shapes in words: the batches of each length, and lengths with the same batches together."""
    shapes = sorted(shapes)
    if any(shape.batch is None for shape in shapes):
        return "; ".join(shape.text for shape in shapes)
    lengths: dict[tuple[int, ...], list[int]] = {}
    for length in sorted({shape.length or 0 for shape in shapes}):
        batches = tuple(one.batch for one in shapes if one.batch is not None and (one.length or 0) == length)
        lengths.setdefault(batches, []).append(length)
    parts = []
    for batches, seq_lens in lengths.items():
        tokens = f", {_listed(seq_lens)} tokens" if seq_lens != [0] else ""
        parts.append(f"batch {_listed(batches)}{tokens}")
    return "; ".join(parts)


def _listed(values: Iterable[int]) -> str:
    texts = [str(value) for value in sorted(values)]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def sentence(advice: Advice) -> str:
    """Return what to do, without the setting: `torch at batch 1 and 8: use …. The default, inductor, brings …`."""
    said = {USE: _use, STAY: _stay, INCONCLUSIVE: _untold}[advice.kind](advice)
    place = where([judged.shape for judged in advice.judged])
    return f"{advice.framework} at {place}: {said}."


def short(advice: Advice) -> str:
    """Return what to do in a few words, for a table: `cuda-graph, 0.632 to 0.875 ms`."""
    if advice.kind == INCONCLUSIVE:
        return INCONCLUSIVE
    return f"{'eager' if advice.kind == STAY else advice.mode}, {milliseconds(advice.chosen)}"


def _use(advice: Advice) -> str:
    parts = [f"use {advice.words.call or advice.mode}"]
    time = milliseconds(advice.chosen)
    if advice.deployed:
        parts.append(_gain(advice))
    else:
        eager = [judged.eager for judged in advice.judged if judged.eager]
        beside = f" (operator by operator {milliseconds(eager)}, which nobody deploys)" if eager else ""
        parts.append(time + beside)
    begun = ": ".join(parts)
    return ". ".join([begun, *filter(None, (_default(advice), _costs(advice)))])


def _gain(advice: Advice) -> str:
    """Return one speedup with its interval and the time; of several the lowest and the highest, each with its shape."""
    speedups = advice.speedups
    low, high = (kind(speedups, key=lambda one: one.value) for kind in (min, max))
    if ratio(low.value) == ratio(high.value):
        return f"{ratio(low.value)}× as fast as eager ({certain(over_runs(speedups))}), {milliseconds(advice.chosen)}"
    shapes = {point.speedup: (j.shape, point) for j in advice.judged if (point := j.mode(advice.mode))}
    ends = [
        f"{ratio(end.value)}× at {shapes[end][0].text} ({milliseconds([shapes[end][1]])}; {certain(end)})"
        for end in (low, high)
    ]
    return f"{ends[0]} to {ends[1]} as fast as eager"


def spread(multiples: Sequence[Interval]) -> str:
    """Return one multiple with its interval, `1.73× (95 %: 1.69 to 1.78×)`; of several the lowest and the highest so.

    Several that are the same as printed have one interval, their mean's.
    """
    low, high = (kind(multiples, key=lambda one: one.value) for kind in (min, max))
    if ratio(low.value) == ratio(high.value):
        return multiple(over_runs(multiples))
    return f"{multiple(low)} to {estimate(high, '×', ratio)}"


def _default(advice: Advice) -> str:
    """Return what the mode that users start with brings, where another one is recommended."""
    if not advice.default or advice.default == advice.mode:
        return ""
    points = [point for judged in advice.judged if (point := judged.mode(advice.default))]
    if not points:
        return ""
    if not advice.deployed:
        return f"The default, {advice.default}, takes {milliseconds(points)}"
    known = [point.speedup for point in points if point.speedup]
    if known and all(speedup.low <= 1 <= speedup.high for speedup in known):
        return f"The default, {advice.default}, is not shown to differ from eager"
    return f"The default, {advice.default}, brings {spread(known)}" if known else ""


def _costs(advice: Advice) -> str:
    told = pays(advice)
    return f"Compiling {told}" if told.startswith("pays") else told.capitalize()


def pays(advice: Advice) -> str:
    """Return when compiling has paid for itself at the slowest of the shapes, else what the first call takes."""
    if not advice.deployed:
        first = [seconds for point in advice.chosen if (seconds := facts.first_s(point)) is not None]
        return f"its first call takes up to {text_of(max(first))} s" if first else ""
    known = [(pair.pays_after, pair) for pair in advice.pairs if pair.pays_after is not None]
    if not known or len(known) < len(advice.pairs):
        return ""
    calls, pair = max(known, key=lambda entry: entry[0] * entry[1].eager.median_ms)
    if calls < 1:
        return "pays for itself from the first call"
    seconds = calls * pair.eager.median_ms / 1e3
    where = next(judged.shape.text for judged in advice.judged if judged.eager is pair.eager)
    at = f" at {where}" if len(advice.judged) > 1 else ""
    return f"pays for itself after about {_rounded(seconds)} s of eager calls ({_rounded(calls)} calls{at})"


def pays_at(advice: Advice, judged: Judged) -> str:
    """Return when compiling pays at one shape: `pays for itself after about 9.7 s of eager calls (2,300 calls)`."""
    if advice.kind != USE:
        return ""
    told = pays(replace(advice, judged=(judged,)))
    return told.replace("its first call takes up to", "first call")


def _rounded(value: float) -> str:
    """Return two digits: more would promise what a break-even cannot keep."""
    return text_of(float(f"{value:.2g}"))


def _stay(advice: Advice) -> str:
    """Return why not to compile: modes are slower where whole intervals lie below 1, else not shown to be faster."""
    others = [(point, point.speedup) for judged in advice.judged for point in judged.others if point.speedup]
    slower = [(point, gain) for point, gain in others if facts.verdict(gain) == facts.SLOWER]
    begun = f"stay with eager, {milliseconds(advice.chosen)}"
    if len(slower) == len(others):
        modes = dict.fromkeys(point.record.mode for point, _ in others)
        named = f"{', '.join(modes)} {'is' if len(modes) == 1 else 'are'} slower"
        return f"{begun}: {named}, {spread([gain for _, gain in others])}"
    worst, least = min(others, key=lambda one: one[1].value)
    little = any(facts.verdict(gain) == facts.FASTER for _, gain in others)
    none = f"no mode is shown to be faster{f' by {100 * (GAIN - 1):.0f} %' if little else ''}"
    if not slower:
        return f"{begun}: {none} ({worst.record.mode} reaches {ratio(least.value)}×; {certain(least)})"
    some = "" if len(advice.judged) == 1 else " at some shapes"
    lost, loss = min(slower, key=lambda one: one[1].value)
    return f"{begun}: {none}, and {lost.record.mode} is slower{some}, {spread([loss])}"


def _untold(advice: Advice) -> str:
    contradicting = list(dict.fromkeys(p.record.mode for judged in advice.judged for p in judged.contradicting))
    if contradicting:
        return f"inconclusive: pairs and medians of {', '.join(contradicting)} contradict each other"
    points = [point for judged in advice.judged for point in judged.choices]
    if not points:
        return "inconclusive: no mode that is not excluded has figures beside eager mode"
    known = [(point, point.speedup) for point in points if point.speedup]
    if not known:
        return "inconclusive: no speedup has an interval"
    best, gain = max(known, key=lambda one: one[1].value)
    return f"inconclusive: {best.record.mode} reaches {ratio(gain.value)}× of eager's speed ({certain(gain)})"


def cautions(advice: Advice) -> str:
    """Return sentences on what the advice excludes, what may be as good and how far it holds; empty for none."""
    return " ".join(
        filter(None, (_excluded(advice), _unknown(advice), _again(advice), _ties(advice), _certainty(advice)))
    )


def _excluded(advice: Advice) -> str:
    """Return which modes are excluded, and why: `Excluded: inductor (another program than eager mode's).`"""
    by_reason: dict[str, dict[str, None]] = {}
    for point in (point for judged in advice.judged for point in judged.excluded):
        if point.excluded:
            by_reason.setdefault(point.excluded, {})[point.record.mode] = None
    parts = [f"{', '.join(modes)} ({WORDS.get(reason, reason)})" for reason, modes in by_reason.items()]
    return f"Excluded: {'; '.join(parts)}." if parts else ""


def _unknown(advice: Advice) -> str:
    """Return which recommended mode was not shown to run eager mode's program."""
    unknown = any(point.record.program == "unknown" for point in advice.chosen)
    return f"Whether {advice.mode} runs eager mode's program is not known." if unknown else ""


def _again(advice: Advice) -> str:
    """Return which modes compiled again, how often, and by which guard; recommended or not."""
    points = [
        point
        for judged in advice.judged
        for point in (judged.eager, *judged.choices, *judged.others, *judged.excluded, *judged.contradicting)
        if point
    ]
    return " ".join(recompilations(point.record for point in points))


def _ties(advice: Advice) -> str:
    """Return which other modes may be as good; nothing where no mode is named that they could be as good as."""
    known = any(point.speedup for judged in advice.judged for point in judged.choices)
    if advice.kind == STAY or (advice.kind == INCONCLUSIVE and not known):
        return ""
    modes = dict.fromkeys(point.record.mode for judged in advice.judged for point in judged.choices)
    others = [mode for mode in modes if mode != advice.mode]
    some = "" if len(advice.judged) == 1 else " at some shapes"
    return f"{', '.join(others)} may be as good{some}." if others else ""


def _certainty(advice: Advice) -> str:
    chosen = advice.chosen
    few = facts.few_launches(*chosen)
    if not few:
        return ""
    least = "at least " if len({point.record.launches for point in chosen}) > 1 else ""
    return f"Careful: seen in {least}{'one process' if few == 1 else f'{few} processes'}; others may differ."
