"""Other commands than `bench`: those that read damaged runs, `ab`, and what an interrupted run keeps for its resume."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from execution.submission import SUBMITTED
from studies.faults.tampering import ANY, RECORDS, damaged, finished_run, with_own_cache
from studies.faults.trial import DONE, FAKE, INTERRUPTED, REFUSED, TIMEOUT, TINY, Trial

WORDS = (*FAKE, "--mode", "eager,graph", "--batch", "1,2")
TOLD = frozenset({0, 1, 2, 3})
# The records and the table are damaged in `damage.py`, in more ways.
FILES = ("plan.json", "machine.json", "samples.jsonl.gz", "explained.jsonl", SUBMITTED)
READERS = ("report", "compare", "history", "gather", "site", "watch")
SPARSE = 6 << 30  # bytes of a file without blocks
WRITTEN = ("report.md", "report.html", "summary.md", "comparison.md", "history.md", "history.html")
SLOWED = 1e6  # times what was measured


def reads(trial: Trial, what: str) -> None:
    """A run of which one file is damaged: shown, or refused in a sentence; the run's files stay as they are."""
    command, file = what.split()
    if command == "site":
        with_own_cache(trial)
    finished_run(trial)
    whole = trial.folder / "whole"
    shutil.copytree(trial.out, whole)
    path = trial.out / file
    content = path.read_bytes() if path.exists() else b'{"cell": "a", "status": "explained"}\n'
    how = trial.rng.choice([*ANY, "random bytes", "a folder", "a pipe"])
    if how in ("a folder", "a pipe"):
        path.unlink(missing_ok=True)
        path.mkdir() if how == "a folder" else os.mkfifo(path)
    elif how == "UTF-16" and file.endswith(".gz"):
        path.write_bytes(content[::-1])
    else:
        path.write_bytes(trial.rng.randbytes(300) if how == "random bytes" else ANY[how](trial, content))
    before, count = bytes_in(trial.out), len(trial.violations)
    if command == "site":
        publish(trial, whole, trial.out)
    trial.longest_path = 4 * len(str(trial.out))
    trial.run(*words_of(trial, command, trial.out, whole), command=command, codes=TOLD)
    if bytes_in(trial.out) != before:
        trial.saw("files changed", "by a command that reads")
    whole_pages(trial, trial.folder)
    if len(trial.violations) > count:
        trial.saw("damage was", how)


def words_of(trial: Trial, command: str, *runs: Path) -> list[str]:
    """What the command is asked for, with files of its own to write."""
    names = [str(run) for run in runs]
    return {
        "report": [*names, "--out", str(trial.folder / "page")],
        "watch": names[:1],
        "gather": [*names, "--out", str(trial.folder / "all.csv")],
        "history": [",".join(names), "--out", str(trial.folder / "trend")],
        "compare": [*(names * 2)[:2], "--out", str(trial.folder / "compared.md")],
        "site": ["--out", str(trial.folder / "site")],
    }[command]


def publish(trial: Trial, *runs: Path) -> None:
    """Put runs where `site` finds them, apart from what no copy is made of."""
    for run in runs:
        shutil.copytree(run, trial.suite.folder / "results" / run.name, symlinks=True, ignore=special)


def special(folder: str, names: list[str]) -> list[str]:
    """Return what no copy is made of."""
    paths = [Path(folder, name) for name in names]
    return [path.name for path in paths if path.is_symlink() or path.is_fifo() or path.stat().st_size >= SPARSE]


def whole_pages(trial: Trial, folder: Path) -> None:
    for page in folder.rglob("*.html"):
        if "suite" not in page.parts and not page.read_text().rstrip().endswith("</html>"):
            trial.saw("torn", page.name)


def bytes_in(folder: Path) -> dict[str, bytes]:
    """Return the bytes of a run's usual files, apart from what commands write into it."""
    usual = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(p): p.read_bytes() for p in usual if p.name not in WRITTEN and p.stat().st_size < SPARSE}


