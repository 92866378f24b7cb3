"""Which records of a run's folder belong to the run."""

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
    """Return which of the records of a run, given by their cells, belong to it, and sentences on the others.

    The first of a cell counts: later records of the run were compared with it. Without a plan all belong; with one from
    before plans had a digest, those of other cells too, for several runs may have been put together by hand.
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
            kept[index] = index  # a table that lacks the column; of records `recordfile` judges that
        elif planned is not None and cell not in planned:
            foreign += 1
        elif cell in kept:
            again += 1
        else:
            kept[cell] = index
    odd = [(again, "of cells with an earlier record"), (foreign, "of cells outside the run's plan")]
    remarks = [f"{folder.name}: ignored {times(count, 'record')} {why}." for count, why in odd if count]
    return list(kept.values()), remarks
