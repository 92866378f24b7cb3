"""What is another when a run goes on, or while it is measured: packages, machine, users' files, the place of all."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from studies.faults.signals import real_words
from studies.faults.trial import DONE, FAKE, INTERRUPTED, REFUSED, Trial

MINIMUM_LAUNCHES = 3  # of a cell, with the quick profile
WORDS = (*FAKE, "--mode", "eager,graph", "--batch", "1,2")
# Loaded by every Python process: another version of a package, or another processor.
VERSION = """
import importlib.metadata as metadata
_all = metadata.distributions
class Other:
    def __init__(self, real): self.real = real
    metadata = property(lambda self: self.real.metadata)
    version = property(lambda self: "9.9.9" if self.real.metadata["Name"] == "numpy" else self.real.version)
metadata.distributions = lambda *words, **named: [Other(one) for one in _all(*words, **named)]
"""
MACHINE = """
import builtins, pathlib
_read = pathlib.Path.read_text
def read_text(self, *words, **named):
    text = _read(self, *words, **named)
    return text.replace("model name\\t: ", "model name\\t: Another ") if str(self) == "/proc/cpuinfo" else text
pathlib.Path.read_text = read_text
"""


def stopped(trial: Trial, words: tuple[str, ...], sign: int = signal.SIGKILL, reports: int | None = None) -> None:
    """Begin a run and kill it once it has kept some reports of cells that have no record yet."""
    path = trial.out / "launches/reports.jsonl"
    reports = reports or trial.rng.randint(1, 7)
    process = trial.begin(*words, "--out", str(trial.out))
    trial.until(lambda: path.exists() and path.read_bytes().count(b"\n") >= reports, process)
    process.send_signal(sign)
    trial.end(process, DONE | INTERRUPTED | {-signal.SIGKILL, -signal.SIGTERM})


def shim(trial: Trial, code: str) -> dict[str, str]:
    """Variables with which every Python process of a command runs the code first."""
    folder = trial.folder / "shim"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": str(folder)}


def went_on(trial: Trial, what: str) -> None:
    """Gone on with under other conditions: no record is made of launches of both."""
    stopped(trial, (*WORDS, "--budget", "0.5"))
    begun, lacking, before = trial.begun, trial.begun and len(trial.lines()) < len(trial.planned()), launches(trial)
    code = {"another version": VERSION, "another machine": MACHINE}[what]
    begin = ("--resume", str(trial.out), "--python", trial.python) if begun else (*WORDS, "--out", str(trial.out))
    ended = trial.run(*begin, codes=DONE | REFUSED, environment=shim(trial, code))
    if what == "another version" and begun and (trial.out / "versions.json").exists():
        if ended.code not in REFUSED:
            trial.saw("falsified", "launches of two versions under one")
        trial.resume()
    elif lacking and launches(trial) < before + MINIMUM_LAUNCHES:
        trial.saw("falsified", f"{launches(trial) - before} launches here, and those of another machine beside them")
    trial.complete(trial.planned(), {})


def launches(trial: Trial) -> int:
    """How many launches there were so far."""
    return len(list(trial.out.glob("launches/[0-9]*")))


def elsewhere(trial: Trial, what: str) -> None:
    """The run's folder is copied, moved or reached by another name, or what lies in it is gone; then it goes on."""
    stopped(trial, (*WORDS, "--budget", "0.5"))
    if not trial.begun:
        return
    if what == "copied":
        shutil.copytree(trial.out, trial.folder / "copy", symlinks=True)
        other = Trial(trial.suite, trial.folder / "other", trial.rng, trial.violations)
        other.out = trial.folder / "copy"
        other.resume()
        other.complete(other.planned(), {})
    elif what == "without launches":
        shutil.rmtree(trial.out / "launches")
    elif what == "only plan and records":
        kept = {"plan.json", "records.jsonl"}
        for path in trial.out.iterdir():
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    elif what == "records linked":
        if (trial.out / "records.jsonl").exists():
            (trial.out / "records.jsonl").rename(trial.folder / "records.jsonl")
            (trial.out / "records.jsonl").symlink_to(trial.folder / "records.jsonl")
    elif what == "moved":
        trial.out = trial.out.rename(trial.folder / "moved there")
    elif what == "old files":  # as a copy that keeps no times
        for path in trial.out.rglob("*"):
            path.touch()
    elif what == "read-only files":
        for path in trial.out.rglob("*"):
            path.chmod(0o555 if path.is_dir() else 0o444)
    trial.resume()
    trial.complete(trial.planned(), {})


