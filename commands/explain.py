"""The command `explain`: profile a call in each mode, and say by class of kernel where the time goes."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

from rich.console import Console

import frameworks
import workloads
from analysis import losses
from commands import bench
from execution import campaign as campaigns
from execution.campaign import Campaign, Request
from execution.launcher import Launcher
from launchers import local
from measurement import durable, kernels, protocol
from measurement.cells import Cell
from measurement.protocol import DUMPS, EXPLAIN, Explained, Failed, ProtocolError
from measurement.refusals import DONE, INCOMPLETE, INTERRUPTED, UsageError
from measurement.text import make_command
from plan import plan
from plan.options import Option, without
from plan.plan import Bundle
from records import jsonfiles, manifest, runs
from records.cell_result import Failure
from records.costs import cost_of
from records.shapes import Profile
from reports import explanation, terminal

FILE, ENTRIES = runs.EXPLANATION, runs.EXPLAINED


def options() -> list[Option]:
    """Return the options of `explain`."""
    return without(campaigns.local_options(), "profile budget seed compile-cache unseen-seq isolate resume")


def run(arguments: argparse.Namespace) -> int:
    """Profile a call in each mode, and print by class of kernel where the time goes and what differs."""
    return explain(Request.from_arguments(arguments))


def explain(request: Request) -> int:
    """Profile every cell asked for; returns the exit code. Raises UsageError before anything is started."""
    console = terminal.console()
    # A profile needs no unseen length; without RESUME `take` finds the cells profiled already.
    flags = {name: value for name, value in request.flags.items() if name != "unseen-seq"}
    campaign = Campaign.start(replace(request, flags=flags, resume=None), console)
    campaign.plan = without_forms(campaign)
    if request.dry_run:
        return campaign.show()
    with contextlib.ExitStack() as held:
        return carry_out(campaign, run_for(request, held), console)


def without_forms(campaign: Campaign) -> plan.Plan:
    """Return a campaign's plan in which deployed forms are impossible. Raises UsageError where nothing else is asked.

    The libraries that run a form's file record no operators of the framework.
    """
    planned = campaign.plan
    forms = {
        cell.id: cell.mode for cell in planned.cells if frameworks.describe(cell.framework).mode(cell.mode).artefact
    }
    if not forms:
        return planned
    reasons = {
        name: f"{mode} has no kernels that compare with eager mode's: "
        f"measure it with `{make_command('bench', {'MODE': mode})}`."
        for name, mode in forms.items()
    }
    others = plan.arranged([cell for cell in planned.cells if cell.id not in forms], campaign.sweep)
    if not any(not frameworks.is_baseline(cell) for cell in others.cells if cell.id not in others.impossible):
        raise UsageError(next(iter(reasons.values())))
    return replace(planned, bundles=others.bundles, impossible=others.impossible | reasons)


def carry_out(campaign: Campaign, run: runs.Run, console: Console) -> int:
    """Prepare and profile; return the exit code."""
    campaign.prepare()
    folder, request = run.folder, campaign.request
    command = {"given": request.flags, "python": request.python, "command": sys.argv, "started_at": runs.utc_now()}
    manifest.write(folder / FILE, {**command, "number": runs.next_number(folder)})
    launcher = campaign.launcher(run)
    kept = f"Finished profiles are kept in {folder}."
    kept += f" Resume with: {request.again}" if request.again else ""  # by itself the command begins again
    try:
        with bench.resumable(lambda: kept):
            take(campaign.plan, launcher, console)
            controls = plan.arranged(control_cells(entries_in(folder)), campaign.sweep, frozenset(done_in(folder)))
            if controls.bundles:
                console.print("A graph mode is slower than eager mode: measuring controls.")
                campaign.make(group for bundle in controls.bundles for group in bundle.groups)
            take(controls, launcher, console, control=True)
    except KeyboardInterrupt:
        console.print(f"Stopped. {kept}", soft_wrap=True)
        return INTERRUPTED
    entries = entries_in(folder)
    explanation.show(entries, console)
    durable.replace_text(folder / "explanation.md", explanation.markdown(entries))
    console.print(f"Written: {folder / 'explanation.md'}", soft_wrap=True)
    ended = [entry["status"] for entry in entries if not entry.get("control")]
    done = "explained" in ended and set(ended) <= {"explained", "unsupported"}
    return DONE if done else INCOMPLETE


def take(planned: plan.Plan, launcher: Launcher, console: Console, control: bool = False) -> None:
    """Profile the cells of a plan that the folder lacks; each cell's entry is on disk before the next begins."""
    folder = launcher.run.folder
    done = done_in(folder)
    for cell in planned.cells:
        if reason := planned.impossible.get(cell.id):
            console.print(f"{cell.id}: unsupported: {reason}", soft_wrap=True)
            if control and cell.id not in done:  # that a control cannot be had is a part of the answer
                entry = entry_of(cell, Failed(cell.id, "unsupported", reason))
                launcher.run.append_profile(entry | {"control": True})
    for bundle in planned.bundles:
        for entry in profiled(launcher, bundle, done):
            launcher.run.append_profile({**entry, "control": True} if control else entry)
            console.print(explanation.line(entry), soft_wrap=True)


