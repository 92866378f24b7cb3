"""The `explain` command: profile a call in each mode, and say by class of kernel where the time goes."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from dataclasses import fields, replace
from pathlib import Path

from rich.console import Console

import frameworks
import workloads
from harness import bench, plan, recordfile, runs, sweep
from harness.costs import cost_of
from harness.execute import Executor
from harness.materials import MaterialsError, Store
from harness.outcomes import Failure
from harness.plan import Bundle
from harness.sweep import UsageError
from launchers import local
from measurement import kernels
from measurement.cells import Cell
from reports import causes, explanation, terminal

FILE, ENTRIES = runs.EXPLANATION, runs.EXPLAINED
INTERRUPTED = 130


def explain(arguments: argparse.Namespace) -> int:
    """Profile every cell asked for; returns the exit code. Raises UsageError before anything is started."""
    console = terminal.console()
    given = bench.asked_for(arguments)
    wanted = replace(sweep.resolve(given), unseen_seq=None)  # which a profile says nothing of
    planned = plan.plan(wanted)
    if arguments.dry_run:
        return bench.show_plan(planned, bench.estimate(planned, wanted), frozenset(), console)
    folder = folder_for(arguments)
    interpreters = bench.prepare_environments(planned, arguments.python, console)
    store = Store(wanted.weights, wanted.seed)
    prepare(store, planned, console)
    run = runs.Run(folder)
    (folder / "launches").mkdir(parents=True, exist_ok=True)
    run.write(FILE, {"given": given, "command": sys.argv, "started_at": runs.utc_now()})
    executor = Executor(
        run=run, sweep=wanted, profile=plan.profile_of(wanted), context=None, display=None, interpreters=interpreters,
        materials=store, timeout_s=arguments.timeout, with_peaks=False,
    )  # fmt: skip
    try:
        take(planned, executor, console)
        controls = plan.arranged(control_cells(entries_in(folder)), wanted, frozenset(done_in(folder)))
        if controls.bundles:
            console.print("A graph mode loses to eager mode: controls follow.", highlight=False)
            prepare(store, controls, console)
        take(controls, executor, console, control=True)
    except KeyboardInterrupt:
        console.print(f"Stopped. What is profiled is kept in {folder}.", soft_wrap=True)
        return INTERRUPTED
    entries = entries_in(folder)
    explanation.show(entries, console)
    (folder / "explanation.md").write_text(explanation.markdown(entries))
    console.print(f"Written: {folder / 'explanation.md'}", highlight=False, soft_wrap=True)
    return 0


def prepare(store: Store, planned: plan.Plan, console: Console) -> None:
    """Make the weights and inputs of a plan. Raises UsageError."""
    try:
        groups = [group for bundle in planned.bundles for group in bundle.groups]
        store.prepare(groups, lambda text: console.print(text, highlight=False))
    except MaterialsError as error:
        raise UsageError(str(error)) from None


def take(planned: plan.Plan, executor: Executor, console: Console, control: bool = False) -> None:
    """Profile what a plan holds and the folder lacks; each cell's entry is on disk before the next begins."""
    folder = executor.run.folder
    done = done_in(folder)
    for cell in planned.cells:
        if reason := planned.impossible.get(cell.id):
            console.print(f"{cell.id}: unsupported: {reason}", highlight=False, markup=False, soft_wrap=True)
            if control and cell.id not in done:  # that a control cannot be had is a part of the answer
                entry = entry_of(cell, {"status": "unsupported", "reason": reason})
                runs.append_line(folder / ENTRIES, entry | {"control": True})
    for bundle in planned.bundles:
        for entry in profiled(executor, bundle, done):
            runs.append_line(folder / ENTRIES, entry | {"control": True} if control else entry)
            console.print(explanation.line(entry), highlight=False, markup=False, soft_wrap=True)


def control_cells(entries: list[dict]) -> list[Cell]:
    """Where a graph mode loses, the cells in which causes are apart (`reports.causes`), eager mode's with each."""
    shapes = explanation.by_shape([entry for entry in entries if not entry.get("control")])
    losers = [graph for group in shapes.values() for graph in causes.losing(group)]
    identities = [graph | changes for graph in losers for changes in causes.controls(graph).values()]
    cells = (varied(identity, mode) for identity in identities for mode in _pair(identity))
    return list({cell.id: cell for cell in cells if cell}.values())


def _pair(identity: dict) -> tuple[str, str]:
    """An identity's mode after the one that it is compared with."""
    return frameworks.describe(identity["framework"]).baseline.name, identity["mode"]


