"""A sweep before its measurement: request, plan, environments, weights, references, and folder.

`bench`, `explain`, `reproduce` and `doctor` share it; each uses the steps that it needs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

import frameworks
from execution import early_checks, preparation, submission, surroundings, unchanged
from execution.cluster import Cluster
from execution.launcher import Launcher
from execution.reference_data import LATER, NEVER, NOW, ReferenceDataError, Store, Unkept
from execution.slots import Slot, of_gpus
from execution.surroundings import Surroundings
from execution.time_breakdown import TimeBreakdown
from measurement import machine, places
from measurement.profiles import Profile
from measurement.refusals import DONE, UsageError
from plan import options, plan, requirements, sweep, user_models
from plan.hosts import ALL_GPUS, SLURM
from plan.options import Option, option
from plan.plan import Group, Plan
from plan.sweep import Sweep
from records import foreign, runs
from records.cell_result import Context, Failure

# Prefixes of variables that users may set for several frameworks; the run keeps them and stores them with its results.
_NOTED = ("CUDA_", "NVIDIA_", "LD_PRELOAD", "MALLOC_", "DNNL_")
CPUS_FOR_BOTH = 8  # from this number on, a GPU is profiled while data are made and a worker starts


@dataclass(frozen=True)
class Request:
    """Request of a command: flags with their values, the folder of its files, and the method of measurement."""

    flags: dict[str, Any]
    timeout: float = option(900.0, "seconds a worker may be silent (default: 900)", parse=float)
    python: str | None = option(None, "measure this interpreter's packages instead of a locked environment")
    requirements: str | None = option(
        None, "requirements file of a user model; it gets a separate environment", metavar="FILE"
    )
    dry_run: bool = option(False, "print the plan, make the run's checks, and exit", switch=True)
    out: str | None = option(
        None, f"folder of the run (default: a new one in {places.shown(places.RUNS)})", metavar="FOLDER"
    )
    resume: str | None = option(None, "resume a run (default: newest)", metavar="RUN", alone="newest")
    nodes: int | None = option(None, "nodes of the submitted job (default: 1)", parse=int, cluster=True)
    scratch: str | None = option(
        None, "run from a copy of the environment on each node's disk", metavar="FOLDER", cluster=True
    )
    container: str | None = option(
        None, "run workers in this container: apptainer:FILE or pyxis:IMAGE", metavar="TOOL:IMAGE", cluster=True
    )
    again: str | None = None  # the command that resumes it, if it is not `bench`
    job: dict[str, str | None] = field(default_factory=dict)  # values of submission.TO_SBATCH by flag, and `lines`

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> Request:
        """Return the request of a command line that has some of the options of `bench`."""
        job = {one.flag: getattr(arguments, one.flag, None) for one in (*submission.TO_SBATCH, submission.LINES)}
        fields = {name: getattr(arguments, name) for name in options.declared(cls) if hasattr(arguments, name)}
        return cls(options_of(arguments), **fields, job=job)


SWEEP_FILES = (
    Option("sweep", "TOML file with any of these flags; the command line takes precedence", "FILE"),
    Option("preset", "a sweep file that the suite provides; `list` prints the names", "NAME"),
)


def all_options() -> list[Option]:
    """Return the options of `bench`: cells to measure, method, and place."""
    job = (*submission.TO_SBATCH, submission.LINES)
    return [*sweep.all_options(), *SWEEP_FILES, *options.declared(Request).values(), *job]


def local_options() -> list[Option]:
    """Return those options of `bench` that are not for a cluster."""
    return [option for option in all_options() if not option.cluster]


@dataclass
class Campaign:
    """One sweep from its request to its launchers. `start` creates it; call `prepare` before `launcher`."""

    request: Request
    console: Console
    given: dict[str, Any]  # the request's flags, or the original flags of a resumed run
    sweep: Sweep
    plan: Plan
    python: str | None = None
    resumed: runs.Run | None = None
    finished: frozenset[str] = frozenset()
    breakdown: TimeBreakdown = field(init=False)
    interpreters: dict[tuple[str, str], Path | Failure] = field(default_factory=dict)
    cluster: Cluster | None = None  # the serving nodes of the Slurm job, known after `begin`

    @classmethod
    def start(cls, request: Request, console: Console, held: contextlib.ExitStack | None = None) -> Campaign:
        """Return the campaign of the request, or of the missing cells of a run, which `held` holds from then on.

        Raises UsageError.
        """
        sweep.check_timeout(request.timeout)
        resumed = runs.Run.open(request.resume) if request.resume is not None else None
        if resumed and held and not request.dry_run:
            held.enter_context(resumed.held())
        given, python = plan_of(resumed, request) if resumed else (request.flags, request.python)
        resolved = sweep.resolve(given, request.nodes)
        check_job(request, resolved)
        if request.requirements is not None:
            python = with_requirements(request.requirements, request, resolved, console)
        if resolved.places.slots:  # cells keep their names on any machine that resumes the run
            given = given | {"threads": resolved.axes["threads"]}
        if resolved.user_models:  # they are found again from any folder that the run is resumed in
            given = given | {"workload": [resolved.user_models.get(name, name) for name in resolved.axes["workload"]]}
        remarks = resumed.judged() if resumed else []
        finished = resumed.finished() if resumed else frozenset()
        campaign = cls(request, console, given, resolved, plan.plan(resolved, finished), python, resumed, finished)
        for remark in filter(None, (plan.unknown_modes(resolved), *remarks)):
            console.print(remark, style="yellow", soft_wrap=True)
        if resumed:
            check_cells(resumed, campaign.plan)
        if resolved.unseen_seq is not None and campaign.groups and not campaign.unseen:
            raise UsageError(f"UNSEEN_SEQ has no effect on {', '.join(resolved.axes['workload'])}: omit it.")
        return campaign

    @property
    def groups(self) -> list[Group]:
        """Return the groups to measure."""
        return [group for bundle in self.plan.bundles for group in bundle.groups]

    @property
    def on_gpu(self) -> bool:
        """Return whether any group is measured on a GPU."""
        return any(group.cells[0].device_kind == "gpu" for group in self.groups)

    @property
    def unseen(self) -> list[Group]:
        """Return the groups that also run at the unseen sequence length, with that length."""
        return [other for group in self.groups if (other := plan.at_unseen_length(group, self.sweep.unseen_seq))]

    @cached_property
    def store(self) -> Store:
        """Return the weights, inputs and reference outputs."""
        return Store(self.sweep.weights, self.sweep.seed)

    @property
    def profile(self) -> Profile:
        return plan.profile_of(self.sweep)

    @property
    def estimates(self) -> dict[str, float]:
        """Return the approximate seconds that each bundle adds to the run, by its first cell."""
        return preparation.estimate(self.plan, self.sweep)

    def show(self) -> int:
        """Print the plan, and do the run's checks; return the exit code. Raises UsageError."""
        self.show_plan()
        with runs.Run.begin(self.request.out) if self.request.resume is None else contextlib.nullcontext():
            self.check(self.make_environments())
        return DONE

    def show_plan(self, cells: bool = True) -> None:
        """Print the plan, or only the number of its cells, and its estimated duration."""
        places = self.sweep.places
        nodes = places.slots * places.spread // places.each if self.elsewhere else 0
        preparation.show_plan(self.plan, self.estimates, self.finished, self.console, nodes, cells)

    @property
    def elsewhere(self) -> bool:
        """Return whether workers run on a cluster's nodes."""
        return self.sweep.places.launcher == SLURM

    def prepare(self, *others: Iterable[Group], later: bool = False) -> None:
        """Make the environments, and the reference data of the plan's groups and of `others`. Raises UsageError.

        With `later`, references and the data of `others` may still be made when this returns, if the machine has enough
        cores.
        """
        self.prepare_with(self.make_environments(), *others, later=later)

    def make_environments(self, variable: str = "PYTHON") -> dict[tuple[str, str], Path | Failure]:
        """Return the interpreters by framework and kind of device; make missing ones. Raises UsageError.

        A dry run makes none, and returns none for those that are missing. `variable` names the user's interpreter.
        """
        _ = self.around
        if not self.elsewhere and (refusal := preparation.no_gpu(self.plan, self.python)):
            raise UsageError(refusal)
        if self.request.requirements is not None and self.python is None:
            return {}
        inside, make = bool(self.request.container), not self.request.dry_run
        return preparation.environments_of(self.plan, self.python, self.console, inside, make, variable)

    def check(self, interpreters: dict[tuple[str, str], Path | Failure]) -> None:
        """Use these interpreters, by framework and kind of device, and check users' models. Raises UsageError.

        A resumed run skips the check: it was done at the start, and the files are the same.
        """
        self.interpreters = interpreters
        if self.sweep.weights:
            from execution import checkpoints  # imports packages that a run without WEIGHTS does not need

            checkpoints.check_place(self.sweep.weights)
        if not (self.resumed or self.elsewhere or self.request.container):
            early_checks.check(self.groups, self.checker, self.console)

    def checker(self, folder: Path) -> Launcher:
        """Return the launcher of workers that check models, with their files in a folder."""
        parts = self.sweep, self.profile, self.interpreters, lambda group: early_checks.NOTHING, self.request.timeout
        return Launcher(runs.Run(folder), *parts)

    @property
    def has_spare_cpus(self) -> bool:
        """Return whether there are CPUs for other work while a GPU is profiled."""
        on_gpu = all(group.cells[0].device_kind == "gpu" for group in self.groups)
        return on_gpu and not self.elsewhere and machine.usable_cpus() >= CPUS_FOR_BOTH

    @property
    def early_workers(self) -> int:
        """Return how many workers may start while eager mode is profiled.

        None start early if the plan has several bundles, which take turns, or several ranks, which take their devices
        as they start. For a user's model one does: its first process computes references with the device's free memory.
        """
        ranked = any(cell.ranks > 1 for group in self.groups for cell in group.cells)
        if not self.has_spare_cpus or ranked or len(self.plan.bundles) > 1:
            return 0
        more = machine.usable_cpus() >= 2 * CPUS_FOR_BOTH and not self.sweep.user_models
        return self.profile.minimum_processes if more else 1

    def prepare_with(
        self, interpreters: dict[tuple[str, str], Path | Failure], *others: Iterable[Group], later: bool = False
    ) -> None:
        """Check the models and make the reference data for these interpreters. Raises UsageError."""
        self.check(interpreters)
        self.breakdown = TimeBreakdown()  # excludes the time of environments
        later = later and self.has_spare_cpus
        self.make([*self.groups, *self.unseen], references=LATER if later else NOW)
        for groups in others:  # peak benchmarks, whose outputs are not compared
            if later:
                self.store.prepare_later(groups)
            else:
                self.make(groups, seeded=True, references=NEVER)

    def make(self, groups: Iterable[Group], seeded: bool = False, references: str = NOW) -> None:
        """Make the reference data of some groups. Raises UsageError."""
        try:
            self.store.prepare(list(groups), self.console.print, seeded, references)
        except ReferenceDataError as error:
            again = " Run the same command again." if isinstance(error, Unkept) else ""
            raise UsageError(f"{error}{again}") from None

    def launcher(self, run: runs.Run) -> Launcher:
        """Return the launcher of workers for this sweep, with their files in the folder of `run`."""
        prefix = self.around.prefix([run.folder], self.on_gpu, self.python)
        parts = run, self.sweep, self.profile, self.interpreters, self.store.for_worker, self.request.timeout
        return Launcher(*parts, prefix=prefix)

    def programs(self, folder: Path) -> dict[str, str]:
        """Return the values, by variable, that a command line must name to resume this sweep in a folder."""
        return foreign.programs(folder, self.given, PYTHON=self.python)

    @property
    def around(self) -> Surroundings:
        """Return the container and scratch disk around a worker's command. Raises UsageError."""
        return surroundings.resolve(self.request.scratch, self.request.container, self.python)

    def slots(self, run: runs.Run) -> tuple[Slot, ...]:
        """Return the slots of processes side by side; none if they run one after another on this machine."""
        places = self.sweep.places
        if self.cluster:
            own_gpu = ALL_GPUS in sweep.split_words(self.given.get("device") or "")
            srun, python = self.around.options([run.folder]), self.around.relay(self.python)
            return self.cluster.slots(places, own_gpu, srun, python)
        return of_gpus(places.gpus, machine.cpu_shares(len(places.gpus))) if places.gpus else ()

    def context(
        self,
        run_id: str,
        machine_id: str = "",
        cpu_name: str = "",
        git_revision: str | None = None,
        code: str | None = None,
    ) -> Context:
        """Return the facts that every record of a run of this sweep repeats."""
        distributions = {name: frameworks.describe(name).distributions for name in frameworks.NAMES}
        return Context(
            run_id=run_id,
            machine_id=machine_id,
            cpu_name=cpu_name,
            git_revision=git_revision,
            profile=self.profile,
            compile_cache=self.sweep.compile_cache,
            distributions=distributions,
            policies=self.sweep.policies,
            code=code,
        )

    def begin(self, run: runs.Run) -> Context:
        """Write the run's plan and machine into its folder, and return the facts that every record repeats."""
        if self.elsewhere:
            before = run.read(runs.MACHINE)
            self.cluster = Cluster.of_job(before.get("kind"), before.get("nodes"))
            if self.on_gpu and not self.python and not self.cluster.facts["gpus"]:
                raise UsageError("The job's nodes have no NVIDIA GPU: request some, such as GRES=gpu:4.")
        facts = self.cluster.described if self.cluster else machine.facts()
        variables = {name: value for name, value in os.environ.items() if is_noted(name)}
        cells = [cell.id for cell in self.plan.cells]
        if not (run.folder / runs.PLAN).exists():
            command = {"given": user_models.kept(self.given), "python": self.python, "command": sys.argv}
            command |= {"own": user_models.digests(self.sweep.user_models)} if self.sweep.user_models else {}
            run.begin_with({**command, "started_at": runs.utc_now(), "cells": cells})
        if unchanged.leave_out_another_machine(run, facts["machine_id"]):
            self.console.print(unchanged.ANOTHER_MACHINE, soft_wrap=True)
        run.write(runs.MACHINE, {**facts, "environment": variables, "python": self.python})
        return self.context(
            run.id,
            machine_id=facts["machine_id"],
            cpu_name=facts["cpu"],
            git_revision=runs.git_revision(),
            code=runs.measuring_code(),
        )


