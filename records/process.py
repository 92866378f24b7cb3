"""Records of the processes of a run of rounds: the columns that they share."""

from __future__ import annotations

from dataclasses import dataclass

from records.record import col, must

SCHEMA_VERSION = 1  # of these records


@dataclass(frozen=True, kw_only=True)
class ProcessRecord:
    """One process, one field per column; fields without a meaning are only in the JSON lines."""

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
    policies: str | None = col("choices of policies that differ from the suite's, separated by ','")
    strategy: str = must("name of the strategy")
    round: int = must("number of the round, from 0; each round has every strategy once")
    place: int = must("position of the process within its round, from 0")
    status: str = must("ok, mismatch, unsupported, oom, error, crash or timeout")
    reason: str | None = col("why there are no figures")
    flags: str | None = col("separated by ';'")
    parity: float | None = col("smallest relative tolerance that the outputs meet")
    tolerance: float | None = col("relative tolerance of the outputs")
    host_loop_ms: float | None = col("median time of the control loop", "ms")
    other_load_cores: float | None = col("cores kept busy by other processes", "cores")
    steal_share: float | None = col("cores that the hypervisor took", "cores")

    @property
    def is_right(self) -> bool:
        """Return whether the process gave right outputs."""
        return self.status == "ok"

    @property
    def is_wrong(self) -> bool:
        """Return whether the process gave wrong outputs."""
        return self.status == "mismatch"

    @property
    def ends_strategy(self) -> bool:
        """Return whether its strategy takes part in no further round: it failed other than by wrong outputs."""
        return not (self.is_right or self.is_wrong)

    @property
    def arm(self) -> tuple[str, ...]:
        """Return the strategy, which the rounds compare."""
        return (self.strategy,)
