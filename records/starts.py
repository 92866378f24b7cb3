"""Records of `make start`: a row for each process that was started, in `starts.jsonl` and `starts.csv`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from measurement.starts import PHASES
from records.journal import Journal
from records.record import col, must

START_SCHEMA_VERSION = 1


def _phase(name: str) -> Any:
    return col(PHASES[name], "s")


@dataclass(frozen=True, kw_only=True)
class StartRecord:
    """What is known of one process that was started, one field a column."""

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
    strategy: str = must("how a fresh process gets to its first answer")
    round: int = must("number of the round, from 0; each round starts every strategy once")
    place: int = must("position of the process within its round, from 0")
    status: str = must("ok, mismatch, unsupported, oom, error, crash or timeout")
    reason: str | None = col("why there are no figures")
    first_answer_s: float | None = col("time from exec to the first output, synchronised and compared", "s")
    interpreter_s: float | None = _phase("interpreter")
    suite_s: float | None = _phase("suite")
    imports_s: float | None = _phase("imports")
    build_s: float | None = _phase("build")
    load_s: float | None = _phase("load")
    trace_s: float | None = _phase("trace")
    guards_s: float | None = _phase("guards")
    lowering_s: float | None = _phase("lowering")
    kernels_s: float | None = _phase("kernels")
    autotuning_s: float | None = _phase("autotuning")
    recording_s: float | None = _phase("recording")
    first_run_s: float | None = _phase("first_run")
    compare_s: float | None = _phase("compare")
    unaccounted: float | None = col("share of the wall time outside of all phases")
    programs: str | None = col("programs started before the first answer, with their number")
    programs_s: float | None = col("time spent waiting for these programs, part of the phases", "s")
    compiler: str | None = col("the first C++ compiler on the PATH")
    memory_bytes: int | None = col("peak resident memory of the process until the first answer", "bytes")
    children_bytes: int | None = col("highest peak among the processes that it started", "bytes")
    parity: float | None = col("smallest relative tolerance that the first output meets")
    tolerance: float | None = col("relative tolerance of the workload")
    steady_ms: float | None = col("median time per call after the first answer", "ms")
    samples: int | None = col("samples behind steady_ms")
    host_loop_ms: float | None = col("median time of the control loop during these samples", "ms")
    compilations: int | None = col("compilations during these samples")
    artefact_s: float | None = col("time to make the artefact, from exec to the file, in a separate process", "s")
    artefact_bytes: int | None = col("size of the artefact on disk", "bytes")
    flags: str | None = col("unaccounted above 3 %, recompiled; separated by ';'")

    @property
    def is_right(self) -> bool:
        """Say whether the process gave the right answer."""
        return self.status == "ok"

    @property
    def phases(self) -> dict[str, float]:
        """Return seconds by phase, of those that the process went through."""
        found = {name: getattr(self, f"{name}_s") for name in PHASES}
        return {name: seconds for name, seconds in found.items() if seconds is not None}


JOURNAL = Journal("starts", StartRecord, lambda record: (record.cell, record.strategy, record.round))
