"""A sweep on its way to being measured: asked for, planned, its environments and materials made, its folder begun.

What `bench`, `explain`, `reproduce` and `selfcheck` have in common; each takes from it what it needs.
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

from rich.console import Console

import frameworks
from harness import begun, environments, own, plan, requirements, runs, sweep
from harness.launcher import Launcher
from harness.ledger import Ledger
from harness.materials import MaterialsError, Store
from harness.outcomes import Context, Failure
from harness.plan import Group, Plan
from harness.progress import duration
from harness.refusals import UsageError
from harness.sweep import Sweep
from measurement import machine
from measurement.profiles import Profile

# Switches of frameworks and compilers that a user may have set: kept, and noted beside the results.
_NOTED = ("TF_", "XLA_", "JAX_", "FLAGS_", "TORCH", "PYTORCH_", "CUDA_", "NVIDIA_", "LD_PRELOAD", "MALLOC_", "DNNL_")


@dataclass(frozen=True)
class Request:
    """What a command is asked for: flags with their values, where its files go, and how it is measured."""

    flags: dict
    out: str | None = None
    resume: str | None = None
    python: str | None = None
    requirements: str | None = None
    timeout: float = 900
    dry_run: bool = False
    again: str | None = None  # the command that goes on with it, where that is not bench's own

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Request:
        """The request of a command line that has the flags of `bench` or `explain`."""
        names = ("out", "resume", "python", "requirements", "timeout", "dry_run")
        return cls(asked_for(arguments), **{name: getattr(arguments, name) for name in names})


@dataclass
class Campaign:
    """One sweep from its request to the launchers that measure it. `of` makes it, `prepare` comes before `launcher`."""

    request: Request
    console: Console
    given: dict  # the request's flags, or those that a resumed run was begun with
    sweep: Sweep
    plan: Plan
    python: str | None = None
    resumed: runs.Run | None = None
    finished: frozenset[str] = frozenset()
    ledger: Ledger = field(init=False)
    interpreters: dict[tuple[str, str], Path | Failure] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Request, console: Console, held: contextlib.ExitStack | None = None) -> Campaign:
        """Resolve and plan what is asked for, or what a run lacks, which is `held` from then on. Raises UsageError."""
        sweep.check_timeout(request.timeout)
        resumed = runs.Run.open(request.resume) if request.resume is not None else None
        if resumed and held and not request.dry_run:
            held.enter_context(resumed.held())
        given, python = plan_of(resumed, request) if resumed else (request.flags, request.python)
        resolved = sweep.resolve(given)
        if request.requirements is not None and not request.dry_run:
            python = with_requirements(request, resolved, console)
        if resolved.gpus:  # what a cell is called must not depend on how many GPUs a resumed run finds
            given = given | {"threads": resolved.axes["threads"]}
        if resolved.own_models:  # found again from whatever folder the run is gone on with
            given = given | {"workload": [resolved.own_models.get(name, name) for name in resolved.axes["workload"]]}
        for remark in resumed.judged() if resumed else ():
            console.print(remark, style="yellow", highlight=False, soft_wrap=True)
        finished = resumed.finished() if resumed else frozenset()
        campaign = cls(request, console, given, resolved, plan.plan(resolved, finished), python, resumed, finished)
        if resumed:
            check_cells(resumed, campaign.plan)
        if resolved.unseen_seq is not None and campaign.groups and not campaign.unseen:
            raise UsageError(f"UNSEEN_SEQ means nothing to {', '.join(resolved.axes['workload'])}.")
        return campaign

    @property
    def groups(self) -> list[Group]:
        """The groups that are to be measured."""
        return [group for bundle in self.plan.bundles for group in bundle.groups]

    @property
    def unseen(self) -> list[Group]:
        """Those of them that meet another sequence length, at that length."""
        return [other for group in self.groups if (other := plan.at_unseen_length(group, self.sweep.unseen_seq))]

    @cached_property
    def store(self) -> Store:
        """The weights, inputs and reference outputs."""
        return Store(self.sweep.weights, self.sweep.seed)

    @property
    def profile(self) -> Profile:
        return plan.profile_of(self.sweep)

    @property
    def estimates(self) -> dict[str, float]:
        """About how many seconds each bundle adds to the run, by its first cell."""
        return estimate(self.plan, self.sweep)

    def show(self) -> int:
        """Print what would be measured; the exit code of a dry run."""
        show_plan(self.plan, self.estimates, self.finished, self.console)
        return warn(self)

    def prepare(self, *others: Iterable[Group]) -> None:
        """Make the environments, and the materials of the plan's groups and of `others`. Raises UsageError."""
        self.prepare_with(prepare_environments(self.plan, self.python, self.console), *others)

    def prepare_with(self, interpreters: dict[tuple[str, str], Path | Failure], *others: Iterable[Group]) -> None:
        """Make the materials for these interpreters, by framework and kind of device. Raises UsageError."""
        self.interpreters = interpreters
        self.ledger = Ledger()  # which books no time of environments
        self.make([*self.groups, *self.unseen])
        for groups in others:
            self.make(groups, seeded=True)

    def make(self, groups: Iterable[Group], seeded: bool = False) -> None:
        """Make the materials of some groups. Raises UsageError."""
        try:
            self.store.prepare(list(groups), lambda text: self.console.print(text, highlight=False), seeded=seeded)
        except MaterialsError as error:
            raise UsageError(str(error)) from None

    def launcher(self, run: runs.Run) -> Launcher:
        """What starts workers for this sweep, with their files in the folder of `run`."""
        return Launcher(run, self.sweep, self.profile, self.interpreters, self.store, self.request.timeout)

    def context(self, run_id: str, **facts) -> Context:
        """What every record of a run of this sweep repeats; `facts` are the machine's."""
        known = {"machine_id": "", "cpu_name": "", "git_revision": None} | facts
        distributions = {name: frameworks.describe(name).distributions for name in frameworks.NAMES}
        return Context(
            run_id=run_id,
            profile=self.profile,
            compile_cache=self.sweep.compile_cache,
            distributions=distributions,
            policies=self.sweep.policies,
            **known,
        )

    def begin(self, run: runs.Run) -> Context:
        """Write what is known beforehand into the run's folder; what every record repeats is returned."""
        facts = machine.facts()
        variables = {k: v for k, v in os.environ.items() if k.startswith(_NOTED)}
        cells = [cell.id for cell in self.plan.cells]
        if not (run.folder / runs.PLAN).exists():
            asked = {"given": self.given, "python": self.python, "command": sys.argv}
            asked |= {"own": own.sealed(self.sweep.own_models)} if self.sweep.own_models else {}
            run.begin_with({**asked, "started_at": runs.utc_now(), "cells": cells})
        run.write("machine.json", {**facts, "environment": variables, "python": self.python})
        revision = runs.git_revision()
        return self.context(run.id, machine_id=facts["machine_id"], cpu_name=facts["cpu"], git_revision=revision)