MODEL = """import time
import torch
from torch import nn

WIDTH = 64


def model():
    return nn.Linear(8, WIDTH)


def inputs(batch_size):
    return torch.ones(batch_size, 8)
"""


def users_model(trial: Trial, what: str) -> None:
    """A user's file that is another while it is measured, or between a run and its resume."""
    file = trial.folder / "net.py"
    file.write_text(MODEL)
    trial.model = str(file)
    words = (*real_words(trial, "torch")[-4:-2], "--framework", "torch", "--mode", "eager", "--batch", "1,2")
    words = ("--workload", str(file), *words, "--python", trial.python, "--budget", "0.4", "--out", str(trial.out))
    process = trial.begin(*words)
    trial.until(lambda: list(trial.out.glob("launches/*/job.json")), process)
    trial.later(20)
    going = process.poll() is None
    how, _, kill = what.partition(", ")
    if kill:
        process.kill()
        trial.end(process, DONE | {-signal.SIGKILL})
    CHANGES[how](file)
    if not kill:
        trial.end(process, DONE | REFUSED, patience=trial.patience)
    changed = not file.exists() or file.read_text() != MODEL
    if kill and trial.begun and going and changed:
        trial.resume(codes=REFUSED)
    file.write_text(MODEL)
    trial.go_on(words)
    for record in trial.records():  # 8 by 64, and not 8 by 4096
        if record["flops"] != 2 * 8 * 64 * record["batch_size"]:
            trial.saw("falsified", f"{record['cell']}: {record['flops']} FLOPs")
    for path in trial.out.glob("launches/*/worker.log"):
        if "ANOTHER" in path.read_text() and measured_by(trial, path.parent.name):
            trial.saw("falsified", f"launch {path.parent.name} ran another file, and its samples count")


def measured_by(trial: Trial, worker: str) -> bool:
    """Whether samples of this worker are among the run's."""
    samples = [json.loads(line) for line in lines_of(trial.out)]
    return any(entry["worker"] == worker for entry in samples)


def lines_of(folder: Path) -> list[bytes]:
    path = folder / "samples.jsonl.gz"
    return gzip.decompress(path.read_bytes()).splitlines() if path.exists() else []


def saved_for_a_while(file: Path) -> None:
    file.write_text(MODEL.replace("64", "4096") + "\nprint('ANOTHER')\n")
    time.sleep(6)
    file.write_text(MODEL)


CHANGES: dict[str, Callable[[Path], object]] = {
    "changed": lambda file: file.write_text(MODEL.replace("64", "4096") + "\nprint('ANOTHER')\n"),
    "deleted": lambda file: file.unlink(),
    "half saved": lambda file: file.write_text(MODEL[:90]),
    "touched": lambda file: file.touch(),
    "changed and put back": saved_for_a_while,
}
OTHERWISE = ("copied", "without launches", "only plan and records", "records linked", "moved", "old files",
             "read-only files")  # fmt: skip
FAULTS = {
    "between": dict.fromkeys(("another version", "another machine"), went_on) | dict.fromkeys(OTHERWISE, elsewhere),
    "own": dict.fromkeys(("changed", "deleted", "half saved", "touched", "changed and put back",
                          "changed, killed", "deleted, killed", "half saved, killed"), users_model),
}  # fmt: skip
