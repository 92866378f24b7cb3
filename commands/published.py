"""`results/README.md`: what each committed folder holds, where and when it was measured, and by what command.

Made from the folders' own files by `python -m commands.published`, so that a folder that is new or gone needs no edit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from measurement.text import as_code, in_markdown, make_command
from plan import sweep
from workloads import signature

RESULTS = Path(__file__).resolve().parent.parent / "results"
UNPUBLISHED = "runs"  # what this machine measured, under results/ but not committed
# Plans of runs and of profiles, and the command that made them.
PLANS = {"plan.json": "bench", "explanation.json": "explain"}
HEAD = """# Published results

Made from the folders' own files by `python -m commands.published`.
What was found is told in [h200](h200/README.md) and [experiments](experiments/README.md).
A run has `plan.json`, `machine.json`, `records.jsonl`, `results.csv` and, if it kept them, `samples.jsonl.gz` (raw
samples) and `versions.json` (every package installed).
[results.schema.json](results.schema.json), a Table Schema, describes the columns of every `results.csv`;
runs of earlier schema versions lack the columns that came later.

| folder | machine | command | begun (UTC) | suite | records | samples |
|---|---|---|---|---|---|---|
"""


def folders(results: Path) -> Iterator[Path]:
    """Every folder that holds a run or profiles, in the order of their names."""
    every = {path.parent for name in PLANS for path in results.glob(f"**/{name}")}
    return (path for path in sorted(every) if path.relative_to(results).parts[0] != UNPUBLISHED)


def page(results: Path) -> str:
    """The page for all folders under `results`."""
    return HEAD + "".join("| " + " | ".join(row(folder, results)) + " |\n" for folder in folders(results))


def row(folder: Path, results: Path) -> list[str]:
    """The cells of one folder's row."""
    name = next(name for name in PLANS if (folder / name).exists())
    plan = json.loads((folder / name).read_text())
    entries = _lines(folder / ("records.jsonl" if PLANS[name] == "bench" else "explained.jsonl"))
    place = folder.relative_to(results)
    return [
        f"[{place}]({place})",
        in_markdown(_machine(folder, entries)),
        as_code(command(PLANS[name], plan["given"])),
        plan["started_at"].replace("T", " ").removesuffix("Z"),
        ", ".join(sorted({str(entry["git_revision"]) for entry in entries if entry.get("git_revision")})) or "unknown",
        str(len(entries)),
        "yes" if (folder / "samples.jsonl.gz").exists() else "no",
    ]


def command(target: str, given: Mapping[str, object]) -> str:
    """Return what to type for the same again, from the flags in a plan, which somebody else may have written.

    Of an absolute path its name is enough. A flag that is no option here is hidden: make would take it for a variable
    of its own, such as SHELL.
    """
    known = {one.name for one in sweep.all_options()}
    for word in sweep.words(given.get("workload") or ()):
        known.update(signature.variables(word))  # of a user's model, if its file is here
    if target == "explain":
        known.discard("BUDGET")  # of a sweep file; a profile has none
    meant = {_variable(flag): value for flag, value in given.items() if value is not None and value is not False}
    return make_command(target, {name: _value(value) for name, value in meant.items() if name in known})


def _variable(flag: str) -> str:
    return flag.upper().replace("-", "_")


def _value(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else "1" if value is True else str(value)
    return Path(text).name if text.startswith("/") else text


def _machine(folder: Path, entries: list[dict]) -> str:
    """The processor, its CPUs, the GPUs, and the ids that records have: several where runs were joined."""
    facts = json.loads(path.read_text()) if (path := folder / "machine.json").exists() else {}
    if not facts:
        return ", ".join(sorted({entry["device_name"] for entry in entries if entry.get("device_name")})) or "unknown"
    names = [gpu["name"] for gpu in facts["gpus"]]
    gpus = [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
    others = sorted({entry["machine_id"] for entry in entries if entry.get("machine_id")} - {facts["machine_id"]})
    return "; ".join(
        [f"{facts['cpu']}, {facts['cpus_usable']} CPUs", *gpus, " and ".join([facts["machine_id"], *others])]
    )


def _lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


if __name__ == "__main__":
    (RESULTS / "README.md").write_text(page(RESULTS))