def is_noted(variable: str) -> bool:
    """Return whether an environment variable may change a measurement, so that the run stores it."""
    described = map(frameworks.describe, frameworks.NAMES)
    return variable.startswith(_NOTED) or any(framework.is_switch(variable) for framework in described)


def check_job(request: Request, resolved: Sweep) -> None:
    """Raise UsageError for options of a Slurm job without LAUNCHER=slurm."""
    asked = [name.upper() for name, value in request.job.items() if value is not None]
    if asked and resolved.places.launcher != SLURM:
        raise UsageError(f"{asked[0]} applies only to Slurm jobs: add LAUNCHER=slurm or remove it.")
    if (request.container or "").startswith(f"{surroundings.PYXIS}:") and resolved.places.launcher != SLURM:
        raise UsageError("CONTAINER=pyxis:… is started by srun: add LAUNCHER=slurm, or use CONTAINER=apptainer:….")


def with_requirements(path: str, request: Request, resolved: Sweep, console: Console) -> str | None:
    """Return the interpreter of the environment that REQUIREMENTS makes. Raises UsageError.

    A dry run makes none, and returns None if it is missing.
    """
    if request.resume is not None or request.python is not None:
        other = "RESUME, which continues in the run's environment" if request.resume is not None else "PYTHON"
        raise UsageError(f"REQUIREMENTS makes an environment: remove it, or {other}.")
    asked = resolved.axes["framework"], resolved.axes["device"]
    return requirements.interpreter(path, *asked, console.print, make=not request.dry_run)


