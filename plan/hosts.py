"""Hosts that processes are divided among: this machine, its GPUs side by side, or the nodes of a Slurm job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from launchers import slurm
from measurement.machine import cpu_shares, usable_cpus, visible_gpus
from measurement.refusals import UsageError, sentence

ALL_GPUS = "gpu:all"  # processes side by side, each on its own GPU, which it sees as gpu:0
LOCAL, SLURM = "local", "slurm"
LAUNCHERS = (LOCAL, SLURM)
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Hosts:
    """The number of slots, and of CPUs per slot; `gpus` are this machine's GPUs that run side by side."""

    launcher: str
    slots: int  # 0: one process after another on this machine
    each: int  # slots on the same host
    cpus: int | None  # None before the job is submitted
    where: str
    gpus: tuple[str, ...] = ()
    spread: int = 1  # nodes of a slot, with a rank on each

    def of_ranks(self, ranks: int) -> Hosts:
        """Return the hosts with one node per rank of a slot if the Slurm job has that many nodes, else unchanged."""
        if self.launcher != SLURM or self.each > 1 or not 1 < ranks <= self.slots:
            return self
        return replace(self, slots=self.slots // ranks, spread=ranks)

    def threads(self, counts: list[int], ranks: int = 1) -> list[int]:
        """Return the requested thread counts, by default all CPUs of a slot divided by `ranks`. Raises UsageError."""
        if self.cpus is not None and counts and max(counts) > self.cpus:
            raise UsageError(f"THREADS can be at most {self.cpus} on {self.where}, not {max(counts)}.")
        return counts or [max(1, (self.cpus or usable_cpus()) * self.spread // ranks)]


HERE = Hosts(LOCAL, 0, 1, None, "this machine")


def hosts_for(launcher: str, device: list[str], nodes: int | None) -> Hosts:
    """Return the hosts of a sweep on these devices; a job to submit requests `nodes` nodes. Raises UsageError."""
    if launcher == SLURM:
        return _of_a_job(device, nodes)
    gpus = _side_by_side(device)
    if not gpus:
        return Hosts(launcher, 0, 1, usable_cpus(), "this machine")
    try:
        cpus = min(map(len, cpu_shares(len(gpus))))
    except ValueError:
        raise UsageError(
            f"{ALL_GPUS} needs a CPU core for each of {len(gpus)} GPUs: select fewer with CUDA_VISIBLE_DEVICES."
        ) from None
    return Hosts(launcher, len(gpus), len(gpus), cpus, f"each of {len(gpus)} GPUs side by side", gpus)


def _of_a_job(device: list[str], nodes: int | None) -> Hosts:
    job = _asked(slurm.allocation)
    _alone(device)
    if nodes is not None and nodes < 1:
        raise UsageError(f"NODES must be a whole number of at least 1, not {nodes}.")
    if job is None:
        return Hosts(SLURM, nodes or 1, 1, None, "a job to be submitted")
    each = _asked(slurm.gpus_on_node, job) if device == [ALL_GPUS] else 1
    if not each:
        raise UsageError(f"The job has no GPUs for {ALL_GPUS}: request them, such as GRES=gpu:4.")
    if job.cpus < each:
        raise UsageError(f"{ALL_GPUS} needs a CPU for each of {each} GPUs: request more than {job.cpus} CPUs per node.")
    where = "each node of the job" if each == 1 else f"each of {each} GPUs of a node"
    return Hosts(SLURM, len(job.nodes) * each, each, job.cpus // each, where)


def _asked(ask: Callable[..., Answer], *arguments: slurm.Allocation) -> Answer:
    try:
        return ask(*arguments)
    except OSError as error:
        raise UsageError(sentence(error)) from None


def _alone(device: list[str]) -> None:
    if ALL_GPUS in device and device != [ALL_GPUS]:
        raise UsageError(
            f"{ALL_GPUS} uses every GPU and divides the CPUs, so it cannot be combined with other devices."
        )


def _side_by_side(device: list[str]) -> tuple[str, ...]:
    """Return the indices of the GPUs that `gpu:all` selects; empty if it is not requested. Raises UsageError."""
    if ALL_GPUS not in device:
        return ()
    _alone(device)
    gpus = visible_gpus()
    if not gpus:
        raise UsageError(f"There is no GPU for {ALL_GPUS}: nvidia-smi lists none that CUDA_VISIBLE_DEVICES allows.")
    kinds = sorted({f"{gpu['name']} of {gpu['memory.total']}" for gpu in gpus})
    if len(kinds) > 1:
        raise UsageError(
            f"{ALL_GPUS} needs GPUs of one kind, and this machine has {', '.join(kinds)}: select some with "
            f"CUDA_VISIBLE_DEVICES, or name one, gpu:<index>."
        )
    return tuple(gpu["index"] for gpu in gpus)
