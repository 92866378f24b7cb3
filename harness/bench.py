"""The `bench` and `setup` commands: from flags to a run's folder."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

from rich.console import Console

import frameworks
from harness import environments, plan, recordfile, runs, sweep, yardsticks
from harness.execute import Executor
from harness.ledger import Ledger
from harness.materials import MaterialsError, Store
from harness.outcomes import Context, Failure
from harness.progress import Bar, duration
from harness.sweep import Sweep, UsageError
from measurement import machine
from reports import terminal

INTERRUPTED = 130
# Switches of frameworks and compilers that a user may have set: kept, and noted beside the results.
_NOTED = ("TF_", "XLA_", "JAX_", "FLAGS_", "TORCH", "PYTORCH_", "CUDA_", "NVIDIA_", "LD_PRELOAD", "MALLOC_", "DNNL_")


def bench(arguments: argparse.Namespace) -> int:
    """Measure a sweep, or go on with one; returns the exit code. Raises UsageError before anything is started."""
    console = terminal.console()
    resumed = runs.Run.open(arguments.resume) if arguments.resume is not None else None
    given = plan_of(resumed, arguments) if resumed else asked_for(arguments)
    wanted = sweep.resolve(given)
    if wanted.gpus:  # what a cell is called must not depend on how many GPUs a resumed run finds
        given["threads"] = wanted.axes["threads"]
    finished = resumed.finished() if resumed else frozenset()
    planned = plan.plan(wanted, finished)
    groups = [group for bundle in planned.bundles for group in bundle.groups]
    unseen = [other for group in groups if (other := plan.at_unseen_length(group, wanted.unseen_seq))]
    if wanted.unseen_seq is not None and groups and not unseen:
        raise UsageError(f"UNSEEN_SEQ means nothing to {', '.join(wanted.axes['workload'])}.")
    estimates = estimate(planned, wanted)
    if arguments.timeout <= 0:
        raise UsageError(f"TIMEOUT is a number of seconds above 0, not {arguments.timeout:g}.")
    if arguments.dry_run:
        show_plan(planned, estimates, finished, console)
        return warn(planned, arguments, console)
    if resumed is None:
        runs.check_free(arguments.out)
    interpreters = prepare_environments(planned, arguments.python, console)
    ledger = Ledger()
    store = Store(wanted.weights, wanted.seed)
    try:
        measures = [group for bundle in planned.bundles for group in yardsticks.groups_for(bundle.first)]
        store.prepare([*groups, *unseen], lambda text: console.print(text, highlight=False))
        store.prepare(measures, lambda text: console.print(text, highlight=False), seeded=True)
    except MaterialsError as error:
        raise UsageError(str(error)) from None
    run = resumed or runs.Run.create(arguments.out)
    context = describe_run(run, wanted, planned, given, arguments)
    console.print(f"Run {run.folder}", highlight=False, soft_wrap=True)
    if why := unfit_to_publish(run.folder, context.git_revision):
        console.print(why, style="yellow", highlight=False, soft_wrap=True)
    return execute(run, planned, wanted, finished, context, interpreters, store, ledger, estimates, arguments, console)


def unfit_to_publish(folder: Path, revision: str | None) -> str | None:
    """Why a run in a folder that is committed should not be, as far as the suite's revision tells; None if it may."""
    if not recordfile.is_published(folder) or (revision and not revision.endswith("+")):
        return None
    what = "tracked files are changed" if revision else "there is no revision"
    return (
        f"OUT={folder} is among published results, but {what}: commit first, or nobody can have the code behind them."
    )


def plan_of(run: runs.Run, arguments: argparse.Namespace) -> dict:
    """What a run that is gone on with was begun with. Raises UsageError for changes."""
    given = run.read(runs.PLAN)["given"]
    begun_as = sweep.resolve(given)
    changed = [name for name, value in asked_for(arguments).items() if sweep.resolve(given | {name: value}) != begun_as]
    hold_to(run.read("machine.json"), changed, run.id, arguments)
    return given


def hold_to(begun: dict, changed: list[str], name: str, arguments: argparse.Namespace) -> None:
    """Take the interpreter of what was begun. Raises UsageError where flags, or PYTHON, ask for something else."""
    python = begun.get("python", arguments.python)
    if arguments.python not in (None, python):
        changed = [*changed, "python"]
    if changed:
        words = ", ".join(flag.upper().replace("-", "_") for flag in changed)
        raise UsageError(f"{name} was begun with other values: leave out {words}, or begin another run.")
    arguments.python = python


def asked_for(arguments: argparse.Namespace) -> dict:
    """Flag -> what was given for it; flags win over the sweep file."""
    given = sweep.given_in_files(arguments.sweep, getattr(arguments, "preset", None))
    flags = [axis.flag for axis in sweep.AXES.values()] + list(sweep.parameter_flags()) + list(sweep.OPTIONS)
    values = {flag: getattr(arguments, flag.replace("-", "_"), None) for flag in flags}
    return given | {flag: value for flag, value in values.items() if value is not None}


