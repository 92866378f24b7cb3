"""Commands beside a run at work, writers that are killed, and clusters whose commands answer oddly."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from doubles import pretended_slurm

from studies.faults.between import WORDS
from studies.faults.commands import TOLD, bytes_in, whole_pages, words_of
from studies.faults.signals import real_words
from studies.faults.system import ANYHOW, mounted
from studies.faults.tampering import finished_run, with_own_cache
from studies.faults.trial import DONE, FAKE, INTERRUPTED, Trial

READERS = ("report", "watch", "gather", "history", "compare", "site")


def read_meanwhile(trial: Trial, command: str) -> None:
    """A run is read again and again while it is measured: neither disturbs the other."""
    process = trial.begin(*WORDS, "--budget", "0.3", "--out", str(trial.out))
    trial.until(lambda: trial.begun, process)
    while process.poll() is None:
        trial.end(trial.begin(*words_of(trial, command, trial.out), command=command), TOLD, left=False)
    trial.end(process)
    trial.complete(trial.planned(), {})


def writer_killed(trial: Trial, what: str) -> None:
    """A command that writes pages is killed at any instant, or twice at once: what is there is whole."""
    command, how = what.split(" ", 1)
    if command == "site":
        with_own_cache(trial)
    finished_run(trial)
    trial.resume()
    if command == "site":
        shutil.copytree(trial.out, trial.suite.folder / "results" / "first")
    words = words_of(trial, command, trial.out)
    before = bytes_in(trial.out)
    if how == "small disk":
        disk = trial.folder / "disk"
        with mounted(disk, f"{trial.rng.choice((4, 16, 64, 200))}k"):
            for index, word in enumerate(words):
                if word.startswith(str(trial.folder)) and "--out" in words[:index]:
                    words[index] = str(disk / Path(word).name)
            trial.run(*words, command=command, codes=TOLD)
            whole_pages(trial, disk)
    elif how == "killed":
        for _ in range(4):
            process = trial.begin(*words, command=command)
            trial.later(2.5)
            process.kill()
            trial.end(process, TOLD | {-signal.SIGKILL})
            whole_pages(trial, trial.folder)
    else:
        both = [trial.begin(*words, command=command) for _ in range(3)]
        for process in both:
            trial.end(process, TOLD, left=False)
    trial.run(*words, command=command, codes=TOLD)
    whole_pages(trial, trial.folder)
    if bytes_in(trial.out) != before:
        trial.saw("files changed", "by a command that reads")


NAMES = ("net", "import", "../up", "a b", "ä", "", "x" * 300, "net.py", "__init__", "$(touch PWNED)", "[red]", "a\nb")


def skeleton(trial: Trial, name: str) -> None:
    """A file to begin with: written whole under that name, or refused; one that is there stays."""
    with_own_cache(trial)
    folder = trial.suite.folder
    (folder / "there.py").write_text("mine")
    trial.longest_path = len(name) * 6
    before = {path.name for path in folder.iterdir()}
    how = [trial.begin("--name", name, command="new-workload") for _ in range(2)]
    codes = [trial.end(process, ANYHOW, left=False).code for process in how]
    trial.run("--name", "there", command="new-workload", codes=frozenset({2}))
    if (folder / "there.py").read_text() != "mine":
        trial.saw("overwritten", "there.py")
    made = {path.name for path in folder.iterdir()} - before - {"__pycache__"}
    if made - {f"{name}.py"} or (codes.count(0) != len(made)):
        trial.saw("written", f"{made} with exit codes {codes}")


WORKS, SAYS = "exec REAL", "echo '{}'"
# What srun does when it is asked what a node is, and when it is to start a step.
ANSWERS = {
    "step fails": (WORKS, "echo 'srun: error: Unable to create step' >&2; exit 1"),
    "step says nothing": (WORKS, "exit 0"),
    "step says rubbish": (WORKS, "head -c 100000 /dev/urandom"),
    "step ends amid": (WORKS, "REAL | head -c 3000"),
    "step between banners": (WORKS, "echo Welcome; REAL; echo bye"),
    "one step in three fails": (WORKS, "[ $(($$ % 3)) = 0 ] && exit 1; exec REAL"),
    "probe is a list": (SAYS.format("[1]"), WORKS),
    "probe is empty": (SAYS.format("{}"), WORKS),
    "probe of other types": (SAYS.format('{"kind": ["a"], "machine_id": 3, "gpus": 4, "cpu": null}'), WORKS),
    "probe fails": ("echo 'srun: error: Socket timed out' >&2; exit 1", WORKS),
}


def cluster(trial: Trial, what: str) -> None:
    """A Slurm whose srun answers oddly: refused in a sentence, or the plan is done, and nothing has two records."""
    folder = trial.folder / "bin"
    variables = pretended_slurm.install(folder, 3, 0.05, 0.1, {})
    real = (folder / "srun").read_text().splitlines()[1].removeprefix("exec ")
    probe, step = (words.replace("REAL", real) for words in ANSWERS[what])
    script = f'#!/bin/sh\ncase "$*" in *measurement.machine*) {probe};; *) {step};; esac\n'
    (folder / "srun").write_text(script)
    shapes = ("--mode", "eager,graph", "--batch", "1..4..1", "--launcher", "slurm")
    words = (*FAKE, *shapes, "--out", str(trial.out))
    process = trial.begin(*words, environment=variables)
    if trial.rng.random() < 0.5:
        trial.until(lambda: trial.begun, process)
        trial.later(3)
        process.send_signal(trial.rng.choice([signal.SIGKILL, signal.SIGINT]))
    trial.end(process, ANYHOW | INTERRUPTED | {-signal.SIGKILL})
    (folder / "srun").write_text(f"#!/bin/sh\nexec {real}\n")
    if trial.begun:
        trial.complete_once(trial.planned())
    again = ("--resume", str(trial.out), "--python", trial.python, "--timeout", f"{trial.silence:g}")
    trial.run(*(again if trial.begun else words), environment=variables, codes=DONE)
    trial.complete_once(trial.planned())
    if len(list(trial.records())) != len(trial.planned()):
        trial.saw("lost", "cells without a record")


def slow_reader(trial: Trial, what: str) -> None:
    """What reads the runner's output along is slow, or stops reading."""
    words = (*WORDS, "--out", str(trial.out))
    script = {"slow": '"$@" | while read -r line; do sleep 0.2; done', "stops": '"$@" | (read -r line; sleep 25)'}[what]
    trial.run(*words, shell_script=script, codes=None)
    trial.go_on(words)


def ladder(trial: Trial, what: str) -> None:
    """The rungs of a ladder, stopped and resumed: every rung once."""
    words = (*real_words(trial, "torch")[:-2], "--out", str(trial.out))
    process = trial.begin(*words, command="ladder")
    trial.until(lambda: trial.begun, process)
    trial.later(60)
    process.send_signal(getattr(signal, f"SIG{what}"))
    trial.end(process, DONE | INTERRUPTED | {-signal.SIGKILL, -signal.SIGTERM})
    if trial.begun:
        trial.resume()
    else:
        trial.run(*words, command="ladder", codes=DONE)
    trial.complete(trial.planned(), {})


FAULTS = {
    "meanwhile": dict.fromkeys(READERS, read_meanwhile),
    "writers": {f"{command} {how}": writer_killed for command in ("report", "history", "site", "compare", "gather")
                for how in ("killed", "at once", "small disk")},
    "skeletons": dict.fromkeys(NAMES, skeleton),
    "odd cluster": dict.fromkeys(ANSWERS, cluster),
    "output": dict.fromkeys(("slow", "stops"), slow_reader),
    "ladder": dict.fromkeys(("KILL", "TERM", "INT"), ladder),
}  # fmt: skip
