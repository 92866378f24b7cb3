"""The tables of workloads and of modes in `docs/usage.md`, from their definitions: `python -m publish.usage`."""

from __future__ import annotations

import re
from pathlib import Path

import frameworks
import workloads
from analysis import modes

PAGE = Path(__file__).resolve().parent.parent / "docs/usage.md"
_BEGIN, _END = "<!-- {name}: made by python -m publish.usage -->", "<!-- end of {name} -->"


def workloads_table() -> str:
    """A row for workloads that are alike but for their size: passes, who has the models, parameters."""
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
    """The frameworks that have such a model, as a text."""
    return ", ".join(name for name in frameworks.NAMES if frameworks.describe(name).has(implementation, family))


def modes_table() -> str:
    """A row for every mode of every framework that is no reference."""
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


def _code(names) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def made_anew(page: str) -> str:
    """The page with its tables made anew. Raises ValueError where a mark is missing."""
    for name, text in (("workloads", workloads_table()), ("modes", modes_table())):
        begin, end = _BEGIN.format(name=name), _END.format(name=name)
        if begin not in page or end not in page:
            raise ValueError(f"{begin} … {end} is missing.")
        page = re.sub(f"{begin}.*?{end}", lambda _, whole=f"{begin}\n{text}\n{end}": whole, page, flags=re.DOTALL)
    return page


if __name__ == "__main__":
    PAGE.write_text(made_anew(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