def kept(trial: Trial, what: str) -> None:
    """What a killed run kept of its launches is damaged: left out and measured again, never used as it is."""
    file, how = what.split(": ")
    path = trial.out / "launches/reports.jsonl"
    process = trial.begin(*WORDS, "--budget", "0.5", "--out", str(trial.out))
    lines = trial.rng.randint(1, 7)
    trial.until(lambda: path.exists() and path.read_bytes().count(b"\n") >= lines, process)
    process.kill()
    trial.end(process, DONE | {-signal.SIGKILL})
    if file == "reports.jsonl" and path.exists():
        path.write_bytes(REPORTS[how](trial, path.read_bytes()))
    outputs = sorted(trial.out.glob("launches/*/outputs/*.npz"))
    if file == "outputs" and outputs:
        damaged(trial, trial.rng.choice(outputs), how)
    trial.go_on(WORDS)
    for record in trial.records():
        if not 0 < record["latency_ms_median"] < 1e-3 * SLOWED:  # the fake's calls take microseconds
            trial.saw("falsified", f"{record['cell']} takes {record['latency_ms_median']} ms")


def slowed(trial: Trial, data: bytes) -> bytes:
    """One line whose samples are others."""
    lines = data.splitlines()
    index = trial.rng.randrange(len(lines))
    entry = json.loads(lines[index])
    if entry.get("report"):
        entry["report"]["samples"] = [SLOWED * seconds for seconds in entry["report"]["samples"]]
    lines[index] = json.dumps(entry).encode()
    return b"\n".join(lines) + b"\n"


REPORTS = ANY | {
    "line twice": RECORDS["line twice"],
    "lines turned": RECORDS["lines turned"],
    "blank lines": RECORDS["blank lines"],
    "line is a list": RECORDS["line is a list"],
    "other samples": slowed,
}
PAIR = (*TINY, "--framework", "fake", "--mode", "eager,graph", "--batch", "1", "--timeout", f"{TIMEOUT:g}")
SIDES = ("--a", sys.executable, "--b", sys.executable)


def pair(trial: Trial, what: str) -> None:
    """Two runs in turn, stopped, resumed, damaged, or several at once: both sides are completed exactly."""
    words = (*PAIR, *SIDES, "--out", str(trial.out))
    again = ("--resume", str(trial.out), *SIDES, "--timeout", f"{TIMEOUT:g}")
    count = 2 if what == "two at once" else 1
    processes = [trial.begin(*words, command="ab") for _ in range(count)]
    if count == 1:
        trial.until(lambda: (trial.out / "ab.json").exists(), processes[0])
        trial.later(9)
        for sign in what.split() if what.isupper() else ["TERM"]:
            processes[0].send_signal(getattr(signal, "SIG" + sign))
    codes = TOLD | INTERRUPTED | {-signal.SIGKILL, -signal.SIGTERM}
    told = [trial.end(process, codes, left=False).code for process in processes]
    trial.nothing_left()
    if count == 2 and not set(told) & {0, 1, 3}:
        trial.saw("nobody went on", f"exit codes {told}")
    begun = (trial.out / "ab.json").exists()
    if what.startswith("ab.json") and begun:
        path = trial.out / "ab.json"
        content = path.read_bytes()
        path.write_bytes(ANY[what.partition(": ")[2]](trial, content))
        trial.run(*again, command="ab", codes=TOLD)
        path.write_bytes(content)
    if what == "resumes at once":
        both = [trial.begin(*(again if begun else words), command="ab") for _ in range(2)]
        both = [trial.end(process, TOLD, left=False).code for process in both]
        if not set(both) & {0, 1, 3}:
            trial.saw("nobody went on", f"exit codes {both}")
    trial.run(*(again if (trial.out / "ab.json").exists() else words), command="ab", codes=TOLD - REFUSED)
    sides = sorted(trial.out.glob("*-[ab]"))
    for trial.out in sides:
        trial.last_code = None
        trial.complete(trial.planned(), {})


FAULTS = {
    "readers": {f"{command} {file}": reads for command in READERS for file in FILES},
    "kept": {f"reports.jsonl: {how}": kept for how in REPORTS}
    | {f"outputs: {how}": kept for how in ("cut", "empty", "zeros", "deleted")},
    "ab": dict.fromkeys(
        ("KILL", "TERM", "INT INT", "two at once", "resumes at once", "ab.json: cut", "ab.json: bit flipped",
         "ab.json: zeros", "ab.json: a list"),
        pair,
    ),
}  # fmt: skip
