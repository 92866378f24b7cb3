"""Faults of a cluster's nodes, steps and jobs; the cluster is a real Slurm of two nodes on this machine."""

from __future__ import annotations

import atexit
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from doubles.one_box import PATIENCE, OneBox, why_not

from studies.faults.system import mounted
from studies.faults.trial import DONE, FAKE, INTERRUPTED, REFUSED, Trial

ONE = threading.Lock()  # there is one cluster, and trials may run in parallel
_BOX: list[OneBox] = []
SHAPES = (*FAKE, "--batch", "1..4..1", "--launcher", "slurm")
WORDS = (*SHAPES, "--mode", "eager,graph")


def box(nodes: int = 2) -> OneBox:
    """Return the cluster, all of whose nodes are idle; the first call sets their number.

    Raises PermissionError where none can be started.
    """
    if why := why_not():
        raise PermissionError(why)
    if not _BOX:
        _BOX.append(OneBox(Path(tempfile.mkdtemp(prefix="one-box-")), nodes))
        atexit.register(_BOX[0].stop)
        _BOX[0].start()
    _BOX[0].heal()
    return _BOX[0]


def begun(trial: Trial, cluster: OneBox, *words: str, longest: float = 6.0) -> tuple[subprocess.Popen, dict]:
    """Begin a run in its own job, and wait for a random time after its start."""
    variables = cluster.allocate()
    process = trial.begin(*(words or WORDS), "--out", str(trial.out), environment=variables)
    trial.until(cluster.steps, process)
    trial.later(longest)
    return process, variables


def whole(trial: Trial, cluster: OneBox, process: subprocess.Popen, variables: dict, codes=DONE | REFUSED) -> None:
    """Let the run end, resume an incomplete one, and check it against the plan and for anything left behind."""
    ended = trial.end(process, codes)
    finished = [record["cell"] for record in trial.records()]
    if ended.code not in DONE:
        cluster.heal()
        again = cluster.allocate()
        trial.resume(*([] if trial.begun else [*WORDS, "--out", str(trial.out)]), environment=again)
        variables = again
    if [record["cell"] for record in trial.records()][: len(finished)] != finished:
        trial.saw("finished cells lost", f"{len(finished)} before")
    trial.complete(trial.planned(), {})
    check(trial, cluster, variables)


def check(trial: Trial, cluster: OneBox, variables: dict) -> None:
    """Check that no step remains, all modes of a shape were on one node, and each record names its nodes and steps."""
    no_step(trial, cluster)
    nodes: dict[int, set] = {}
    for record in trial.records():
        nodes.setdefault(record["batch_size"], set()).add(record["node"])
        if not record["job_steps"] or record["node"] not in cluster.nodes:
            trial.saw("no place", f"{record['cell']}: node {record['node']}, steps {record['job_steps']}")
    for batch, names in nodes.items():
        if len(names) > 1:
            trial.saw("group on several nodes", f"batch {batch}: {names}")
    cluster.ask("scancel", "--user=root")


def no_step(trial: Trial, cluster: OneBox) -> None:
    """Note steps that still run.

    Where a daemon was killed and is back Slurm may list steps without a process until the job ends: those of a node
    that is back at once, and those that ended while the controller was away. `Trial.nothing_left` looks for processes.
    """
    deadline = time.monotonic() + PATIENCE
    while (left := cluster.steps()) and time.monotonic() < deadline and not cluster.came_back:
        time.sleep(0.2)
    if left and not cluster.came_back:
        trial.saw("step left", ", ".join(left))


def node(trial: Trial, what: str) -> None:
    """Check the run when a node dies, returns, or is drained, or when all nodes die."""
    with ONE:
        cluster = box()
        process, variables = begun(trial, cluster)
        name = trial.rng.choice(cluster.nodes)
        if what == "drained":
            cluster.ask("scontrol", "update", f"nodename={name}", "state=drain", "reason=campaign")
        for dead in cluster.nodes if what == "all die" else [] if what == "drained" else [name]:
            cluster.down(dead)
        if what == "dies and comes back":
            trial.later(8)
            cluster.up(name)
        whole(trial, cluster, process, variables)


def step(trial: Trial, how: str) -> None:
    """End a step, up to three times; check that other steps measure its cells."""
    with ONE:
        cluster = box()
        process, variables = begun(trial, cluster)
        for _ in range(trial.rng.randint(1, 3) if how == "cancelled" else 1):
            if steps := cluster.steps():
                signs = {"terminated": ["--signal=TERM"], "killed": ["--signal=KILL"]}.get(how, [])
                cluster.ask("scancel", *signs, trial.rng.choice(steps))
            trial.later(3)
        ended = trial.end(process, DONE | REFUSED)
        # What two nodes in a row lost is a record with its reason.
        planned = trial.planned()
        lost = {r["cell"] for r in trial.records() if r["status"] == "crash" and "It was lost on" in str(r["reason"])}
        if lost and how != "cancelled":
            trial.saw("given up", f"{len(lost)} cells after one fault")
        if ended.code in DONE and not lost:
            trial.complete(planned, {})
            check(trial, cluster, variables)
        elif ended.code in REFUSED:
            whole(trial, cluster, trial.begin("--dry-run", environment=variables), variables, codes=None)