def with_requirements(request: Request, resolved: Sweep, console: Console) -> str:
    """The interpreter of the environment that REQUIREMENTS makes; a resumed run has it. Raises UsageError."""
    if request.resume is not None or request.python is not None:
        other = "RESUME, which goes on in the run's own environment" if request.resume is not None else "PYTHON"
        raise UsageError(f"REQUIREMENTS makes an environment: leave it out beside {other}.")
    report = lambda text: console.print(text, highlight=False, markup=False)  # noqa: E731
    return requirements.interpreter(request.requirements, resolved.axes["framework"], resolved.axes["device"], report)


def plan_of(run: runs.Run, request: Request) -> tuple[dict, str | None]:
    """The flags and the interpreter that a resumed run was begun with. Raises UsageError if any was changed."""
    given = run.plan["given"]
    own.take_in(sweep.words(given.get("workload") or ()))
    own.hold_to(run.plan.get("own", {}), begun.is_ours(run.plan), "workload" in request.flags)
    begun_as = sweep.resolve(given)
    changed = [name for name, value in request.flags.items() if sweep.resolve(given | {name: value}) != begun_as]
    # Runs of before have the interpreter in machine.json.
    content = run.plan if "python" in run.plan else {**run.read("machine.json"), **run.plan}
    return given, hold_to(content, changed, run.id, request.python)


def hold_to(content: dict, changed: list[str], name: str, python: str | None) -> str | None:
    """The interpreter of what was begun. Raises UsageError where flags, or PYTHON, ask for something else.

    A folder from elsewhere names no program to run: its interpreter has to be given again.
    """
    before = content.get("python", python)
    if python not in (None, before):
        changed = [*changed, "python"]
    if changed:
        words = ", ".join(flag.upper().replace("-", "_") for flag in changed)
        raise UsageError(f"{name} was begun with other values: leave out {words}, or begin another run.")
    if before is not None and python is None and not begun.is_ours(content):
        word = sweep.make_word("PYTHON", str(before))
        raise UsageError(f"{name} was not begun in this checkout and names a program to run; if you trust it: {word}.")
    return before


