"""Faults of the system: space, access, streams, limits, variables, names, clocks, and other runs."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

from studies.faults.trial import DONE, FAKE, INTERRUPTED, REFUSED, WHOLE, Trial

WORDS = (*FAKE, "--mode", "eager,graph", "--batch", "1,2")
ANYHOW = DONE | REFUSED
SIZES = (4, 8, 16, 24, 32, 40, 48, 64, 96, 128)  # KiB: from a plan that does not fit to the last records
INODES = (3, 5, 8, 12, 16, 22, 30, 40)
CLOCKS = {"a year back": -365 * 86400, "1970": -time.time(), "a minute back": -60, "ten years on": 3650 * 86400}


def tried(process: subprocess.CompletedProcess) -> bool:
    return process.returncode == 0


@contextlib.contextmanager
def mounted(folder: Path, size: str):
    """Mount a file system of that size in memory. Raises PermissionError where this user may not mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    if not tried(subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)):
        raise PermissionError("mounting takes root")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], capture_output=True)


def space(trial: Trial, size: str) -> None:
    """Fill the disk at some point, or its table of files; check that the run continues once there is room."""
    disk = trial.folder / "disk"
    inodes = size.removesuffix(" files") if size.endswith(" files") else ""
    with mounted(disk, f"64m,nr_inodes={inodes}" if inodes else size):
        trial.out = disk / "run"
        trial.run(*WORDS, "--out", str(trial.out), codes=None)
        if size.endswith("k") and os.statvfs(disk).f_bavail == 0:
            trial.report(codes=None)
        subprocess.run(["mount", "-o", "remount,size=64m,nr_inodes=10000", disk], check=True)
        trial.go_on(WORDS)


def access(trial: Trial, what: str) -> None:
    """Make the folder read-only, or remove it."""
    disk = trial.folder / "disk"
    with mounted(disk, "64m"):
        trial.out = disk / "run"
        process = trial.begin(*WORDS, "--out", str(trial.out), "--budget", "0.5")
        trial.until(lambda: trial.begun, process)
        trial.later(4)
        if what == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", disk], capture_output=True)  # refused while files are open
        elif what == "deleted":
            shutil.rmtree(trial.out, ignore_errors=True)
        elif what == "processes deleted":
            shutil.rmtree(trial.out / "processes", ignore_errors=True)
        elif what == "records a folder":
            (trial.out / "records.jsonl").unlink(missing_ok=True)
            (trial.out / "records.jsonl").mkdir(parents=True)
        trial.end(process, codes=None)
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        if what == "records a folder":
            (trial.out / "records.jsonl").rmdir()
        if what == "deleted":  # its remains may be refused
            trial.out = disk / "another"
        trial.go_on(WORDS)


def streams(trial: Trial, redirection: str) -> None:
    """Close, fill or break streams of the runner; check that measurements are unchanged."""
    words = [*WORDS, "--out", str(trial.out)]
    script = f'exec "$@" {redirection}' if "|" not in redirection else f'"$@" {redirection}'
    process = trial.begin(*words, shell_script=script)
    trial.end(process, codes=None, seen=False)
    trial.go_on(words)


def together(trial: Trial, what: str) -> None:
    """Start several at once on one folder; check that one continues, and the others report it and change nothing."""
    count, kind = what.split()
    words = (*WORDS, "--out", str(trial.out))
    if kind == "resumes":
        trial.run(*words)
        kept = trial.lines()[: trial.rng.randrange(4)]
        (trial.out / "records.jsonl").write_bytes(b"".join(line + b"\n" for line in kept))
        words = ("--resume", str(trial.out), "--python", trial.python)
    processes = []
    for _ in range(int(count)):
        processes.append(trial.begin(*words))
        trial.later(0.5 if trial.rng.random() < 0.5 else 3)
    codes = [trial.end(process, ANYHOW, left=False).code for process in processes]
    trial.nothing_left()
    if not set(codes) & DONE:
        trial.saw("nobody went on", f"exit codes {codes}")
    trial.complete(trial.planned(), {})
    trial.resume()
    trial.complete(trial.planned(), {})


VARIABLES: dict[str, str | None] = {
    **{"LANG": "C", "LC_ALL": "de_DE.ISO-8859-1", "PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0"},
    **{
        "HOME": None,
        "USER": None,
        "PATH": "",
        "TMPDIR": "/nonexistent",
        "XDG_CACHE_HOME": "/proc/x",
        "TZ": "Mars/Crater",
    },
    **{"OMP_NUM_THREADS": "many", "MKL_NUM_THREADS": "-1", "MALLOC_ARENA_MAX": "1"},
    **{"COLUMNS": "1", "LINES": "0", "TERM": "dumb", "NO_COLOR": "1", "FORCE_COLOR": "1"},
    **{"PYTHONOPTIMIZE": "2", "PYTHONWARNINGS": "error::DeprecationWarning", "PYTHONDONTWRITEBYTECODE": "1"},
    **{"PYTHONSTARTUP": "/nonexistent"},
}
LIMITS = {
    "open files 32": (resource.RLIMIT_NOFILE, 32),
    "file size 2 KiB": (resource.RLIMIT_FSIZE, 2 << 10),
    "file size 32 KiB": (resource.RLIMIT_FSIZE, 32 << 10),
    "stack 256 KiB": (resource.RLIMIT_STACK, 256 << 10),
    "cores of memory 0": (resource.RLIMIT_CORE, 0),
    "locked memory 0": (resource.RLIMIT_MEMLOCK, 0),
}


