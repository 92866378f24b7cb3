"""Records of `make start`: a row for each process that was started, in `starts.jsonl` and `starts.csv`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from measurement.starts import PHASES
from records.journal import Journal
from records.process import ProcessRecord
from records.record import col


def _phase(name: str) -> Any:
    return col(PHASES[name], "s")


@dataclass(frozen=True, kw_only=True)
class StartRecord(ProcessRecord):
    """One started process, until its first answer and after it."""

    first_answer_s: float | None = col("time from exec to the first output, synchronized and compared", "s")
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
    steady_ms: float | None = col("median time per call after the first answer", "ms")
    samples: int | None = col("samples behind steady_ms")
    compilations: int | None = col("compilations during these samples")
    artefact_s: float | None = col("time to make the artefact, from exec to the file, in a separate process", "s")
    artefact_bytes: int | None = col("size of the artefact on disk", "bytes")

    @property
    def phases(self) -> dict[str, float]:
        """Return seconds by phase, for the phases that the process went through."""
        found = {name: getattr(self, f"{name}_s") for name in PHASES}
        return {name: seconds for name, seconds in found.items() if seconds is not None}


JOURNAL = Journal("starts", StartRecord)