def estimate(planned: plan.Plan, wanted: Sweep) -> dict[str, float]:
    """About how many seconds each bundle adds to the run, by its first cell."""
    profile = plan.profile_of(wanted)
    lanes = max(1, min(len(wanted.gpus), len(planned.bundles)))
    return {b.first.id: plan.estimated_seconds(b, profile, wanted.compile_cache) / lanes for b in planned.bundles}


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


def warn(planned: plan.Plan, arguments: argparse.Namespace, console: Console) -> int:
    """Say of a plan what the real run would refuse here; a plan for another machine is still a plan."""
    refusals = [no_gpu(planned, arguments.python)]
    try:
        if arguments.resume is None:
            runs.check_free(arguments.out)
    except UsageError as error:
        refusals.append(str(error))
    for refusal in filter(None, refusals):
        console.print(f"Would be refused: {refusal}", style="yellow", highlight=False, markup=False, soft_wrap=True)
    return 0


def no_gpu(planned: plan.Plan, python: str | None) -> str | None:
    """Why cells for a GPU cannot be measured here; None where they can, or where only PYTHON sees the GPU."""
    wanted = any(bundle.first.device_kind == "gpu" for bundle in planned.bundles)
    if python or not wanted or machine.has_gpu():
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


def describe_run(run: runs.Run, wanted: Sweep, planned: plan.Plan, given: dict, arguments) -> Context:
    """Write what is known beforehand into the run's folder; what every record repeats is returned."""
    facts = machine.facts()
    variables = {k: v for k, v in os.environ.items() if k.startswith(_NOTED)}
    cells = [cell.id for cell in planned.cells]
    if not (run.folder / runs.PLAN).exists():
        run.write(runs.PLAN, {"given": given, "command": sys.argv, "started_at": runs.utc_now(), "cells": cells})
    run.write("machine.json", {**facts, "environment": variables, "python": arguments.python})
    return Context(
        run_id=run.id,
        machine_id=facts["machine_id"],
        cpu_name=facts["cpu"],
        git_revision=runs.git_revision(),
        profile=plan.profile_of(wanted),
        compile_cache=wanted.compile_cache,
        distributions={name: frameworks.describe(name).distributions for name in frameworks.NAMES},
        policies=wanted.policies,
    )


def execute(run, planned, wanted, finished, context, interpreters, store, ledger, estimates, arguments, console) -> int:
    """Run the plan under a progress bar; Ctrl-C keeps what is finished."""
    try:
        with Bar(console, planned.cells, estimates, finished=finished) as bar:
            Executor(
                run=run,
                sweep=wanted,
                profile=context.profile,
                context=context,
                display=bar,
                interpreters=interpreters,
                materials=store,
                timeout_s=arguments.timeout,
                ledger=ledger,
            ).execute(planned, finished)
    except KeyboardInterrupt:
        run.write_csv()
        done = len(run.records())
        console.print(f"Stopped. {done} of {len(planned.cells)} cells are kept in {run.folder}.", soft_wrap=True)
        again = getattr(arguments, "again", f"make bench RESUME={name_of(run)}")
        console.print(f"Go on with: {again}", highlight=False, soft_wrap=True)
        return INTERRUPTED
    run.compress_samples()
    terminal.summary(run.records(), console)
    console.print(ledger.sentence(), highlight=False)
    console.print(f"CSV: {run.csv_path}", highlight=False, soft_wrap=True)
    if not hasattr(arguments, "again"):
        console.print(f"Next: {next_steps(run)}", highlight=False, markup=False, soft_wrap=True)
    return 0


def name_of(run: runs.Run) -> str:
    """What finds the run on a command line: its name in results/runs, else its folder, quoted for a shell."""
    return shlex.quote(run.id if run.folder.parent == runs.RUNS else str(run.folder))


def next_steps(run: runs.Run) -> str:
    """What one does after a run, to be pasted."""
    mine = "" if run.folder.parent == runs.RUNS else f" RUN={name_of(run)}"
    return f"make report{mine} · make compare A={name_of(run)} B=newest"


def set_up(arguments: argparse.Namespace) -> int:
    """Make the environments of the frameworks named; the exit code is 1 if one could not be made."""
    console = Console()
    names = sweep.resolve({"framework": arguments.framework}).axes["framework"]
    device = sweep.choose(arguments.device, ("cpu", "gpu"), "device")
    failed = False
    for name in names:
        try:
            console.print(environments.ensure(name, device), highlight=False, soft_wrap=True)
        except environments.SetupError as error:
            console.print(f"{name}: {error}", style="red", markup=False, highlight=False)
            failed = True
    return int(failed)