def plan_of(run: runs.Run, request: Request) -> tuple[dict[str, Any], str | None]:
    """Return the original flags and interpreter of a resumed run. Raises UsageError if any of them changed."""
    given = user_models.found(run.plan["given"])
    # Older runs name the interpreter in machine.json.
    content = run.plan if "python" in run.plan else {**run.read(runs.MACHINE), **run.plan}
    python = interpreter_in(content, request.python)
    named = foreign.programs(run.folder, given, PYTHON=python)
    foreign.check_named(
        "bench", run.folder, named, {"WORKLOAD": request.flags.get("workload"), "PYTHON": request.python}
    )
    user_models.check_unchanged(
        user_models.register(sweep.split_words(given.get("workload") or ())), run.plan.get("own", {})
    )
    begun_as = sweep.resolve(given)
    changed = [name for name, value in request.flags.items() if sweep.resolve(given | {name: value}) != begun_as]
    check_same(python, changed, run.id, request.python)
    return given, python


def interpreter_in(content: dict[str, Any], given: str | None) -> str | None:
    """Return the interpreter from a folder's plan, or `given` if the plan is too old to name one."""
    python = content.get("python", given)
    return None if python is None else str(python)


def check_same(before: str | None, changed: list[str], name: str, python: str | None) -> None:
    """Raise UsageError if any flag is `changed`, or PYTHON differs from that at the start of a run."""
    if python not in (None, before):
        changed = [*changed, "python"]
    if changed:
        words = ", ".join(map(options.variable, changed))
        raise UsageError(f"{name} was started with other values: omit {words}, or start a new run.")


def check_cells(run: runs.Run, planned: Plan) -> None:
    """Raise UsageError if a run's flags select other cells here and now than at its start."""
    then, now = set(run.plan.get("cells", [])), {cell.id for cell in planned.cells}
    if then and then != now:
        raise UsageError(
            f"{run.id} was started with other cells (such as {min(then ^ now)}) than its flags select here. The "
            f"suite, the CPUs or the GPUs differ; start a new run."
        )


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the given values by flag; flags override the sweep file."""
    given = sweep.given_in_files(arguments.sweep, getattr(arguments, "preset", None))
    values = {one.flag: getattr(arguments, one.attribute, None) for one in sweep.all_options()}
    return sweep.over_file(given, {flag: value for flag, value in values.items() if value is not None})
