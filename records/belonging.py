"""Select the records of a run's folder that belong to the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from measurement.refusals import UsageError
from measurement.text import times
from records import manifest
from records.recordfile import Loaded


def of_run(loaded: Loaded, folder: Path) -> Loaded:
    """Return the records of a folder that belong to its run: each cell once, and only planned ones."""
    kept, remarks = places_of(folder, loaded.columns["cell"])
    if len(kept) < len(loaded):
        loaded.columns = {name: [column[index] for index in kept] for name, column in loaded.columns.items()}
    loaded.remarks += remarks
    return loaded


def places_of(folder: Path, cells: Sequence[object]) -> tuple[list[int], list[str]]:
    """Return the positions of the records that belong to a run, from the cells of all, and sentences on the others.

    The first record of a cell counts: later records of the run were compared with it. Without a plan all belong. If the
    plan has no digest, cells outside the plan belong too, because somebody may have merged several runs by hand.
    """
    plan, everything = folder / manifest.PLAN, list(range(len(cells)))
    if not plan.exists():
        return everything, []
    try:
        content = manifest.read(plan)
    except UsageError as error:
        return everything, [str(error)]
    planned = set(map(str, content.get("cells", ()))) if "digest" in content else None
    kept: dict[str | int, int] = {}
    again = foreign = 0
    for index, cell in enumerate(cells):
        if not isinstance(cell, str):
            kept[index] = index  # the table lacks the column; `recordfile` checks records for it
        elif planned is not None and cell not in planned:
            foreign += 1
        elif cell in kept:
            again += 1
        else:
            kept[cell] = index
    odd = [(again, "of cells with an earlier record"), (foreign, "of cells outside the run's plan")]
    remarks = [f"{folder.name}: ignored {times(count, 'record')} {why}." for count, why in odd if count]
    return list(kept.values()), remarks
