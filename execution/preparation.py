"""Before a measurement: the plan's duration and table, and the environments that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

import frameworks
from environments import environments
from execution.progress import duration
from measurement import machine
from measurement.places import INSTALLED
from measurement.refusals import UsageError
from measurement.text import times
from plan import plan
from plan.sweep import Sweep
from records.cell_result import Failure


def estimate(planned: plan.Plan, resolved: Sweep) -> dict[str, float]:
    """Return the approximate seconds that each bundle adds to the run, by its first cell."""
    profile = plan.profile_of(resolved)
    slots = max(1, min(resolved.places.slots, len(planned.bundles)))
    how = profile, resolved.compile_cache, resolved.energy
    return {b.first.id: plan.estimated_seconds(b, *how) / slots for b in planned.bundles}


def show_plan(
    planned: plan.Plan,
    estimates: dict[str, float],
    finished: frozenset[str],
    console: Console,
    nodes: int = 0,
    cells: bool = True,
) -> None:
    """Print the plan, or without `cells` their number, and the duration; for `nodes` of a cluster also node-hours."""
    for bundle in planned.bundles if cells else ():
        console.print(f"One set of worker processes, about {duration(estimates[bundle.first.id])}:")
        for cell in (cell for group in bundle.groups for cell in group.cells):
            console.print(f"  {cell.id}", soft_wrap=True)
    for cell_id, reason in planned.impossible.items() if cells else ():
        console.print(f"unsupported: {cell_id}: {reason}", soft_wrap=True)
    done = f", {len(finished)} of them finished" if finished else ""
    total = duration(seconds := sum(estimates.values()))
    cost = f" on {times(nodes, 'node')}: {nodes * seconds / 3600:.3g} node-hours" if nodes else ""
    count = times(len(planned.cells), "cell")
    console.print(f"{count}{done}, about {total}{cost}, excluding installation.")


def no_gpu(planned: plan.Plan, python: str | None) -> str | None:
    """Return why cells for a GPU cannot be measured here; None if they can, or if only PYTHON may see the GPU."""
    needed = any(bundle.first.device_kind == "gpu" for bundle in planned.bundles)
    if python or not needed or machine.has_gpu():
        return None
    return "No NVIDIA GPU was found (nvidia-smi). If another Python sees one, set PYTHON=/path/to/python."


def environments_of(
    planned: plan.Plan, python: str | None, console: Console, inside: bool, make: bool, variable: str
) -> dict[tuple[str, str], Path | Failure]:
    """Return the interpreter, or its failure, for every framework and kind of device in the plan.

    With `inside`, `python` is a container's interpreter. Without `make` install nothing, and omit missing environments.
    Raises UsageError for a `python` that cannot be measured; `variable` names it.
    """
    interpreters: dict[tuple[str, str], Path | Failure] = {}
    users: dict[str, Path] = {}
    modes: dict[tuple[str, str], dict[str, None]] = {}
    for cell in (cell for bundle in planned.bundles for group in bundle.groups for cell in group.cells):
        modes.setdefault((cell.framework, cell.device_kind), {})[cell.mode] = None
    for key, asked in modes.items():
        try:
            is_reference = frameworks.describe(key[0]).is_reference
            if python and not is_reference:
                users[key[0]] = interpreters[key] = (
                    Path(python) if inside else environments.ensure(*key, python=python, report=console.print)
                )
            elif found := (
                environments.ensure(*key, modes=list(asked), report=console.print)
                if make
                else environments.existing(*key, list(asked))
            ):
                interpreters[key] = found
        except environments.SetupError as error:
            if python and not is_reference:
                raise UsageError(f"{variable}={python}: {error}") from None
            console.print(f"{key[0]}: {error}", style="red")
            interpreters[key] = Failure("error", f"Its environment could not be set up: {error}")
    if python and users and not inside:
        check_packages(python, users, variable)
    return interpreters


def check_packages(python: str, users: Mapping[str, Path], variable: str) -> None:
    """Raise UsageError if the interpreter that `variable` names lacks NumPy or a framework to measure in it."""
    modules = [("numpy",), *((name, frameworks.describe(name).distributions[0]) for name in users)]
    try:
        missing = environments.lacking(next(iter(users.values())), modules)
    except environments.SetupError as error:
        raise UsageError(f"{variable}={python}: {error}") from None
    if not missing:
        return
    there = [name for name in users if name not in missing]
    way_out = "give PYTHON=locked" if INSTALLED and variable == "PYTHON" else f"omit {variable}"
    others = f", or measure only FRAMEWORK={','.join(there)}" if there and "numpy" not in missing else ""
    raise UsageError(
        f"{variable}={python} has no {' and no '.join(missing)}: install {'them' if len(missing) > 1 else 'it'} there, "
        f"or {way_out} to use the suite's environments{others}."
    )
