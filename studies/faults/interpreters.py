"""`PYTHON=` that is no Python: it answers rubbish, never, without end, or leaves a child that holds its output.

One sentence within the time that asked programs have, without filling the memory, and no process stays; one that
misbehaves as a worker alone costs its own cells.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from studies.faults.commands import TOLD
from studies.faults.trial import DONE, FAKE, REFUSED, Trial

MEMORY = 3 << 30
PATIENCE = 200.0  # seconds: several questions, each with its own limit
SHAPES = ("--mode", "eager,graph", "--batch", "1")
# A shell's script; REAL is a Python. What is no script is the file's bytes, or None.
PROGRAMS: dict[str, str | bytes | None] = {
    "garbage": "echo garbage; exit 0",
    "random bytes": "head -c 5000 /dev/urandom; exit 0",
    "nothing": "exit 0",
    "null": "echo null",
    "a list": "echo '[]'",
    "a number": "echo 3",
    "numbers": "echo '{\"numpy\": 3}'",
    "deep": "head -c 100000 /dev/zero | tr '\\0' '['",
    "NUL": "printf '3.11\\0'",
    "hang": "exec sleep 100000",
    "hang deaf": "trap '' TERM INT HUP; while :; do sleep 1; done",
    "endless": "exec yes",
    "endless errors": "exec yes >&2",
    "endless line": "exec cat /dev/zero",
    "long": "head -c 300000000 /dev/zero",
    "child holds output": "sleep 100000 & echo '{}'",
    "child in a session": "setsid sleep 15 & echo '{}'",  # no process group reaches it: it ends by itself
    "fails": "echo 'no module' >&2; exit 1",
    "fails long": "head -c 30000000 /dev/urandom >&2; exit 1",
    "killed": "kill -9 $$",
    "stops": "kill -STOP $$",
    "a text": b"no program\n",
    "binary": b"\x7fELF\x02\x01\x01" + bytes(100),
    "empty": b"",
    "a folder": None,
    "worker hangs": 'case "$*" in *worker*) exec sleep 100000;; esac; exec REAL "$@"',
    "worker exits": 'case "$*" in *worker*) exit 0;; esac; exec REAL "$@"',
    "worker prints": 'case "$*" in *worker*) exec yes;; esac; exec REAL "$@"',
    "worker killed": 'case "$*" in *worker*) kill -9 $$;; esac; exec REAL "$@"',
    "worker is garbage": 'case "$*" in *worker*) echo garbage; exit 3;; esac; exec REAL "$@"',
    "noise before": 'echo Welcome; exec REAL "$@"',
    "noise after": 'REAL "$@"; echo bye',
}
COMMANDS = ("bench", "dry", "ab", "resume")


def program(trial: Trial, how: str) -> Path:
    """Make the interpreter."""
    path, content = trial.folder / "python", PROGRAMS[how]
    if content is None:
        path.mkdir()
        return path
    text = content if isinstance(content, bytes) else f"#!/bin/sh\n{content.replace('REAL', sys.executable)}\n".encode()
    path.write_bytes(text)
    path.chmod(0o755)
    return path


def no_python(trial: Trial, what: str) -> None:
    """Asked by one command; then the same run is measured with a Python, where that is the same plan."""
    how, command = what.rsplit(": ", 1)
    path = program(trial, how)
    words = (*FAKE[: FAKE.index("--python")], "--timeout", f"{trial.silence:g}", *SHAPES)
    given, name = ("--python", str(path)), "bench"
    if command == "ab":
        given, name = ("--a", str(path), "--b", sys.executable), "ab"
    if command == "dry":
        given = (*given, "--dry-run")
    words = (*words, *given, "--out", str(trial.out))
    if command == "resume":
        trial.run(*FAKE, *SHAPES, "--out", str(trial.out))
        (trial.out / "records.jsonl").write_bytes(trial.lines()[0] + b"\n")
        words = ("--resume", str(trial.out), *given)
    trial.longest_path = 1500  # a refusal holds a program's last words
    process = trial.begin(*words, command=name, limit=(resource.RLIMIT_AS, (MEMORY, MEMORY)))
    ended = trial.end(process, TOLD, patience=PATIENCE)
    if command == "resume":
        if ended.code not in REFUSED:
            trial.saw("falsified", "a run that another interpreter began was gone on with")
        trial.resume()
        trial.complete(trial.planned(), {})
    elif command == "bench" and ended.code in DONE and trial.begun:
        trial.last_code = ended.code
        allowed = ("measured",) if how.startswith("noise") else ("crash", "error", "timeout")
        trial.complete(trial.planned(), dict.fromkeys(("eager", "graph"), allowed))


FAULTS = {"interpreters": {f"{how}: {command}": no_python for how in PROGRAMS for command in COMMANDS}}