def check_cells(run: runs.Run, planned: Plan) -> None:
    """Raise UsageError where a run's flags mean other cells here and now than when it was begun."""
    then, now = set(run.plan.get("cells", [])), {cell.id for cell in planned.cells}
    if then and then != now:
        raise UsageError(
            f"{run.id} was begun with other cells than its flags mean here ({min(then ^ now)}, for one): by another "
            "version of the suite, or on a machine with other CPUs or GPUs; begin another run."
        )


def asked_for(arguments: argparse.Namespace) -> dict:
    """Flag -> what was given for it; flags win over the sweep file."""
    given = sweep.given_in_files(arguments.sweep, getattr(arguments, "preset", None))
    flags = [axis.flag for axis in sweep.AXES.values()] + list(sweep.parameter_flags()) + list(sweep.OPTIONS)
    values = {flag: getattr(arguments, flag.replace("-", "_"), None) for flag in flags}
    return given | {flag: value for flag, value in values.items() if value is not None}


def estimate(planned: plan.Plan, resolved: Sweep) -> dict[str, float]:
    """About how many seconds each bundle adds to the run, by its first cell."""
    profile = plan.profile_of(resolved)
    lanes = max(1, min(len(resolved.gpus), len(planned.bundles)))
    return {b.first.id: plan.estimated_seconds(b, profile, resolved.compile_cache) / lanes for b in planned.bundles}


def show_plan(planned: plan.Plan, estimates: dict[str, float], finished: frozenset[str], console: Console) -> None:
    """Print what would be measured."""
    for bundle in planned.bundles:
        console.print(f"launch, about {duration(estimates[bundle.first.id])}:", highlight=False)
        for group in bundle.groups:
            for cell in group.cells:
                console.print(f"  {cell.id}", highlight=False, markup=False, soft_wrap=True)
    for cell_id, reason in planned.impossible.items():
        console.print(f"unsupported: {cell_id}: {reason}", highlight=False, markup=False, soft_wrap=True)
    done = f", {len(finished)} of them finished" if finished else ""
    total = duration(sum(estimates.values()))
    console.print(f"{len(planned.cells)} cells{done}, about {total}, environments apart.", highlight=False)


def warn(campaign: Campaign) -> int:
    """Say of a plan what the real run would refuse here; a plan for another machine is still a plan."""
    refusals = [no_gpu(campaign.plan, campaign.python)]
    try:
        if campaign.request.resume is None:
            runs.check_free(campaign.request.out)
    except UsageError as error:
        refusals.append(str(error))
    for refusal in filter(None, refusals):
        text = f"Would be refused: {refusal}"
        campaign.console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)
    return 0


def no_gpu(planned: plan.Plan, python: str | None) -> str | None:
    """Why cells for a GPU cannot be measured here; None where they can, or where only PYTHON sees the GPU."""
    needed = any(bundle.first.device_kind == "gpu" for bundle in planned.bundles)
    if python or not needed or machine.has_gpu():
        return None
    return "This machine shows no NVIDIA GPU; PYTHON=/path/to/python measures one that only yours sees."


def prepare_environments(planned: plan.Plan, python: str | None, console: Console) -> dict:
    """The interpreter for every framework and kind of device in the plan, or the failure its cells will carry.

    Raises UsageError for a PYTHON that does not run, and rather than make environments for a GPU that is not there.
    """
    if refusal := no_gpu(planned, python):
        raise UsageError(refusal)
    found: dict[tuple[str, str], Path | Failure] = {}
    for bundle in planned.bundles:
        key = (bundle.first.framework, bundle.first.device_kind)
        if key in found:
            continue
        try:
            report = lambda text: console.print(text, highlight=False, markup=False)  # noqa: E731
            own = frameworks.describe(key[0]).oracle
            found[key] = environments.ensure(*key, python=None if own else python, report=report)
        except environments.SetupError as error:
            if python and not own:
                raise UsageError(f"PYTHON={python}: {error}") from None
            console.print(f"{key[0]}: {error}", highlight=False, markup=False, style="red")
            found[key] = Failure("error", f"Its environment could not be set up: {error}")
    return found
