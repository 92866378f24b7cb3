"""What the runner finds around itself: signals, limits, namespaces, helper programs, a kernel that tells nothing."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time

from studies.faults.between import WORDS
from studies.faults.signals import send
from studies.faults.trial import DONE, INTERRUPTED, REFUSED, WHOLE, Trial

PREPARED = 'exec "$0" -c "import os, signal, sys; {code}; os.execvp(sys.argv[1], sys.argv[1:])" "$@"'
STARTED = {
    "SIGCHLD ignored": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "SIGCHLD blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])",
    "SIGTERM blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])",
    "all ignored": "[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 3, 10, 12, 13, 14, 15, 17, 20, 21, 22)]",
    "600 descriptors": "[os.set_inheritable(os.open('/dev/null', 0), True) for _ in range(600)]",
    "lowest priority": "os.nice(19)",
    "one CPU": "os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])",
    "batch scheduling": "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))",
    "folder gone": "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
    "a subreaper above": "import ctypes; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)",
}


def started(trial: Trial, what: str) -> None:
    """Started with this state: measured as ever, crashes of a mode told as such, or refused in a sentence."""
    script = PREPARED.format(code=STARTED[what]).replace("$0", trial.python)
    words = (*WORDS[:-3], "eager,graph,exits-3", *WORDS[-2:], "--out", str(trial.out))
    ended = trial.run(*words, codes=DONE | REFUSED, shell_script=script)
    if ended.code in DONE:
        trial.complete(trial.planned(), {"exits-3": ("crash",)})
    trial.go_on(words, {"exits-3": ("crash",)})


LIMITS = {
    "processes": (resource.RLIMIT_NPROC, (1, 20, 60)),
    "memory": (resource.RLIMIT_AS, (100 << 20, 300 << 20, 600 << 20)),
    "processor time": (resource.RLIMIT_CPU, (1, 2, 3)),
    "data": (resource.RLIMIT_DATA, (30 << 20, 80 << 20)),
}


def limited(trial: Trial, what: str) -> None:
    """Short of a resource: what is not measured is told, and resumed without the limit it is completed."""
    kind, values = LIMITS[what]
    value = trial.rng.choice(values)
    words = (*WORDS, "--out", str(trial.out))
    process = trial.begin(*words, limit=(kind, (value, value)))
    before = len(trial.violations)
    ended = trial.end(process, codes=None)
    if what in ("memory", "data"):  # Python and OpenBLAS may lack room while they are loaded, and say so at length
        said = ended.output.strip().rpartition("\n")[2].startswith("runner.py: ")
        loading = ("traceback", "no sentence") if said else ("traceback",)
        trial.violations[before:] = [one for one in trial.violations[before:] if one[0] not in loading]
    left = [one for one in (trial.planned() if trial.begun else ["all"]) if one]
    if ended.code == WHOLE and len(list(trial.records())) < len(left):
        trial.saw("exit code", "0 though cells lack")
    finished = [record["cell"] for record in trial.records()]
    trial.resume(*([] if trial.begun else words))
    if [record["cell"] for record in trial.records()][: len(finished)] != finished:
        trial.saw("finished cells lost", f"{len(finished)} before")
    trial.complete_once(trial.planned())


OTHER_SIGNALS = ("QUIT", "USR1", "ALRM", "PIPE", "XCPU", "WINCH", "TSTP CONT", "CONT", "IO", "SEGV", "ABRT")


def signalled(trial: Trial, what: str) -> None:
    """Signals that nobody means for a runner: it ends or goes on, nothing is left, and the run is completed exactly."""
    process = trial.begin(*WORDS, "--budget", "0.5", "--out", str(trial.out))
    trial.until(lambda: trial.begun, process)
    trial.later(5)
    for sign in what.split():
        send(process.pid, sign)
        time.sleep(trial.rng.uniform(0, 2))
    killed = {-getattr(signal, "SIG" + sign) for sign in what.split()}
    trial.end(process, DONE | INTERRUPTED | killed)
    trial.go_on(WORDS)


PROGRAMS = ("git", "nvidia-smi")
BEHAVIOURS = {
    "hangs": "exec sleep 100000",
    "fails": "echo 'fatal: dubious ownership' >&2; exit 128",
    "rubbish": "head -c 100000 /dev/urandom",
    "empty": "exit 0",
    "killed": "kill -9 $$",
    "too much": "yes | head -c 100000000",
    "leaves a child": "sleep 100000 & echo abc",
    "not executable": None,
}


def helped(trial: Trial, what: str) -> None:
    """A program that the runner asks for facts misbehaves: the run is measured all the same."""
    program, how = what.split(" ", 1)
    folder = trial.folder / "bin"
    folder.mkdir()
    script = BEHAVIOURS[how]
    (folder / program).write_text(f"#!/bin/sh\n{script}\n" if script else "no program\n")
    (folder / program).chmod(0o755 if script else 0o644)
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    trial.run(*WORDS, "--out", str(trial.out), environment=path)
    trial.complete(trial.planned(), {})


BLIND = {
    "no cpuinfo": "mount --bind /dev/null /proc/cpuinfo",
    "no meminfo": "mount --bind /dev/null /proc/meminfo",
    "no stat": "mount --bind /dev/null /proc/stat",
    "no loadavg": "mount --bind /dev/null /proc/loadavg",
    "no sys": "mount -t tmpfs tmpfs /sys",
    "no shared memory": "mount -t tmpfs -o ro tmpfs /dev/shm",
    "full temporary folder": "mount -t tmpfs -o size=4k tmpfs /tmp/nowhere 2>/dev/null; export TMPDIR=/dev/full",
    "rubbish": "F=$(mktemp); head -c 9999 /dev/urandom > $F; "
    "for f in cpuinfo stat meminfo loadavg; do mount --bind $F /proc/$f; done; rm $F",
}
UNSHARED = {"process 1": "--pid --fork --mount-proc", "no network": "--net", "another host name": "--uts"}


def blind(trial: Trial, what: str) -> None:
    """A kernel, or a container, that hides what a machine is."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        raise PermissionError("namespaces take root")
    if what in UNSHARED:
        first = "hostname $(head -c 40 /dev/zero | tr '\\0' x);" if what == "another host name" else ""
        script = f'exec unshare {UNSHARED[what]} sh -c \'{first} exec "$@"\' sh "$@"'
    else:
        script = f'exec unshare -m sh -c \'{BLIND[what]}; exec "$@"\' sh "$@"'
    words = (*WORDS, "--out", str(trial.out))
    trial.run(*words, shell_script=script)
    trial.complete(trial.planned(), {})


