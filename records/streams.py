"""Records of `make stream`: a row for each process that served a stream, in `streams.jsonl` and `streams.csv`."""

from __future__ import annotations

from dataclasses import dataclass

from records.journal import Journal
from records.record import col, must

STREAM_SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class StreamRecord:
    """What is known of one process that served a stream, one field a column; `calls` are in the lines alone."""

    schema_version: int = must("version of this list of columns")
    run_id: str = must("folder of the run")
    git_revision: str | None = col("revision of the suite, with + if tracked files were changed")
    started_at: str = must("when the process began", "ISO 8601, UTC")
    machine_id: str | None = col("short hash of the hardware")
    cell: str = must("what is computed, where: the cell's name without its mode")
    framework: str = must("its name")
    framework_version: str | None = col("version of its package")
    workload: str = must("what is computed")
    device: str = must("cpu or gpu:<index>")
    device_name: str | None = col("processor or GPU")
    dtype: str = must("fp32, tf32, bf16 or fp16")
    threads: int = must("intra-op CPU threads", "threads")
    lengths: str = must("distribution that lengths are drawn from")
    clipped: float = must("share of its calls that are cut to the longest length")
    strategy: str = must("way to serve calls of different lengths")
    caches: str = must("cold: compile caches are empty; warm: those of the cold process before")
    round: int = must("in which every strategy serves once, from 0")
    place: int = must("of the process within its round, from 0")
    status: str = must("ok, mismatch, unsupported, oom, error, crash or timeout")
    reason: str | None = col("why there are no figures")
    number: int | None = col("calls of the stream")
    shapes: int | None = col("distinct lengths as the model gets them")
    setup_s: float | None = col("before the first call: an export", "s")
    total_s: float | None = col("the whole stream, setup included", "s")
    p50_ms: float | None = col("median call", "ms")
    p99_ms: float | None = col("call that 99 of 100 are faster than, or as fast", "ms")
    longest_ms: float | None = col("longest call", "ms")
    compilations: int | None = col("counted where the compiler is entered")
    reported: int | None = col("the same by the framework's own counter")
    recorded: int | None = col("CUDA graphs recorded")
    compile_s: float | None = col("in the compiler, by the framework's clock", "s")
    fell_back: int | None = col("first call, from 1, that ran no graph")
    padded_share: float | None = col("share of the tokens computed that are padding")
    tokens_per_s: float | None = col("real tokens over the whole stream", "1/s")
    memory_bytes: int | None = col("resident memory after the stream", "bytes")
    memory_growth_bytes: int | None = col("its growth over the stream", "bytes")
    device_bytes: int | None = col("the device's memory that the process holds after the stream", "bytes")
    device_growth_bytes: int | None = col("its growth over the stream", "bytes")
    parity: float | None = col("smallest tolerance that outputs at real positions are within, relative to eager's")
    tolerance: float | None = col("their tolerance, relative")
    host_loop_ms: float | None = col("median of a fixed Python loop before and after the stream", "ms")
    flags: str | None = col("fell_back, miscounted; separated by ';'")
    calls: tuple[float, ...] = ()  # seconds of each call

    @property
    def is_right(self) -> bool:
        """Say whether the process gave right answers."""
        return self.status == "ok"


JOURNAL = Journal("streams", StreamRecord, lambda record: (record.cell, record.strategy, record.caches, record.round))
