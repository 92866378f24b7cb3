"""Check that processes of a run have the same users' files, deciding packages, and machine.

A record combines several processes, before and after an interruption, and names one version and machine for all.
"""

from __future__ import annotations

from collections.abc import Mapping

import frameworks
from execution.recorder import PEAKS
from measurement.cells import Cell
from measurement.refusals import UsageError
from plan import user_models
from records.runs import MACHINE, VERSIONS, Run
from workloads import signature
from workloads.user_model import is_file

ANOTHER_MACHINE = (
    "This run was started on another machine: unfinished cells are measured again here, and finished cells keep that "
    "machine's figures."
)


def check_files(models: Mapping[str, str]) -> None:
    """Raise UsageError if a user's file changed since the run was started; `models` are sources by name."""
    before = user_models.digests(models)
    for name, source in models.items():
        if is_file(source) and _digest(source) != before[name]["digest"]:
            raise UsageError(
                f"{name} was changed since the run was started: restore it and resume, or start a new run."
            )


def _digest(source: str) -> str | None:
    try:
        return signature.read(source).digest
    except signature.Unreadable:  # it is partly saved, or missing
        return None


def note_versions(run: Run, cell: Cell, installed: dict[str, str]) -> None:
    """Store the versions installed with the framework of a worker's cell, once for each environment.

    Raises UsageError if the run would measure another version than before.
    """
    name = f"{cell.framework}-{cell.device_kind}"
    known = run.read(VERSIONS)
    if not installed or known.get(name) == installed:
        return
    before, now = (frameworks.deciding(cell.framework, packages) for packages in (known.get(name), installed))
    for package in sorted(before.keys() | now.keys()) if before else ():
        if before.get(package) != now.get(package):
            raise UsageError(
                f"{package} was {before.get(package, 'not installed')} when this run was started and is "
                f"{now.get(package, 'not installed')} now: restore it and resume, or start a new run."
            )
    run.write(VERSIONS, known | {name: installed})


def leave_out_another_machine(run: Run, machine_id: str) -> bool:
    """Drop the reports of unfinished cells and the peaks from another machine; return whether the machine differs."""
    try:
        before = run.read(MACHINE).get("machine_id", machine_id)
    except UsageError:  # truncated: it is written again, and the machine is unknown
        before = machine_id
    if before == machine_id:
        return False
    finished = run.finished()
    run.keep_samples([entry for entry in run.samples() if entry["cell"] in finished])
    run.drop_reports()
    (run.folder / PEAKS).unlink(missing_ok=True)
    return True
