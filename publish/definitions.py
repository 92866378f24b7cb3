"""Tables of workloads, modes, columns, flags and experiments, from their definitions, for the pages of `docs/`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import experiments
import frameworks
import workloads
from analysis import modes
from experiments.spec import Experiment, Sweep
from measurement.flags import FLAGS
from measurement.text import make_command
from records.record import COLUMNS, SCHEMA_VERSION
from records.statuses import STATUSES


def workloads_table() -> str:
    """Return a row for workloads that are alike but for their size: passes, frameworks with the models, parameters."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name in (name for name in workloads.names() if workloads.source_of(name) is None):
        passes = workloads.get(name).passes
        flags = dict.fromkeys(p.flag for kind in passes for p in workloads.get(name, kind).parameters)
        having = [_having(kind, workloads.get(name).family) for kind in ("plain", "library")]
        columns = (_code(passes), *having, _code(flag.upper() for flag in flags))
        alike.setdefault(columns, []).append(name)
    rows = [(_code(names), *columns) for columns, names in alike.items()]
    return _table(("`WORKLOAD`", "`PASS`", "`IMPL=plain` in", "`IMPL=library` in", "parameters"), rows)


def _having(implementation: str, family: str) -> str:
    """Return the frameworks that have such a model."""
    return ", ".join(name for name in frameworks.NAMES if frameworks.describe(name).has(implementation, family))


def modes_table() -> str:
    """Return a row for every mode of every framework that is no reference."""
    described = [frameworks.describe(name) for name in frameworks.NAMES]
    rows = []
    for framework in (one for one in described if not one.oracle):
        for mode in framework.modes:
            words = modes.words_for(framework.name, mode.name)
            devices = "" if len(mode.devices) > 1 else f"{mode.devices[0].upper()} only"
            passes = "" if set(mode.passes) == set(workloads.PASSES) else f"{', '.join(mode.passes)} only"
            where = "; ".join(filter(None, (devices, passes))) or "everywhere"
            in_all = "yes" if "all" in words else "no"
            others = _code(word for word in words if word != "all") or ("" if words else "its name alone")
            typed = f"`{mode.call}`" if mode.call else ""
            rows.append((framework.name, f"`{mode.name}`", typed, mode.summary, where, in_all, others))
    head = ("framework", "`MODE`", "what users type", "what it is", "device and pass", "in `all`", "also meant by")
    return _table(head, rows)


def columns_page() -> str:
    """Return the page on the CSV's columns."""
    columns = [(f"`{column.name}`", column.kind, column.unit, column.meaning) for column in COLUMNS]
    statuses = [(f"`{name}`", meaning) for name, meaning in STATUSES.items()]
    flags = [(f"`{flag.name}`", flag.threshold, flag.meaning, flag.remedy) for flag in FLAGS]
    parts = (
        "# Columns of a record",
        f"Made from `records/record.py` by `python -m publish`; schema version {SCHEMA_VERSION}.\n"
        "A missing value is empty, never 0. CPU and GPU results have the same columns.",
        _table(("column", "type", "unit", "meaning"), columns),
        "## Statuses",
        "Every planned cell ends in exactly one record with one of these.",
        _table(("status", "meaning"), statuses),
        "## Flags",
        "A record's warnings, with what raises each and the remedy.",
        _table(("flag", "raised when", "meaning", "remedy"), flags),
    )
    return "\n\n".join(parts) + "\n"


def experiment_sections() -> dict[str, str]:
    """Return source, commands, sweeps and claims of every published table, by its name."""
    return {name: _experiment(experiments.get(name)) for name in experiments.names()}


def _experiment(experiment: Experiment) -> str:
    kinds = dict.fromkeys(part.device for part in experiment.sweeps())
    commands = "\n".join(make_command("reproduce", {"TABLE": experiment.name, "DEVICE": kind}) for kind in kinds)
    claims = "\n".join(f"- {claim.sentence}{_devices(claim.devices)}" for claim in experiment.claims)
    parts = (
        f"{experiment.title}. Source: {experiment.source}.",
        f"```\n{commands}\n```",
        _table(("sweep", "what", "scaled down"), list(map(_sweep, experiment.sweeps()))),
        f"Claims:\n\n{claims}",
    )
    return "\n\n".join(parts)


def _sweep(part: Sweep) -> tuple[str, ...]:
    took = f", about {part.about['minutes']} min" if "minutes" in part.about else ""
    where = f" on {part.about['on']}" if "on" in part.about else ""
    what = "profiled" if part.profiles else "timed"
    return f"`{part.path.name}`", f"{what}{took}{where}", part.about.get("scaled_down", "")


def _devices(kinds: tuple[str, ...]) -> str:
    return "" if len(kinds) > 1 else f" (asked of the {kinds[0].upper()} only)"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table of our own texts, which may hold code and links."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
