"""op-overhead and the batch-doubling test: cost of an operator in addition to its arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from experiments.evidence import Evidence, Records, rate_of
from experiments.first_principles.chain import unmerged
from experiments.judge import Estimate, above, below, inconclusive, ratio_of
from experiments.spec import Answer, Claim
from measurement.statistics import Interval
from records.record import Record
from reports.numbers import text_of

# The source: twice the batch adds less than this where overhead dominates.
GROWTH = 0.10
PYTHON = "python"


def additions(records: Records) -> Record | None:
    """Return the only record of op-overhead among `records`."""
    return records.find_one(workload="op-overhead")


def additions_per_s(record: Record | None) -> Interval | None:
    """Return additions a second, where there is an interval."""
    if record is None or record.latency is None:
        return None
    return rate_of(record, int(record.parameter("additions") or 0) * 1e3 / record.latency.value)


def python_is_faster(evidence: Evidence) -> Answer:
    """Check that Python adds a hundred times as often in a second as the framework's eager mode."""
    python = additions(evidence.references.where(framework=PYTHON))
    ratio = ratio_of(python, additions(evidence.records.eager), additions_per_s)
    return above("Python adds", ratio, 100, " times as often as eager")


def growth(records: Records, batch: int) -> Estimate:
    """Return the share of the time that twice the batch adds."""
    ratio = ratio_of(records.find_one(batch_size=2 * batch), records.find_one(batch_size=batch))
    return ratio.map(lambda value: value - 1) if isinstance(ratio, Interval) else ratio


def _doubled(evidence: Evidence, place: int, judge: Callable[..., Answer]) -> Answer:
    records = evidence.records.where(workload="mlp").included.eager
    batches = records.values("batch_size")
    if len(batches) < 2:
        return inconclusive("no batch and twice that batch")
    return judge(f"batch {batches[place]} doubled adds", growth(records, batches[place]), GROWTH, " of the time")


def small_batches_are_overhead(evidence: Evidence) -> Answer:
    """Check that in eager mode twice the smallest batch adds less than 10 %."""
    return _doubled(evidence, 0, below)


def large_batches_are_not(evidence: Evidence) -> Answer:
    """Check that twice the largest batch adds more."""
    return _doubled(evidence, -2, above)


CLAIMS = (
    Claim(
        "Python adds a hundred times as often a second as eager mode does on tiny tensors.",
        python_is_faster,
        of="eager",
    ),
    Claim(
        "At the smallest batch eager is bound by overhead: doubling it adds less than 10 %.",
        small_batches_are_overhead,
        of="eager",
    ),
    Claim("At the largest batch eager is not bound by overhead.", large_batches_are_not, of="eager"),
)


def rate(evidence: Evidence) -> str:
    """Return additions a second in eager and in the graph mode."""
    modes = evidence.records.eager, unmerged(evidence.records.graph)
    rates = [additions_per_s(additions(records)) for records in modes]
    return ", ".join(
        f"{name} {text_of(value.value)}" for name, value in zip(("eager", "graph"), rates, strict=True) if value
    )


def python_rate(evidence: Evidence) -> str:
    """Return Python's own additions a second."""
    rate = additions_per_s(additions(evidence.references.where(framework=PYTHON)))
    return text_of(rate and rate.value)
