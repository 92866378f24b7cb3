"""Faults of a run's folders and processes while it runs: moved, wiped, locked away, frozen."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from studies.faults.signals import send
from studies.faults.system import ANYHOW, WORDS, mounted, tried
from studies.faults.tampering import with_own_cache
from studies.faults.trial import DONE, REFUSED, TIMEOUT, Trial

FROZEN = TIMEOUT + 5  # seconds: longer than a worker may be silent


def moved(trial: Trial, what: str) -> None:
    """Rename the folder, or remove its lock, during a measurement; check that no file of the run lands elsewhere."""
    old, words = trial.out, (*WORDS, "--out", str(trial.out))
    processes = [trial.begin(*words, "--budget", "0.5")]
    trial.until(lambda: trial.begun and (old / "processes/lock").exists(), processes[0])
    trial.later(5)
    going, places = processes[0].poll() is None, [old]
    if what == "lock removed":
        (old / "processes/lock").unlink(missing_ok=True)
        processes.append(trial.begin("--resume", str(old), "--python", trial.python))
    else:
        places = [old.rename(trial.folder / "moved")]
        if what == "renamed, begun again":
            places.append(old)
            processes.append(trial.begin(*words))
    for process in processes:
        trial.end(process, ANYHOW, left=False)
    trial.nothing_left()
    if what == "renamed" and going and old.exists() and any(path.is_file() for path in old.rglob("*")):
        trial.saw("written elsewhere", ", ".join(path.name for path in old.rglob("*"))[:200])
    for trial.out in places:
        trial.last_code = None
        if trial.begun:
            trial.complete_once(trial.planned())
        trial.go_on(words)


def linked(trial: Trial, what: str) -> None:
    """Name the folder through a symbolic link, which may change to another folder meanwhile."""
    real, link, other = (trial.folder / name for name in ("real", "link", "other"))
    real.mkdir()
    other.mkdir()
    link.symlink_to(real)
    process = trial.begin(*WORDS, "--budget", "0.5", "--out", str(link))
    trial.until(lambda: (real / "plan.json").exists(), process)
    trial.later(4)
    if what == "turned":
        link.unlink()
        link.symlink_to(other)
    elif what == "killed":
        process.kill()
    trial.end(process, DONE | {-signal.SIGKILL})
    if any(other.iterdir()):
        trial.saw("written elsewhere", "into the folder that the link was turned to")
    trial.out = real
    names = [str(link if what != "turned" else real), str(real)]
    begin = [] if trial.begun else [*WORDS, "--out", str(real)]
    both = [trial.begin(*(begin or ("--resume", name, "--python", trial.python))) for name in names]
    codes = [trial.end(process, ANYHOW, left=False).code for process in both]
    trial.last_code = None
    if not set(codes) & DONE:
        trial.saw("nobody went on", f"exit codes {codes}")
    trial.complete(trial.planned(), {})


def guards(trial: Trial) -> list[int]:
    """Return the process ids of the workers' guards, which the runner itself started."""
    runners = {number for number, words in trial.processes().items() if any(word == "runner.py" for word in words)}
    numbers = []
    for number, words in trial.processes().items():
        try:
            parent = int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent in runners and any(word.endswith("guard.py") for word in words):
            numbers.append(number)
    return numbers


def frozen(trial: Trial, what: str) -> None:
    """Stop processes for longer than a worker may be silent, and continue them; check that none counts as silent."""
    process = trial.begin(*WORDS, "--budget", "1", "--out", str(trial.out))
    if trial.until(trial.workers, process):
        trial.later(4)
        stopped = [process.pid] if what == "runner" else list(trial.processes())
        for number in stopped:
            send(number, "STOP")
        time.sleep(FROZEN)
        trial.rng.shuffle(stopped)
        for number in stopped:
            send(number, "CONT")
            time.sleep(trial.rng.uniform(0, 0.2))
    trial.end(process)
    trial.complete(trial.planned(), {})


def stricken(trial: Trial, what: str) -> None:
    """Send signals to a guard, or to a stopped worker; check that at most the cell in progress is lost."""
    whom, *signs = what.split()
    process = trial.begin(*WORDS, "--out", str(trial.out))
    if trial.until(lambda: guards(trial) if whom == "guard" else trial.workers(), process):
        trial.later(4)
        for sign in signs:
            for number in guards(trial) if whom == "guard" else trial.workers():
                send(number, sign)
            time.sleep(trial.rng.uniform(0, 1))
    trial.end(process)
    trial.complete(trial.planned(), None)
    trial.resume()
    trial.complete(trial.planned(), None)


