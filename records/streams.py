"""Records of `make stream`: a row for each process that served a stream, in `streams.jsonl` and `streams.csv`."""

from __future__ import annotations

from dataclasses import dataclass

from records.journal import Journal
from records.process import ProcessRecord
from records.record import col, must


@dataclass(frozen=True, kw_only=True)
class StreamRecord(ProcessRecord):
    """One process that served a stream; `calls` are only in the JSON lines."""

    lengths: str = must("distribution that lengths are drawn from")
    clipped: float = must("share of its calls that are cut to the longest length")
    caches: str = must("cold: compile caches are empty; warm: they are those of the cold process before")
    number: int | None = col("calls of the stream")
    shapes: int | None = col("distinct shapes after padding")
    setup_s: float | None = col("time before the first call, such as an export", "s")
    total_s: float | None = col("the whole stream, setup included", "s")
    p50_ms: float | None = col("median call", "ms")
    p99_ms: float | None = col("99th percentile of the calls", "ms")
    longest_ms: float | None = col("longest call", "ms")
    later_ms: float | None = col("mean call once its shape was served before, with its CUDA graph recorded", "ms")
    new_shapes_s: float | None = col("time of the calls before these, but the stream's first, beyond later calls", "s")
    unseen_s: float | None = col("the same for lengths that the stream lacks: their number times the median shape", "s")
    compilations: int | None = col("counted where the compiler is entered")
    reported: int | None = col("compilations by the framework's own counter")
    recorded: int | None = col("CUDA graphs recorded")
    compile_s: float | None = col("time in the compiler, as the framework reports it", "s")
    fell_back: int | None = col("first call, from 1, that ran no graph")
    padded_share: float | None = col("share of the tokens computed that are padding")
    tokens_per_s: float | None = col("tokens without padding over total_s", "1/s")
    memory_bytes: int | None = col("resident memory after the stream", "bytes")
    memory_growth_bytes: int | None = col("its growth over the stream", "bytes")
    device_bytes: int | None = col("the device's memory that the process holds after the stream", "bytes")
    device_growth_bytes: int | None = col("its growth over the stream", "bytes")
    calls: tuple[float, ...] = ()  # seconds of each call

    @property
    def arm(self) -> tuple[str, ...]:
        """Return the strategy with its caches, which the rounds compare."""
        return self.strategy, self.caches


JOURNAL = Journal("streams", StreamRecord)
