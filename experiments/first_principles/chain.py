"""pointwise-chain and fused-cos: the gain of fusing pointwise operators, and where arithmetic exceeds traffic."""

from __future__ import annotations

from collections.abc import Callable

from experiments.evidence import Evidence, Records, apart
from experiments.judge import Estimate, above, below, between, inconclusive, ratio_of, series_along
from experiments.spec import Answer, Claim, Verdict
from records.record import Record
from reports.numbers import text_of

# "Flat" and "about one cosine" allow this much above the shortest chain's time.
FLAT = 1.25
# "Linear" and "twice" allow this factor either way.
ABOUT = 1.25
PUBLISHED_FLAT = 64


def chain(evidence: Evidence, graph: bool) -> Records:
    """Return the chain's records in eager mode, or in the side's graph mode unless it merges the chain."""
    records = evidence.records.where(workload="pointwise-chain").included
    return unmerged(records.graph) if graph else records.eager


def unmerged(records: Records) -> Records:
    """Return the records of modes that compute every operator."""
    return Records(record for record in records if not record.merged)


def untellable(evidence: Evidence) -> Answer | None:
    """Return an answer where a mode's chain proves nothing: not measured, or its multiplications merged."""
    if any(record.merged for record in evidence.records):
        return inconclusive("Grappler merges the multiplications")
    records = chain(evidence, graph=True)
    if not len(records):
        return inconclusive("this mode's chain was not measured")
    for record in records:
        if (record.mfu_pct or 0) > 100:
            rate = f"{text_of(record.achieved_tflops)} TFLOP/s, above the peak of {text_of(record.peak_tflops)}"
            numbers = f"{record.parameter('repeat')} multiplications at {rate}: the compiler merged them"
            return Answer(Verdict.OPEN, numbers)
    return None


def flat_when_fused(evidence: Evidence) -> Answer:
    """Check that 64 multiplications take about as long as one."""
    if answer := untellable(evidence):
        return answer
    records = chain(evidence, graph=True)
    ratio = ratio_of(records.find_one(repeat=PUBLISHED_FLAT), records.find_one(repeat=1))
    return below(f"{PUBLISHED_FLAT} multiplications take", ratio, FLAT, " times as long as one")


def linear_at_the_end(evidence: Evidence) -> Answer:
    """Check that four times the multiplications take four times as long at the long end."""
    if answer := untellable(evidence):
        return answer
    records = chain(evidence, graph=True)
    repeats = records.values("repeat")
    if not repeats or repeats[-1] // 4 not in repeats:
        return inconclusive("no length was measured together with a quarter of it")
    last, quarter = repeats[-1], repeats[-1] // 4
    ratio = ratio_of(records.find_one(repeat=last), records.find_one(repeat=quarter))
    name = f"{last} multiplications take"
    return between(name, ratio, 4 / ABOUT, 4 * ABOUT, f" times as long as {quarter}")


def unfused_pays_each(evidence: Evidence) -> Answer:
    """Check that eager's time grows with every multiplication from the start."""
    records = chain(evidence, graph=False)
    ratio = ratio_of(records.find_one(repeat=PUBLISHED_FLAT), records.find_one(repeat=1))
    return above(f"{PUBLISHED_FLAT} multiplications take", ratio, PUBLISHED_FLAT / 2, " times as long as one")


def _cosines(evidence: Evidence, graph: bool) -> Estimate:
    """Return two cosines over one."""
    records = evidence.records.where(workload="fused-cos").included
    records = records.graph if graph else records.eager
    return ratio_of(records.find_one(repeat=2), records.find_one(repeat=1))


def two_cosines_cost_one(evidence: Evidence) -> Answer:
    """Check that a graph computes two cosines in about the time of one."""
    if not len(evidence.records.where(workload="fused-cos").included.graph):
        return inconclusive("this mode's cosines were not measured")
    return below("two cosines take", _cosines(evidence, graph=True), FLAT, " times one's time")


def two_cosines_cost_two_in_eager(evidence: Evidence) -> Answer:
    """Check that eager takes twice as long for two."""
    ratio = _cosines(evidence, graph=False)
    return between("two cosines take", ratio, 2 / ABOUT, 2 * ABOUT, " times one's time")


CLAIMS = (
    Claim(f"Fused, a chain's time is flat up to {PUBLISHED_FLAT} multiplications.", flat_when_fused),
    Claim("Fused, a long chain's time is linear in its length.", linear_at_the_end),
    Claim("Unfused, eager pays for every multiplication.", unfused_pays_each, of="eager"),
    Claim("Fused, x.cos().cos() takes about as long as x.cos().", two_cosines_cost_one),
    Claim("Unfused, x.cos().cos() takes twice as long.", two_cosines_cost_two_in_eager, of="eager"),
)


def rates(record: Record) -> dict[str, float]:
    """Return compute intensity in FLOP/B, TFLOP/s and GB/s of a chain.

    The intensity is that of the computation, compulsory bytes alone. The bandwidth counts the mode's bytes, which for
    eager are a read and a write for every multiplication.
    """
    seconds = record.median_ms / 1e3
    flops, least = record.flops or 0, record.bytes or 0
    moved = (record.unfused_bytes or 0) if record.is_baseline else least
    return {
        "intensity": flops / least,
        "tflops": flops / seconds / 1e12,
        "gb_per_s": moved / seconds / 1e9,
    }


def flat_up_to(evidence: Evidence) -> str:
    """Return the longest fused chain that takes at most `FLAT` times as long as the shortest, by machine."""
    ends = []
    for points in series_along(chain(evidence, graph=True), "repeat"):
        flat = [int(p.parameter("repeat") or 0) for p in points if p.median_ms <= FLAT * points[0].median_ms]
        ends += [] if apart(*points) else [str(max(flat))]
    return ", ".join(dict.fromkeys(ends))


def rate_of_one(evidence: Evidence) -> str:
    """Return TFLOP/s of a single multiplication."""
    record = chain(evidence, graph=True).find_one(repeat=1)
    return text_of(rates(record)["tflops"] if record else None)


def highest(field: str) -> Callable[[Evidence], str]:
    """Return the highest rate of any fused chain."""

    def text(evidence: Evidence) -> str:
        values = [rates(record)[field] for record in chain(evidence, graph=True)]
        return text_of(max(values, default=None))

    return text
