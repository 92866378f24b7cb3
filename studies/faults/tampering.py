"""Files of a finished run, and of the cache, that are not what the suite wrote."""

from __future__ import annotations

import json
import shutil
import threading
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from studies.faults.trial import DONE, FAKE, REFUSED, Trial

WORDS = (*FAKE, "--mode", "eager,graph", "--batch", "1,2")
LOCK = threading.Lock()  # trials run in parallel
DEEP = b"[" * 100_000


def cut(trial: Trial, data: bytes) -> bytes:
    return data[: trial.rng.randrange(len(data))]


def flip(trial: Trial, data: bytes) -> bytes:
    changed = bytearray(data)
    changed[trial.rng.randrange(len(data))] ^= 1 << trial.rng.randrange(8)
    return bytes(changed)


def cut_out(trial: Trial, data: bytes) -> bytes:
    start = trial.rng.randrange(len(data))
    return data[:start] + data[start + trial.rng.randint(1, 500) :]


def foreign(trial: Trial, data: bytes) -> bytes:
    record = json.loads(data.splitlines()[0])
    return (
        data
        + json.dumps(record | {"cell": record["cell"].replace("batch_size=", "batch_size=7"), "batch_size": 7}).encode()
        + b"\n"
    )


ANY: dict[str, Callable[[Trial, bytes], bytes]] = {
    "cut": cut,
    "bit flipped": flip,
    "span cut out": cut_out,
    "empty": lambda trial, data: b"",
    "zeros": lambda trial, data: bytes(len(data)),
    "BOM": lambda trial, data: b"\xef\xbb\xbf" + data,
    "UTF-16": lambda trial, data: data.decode().encode("utf-16"),
    "a list": lambda trial, data: b"[]\n",
    "null": lambda trial, data: b"null\n",
    "deep": lambda trial, data: DEEP,
}
PLAN = ANY | {
    "no given": lambda trial, data: edited(data, given=None),
    "given is a list": lambda trial, data: edited(data, given=["a"]),
    "another plan": lambda trial, data: edited(data, given=json.loads(data)["given"] | {"batch": "1,2,3"}),
    "no cells": lambda trial, data: edited(data, cells=None),
    "a cell less": lambda trial, data: edited(data, cells=json.loads(data)["cells"][1:]),
    "cells are numbers": lambda trial, data: edited(data, cells=[1, 2]),
}


def edited(data: bytes, **changes) -> bytes:
    content = json.loads(data) | changes
    return json.dumps({name: value for name, value in content.items() if value is not None}).encode()


def finished_run(trial: Trial) -> list[str]:
    """Put a finished run, perhaps without half its records, in this trial's place; return its planned cells."""
    template = trial.suite.folder / "template"
    with LOCK:
        if not template.exists():
            made = Trial(trial.suite, trial.folder / "first", trial.rng)
            made.run(*WORDS, "--out", str(made.out))
            shutil.copytree(made.out, template)
    shutil.copytree(template, trial.out)
    lines = [line + b"\n" for line in trial.lines()]
    if trial.rng.random() < 0.5:
        (trial.out / "records.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    return trial.planned()


def plan(trial: Trial, how: str) -> None:
    """Change the plan; check that the run is resumed as it was started, or refused in a sentence."""
    planned = finished_run(trial)
    name, how = how.split(": ")
    path = trial.out / name
    before = trial.lines()
    if path.exists():
        path.write_bytes(PLAN[how](trial, path.read_bytes()))
    ended = trial.resume(codes=DONE | REFUSED)
    if ended.code in REFUSED:
        if trial.lines() != before:
            trial.saw("records changed", "by a run that was refused")
    else:
        trial.complete(planned, {})


def leftovers(trial: Trial, name: str) -> None:
    """Add files that do not belong into a run's folder; a file that the run reads may be refused, with the way out."""
    planned = finished_run(trial)
    (trial.out / name).parent.mkdir(parents=True, exist_ok=True)
    if name.endswith("/"):
        (trial.out / name).mkdir()
    else:
        (trial.out / name).write_bytes(trial.rng.randbytes(100))
    ended = trial.resume(codes=DONE | REFUSED if name in READ else DONE)
    if ended.code in REFUSED:
        if f"{name} is truncated or was changed" not in ended.output or ", then try again" not in ended.output:
            trial.saw("no sentence", ended.output[-200:])
        (trial.out / name).unlink()
        trial.resume()
    trial.complete(planned, {})
    trial.report()


def reference_data(trial: Trial, what: str) -> None:
    """Damage an entry of the trial's own cache; check that no run uses it."""
    kind, how = what.split(": ")
    cache = with_own_cache(trial) / "reference"
    trial.run(*WORDS, "--out", str(trial.folder / "first"))
    right = {file: arrays(file) for file in cache.rglob("*.np[yz]")}
    for file in cache.glob("mlp-reference*") if kind == "weights" and trial.rng.random() < 0.5 else ():
        file.unlink()  # the only file that shows wrong weights
        right.pop(file, None)  # its digest is none of these
    files = sorted(file for file in right if f"mlp-{kind}" in str(file))
    for file in files if how == "zeros" else [trial.rng.choice(files)]:
        damaged(trial, file, how)
    trial.run(*WORDS, "--out", str(trial.out))
    trial.complete(trial.planned(), {})
    for file, content in right.items():
        if arrays(file) != content:
            trial.saw("damage used", f"{file.name} is not what it was")


def with_own_cache(trial: Trial) -> Path:
    """Give the trial a copy of the suite; return the copy's cache folder."""
    folder = trial.folder / "suite"
    shutil.copytree(trial.suite.folder, folder, ignore=shutil.ignore_patterns("results", "template", ".cache"))
    (folder / ".venvs").unlink(missing_ok=True)
    trial.suite = type(trial.suite)(folder)
    return folder / ".cache"


def arrays(file: Path) -> dict[str, bytes] | None:
    """Return the arrays of a file as bytes by name; None where it cannot be read."""
    try:
        loaded = np.load(file)
        return (
            {"": loaded.tobytes()} if file.suffix == ".npy" else {name: loaded[name].tobytes() for name in loaded.files}
        )
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):
        return None


def damaged(trial: Trial, file: Path, how: str) -> None:
    data = file.read_bytes()
    if how == "deleted":
        file.unlink()
    elif how == "a folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(ANY[how](trial, data))


READ = ("references.json", "versions.json", "samples.jsonl.gz")  # these may be refused
FAULTS = {
    "plan": {f"{name}: {how}": plan for name in ("plan.json", "machine.json", "peaks.json")
             for how in (PLAN if name == "plan.json" else ANY)},
    "leftovers": dict.fromkeys(
        ("processes/0001.bak", "processes/1st", "processes/0009 copy/", "processes/cache-0/", "processes/reports.jsonl",
         "samples.jsonl", "samples.jsonl.gz", "results.csv", "results.csv.new", "references.json", "versions.json",
         "records.jsonl.new"),
        leftovers,
    ),
    "reference": {f"{kind}: {how}": reference_data for kind in ("weights", "inputs", "reference")
                  for how in ("cut", "bit flipped", "empty", "zeros", "deleted", "a folder")},
}  # fmt: skip