def wiped(trial: Trial, what: str) -> None:
    """Delete the cache of weights and references, again and again, while two runs use it."""
    cache = with_own_cache(trial) / "reference"
    outs = [trial.out, trial.folder / "another"]
    processes = [trial.begin(*WORDS, "--budget", "0.5", "--out", str(out)) for out in outs]
    for _ in range(trial.rng.randint(1, 4)):
        trial.until(cache.exists, processes[0])
        trial.later(3)
        shutil.rmtree(cache, ignore_errors=True)
    codes = [trial.end(process, ANYHOW, left=False).code for process in processes]
    trial.nothing_left()
    for trial.out, trial.last_code in zip(outs, codes, strict=True):
        if trial.last_code in REFUSED:
            trial.resume(*([] if trial.begun else [*WORDS, "--out", str(trial.out)]))
        trial.complete(trial.planned(), {})


def cache(trial: Trial, what: str) -> None:
    """Check a cache that cannot be written, or is no folder: the run measures, or ends in a sentence."""
    folder = with_own_cache(trial)
    if "full" in what:
        trial.run(*WORDS, "--out", str(trial.folder / "first"))
    folder.mkdir(exist_ok=True)
    mounts = []
    if what.startswith("read-only"):
        command = ["mount", "--bind", folder, folder], ["mount", "-o", "remount,ro,bind", folder]
        if not all(tried(subprocess.run(words, capture_output=True)) for words in command):
            raise PermissionError("mounting takes root")
        mounts.append(folder)
    elif what == "reference a file":
        (folder / "reference").write_text("x")
    elif what == "key empty":
        (folder / "key").touch()
    elif what == "key a folder":
        (folder / "key").mkdir()
    try:
        ended = trial.run(*WORDS, "--out", str(trial.out), codes=ANYHOW)
        if ended.code in DONE:
            trial.complete(trial.planned(), {})
        elif "full" in what or "key" in what:
            trial.saw("refused", ended.output)
    finally:
        for place in mounts:
            subprocess.run(["umount", "-l", place], capture_output=True)
    shutil.rmtree(folder)
    trial.go_on(WORDS)


def last_append(trial: Trial, what: str) -> None:
    """Fill the disk from the n-th record on; check that the run continues once there is room."""
    disk = trial.folder / "disk"
    with mounted(disk, "8m"):
        trial.out, filler = disk / "run", disk / "filler"
        process = trial.begin(*WORDS, "--out", str(trial.out))
        trial.until(lambda: trial.begun and len(trial.lines()) >= int(what.split()[1]), process)
        left = trial.rng.choice((0, 0, 100, 3000))  # bytes
        room = os.statvfs(disk)
        with open(filler, "wb", buffering=0) as file:
            try:
                file.write(bytes(room.f_bavail * room.f_bsize + (1 << 20)))
                os.fsync(file.fileno())
            except OSError:
                pass
            file.truncate(max(0, file.tell() - left))
        trial.end(process, codes=None)
        filler.unlink()
        trial.go_on(WORDS)


LOCALES = {
    "ASCII": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "ASCII, strict": {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ":strict"},
    "Latin 1 streams": {"PYTHONIOENCODING": "latin-1:strict"},
    "UTF-16 streams": {"PYTHONIOENCODING": "utf-16"},
}


def locale(trial: Trial, what: str) -> None:
    """Measure, stop, resume and report in a locale that has none of the letters of the folder's name."""
    trial.out = trial.folder / "Ergebnisse für größe \u2028 日本" / "run"
    given = {"environment": LOCALES[what]}
    process = trial.begin(*WORDS, "--budget", "0.5", "--out", str(trial.out), **given)
    trial.until(lambda: trial.begun, process)
    trial.later(5)
    process.send_signal(signal.SIGINT)
    trial.end(process, ANYHOW | {130, -signal.SIGINT})
    trial.go_on(WORDS, **given)
    trial.run(str(trial.out), command="report", codes=frozenset({0}), **given)


def shared(trial: Trial, what: str) -> None:
    """Check files that a second user's settings made: the run can be resumed, and all files can be read."""
    trial.run(*WORDS, "--out", str(trial.out), umask=int(what.split()[1], 8))
    (trial.out / "records.jsonl").write_bytes(trial.lines()[0] + b"\n")
    trial.resume(umask=0o022)
    trial.complete(trial.planned(), {})
    trial.report()


FAULTS = {
    "moved": dict.fromkeys(("renamed", "renamed, begun again", "lock removed"), moved)
    | dict.fromkeys(("link", "turned", "killed"), linked),
    "frozen": dict.fromkeys(("runner", "everybody"), frozen)
    | dict.fromkeys(("guard KILL", "guard STOP", "guard TERM", "worker STOP KILL", "worker STOP CONT"), stricken),
    "cache": {
        "wiped under two": wiped,
        **dict.fromkeys(
            ("read-only, full", "read-only, empty", "reference a file", "key empty", "key a folder"), cache
        ),
    },
    "last append": {f"from {count} on": last_append for count in range(4)},
    "locale": dict.fromkeys(LOCALES, locale) | dict.fromkeys(("umask 077", "umask 000"), shared),
}