def contained(trial: Trial, what: str) -> None:
    """As process 1 of a container, which heeds no signal that it does not handle, and gets the orphans."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        raise PermissionError("namespaces take root")
    script = 'exec unshare --pid --fork --kill-child --mount-proc "$@"'
    words = (*WORDS[:-3], "eager,graph,orphan-ok", *WORDS[-2:], "--budget", "0.5", "--out", str(trial.out))
    process = trial.begin(*words, shell_script=script)
    trial.until(lambda: trial.begun, process)
    trial.later(5)
    for number, line in trial.processes().items():
        if "runner.py" in line and "unshare" not in line[0]:
            send(number, what)
    trial.end(process, DONE | INTERRUPTED | {137, 143, 129, 1, -signal.SIGKILL, -signal.SIGTERM})
    trial.go_on(words, {"orphan-ok": ("measured",)})


def terminal(trial: Trial, what: str) -> None:
    """A terminal that closes, has no size, or takes no more."""
    words = (*WORDS, "--budget", "0.5", "--out", str(trial.out))
    script = {
        "hangs up": 'exec script -qfec "$*" /dev/null',
        "no size": 'stty rows 0 cols 0 2>/dev/null; exec script -qfec "stty rows 0 cols 0; $*" /dev/null',
        "one column": 'exec script -qfec "stty rows 1 cols 1; $*" /dev/null',
    }[what]
    process = trial.begin(*words, shell_script=script)
    if what == "hangs up":
        trial.until(lambda: trial.begun, process)
        trial.later(5)
        process.kill()  # what holds the terminal is gone: SIGHUP to those in it
    trial.end(process, DONE | INTERRUPTED | {-signal.SIGKILL, 129})
    trial.go_on(words)


FAULTS = {
    "started": dict.fromkeys(STARTED, started),
    "limits": dict.fromkeys(LIMITS, limited),
    "other signals": dict.fromkeys(OTHER_SIGNALS, signalled),
    "helpers": {f"{program} {how}": helped for program in PROGRAMS for how in BEHAVIOURS},
    "blind": dict.fromkeys((*BLIND, *UNSHARED), blind),
    "contained": dict.fromkeys(("TERM", "INT", "KILL", "HUP"), contained),
    "terminal": dict.fromkeys(("hangs up", "no size", "one column"), terminal),
}
