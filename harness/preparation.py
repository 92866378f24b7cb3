"""Before anything is measured: how long a plan takes, what it looks like, and the environments that it needs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

import frameworks
from harness import environments, plan
from harness.outcomes import Failure
from harness.progress import duration
from harness.refusals import UsageError
from harness.sweep import Sweep
from measurement import machine


def estimate(planned: plan.Plan, resolved: Sweep) -> dict[str, float]:
    """About how many seconds each bundle adds to the run, by its first cell."""
    profile = plan.profile_of(resolved)
    lanes = max(1, min(resolved.places.lanes, len(planned.bundles)))
    return {b.first.id: plan.estimated_seconds(b, profile, resolved.compile_cache) / lanes for b in planned.bundles}


def show_plan(
    planned: plan.Plan, estimates: dict[str, float], finished: frozenset[str], console: Console, nodes: int = 0
) -> None:
    """Print what would be measured; of a cluster's `nodes`, how many hours of them."""
    for bundle in planned.bundles:
        console.print(f"launch, about {duration(estimates[bundle.first.id])}:", highlight=False)
        for group in bundle.groups:
            for cell in group.cells:
                console.print(f"  {cell.id}", highlight=False, markup=False, soft_wrap=True)
    for cell_id, reason in planned.impossible.items():
        console.print(f"unsupported: {cell_id}: {reason}", highlight=False, markup=False, soft_wrap=True)
    done = f", {len(finished)} of them finished" if finished else ""
    total = duration(seconds := sum(estimates.values()))
    cost = f" on {nodes} node{'s' if nodes > 1 else ''}: {nodes * seconds / 3600:.3g} node-hours" if nodes else ""
    console.print(f"{len(planned.cells)} cells{done}, about {total}{cost}, environments apart.", highlight=False)


def warn(refusals: Iterable[str | None], console: Console) -> None:
    """Say of a plan what the real run would refuse here; a plan for another machine is still a plan."""
    for refusal in filter(None, refusals):
        text = f"Would be refused: {refusal}"
        console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)


def no_gpu(planned: plan.Plan, python: str | None) -> str | None:
    """Why cells for a GPU cannot be measured here; None where they can, or where only PYTHON sees the GPU."""
    needed = any(bundle.first.device_kind == "gpu" for bundle in planned.bundles)
    if python or not needed or machine.has_gpu():
        return None
    return "No NVIDIA GPU was found (nvidia-smi). If a Python of yours sees one, name it: PYTHON=/path/to/python."


def environments_of(planned: plan.Plan, python: str | None, console: Console, elsewhere: bool, inside: bool) -> dict:
    """The interpreter for every framework and kind of device in the plan, or the failure its cells will carry.

    `elsewhere` says that workers run on other machines, `inside` that PYTHON is a container's. Raises UsageError for
    a PYTHON that does not run, and rather than make environments for a GPU that is not there.
    """
    if not elsewhere and (refusal := no_gpu(planned, python)):
        raise UsageError(refusal)
    interpreters: dict[tuple[str, str], Path | Failure] = {}
    for bundle in planned.bundles:
        key = (bundle.first.framework, bundle.first.device_kind)
        if key in interpreters:
            continue
        try:
            report = lambda text: console.print(text, highlight=False, markup=False)  # noqa: E731
            oracle = frameworks.describe(key[0]).oracle
            if inside and python and not oracle:
                interpreters[key] = Path(python)
                continue
            interpreters[key] = environments.ensure(*key, python=None if oracle else python, report=report)
        except environments.SetupError as error:
            if python and not oracle:
                raise UsageError(f"PYTHON={python}: {error}") from None
            console.print(f"{key[0]}: {error}", highlight=False, markup=False, style="red")
            interpreters[key] = Failure("error", f"Its environment could not be set up: {error}")
    return interpreters