def control_cells(entries: list[Profile]) -> list[Cell]:
    """Return the control cells of graph modes that lose (`analysis.losses`), eager mode's with each."""
    shapes = explanation.by_shape([entry for entry in entries if not entry.get("control")])
    losers = [graph for group in shapes.values() for graph in losses.losing(group)]
    identities = [{**graph, **changes} for graph in losers for changes in losses.controls(graph).values()]
    pairs = ((one, (frameworks.describe(one["framework"]).baseline.name, one["mode"])) for one in identities)
    cells = (varied(identity, mode) for identity, pair in pairs for mode in pair)
    return list({cell.id: cell for cell in cells if cell}.values())


def varied(identity: Mapping[str, Any], mode: str) -> Cell | None:
    """Return the cell of an entry's identity; None where the workload has no such implementation or parameter."""
    workload = workloads.get(identity["workload"], identity["pass_name"])
    values, implementation = identity["parameters"], identity["implementation"]
    known = [p for p in workload.parameters if implementation in p.implementations]
    if implementation not in workload.implementations or values.keys() - {parameter.name for parameter in known}:
        return None
    parameters = {parameter.name: values.get(parameter.name, parameter.default) for parameter in known}
    cell_fields = {field.name: identity[field.name] for field in fields(Cell)}
    return Cell.from_json(cell_fields | {"parameters": parameters, "mode": mode})


def run_for(request: Request, held: contextlib.ExitStack) -> runs.Run:
    """Return the run of the profiles, held: OUT, or a new folder. Raises UsageError for a folder of another run."""
    if not request.resume or request.out is None:
        return held.enter_context(runs.Run.begin(request.out))
    run = runs.Run(Path(request.out).absolute())
    held.enter_context(run.held())
    return run


def entries_in(folder: Path) -> list[Profile]:
    """Return the profiles so far, one per cell."""
    return cast(list[Profile], list(jsonfiles.lines(folder / ENTRIES)))


def done_in(folder: Path) -> set[str]:
    """Return the cells that are profiled, or found impossible to profile."""
    return {entry["cell"] for entry in entries_in(folder)}


def profiled(launcher: Launcher, bundle: Bundle, done: set[str]):
    """Yield an entry for every cell of a bundle that has none: its profile by class, or why there is none."""
    groups = [group for group in bundle.groups if any(cell.id not in done for cell in group.cells)]
    left = {cell.id: cell for group in groups for cell in group.cells if cell.id not in done}
    if not left:
        return
    failure = launcher.obstacle(bundle)
    if failure is None:
        folder = launcher.run.new_process_folder()
        start = start_of(launcher, bundle.first, folder)
        try:
            for message in map(protocol.message, launcher.messages(start, launcher.job(EXPLAIN, groups, folder))):
                if isinstance(message, Explained | Failed) and message.cell in left:
                    yield entry_of(left.pop(message.cell), message, folder.name)
        except local.WorkerFailure as error:
            failure = Failure(error.status, f"{error}{local.crash_place(start.log)}", local.log_tail(start.log))
        except ProtocolError as error:
            failure = Failure("error", str(error), local.log_tail(start.log))
        finally:
            shutil.rmtree(folder / DUMPS, ignore_errors=True)  # many files, and read already
    for cell in left.values():
        status, reason = (
            (failure.status, failure.reason) if failure else ("crash", "The worker ended without a report.")
        )
        yield entry_of(cell, Failed(cell.id, status, reason))


def start_of(launcher: Launcher, cell: Cell, folder: Path) -> local.Launch:
    """Return the start of a worker as for a measurement, with compiler dumps."""
    start = launcher.start_of(cell, folder, folder / "cache")
    for name, text in frameworks.describe(cell.framework).dumps.items():
        added = text.format(folder=folder / DUMPS)
        start.environment[name] = f"{os.environ.get(name, '')} {added}".strip()
    return start


def entry_of(cell: Cell, message: Explained | Failed, launch: str = "") -> dict[str, Any]:
    """Return the cell with its profile reduced to classes, or with the reason why it has none.

    Cells of one `launch` were timed in turn.
    """
    reason = message.reason if isinstance(message, Failed) else None
    entry = {**cell.to_json(), "cell": cell.id, "baseline": frameworks.is_baseline(cell)}
    entry |= {"status": message.status, "reason": reason}
    if isinstance(message, Failed):
        return entry
    # On a GPU the profiler slows the host down and not the kernels, so idle time is what the call takes without it.
    # On a CPU it slows both alike.
    whole = message.latency_s if cell.device_kind == "gpu" else message.wall_s
    idle = max(whole - message.busy_s, 0.0)
    cost = cost_of(cell)
    return (
        entry
        | {
            "flops": {operator.operator_class: operator.flops for operator in cost.operators},
            "latency_s": message.latency_s,
            "samples_s": message.samples_s,
            "launch": launch,
            "profiled_s": message.wall_s,
            "busy_s": message.busy_s,
            "calls": message.calls,
            "backend": message.backend,
            "detail": message.detail,
            "classes": kernels.by_class(message.kernels, idle),
            "kernels": message.kernels,
            "trace": message.trace,
            "attention": message.attention,
        }
        | message.program
    )
