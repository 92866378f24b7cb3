"""A short fault campaign, and that the campaign sees what it is there to see.

`python studies/faults` is the long one. Which faults are tried and at which instants is the seed's; how long
anything may take is generous, so that a busy machine breaks nothing.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from studies.faults import campaign, tampering
from studies.faults.trial import FAKE, Trial

pytestmark = pytest.mark.slow

SEED = 20
COUNT = 6  # faults; each is a run, a resume, and for some a report: about twelve runs


@pytest.fixture
def trial(suite, tmp_path) -> Trial:
    return Trial(suite, tmp_path / "trial", random.Random(SEED))


def kinds(trial: Trial) -> set[str]:
    return {kind for kind, _ in trial.violations}


@pytest.mark.timeout(900)
def test_no_fault_breaks_a_promise(suite, tmp_path):
    faults = campaign.chosen(campaign.SHORT, COUNT, SEED)
    findings = campaign.run(faults, suite, tmp_path, SEED, jobs=2, told=lambda finding: None)
    assert len(findings) == COUNT
    assert not [(f.fault, f.violations) for f in findings if f.violations], campaign.table(findings)


def test_the_same_seed_chooses_the_same_faults():
    groups = [group for group in campaign.GROUPS if group not in (*campaign.REAL, campaign.CLUSTER)]
    count = sum(len(campaign.GROUPS[name]) for name in groups) + 90
    first, same, other = (campaign.chosen(groups, count, seed) for seed in (1, 1, 2))
    assert first == same != other
    assert {(fault.group, fault.name) for fault in first} >= {(g, name) for g in groups for name in campaign.GROUPS[g]}


def test_every_mischief_is_expected_to_end_somehow():
    statuses = {status for ends in campaign.GROUPS["modes"] for status in campaign.misbehaving.EXPECTED[ends]}
    assert statuses == {"measured", "crash", "error", "timeout", "oom", "unsupported"}


def finished(trial: Trial) -> list[str]:
    trial.run(*FAKE, "--mode", "eager,graph,raises", "--batch", "1", "--out", str(trial.out))
    return trial.planned()


def test_a_run_is_seen_to_be_whole_or_not(trial):
    """Lost, doubled, foreign and misclassified cells, each planted into a run that is whole."""
    planned = finished(trial)
    trial.complete(planned, {"raises": ("error",)})
    assert not trial.violations
    trial.complete(planned, {})
    assert kinds(trial) == {"others hit"}
    trial.violations.clear()
    trial.complete(planned, {"raises": ("measured",)})
    assert kinds(trial) == {"misclassified"}
    for edit, kind in (
        (lambda data: data.partition(b"\n")[2], "lost"),
        (lambda data: data + data.splitlines(keepends=True)[0], "doubled"),
        (lambda data: tampering.foreign(trial, data), "foreign cell"),
        (lambda data: data[1:], "lost"),
    ):
        trial.violations.clear()
        path = trial.out / "records.jsonl"
        whole = path.read_bytes()
        path.write_bytes(edit(whole))
        trial.complete(planned, {"raises": ("error",)})
        assert kinds(trial) == {kind}
        path.write_bytes(whole)


def test_a_command_is_held_to_its_end(trial):
    """A traceback, an exit code, silence, a wall of text, a process that is left, and one that never ends.

    Those that leave a process are looked at for half a second, not for the time that a busy machine may need.
    """

    def ended(script: str, code: int, left: bool = False, **patience) -> set[str]:
        trial.violations.clear()
        trial.nothing_left = partial(Trial.nothing_left, trial, *([0.5] if left else []))
        trial.end(trial.begin(shell_script=f"{script}; exit {code}"), campaign.system.ANYHOW, **patience)
        return kinds(trial)

    assert ended("echo fine", 0) == set()
    assert ended("echo 'Traceback (most recent call last):'", 0) == {"traceback"}
    assert ended("echo fine", 77) == {"exit code"}
    assert ended("true", 2) == {"no sentence"}
    assert ended("head -c 5000 /dev/zero | tr '\\0' x", 2) == {"no sentence"}
    # Two seconds, in which a busy machine has started the program that is left.
    assert ended("sleep 1000", 0, left=True, patience=2) == {"does not end", "process left", "exit code"}
    assert ended("(setsid sleep 1000 &)", 0, left=True) == {"process left"}
    while trial.processes():  # one that was killed is gone once the system has taken it
        time.sleep(0.05)


@pytest.mark.parametrize(("waits", "each", "ends"), [(0, 0, True), (1, 0, False), (5, 2, True), (99, 2, False)])
def test_what_gets_on_is_waited_for(trial, monkeypatch, waits, each, ends):
    """Ten times over: `waits` are those after which it ends, `each` the processor's seconds that it uses in one."""
    left, used = [waits], itertools.count(0, each or 1)

    class Process:
        def wait(self, patience):
            left[0] -= 1
            if left[0] >= 0:
                raise subprocess.TimeoutExpired("it", patience)

    monkeypatch.setattr(trial, "processor_seconds", lambda: next(used) if each else 0.0)
    assert trial.ends(Process(), 1.0) is ends


def test_a_damaged_array_compares_from_a_whole_one(tmp_path, trial):
    import numpy as np

    file = tmp_path / "inputs.npz"
    np.savez(file, a=np.arange(9))
    whole, data = tampering.arrays(file), file.read_bytes()
    np.savez(file, a=np.arange(9))
    assert tampering.arrays(file) == whole
    for how in ("cut", "empty", "zeros", "deleted", "a folder"):
        tampering.damaged(trial, file, how)
        assert tampering.arrays(file) is None
        file.rmdir() if file.is_dir() else file.unlink(missing_ok=True)
        file.write_bytes(data)


def test_the_command_prints_a_table(tmp_path, root):
    """One fault of one group, through the campaign's own command line."""
    command = [
        sys.executable,
        "studies/faults",
        "--group",
        "leftovers",
        "--count",
        "1",
        "--out",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| leftovers | 1 | 0 |" in done.stdout


def test_a_violation_keeps_its_folder(suite, tmp_path, monkeypatch):
    def broken(trial: Trial, name: str) -> None:
        Path(trial.folder / "proof").write_text(json.dumps(name))
        if name == "seen":
            trial.saw("lost", "a cell")
        if name == "thrown":
            raise KeyError("cells")
        if name == "no root":
            raise PermissionError("mounting takes root")

    names = ("held", "seen", "thrown", "no root", "no UTF-8: \udcff")
    monkeypatch.setitem(campaign.GROUPS, "broken", dict.fromkeys(names, broken))
    findings = campaign.run(campaign.chosen(["broken"], 5, 0), suite, tmp_path, 0, 1, lambda finding: None)
    seen = {finding.fault.name: ([kind for kind, _ in finding.violations], finding.skipped) for finding in findings}
    assert seen == {
        "held": ([], ""),
        "seen": (["lost"], ""),
        "thrown": (["could not be checked"], ""),
        "no root": ([], "mounting takes root"),
        "no UTF-8: \udcff": ([], ""),
    }
    assert len(list(tmp_path.glob("0*/proof"))) == 2
    assert "| broken | 4 | 2 | could not be checked 1, lost 1 |" in campaign.table(findings)
