"""Streams of calls in fresh processes: a reference first, then rounds in which every strategy serves one stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import mul
from statistics import fmean, median
from typing import Any, ClassVar

import frameworks
from execution.rounds import Rounds, failure, judged
from measurement.protocol import STREAM, Streamed
from measurement.streams import CACHES, COLD, EAGER, PARTS, STRATEGIES, Stream, StreamJob, padded
from measurement.text import times
from plan.plan import Group
from records import streams
from records.streams import StreamRecord
from workloads.lengths import Lengths

COMPARED = 6  # shapes whose outputs are compared
CLOCK_DIGITS = 9  # the clock's unit is a nanosecond


@dataclass(kw_only=True)
class Streams(Rounds[StreamRecord]):
    """The streams of a run: `calls` calls with lengths drawn from `lengths` and cut to `maximum`."""

    journal: ClassVar = streams.JOURNAL
    task: ClassVar = STREAM
    names: ClassVar = STRATEGIES
    caches_of: Sequence[str]
    lengths: Lengths
    maximum: int
    calls: int
    served: tuple[str, int, str] | None = None  # the cell, round and strategy of the caches in the folder

    def __post_init__(self) -> None:
        self.cut = self.lengths.clipped(self.maximum)

    def arms(self, strategy: str, group: Group) -> list[tuple[str, ...]]:
        """Return a strategy with each kind of caches, warm ones right after cold ones."""
        return [(strategy, caches) for caches in kept_caches(group.cells[0].framework, self.caches_of)]

    def referring(self, group: Group) -> StreamJob:
        """Return the job that makes the reference; its calls are padded to the longest if a strategy pads."""
        job = replace(self.job(group, EAGER), refers=True)
        pads = any(STRATEGIES[name].pads for name in self.strategies)
        return replace(job, padded=(job.longest,) * len(job.lengths)) if pads else job

    def job(self, group: Group, strategy: str) -> StreamJob:
        """Return the job of a stream's process."""
        batch = int(dict(group.cells[0].parameters).get("batch_size", 1))
        stream = self.cut.stream(self.calls, self.launcher.sweep.seed, batch)
        lengths, batches = zip(*stream, strict=True)
        shapes = sorted(set(stream))
        step = max(1, (len(shapes) - 1) // (COMPARED - 1))
        compared = tuple(map(stream.index, dict.fromkeys([*shapes[::step][: COMPARED - 1], shapes[-1]])))
        longest, quantiles = self.cut.longest, self.cut.quantiles(PARTS)
        to = padded(STRATEGIES[strategy], lengths, longest, quantiles)
        return StreamJob(strategy, lengths, to, batches, min(lengths), longest, compared)

    def measured(self, group: Group, number: int, *arm: str) -> dict[str, Any]:
        """Serve one stream in a process and return the columns of its measurement."""
        (strategy, caches), cell = arm, group.cells[0]
        known, _ = self.known[cell.group_id]
        job = self.job(group, strategy)
        job = replace(job, reference=known.reference, eager=known.eager, settings=known.settings)
        turn = cell.group_id, number, strategy
        if caches != COLD and self.served != turn:
            self.process(group, job)  # only fills the caches
        self.served = turn
        ended, _ = self.process(group, job, self.caches(cleared=caches == COLD))
        return {
            "lengths": self.lengths.name,
            "clipped": self.lengths.share_above(self.maximum),
            "caches": caches,
            **(figures(ended.stream, job, self.unseen(job)) if isinstance(ended, Streamed) else failure(ended)),
        }

    def unseen(self, job: StreamJob) -> int:
        """Return how many shapes of the distribution, after padding, the stream does not serve."""
        lengths, batches = self.cut.shapes(max(job.batches))
        to = padded(STRATEGIES[job.strategy], lengths, job.longest, self.cut.quantiles(PARTS))
        return len(set(zip(to, batches, strict=True)) - set(zip(job.padded, job.batches, strict=True)))

    def figures(self, record: StreamRecord) -> str:
        """Return a text with the stream's seconds, compilations, and first call that fell back to eager mode."""
        if record.total_s is None:
            return ""
        compiled = times(record.compilations or 0, "compilation")
        fell = f", eager from call {record.fell_back}" if record.fell_back else ""
        return f"{record.total_s:.2f} s, {compiled}{fell}"


def kept_caches(framework: str, asked: Sequence[str]) -> list[str]:
    """Return the kinds of caches to measure: cold ones alone where processes load no code of earlier ones."""
    return [kind for kind in CACHES if kind in asked] if frameworks.describe(framework).stores_streams else [COLD]


def figures(found: Stream, job: StreamJob, unseen: int) -> dict[str, Any]:
    """Return the columns of a stream that was served; `unseen` shapes of its distribution are in no call."""
    calls = sorted(found.calls_s)
    total = found.setup_s + sum(calls)
    real, computed = (sum(map(mul, each, job.batches)) for each in (job.lengths, job.padded))
    fell_back = found.fell_back is not None and job.strategy != EAGER
    shapes = list(zip(job.padded, job.batches, strict=True))
    first = 2 if STRATEGIES[job.strategy].cuda_graphs else 1  # a CUDA graph is recorded on a shape's second call
    later = later_s(found.calls_s, shapes, first)
    new = first_s(found.calls_s, shapes, later, first) if later else []
    flags = {"fell_back": fell_back, "miscounted": found.reported not in (None, found.compilations)}
    flags |= {"partial": found.partial}
    return {
        **judged(found, "Outputs at real positions are beyond the tolerance.", flags),
        "number": len(calls),
        "shapes": len(set(shapes)),
        "setup_s": found.setup_s,
        "total_s": total,
        "p50_ms": 1000 * median(calls),
        "p99_ms": 1000 * calls[max(0, -(-99 * len(calls) // 100) - 1)],
        "longest_ms": 1000 * calls[-1],
        "later_ms": 1000 * fmean(later) if later else None,
        "new_shapes_s": sum(new) if later else None,
        "unseen_s": unseen * max(0.0, median(new[1:] or [0.0])) if later else None,
        "compilations": found.compilations,
        "reported": found.reported,
        "recorded": found.recorded,
        "compile_s": found.compile_s,
        "fell_back": found.fell_back + 1 if fell_back and found.fell_back is not None else None,
        "padded_share": 1 - real / computed,
        "tokens_per_s": real / total,
        "memory_bytes": found.memory_bytes,
        "memory_growth_bytes": found.memory_bytes - found.memory_before_bytes,
        "device_bytes": found.device_bytes,
        "device_growth_bytes": _growth(found.device_before_bytes, found.device_bytes),
        "calls": tuple(round(seconds, CLOCK_DIGITS) for seconds in found.calls_s),
    }


def later_s(calls_s: Sequence[float], shapes: Sequence[tuple[int, int]], first: int) -> list[float] | None:
    """Return for each call the mean of its shape's calls but the `first` ones, in seconds.

    A shape without such calls has the figure of the shape with them that is nearest in tokens. None where shapes with
    them serve less than half of the calls.
    """
    found: dict[tuple[int, int], list[float]] = {}
    for shape, seconds in zip(shapes, calls_s, strict=True):
        found.setdefault(shape, []).append(seconds)
    later = {shape: fmean(calls[first:]) for shape, calls in found.items() if len(calls) > first}
    if 2 * sum(len(found[shape]) for shape in later) < len(shapes):
        return None
    nearest = {shape: min(later, key=lambda other: abs(mul(*other) - mul(*shape))) for shape in found}
    return [later[nearest[shape]] for shape in shapes]


def first_s(
    calls_s: Sequence[float], shapes: Sequence[tuple[int, int]], later: Sequence[float], first: int
) -> list[float]:
    """Return for each shape the seconds by which its `first` calls exceed later ones.

    The stream's first call does not count: it waits for the compiler in every strategy but eager mode.
    """
    found: dict[tuple[int, int], list[float]] = {}
    for number, shape in enumerate(shapes):
        excess = calls_s[number] - later[number] if number else 0.0
        found.setdefault(shape, []).append(excess)
    return [sum(each[:first]) for each in found.values()]


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
