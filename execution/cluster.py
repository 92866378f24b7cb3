"""The nodes of a Slurm job: their hardware, the nodes that serve, and the speed of each at the same cell."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import frameworks
from execution.launcher import Launcher
from execution.slots import Slot
from execution.worker_run import WorkerRun
from launchers import local, slurm
from measurement import programs
from measurement.places import SUITE
from measurement.protocol import MEASURE
from measurement.refusals import UsageError, sentence
from plan.hosts import Hosts
from plan.plan import Group
from records.cell_result import CellResult

PROBE_SECONDS = 120.0  # for a node's answer
MOST_ASKED = 64  # nodes at once
_ASKED = {"kind": str, "machine_id": str, "cpu": str, "cpus": int, "gpus": list}  # of `measurement.machine`


@dataclass
class Cluster:
    """The nodes of this job. Serving nodes have one kind, `facts`; `left_out` has reasons why others do not serve."""

    job: str
    facts: dict[str, Any]
    serving: dict[str, dict[str, Any]]  # by name, with the node's own facts
    left_out: dict[str, str] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)  # nodes that served this run in other jobs

    @classmethod
    def of_job(cls, started_on: str | None = None, before: dict[str, str] | None = None) -> Cluster:
        """Return the cluster of this job; ask each node for its facts. Nodes of a rarer or other kind do not serve.

        `started_on` is the kind of a resumed run. Raises UsageError if no node serves.
        """
        try:
            job = slurm.allocation()
        except OSError as error:
            raise UsageError(sentence(error)) from None
        if job is None:
            raise UsageError("This process is not in a Slurm job; omit LAUNCHER=slurm to measure on this machine.")
        answers = probed(job)
        known = {node: answer for node, answer in answers.items() if isinstance(answer, dict)}
        left_out = {node: answer for node, answer in answers.items() if isinstance(answer, str)}
        kinds = Counter(answer["kind"] for answer in known.values())
        kind = started_on or (kinds.most_common(1)[0][0] if kinds else "")
        serving = {node: answer for node, answer in known.items() if answer["kind"] == kind}
        left_out |= {node: f"its hardware differs: {described(known[node])}" for node in known.keys() - serving.keys()}
        if not serving:
            whys = "; ".join(f"{node}: {why}" for node, why in left_out.items())
            way = "use CONSTRAINT= to request the same type of nodes as before" if started_on else "inspect these nodes"
            raise UsageError(f"No node of job {job.job} can be used ({whys}); {way}.")
        first = next(iter(serving.values()))
        return cls(job.job, {**first, "machine_id": kind}, serving, left_out, before or {})

    @property
    def described(self) -> dict[str, Any]:
        """Return the content of machine.json: facts of the serving kind of node, and the serving nodes by job."""
        nodes = self.before | {node: facts["machine_id"] for node, facts in self.serving.items()}
        return {**self.facts, "job": self.job, "nodes": nodes, "left_out": self.left_out}

    def slots(self, places: Hosts, own_gpu: bool, options: tuple[str, ...], python: str) -> tuple[Slot, ...]:
        """Return the slots of all nodes: first slot 0 of each node, then slot 1, and so on."""
        slots: list[Slot] = []
        for place in range(places.each):
            names = list(self.serving)
            for first in range(0, len(names) - places.spread + 1, places.spread):
                node, *others = names[first : first + places.spread]
                step = slurm.Step(self.job, node, (place, places.each), own_gpu, options, python, tuple(others))
                start, unfit = partial(slurm.run, step), partial(slurm.why_gone, self.job, node)
                slots.append(Slot(len(slots), places.each, node=node, start=start, unfit=unfit))
        return tuple(slots)


def probed(job: slurm.Allocation) -> dict[str, dict[str, Any] | str]:
    """Return by node its facts, or why they are unknown; ask all nodes at the same time."""
    variables = slurm.of_srun(dict(os.environ))

    def asked(node: str) -> dict[str, Any] | str:
        command = [*slurm.asking(job.job, node), sys.executable, "-m", "measurement.machine"]
        return _answer(programs.run(command, PROBE_SECONDS, cwd=SUITE, env=variables))

    try:
        with ThreadPoolExecutor(min(len(job.nodes), MOST_ASKED)) as pool:
            return dict(zip(job.nodes, pool.map(asked, job.nodes), strict=True))
    except OSError as error:
        raise UsageError(f"srun could not be started ({error.strerror}): to measure here, omit LAUNCHER.") from None


def _answer(done: programs.Answer) -> dict[str, Any] | str:
    if done.problem:
        return f"it did not answer: {done.problem}"
    output = f"{done.output}\n{done.errors}"
    for line in reversed(output.splitlines()):
        with contextlib.suppress(ValueError):
            if isinstance(answer := json.loads(line), dict) and _is_whole(answer):
                return answer
    return " ".join(output.split())[-200:] or "it did not answer"


def _is_whole(facts: dict[str, Any]) -> bool:
    """Return whether a node's answer has every required fact; a site may print other text before it."""
    return all(isinstance(facts.get(name), kind) for name, kind in _ASKED.items())


def described(facts: dict[str, Any]) -> str:
    """Return a short description of a kind of node."""
    gpus = Counter(f"{gpu['name']}, driver {gpu['driver_version']}" for gpu in facts["gpus"])
    memory = [f"{facts['memory_bytes'] / 2**30:.0f} GiB"] if facts.get("memory_bytes") else []
    return ", ".join([facts["cpu"], f"{facts['cpus']} CPUs", *memory, *(f"{n} x {name}" for name, n in gpus.items())])


def control_of(groups: Iterable[Group]) -> Group | None:
    """Return the cell that every node measures: eager mode of the smallest shape of the plan's first framework."""
    groups = [group for group in groups if not group.controls]
    mine = [group for group in groups if group.cells[0].framework == groups[0].cells[0].framework]
    sized = sorted(mine, key=lambda group: int(group.parameters.get("batch_size", 0)))
    for group in sized:
        eager = tuple(cell for cell in group.cells if frameworks.is_baseline(cell))
        if eager:
            return Group(eager, frozenset(cell.id for cell in eager))
    return None


def measured_control(launcher: Launcher, group: Group) -> dict[str, Any]:
    """Return the latency of the control cell on the slot's node, in ms, with its interval within one process.

    Without a latency `problem` gives the reason. Raises SlotFailure.
    """
    cell, folder = group.cells[0], launcher.run.new_process_folder()
    worker_run = WorkerRun(folder, 0, {cell.id: CellResult(cell)})
    start = launcher.start_of(cell, folder, launcher.cache_of(cell))
    answer: dict[str, Any] = {"node": launcher.slot.node, "cell": cell.id}
    try:
        for data in launcher.messages(start, launcher.job(MEASURE, [group], folder)):
            worker_run.take(data)
    except local.SlotFailure:
        raise
    except local.WorkerFailure as error:
        return answer | {"problem": str(error)}
    result = worker_run.results[cell.id]
    if not result.reports:
        return answer | {"problem": result.failure.reason if result.failure else "its worker did not report it"}
    interval = result.latency
    ends = {"low_ms": interval.low * 1e3, "high_ms": interval.high * 1e3} if interval else {}
    return answer | {"latency_ms": result.latency_s * 1e3, **ends}
