"""Streams of calls in fresh processes: a reference first, then rounds in which every strategy serves once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, ClassVar

from execution.rounds import Rounds, failure
from measurement.protocol import STREAM, Ended, Hello, Referred, Streamed
from measurement.streams import CACHES, COLD, EAGER, PARTS, STRATEGIES, Stream, StreamJob, padded
from plan.plan import Group
from records import streams
from records.streams import STREAM_SCHEMA_VERSION, StreamRecord
from workloads.lengths import Lengths

COMPARED = 6  # lengths whose outputs are compared


@dataclass
class Known:
    """What is known of a cell before its streams: eager mode's outputs as a file, and its framework."""

    reference: str
    hello: Hello


@dataclass(kw_only=True)
class Streams(Rounds):
    """The streams of a run: so many `calls` whose `lengths` are drawn as they are read and cut to the `maximum`."""

    journal: ClassVar = streams.JOURNAL
    caches_of: Sequence[str]
    lengths: Lengths
    maximum: int
    calls: int

    def __post_init__(self) -> None:
        self.cut = self.lengths.clipped(self.maximum)
        self.stream = self.cut.stream(self.calls, self.launcher.sweep.seed)

    def left(self, group: Group, records: Sequence[StreamRecord]) -> list[tuple[int, int, str, str]]:
        """Return what is to be served: round, place within it, strategy and caches; warm ones right after cold ones.

        A strategy that failed in any way but by its outputs serves no more.
        """
        done = {(record.round, record.strategy, record.caches) for record in records}
        over = {record.strategy for record in records if record.status not in ("ok", "mismatch")}
        found = []
        for number, names in enumerate(self.order(group, STRATEGIES)):
            arms = [(name, caches) for name in names for caches in CACHES if caches in self.caches_of]
            found += [(number, place, *arm) for place, arm in enumerate(arms)]
        return [one for one in found if (one[0], one[2], one[3]) not in done and one[2] not in over]

    def take_group(self, group: Group, records: list[StreamRecord]) -> None:
        """Serve the streams of one cell."""
        cell = group.cells[0]
        title = f"{cell.framework} {cell.workload}"
        ended, hello = self.process(group, self.job(EAGER, refers=True))
        if not isinstance(ended, Referred) or hello is None:
            self.say(f"{title} does not run: {failure(ended)[1]}")
            return
        self.known[cell.group_id] = Known(ended.reference, hello)
        served: tuple[int, str] | None = None  # whose caches the folder holds
        while left := self.left(group, records):
            number, place, strategy, caches = left[0]
            if caches != COLD and served != (number, strategy):
                self.process(group, self.job(strategy, self.known[cell.group_id].reference))  # only fills the caches
            record = self.serve(group, number, place, strategy, caches)
            served = number, strategy
            self.journal.append(self.run.folder, record)
            records.append(record)
            self.say(line(title, record, self.processes))

    def job(self, strategy: str, reference: str = "", refers: bool = False) -> StreamJob:
        """Return what a process is asked for."""
        lengths = sorted(set(self.stream))
        step = max(1, (len(lengths) - 1) // (COMPARED - 1)) if len(lengths) > 1 else 1
        compared = tuple(dict.fromkeys([*lengths[::step][: COMPARED - 1], lengths[-1]]))
        longest, quantiles = self.cut.longest, self.cut.quantiles(PARTS)
        to = padded(STRATEGIES[strategy], self.stream, longest, quantiles)
        return StreamJob(strategy, self.stream, to, self.cut.shortest, longest, compared, reference, refers)

    def serve(self, group: Group, number: int, place: int, strategy: str, caches: str) -> StreamRecord:
        """Serve one stream in a process and return its record."""
        cell, known = group.cells[0], self.known[group.cells[0].group_id]
        parts: dict[str, Any] = {
            "schema_version": STREAM_SCHEMA_VERSION,
            **self.columns(group, known.hello),
            "lengths": self.lengths.name,
            "clipped": self.lengths.share_above(self.maximum),
            "strategy": strategy,
            "caches": caches,
            "round": number,
            "place": place,
        }
        job = self.job(strategy, known.reference)
        ended, _ = self.process(group, job, warm=caches != COLD)
        if not isinstance(ended, Streamed):
            status, reason = failure(ended)
            return StreamRecord(**parts, status=status, reason=reason)
        items = int(dict(cell.parameters).get("batch_size", 1))
        return StreamRecord(**parts, **figures(ended.stream, job, items, strategy))

    def process(self, group: Group, what: StreamJob, warm: bool = False) -> tuple[Ended | str, Hello | None]:
        """Run one process; return how it ended. Its caches and temporary files are empty, or `warm` from before."""
        folder, live = self.run.new_launch(), self.caches(cleared=not warm)
        begun = self.launcher.start_of(group.cells[0], folder, live)
        begun = replace(begun, environment=begun.environment | {"TMPDIR": str(live / "tmp")})
        return self.ended(begun, replace(self.launcher.job(STREAM, [group], folder), stream=what))


def figures(found: Stream, job: StreamJob, items: int, strategy: str) -> dict[str, Any]:
    """Return the columns of a stream that was served; `items` are the sequences of a call."""
    calls = sorted(found.calls_s)
    total = found.setup_s + sum(calls)
    real, computed = sum(job.lengths), sum(job.padded)
    fell_back = found.fell_back is not None and strategy != EAGER
    flags = ["fell_back"] if fell_back else []
    flags += ["miscounted"] if found.reported not in (None, found.compilations) else []
    return {
        "status": "ok" if found.right else "mismatch",
        "reason": None if found.right else "Outputs at real positions are beyond the tolerance.",
        "number": len(calls),
        "shapes": len(set(job.padded)),
        "setup_s": found.setup_s,
        "total_s": total,
        "p50_ms": 1000 * median(calls),
        "p99_ms": 1000 * calls[max(0, -(-99 * len(calls) // 100) - 1)],
        "longest_ms": 1000 * calls[-1],
        "compilations": found.compilations,
        "reported": found.reported,
        "recorded": found.recorded,
        "compile_s": found.compile_s,
        "fell_back": found.fell_back + 1 if fell_back and found.fell_back is not None else None,
        "padded_share": 1 - real / computed,
        "tokens_per_s": items * real / total,
        "memory_bytes": found.memory_bytes,
        "memory_growth_bytes": found.memory_bytes - found.memory_before_bytes,
        "device_bytes": found.device_bytes,
        "device_growth_bytes": _growth(found.device_before_bytes, found.device_bytes),
        "parity": found.parity,
        "tolerance": found.tolerance,
        "host_loop_ms": 1000 * median(found.host_loop_s) if found.host_loop_s else None,
        "flags": ";".join(flags) or None,
        "calls": tuple(found.calls_s),
    }


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def line(title: str, record: StreamRecord, processes: int) -> str:
    """Return what is said of a process once it has its record."""
    head = f"{title} {record.round + 1}/{processes} {record.strategy} {record.caches}"
    if record.total_s is None:
        return f"{head}: {record.status}: {record.reason}"
    fell = f", eager from call {record.fell_back}" if record.fell_back else ""
    text = f"{head}: {record.total_s:.2f} s, {record.compilations} compilations{fell}"
    return text if record.is_right else f"{text}, {record.status}"
