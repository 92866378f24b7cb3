"""Signals to workers and to the runner, at random instants; and pairs of (kill, resume) with real frameworks."""

from __future__ import annotations

import os
import signal
import time

from conftest import ROOT

from studies.faults.trial import DONE, FAKE, INTERRUPTED, PATIENCE, TIMEOUT, TINY, Trial

TO_WORKERS = ("KILL", "SEGV", "ABRT", "STOP", "TERM")
TO_RUNNER = ("KILL", "TERM", "HUP", "INT", "TERM TERM", "INT INT", "HUP KILL", "TERM everybody", "KILL everybody")
SHAPES = ("--mode", "eager,graph", "--batch", "1,2")
PAIRS = 8  # kills, each with a resume, of one fault of that group
REAL = {
    "torch": ("torch", "eager,inductor"),
    "jax": ("jax", "eager,jit"),
}


def one_worker_hit(trial: Trial, name: str, words: tuple[str, ...] = (*FAKE, *SHAPES)) -> None:
    """Send a signal to the worker; check that the run continues, and loses at most the cell in progress."""
    process = trial.begin(*words, "--out", str(trial.out))
    if trial.until(trial.workers, process):
        trial.later(4)
        for number in trial.workers():
            send(number, name)
    trial.end(process)
    trial.complete(trial.planned(), None)
    trial.resume()
    trial.complete(trial.planned(), None)


def runner_hit(trial: Trial, name: str, words: tuple[str, ...] = (*FAKE, *SHAPES)) -> None:
    """Send signals to the runner; check that finished cells stay, no process survives, and a resume ends the run."""
    process = trial.begin(*words, "--out", str(trial.out))
    if trial.rng.random() < 0.8:
        trial.until(lambda: trial.begun, process)
    trial.later(5)
    if name.endswith("everybody"):
        for number in trial.processes():
            send(number, name.split()[0])
    else:
        for sign in name.split():
            send(process.pid, sign)
            time.sleep(trial.rng.uniform(0, 0.3))
    signs = {-getattr(signal, "SIG" + sign) for sign in name.split() if sign != "everybody"}
    trial.end(process, DONE | INTERRUPTED | frozenset(signs))
    trial.go_on(words, {} if "everybody" not in name else None)


def stubborn(trial: Trial, name: str) -> None:
    """Kill the runner while its worker hangs, is stopped, or has children."""
    mode = name.split()[-1]
    words = (*FAKE, "--mode", f"eager,{mode}", "--out", str(trial.out), "--timeout", "1000")
    process = trial.begin(*words)
    if trial.until(trial.workers, process):
        trial.later(8)
    process.kill()
    trial.end(process, frozenset({-signal.SIGKILL}) | DONE)
    trial.go_on(words, {mode: ("timeout", "crash", "measured")})


def send(number: int, name: str) -> None:
    """Send a signal to a process, which may have ended."""
    try:
        os.kill(number, getattr(signal, "SIG" + name))
    except ProcessLookupError:
        return


def real_words(trial: Trial, which: str) -> tuple[str, ...]:
    framework, modes = REAL[which]
    trial.python = str(ROOT / ".venvs" / f"{framework}-cpu" / "bin" / "python")
    trial.silence, trial.patience = 20 * TIMEOUT, 8 * PATIENCE  # importing and compiling may take long
    words = (*TINY, "--framework", framework, "--python", trial.python, "--timeout", f"{trial.silence:g}")
    return (*words, "--mode", modes)


def real(trial: Trial, what: str) -> None:
    """Repeat the faults with a real framework, also while it imports and compiles."""
    which, whom, name = what.split(maxsplit=2)
    words = (*real_words(trial, which), "--batch", "1,2")
    (one_worker_hit if whom == "worker" else runner_hit)(trial, name, words)


def pairs(trial: Trial, which: str) -> None:
    """Kill the runner at any instant and resume, `PAIRS` times; a complete run is followed by another.

    At any instant, existing records stay unchanged, no process survives, and the plan is completed.
    """
    words, runs = real_words(trial, which), 0
    for _ in range(PAIRS):
        before = trial.lines() if trial.begun else []
        process = trial.begin(*again(trial, words))
        trial.later(12)
        process.send_signal(trial.rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        trial.end(process, DONE | INTERRUPTED | frozenset({-signal.SIGKILL, -signal.SIGTERM}))
        kept = trial.lines() if trial.begun else []
        if kept[: len(before)] != before:
            trial.saw("finished cells changed", f"{len(before)} lines before")
        if trial.begun and len(list(trial.records())) == len(trial.planned()):
            runs += 1
            finish(trial, words)
            trial.out = trial.folder / f"run-{runs}"
    finish(trial, words)


def finish(trial: Trial, words: tuple[str, ...]) -> None:
    """Complete the plan, exactly."""
    trial.run(*again(trial, words))
    trial.complete(trial.planned(), {})


def again(trial: Trial, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that resume the run, or begin it."""
    if trial.begun:
        return ("--resume", str(trial.out), *words[words.index("--python") :][:4])
    return (*words, "--out", str(trial.out))


STUBBORN = ("hang", "stops", "child-hang", "orphan-ok", "escaped-ok", "trickle")
REAL_HITS = ("worker KILL", "worker STOP", "worker SEGV", "runner KILL", "runner TERM", "runner INT INT")
FAULTS = {
    "worker": dict.fromkeys(TO_WORKERS, one_worker_hit),
    "runner": dict.fromkeys(TO_RUNNER, runner_hit) | {f"KILL while {mode}": stubborn for mode in STUBBORN},
    "real": {f"{which} {hit}": real for which in REAL for hit in REAL_HITS},
    "pairs": dict.fromkeys(REAL, pairs),
}