def controller(trial: Trial, what: str) -> None:
    """Check that running steps continue while the controller is down for a while."""
    with ONE:
        cluster = box()
        process, variables = begun(trial, cluster)
        cluster.controller_down()
        trial.later(10)
        cluster.controller_up()
        cluster.wait(cluster.states)
        whole(trial, cluster, process, variables)


def runner(trial: Trial, name: str) -> None:
    """Stop or kill the runner at any instant, and resume the run in the same job."""
    with ONE:
        cluster = box()
        process, variables = begun(trial, cluster, longest=8)
        for sign in name.split():
            process.send_signal(getattr(signal, "SIG" + sign))
            time.sleep(trial.rng.uniform(0, 0.3))
        codes = {-getattr(signal, "SIG" + sign) for sign in name.split()}
        trial.end(process, DONE | INTERRUPTED | frozenset(codes))
        no_step(trial, cluster)
        begin = [] if trial.begun else [*WORDS, "--out", str(trial.out)]
        whole(trial, cluster, trial.begin(*(begin or going_on(trial)), environment=variables), variables)


def going_on(trial: Trial) -> tuple[str, ...]:
    return ("--resume", str(trial.out), "--python", trial.python, "--timeout", f"{trial.silence:g}")


def job(trial: Trial, what: str) -> None:
    """Cancel the job; or end one that submitted itself and requeue it."""
    with ONE:
        cluster = box()
        if what == "cancelled":
            process, variables = begun(trial, cluster)
            cluster.ask("scancel", variables["SLURM_JOB_ID"])
            whole(trial, cluster, process, variables, DONE | REFUSED | INTERRUPTED)
            return
        words = (*WORDS, "--nodes", "2", "--out", str(trial.out))
        trial.end(trial.begin(*words, environment=cluster.environment), frozenset({0}), left=False)
        number = (trial.out / "submitted.json").read_text().split('"')[3]
        kept = trial.out / "processes" / "reports.jsonl"  # a job without results is not requeued
        cluster.wait(lambda: kept.exists() if what == "time limit" else trial.begun and cluster.steps())
        trial.later(2)
        for command in {
            "requeued": [["scontrol", "requeue", number]],
            "time limit": [["scancel", "--batch", "--signal=USR1", number]],
        }[what]:
            cluster.ask(*command)
        cluster.start_again(number)
        cluster.wait(lambda: cluster.is_over(number), 3 * PATIENCE)
        if what == "time limit" and len(trial.lines()) < len(trial.planned()):
            trial.saw("not resumed", cluster.job(number).get("JobState", "no state"))
            return
        trial.last_code = None
        trial.complete(trial.planned(), {})
        check(trial, cluster, {})


def space(trial: Trial, size: str) -> None:
    """Fill the shared disk at some point; check that the run continues once there is room."""
    disk = trial.folder / "disk"
    with ONE:
        cluster = box()
        with mounted(disk, size):
            trial.out = disk / "run"
            variables = cluster.allocate()
            trial.run(*WORDS, "--out", str(trial.out), codes=None, environment=variables)
            subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
            begin = [] if trial.begun else [*WORDS, "--out", str(trial.out)]
            whole(trial, cluster, trial.begin(*(begin or going_on(trial)), environment=variables), variables)


def mode(trial: Trial, name: str) -> None:
    """Check that a mode that misbehaves costs its own cell alone, on a node as on one machine."""
    with ONE:
        cluster = box()
        variables = cluster.allocate()
        words = (*FAKE, "--batch", "1,2", "--launcher", "slurm", "--mode", f"eager,{name}", "--out", str(trial.out))
        trial.run(*words, environment=variables)
        trial.complete(trial.planned(), {name: MODES[name]})
        while cluster.steps():
            time.sleep(0.2)
        cluster.ask("scancel", "--user=root")


MODES = {"crash": ("crash",), "hang": ("timeout",), "orphan-ok": ("measured",), "escaped-ok": ("measured",)}
FAULTS = {
    "nodes": {
        **dict.fromkeys(("dies", "dies and comes back", "drained", "all die"), node),
        **dict.fromkeys(("cancelled", "killed", "terminated"), step),
        "controller restarts": controller,
        **dict.fromkeys(("KILL", "TERM", "INT", "TERM KILL"), runner),
        **{"job " + what: lambda trial, name: job(trial, name[4:]) for what in ("cancelled", "requeued", "time limit")},
        **dict.fromkeys(("16k", "48k", "96k", "160k"), space),
        **dict.fromkeys(MODES, mode),
    }
}
