"""Check users' models before anything costs time: make each with its inputs, and call it once in eager mode."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rich.console import Console

import frameworks
import workloads
from execution.launcher import Launcher
from execution.reference_data import ReferenceData
from launchers import local
from measurement import protocol
from measurement.protocol import CHECK, Failed, ProtocolError
from measurement.refusals import UsageError
from plan.plan import Group, baseline_of, process_key
from workloads.user_model import UserModel

NOTHING = ReferenceData(Path(), Path(), None, "")  # a check needs no files of weights and inputs


def check(groups: Sequence[Group], launcher_in: Callable[[Path], Launcher], console: Console) -> None:
    """Call every user's model once, and print which of them do not run.

    Raises UsageError if no other model remains to be measured. A model runs if one of its settings and shapes does.
    """
    failed, unchecked = {}, False
    for (framework, workload), settings in settings_of(groups).items():
        title = f"{workload} in {frameworks.describe(framework).title}"
        with tempfile.TemporaryDirectory(prefix="check-") as folder:
            launcher = launcher_in(Path(folder))
            programs = launcher.interpreters
            pairs = [(shapes, programs.get((framework, shapes[0].cells[0].device_kind))) for shapes in settings]
            lacking = {shapes[0].cells[0].device_kind.upper() for shapes, program in pairs if program is None}
            if lacking:
                unchecked = True
                where = " and ".join(sorted(lacking))
                console.print(f"{title}: not checked on {where}: its environment is not installed yet.", soft_wrap=True)
            there = [shapes for shapes, program in pairs if isinstance(program, Path)]
            if not there:
                continue
            began = time.monotonic()
            reason = _failure(launcher, there)
        if reason is None:
            console.print(f"{title}: an eager call succeeded ({time.monotonic() - began:.1f} s).", soft_wrap=True)
        else:
            failed[title] = reason
    planned = {(cell.framework, cell.workload) for group in groups for cell in group.cells}
    if failed and not unchecked and len(failed) == len(planned):
        raise UsageError("; ".join(f"{title} does not run: {reason}" for title, reason in failed.items()))
    for title, reason in failed.items():
        console.print(f"{title} does not run and is skipped: {reason}", style="yellow", soft_wrap=True)


def settings_of(groups: Iterable[Group]) -> dict[tuple[str, str], list[list[Group]]]:
    """Return, by framework and user's model, the groups of eager cells of each setting, the smallest batch first.

    The groups of one setting (pass, device, dtype, threads) share a process.
    """
    found: dict[tuple[str, str], dict[tuple[str | int, ...], list[Group]]] = {}
    for group in sorted(groups, key=lambda group: int(group.parameters.get("batch_size", 0))):
        cell = baseline_of(group.cells[0])
        if isinstance(workloads.get(cell.workload, cell.pass_name), UserModel):
            settings = found.setdefault((cell.framework, cell.workload), {})
            settings.setdefault(process_key(cell, isolate=False), []).append(Group((cell,), frozenset({cell.id})))
    return {model: list(settings.values()) for model, settings in found.items()}


def _failure(launcher: Launcher, settings: Sequence[Sequence[Group]]) -> str | None:
    """Return why a model runs in none of its settings; None if it runs in one."""
    reasons = []
    for number, groups in enumerate(settings):
        folder = launcher.run.folder / str(number)
        folder.mkdir()
        reason = _failure_in(launcher, groups, folder)
        if reason is None:
            return None
        reasons.append(reason)
    return reasons[0]


def _failure_in(launcher: Launcher, groups: Sequence[Group], folder: Path) -> str | None:
    """Return why a model runs in none of these groups, tried in turn by one worker; None if it runs in one."""
    start = launcher.start_of(groups[0].cells[0], folder, folder / "cache")
    reasons = []
    try:
        for message in map(protocol.message, launcher.messages(start, launcher.job(CHECK, groups, folder))):
            if isinstance(message, Failed):
                reasons.append(message.reason)
    except local.WorkerFailure as error:
        reasons.append(local.explained(error, start.log))
        return reasons[0]
    except ProtocolError as error:
        return str(error)
    return reasons[0] if len(reasons) == len(groups) else None
