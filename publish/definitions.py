"""Tables of workloads, modes, columns and flags, from their definitions, for the pages of `docs/`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import frameworks
import workloads
from analysis import modes
from measurement.flags import FLAGS
from plan.options import variable
from records.record import COLUMNS, SCHEMA_VERSION
from records.statuses import STATUSES

OF_TRAINING = ("accumulate", "ranks", "strategy", "checkpoint")


def workloads_table() -> str:
    """Return a row for workloads that are alike but for their size: passes, frameworks with the models, parameters.

    It omits the parameters that every training pass has.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for name in (name for name in workloads.names() if workloads.source_of(name) is None):
        passes = workloads.get(name).passes
        own = (p.flag for kind in passes for p in workloads.get(name, kind).parameters)
        flags = dict.fromkeys(flag for flag in own if flag not in OF_TRAINING)
        having = [_having(kind, workloads.get(name).family) for kind in ("plain", "library")]
        columns = (_code(passes), *having, _code(map(variable, flags)))
        alike.setdefault(columns, []).append(name)
    rows = [(_code(names), *columns) for columns, names in alike.items()]
    return table(("`WORKLOAD`", "`PASS`", "`IMPL=plain` in", "`IMPL=library` in", "parameters"), rows)


def _having(implementation: str, family: str) -> str:
    """Return the frameworks that have such a model, or the only one that has none."""
    has = {name: frameworks.describe(name).has(implementation, family) for name in frameworks.NAMES}
    lacking = [name for name, model in has.items() if not model]
    if len(lacking) <= 1:
        return " ".join(["all", *(f"but {name}" for name in lacking)])
    return ", ".join(name for name, model in has.items() if model)


def modes_table() -> str:
    """Return a row for every mode of every framework that is no reference, but for those of ladders alone."""
    described = [frameworks.describe(name) for name in frameworks.NAMES]
    rows = []
    for framework in (one for one in described if not one.is_reference):
        for mode in framework.modes:
            groups = modes.words_for(framework.name, mode.name)
            if groups == ["ladder"]:
                continue
            devices = "" if len(mode.devices) > 1 else mode.devices[0].upper()
            passes = "" if set(mode.passes) == set(workloads.PASSES) else ", ".join(mode.passes)
            does = f"`{mode.call}`" if mode.call and mode.deployed else mode.summary
            only = "; ".join(filter(None, (devices, passes)))
            words = _code(groups) or "its name alone"
            if mode.name in framework.graph_on_gpu and not devices:
                words = words.replace("`recommended`", "`recommended` (GPU)")
            rows.append((framework.name, f"`{mode.name}`", does, only, words))
    return table(("framework", "`MODE`", "call or meaning", "only", "selected by"), rows)


def columns_page() -> str:
    """Return the page on the CSV's columns."""
    columns = [(f"`{column.name}`", " ".join(filter(None, (column.meaning, _unit(column.unit))))) for column in COLUMNS]
    statuses = [(f"`{name}`", meaning) for name, meaning in STATUSES.items()]
    flags = [(f"`{flag.name}`", flag.threshold, flag.meaning, flag.remedy) for flag in FLAGS]
    parts = (
        "# Columns of a record",
        f"Made from `records/record.py` by `python -m publish`; schema version {SCHEMA_VERSION}.\n"
        "A missing value is empty, never 0. Units are in brackets; `results.schema.json` has the types.",
        table(("column", "meaning"), columns),
        "## Statuses",
        "Every planned cell has exactly one record, with one of these statuses.",
        table(("status", "meaning"), statuses),
        "## Flags",
        "A record's warnings. They change no status and no sign.",
        table(("flag", "raised when", "meaning", "remedy"), flags),
    )
    return "\n\n".join(parts) + "\n"


def _unit(unit: str) -> str:
    return f"[{unit}]" if unit else ""


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table of our own texts, which may hold code and links."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