def varied(identity: dict, mode: str) -> Cell | None:
    """The cell of an identity as entries have it; None where the workload has no such implementation or parameter."""
    workload = workloads.get(identity["workload"], identity["pass_name"])
    values, implementation = identity["parameters"], identity["implementation"]
    known = [p for p in workload.parameters if implementation in p.implementations]
    if implementation not in workload.implementations or values.keys() - {parameter.name for parameter in known}:
        return None
    parameters = {parameter.name: values.get(parameter.name, parameter.default) for parameter in known}
    own = {field.name: identity[field.name] for field in fields(Cell)}
    return Cell.from_json(own | {"parameters": parameters, "mode": mode})


def folder_for(arguments: argparse.Namespace) -> Path:
    """Where the profiles go: OUT, or a new folder. Raises UsageError for one that holds a run already."""
    if arguments.out is None:
        return runs.new_folder(runs.RUNS)
    folder = Path(arguments.out).absolute()
    if not arguments.resume:
        runs.check_free(arguments.out)
    return folder


def entries_in(folder: Path) -> list[dict]:
    """What has been profiled so far, an entry a cell."""
    return list(recordfile.json_lines(folder / ENTRIES))


def done_in(folder: Path) -> set[str]:
    """The cells that have been profiled, or found impossible to profile."""
    return {entry["cell"] for entry in entries_in(folder)}


def profiled(executor: Executor, bundle: Bundle, done: set[str]):
    """One entry for every cell of a bundle that has none: its profile by class, or why there is none."""
    groups = [group for group in bundle.groups if any(cell.id not in done for cell in group.cells)]
    left = {cell.id: cell for group in groups for cell in group.cells if cell.id not in done}
    if not left:
        return
    broken = executor.interpreters[bundle.first.framework, bundle.first.device_kind]
    failure = broken if isinstance(broken, Failure) else None
    if failure is None:
        folder = executor.run.new_launch()
        launch = launch_for(executor, bundle.first, folder)
        try:
            for message in local.run(launch, job_for(executor, groups, folder)):
                if message["type"] == "cell" and message["cell"] in left:
                    yield entry_of(left.pop(message["cell"]), message, folder.name)
        except local.WorkerFailure as error:
            failure = Failure(error.status, str(error), local.log_tail(launch.log))
        finally:
            shutil.rmtree(folder / "dumps", ignore_errors=True)  # many files, and read already
    for cell in left.values():
        status, reason = (failure.status, failure.reason) if failure else ("crash", "The worker ended without a word.")
        yield entry_of(cell, {"status": status, "reason": reason})


def launch_for(executor: Executor, cell: Cell, folder: Path) -> local.Launch:
    """As for a measurement, with compilers told to write down what they make."""
    launch = executor.local_launch(cell, folder, folder / "cache")
    for name, text in frameworks.describe(cell.framework).dumps.items():
        added = text.format(folder=folder / "dumps")
        launch.environment[name] = f"{os.environ.get(name, '')} {added}".strip()
    return launch


def job_for(executor: Executor, groups: list, folder: Path) -> dict:
    """A measuring job, with folders for what profilers and compilers write."""
    job = executor.job(groups, (), folder, 0) | {"dumps": str(folder / "dumps")}
    for index, group in enumerate(job["groups"]):
        group["traces"] = str(folder / "traces" / str(index))
    return job


def entry_of(cell: Cell, message: dict, launch: str = "") -> dict:
    """The cell with its profile reduced to classes, or with the reason why it has none.

    Cells of one `launch` were timed in turn.
    """
    entry = {**cell.to_json(), "cell": cell.id, "baseline": frameworks.is_baseline(cell)}
    entry |= {"status": message["status"], "reason": message.get("reason")}
    if message["status"] != "explained":
        return entry
    profile = message["profile"]
    # On a GPU the profiler slows the host down and not the kernels, so idle time is what the call takes without it.
    # On a CPU it slows both alike.
    whole = message["latency_s"] if cell.device_kind == "gpu" else profile["wall_s"]
    idle = max(whole - profile["busy_s"], 0.0)
    cost = cost_of(cell)
    return entry | {
        "flops": {operator.operator_class: operator.flops for operator in cost.operators},
        "latency_s": message["latency_s"],
        "samples_s": message["samples_s"],
        "launch": launch,
        "profiled_s": profile["wall_s"],
        "busy_s": profile["busy_s"],
        "calls": message["calls"],
        "backend": message["backend"],
        "detail": message["detail"],
        "classes": kernels.by_class(profile["kernels"], idle),
        "kernels": profile["kernels"],
        "trace": profile["trace"],
        "attention": message.get("attention", []),
    }