def environment(trial: Trial, what: str) -> None:
    """Set variables and limits of the user's shell; check that the run measures as usual, or ends in a sentence."""
    out = ("--out", str(trial.out))
    if what == "umask 777":
        ended = trial.run(*WORDS, *out, codes=ANYHOW, umask=0o777)
    elif what in LIMITS:
        kind, value = LIMITS[what]
        ended = trial.run(*WORDS, *out, codes=None, limit=(kind, (value, value)))
        if not trial.begun or len(list(trial.records())) < len(trial.planned()):  # then it must report it
            if ended.code == WHOLE:
                trial.saw("exit code", f"{ended.code} though cells lack")
            return
    else:
        ended = trial.run(*WORDS, *out, codes=ANYHOW, environment={what: VARIABLES[what]})
    if ended.code in DONE:
        trial.complete(trial.planned(), {})


NAMES = (
    *(
        "a b",
        "it's",
        'say "a"',
        "$(touch PWNED)",
        "`touch PWNED`",
        "a;b",
        "a&b",
        "*",
        "~",
        "#hash",
        "a=b",
        "back\\slash",
    ),
    *("[red]x", "c[/red]d", "[link=x]y", "{brace}", "%s%d", "-dash", "--flag", "a,b", "tab\there", "new\nline"),
    *("ä\u2028ö", "\udcff", "😀", "delete\x7f", "x" * 250, "x" * 300, "y/" * 900 + "y"),
)


def pasted(text: str) -> list[str]:
    """Return the words of a line as bash reads them; it finds no program to run there, and writes to no file."""
    command = ["bash", "--restricted", "-c", f"printf '%s\\0' {text}"]
    done = subprocess.run(command, env={"PATH": ""}, executable=shutil.which("bash"), capture_output=True)
    return os.fsdecode(done.stdout).split("\0")


def paths(trial: Trial, name: str) -> None:
    """Check a folder's name: used and shown unchanged, with advice that can be pasted; or refused in a sentence."""
    trial.out = trial.folder / "named" / name
    trial.longest_path = 12 * len(name)
    process = trial.begin(*WORDS, "--budget", "1", f"--out={trial.out}")
    if trial.until(
        lambda: os.path.exists(str(trial.out)[:3000]) and trial.begun if len(name) < 256 else False, process
    ):
        trial.later(3)
        process.send_signal(signal.SIGINT)
    ended = trial.end(process, ANYHOW | INTERRUPTED)
    if ended.code in REFUSED:
        return
    advice = [line.partition("make bench ")[2] for line in ended.output.split("\n") if "RESUME=" in line]
    for text in advice:
        if f"RESUME={trial.out}" in pasted(text):
            break
    else:
        if advice and "\n" not in name:
            trial.saw("advice cannot be pasted", advice[0])
    trial.go_on(WORDS)
    trial.report()


def clock(trial: Trial, what: str) -> None:
    """Shift the wall clock between a run and its resume."""
    process = trial.begin(*WORDS, "--budget", "1", "--out", str(trial.out))
    trial.until(lambda: trial.begun, process)
    trial.later(4)
    process.send_signal(signal.SIGINT)
    trial.end(process, DONE | INTERRUPTED)
    shim = trial.folder / "shim"
    shim.mkdir()
    (shim / "sitecustomize.py").write_text(SHIFTED)
    shifted = {"PYTHONPATH": str(shim), "FAULT_CLOCK": str(CLOCKS[what])}
    trial.go_on(WORDS, environment=shifted)


SHIFTED = """
import datetime, os, time
_by, _time, _now = float(os.environ["FAULT_CLOCK"]), time.time, datetime.datetime
time.time = lambda: _time() + _by
class datetime_(_now):
    @classmethod
    def now(cls, tz=None): return cls.fromtimestamp(max(0.0, time.time()), tz)
datetime.datetime = datetime_
"""

CLOSED = ("<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-")
REDIRECTIONS = (*CLOSED, ">/dev/full", "2>/dev/full", ">/dev/full 2>&1", "| head -c 1", "2>&1 | true", "< /dev/zero")
FAULTS = {
    "space": {f"{size}k": space for size in SIZES} | {f"{count} files": space for count in INODES},
    "access": dict.fromkeys(("read-only", "deleted", "processes deleted", "records a folder"), access),
    "streams": dict.fromkeys(REDIRECTIONS, streams),
    "together": dict.fromkeys(("2 resumes", "3 resumes", "2 runs", "4 runs"), together),
    "environment": dict.fromkeys((*VARIABLES, *LIMITS, "umask 777"), environment),
    "paths": dict.fromkeys(NAMES, paths),
    "clock": dict.fromkeys(CLOCKS, clock),
}
