"""What is said of other programs before a run, and when it waits for them."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys

import pytest
from rich.console import Console

from execution import neighbours
from execution.neighbours import Busy

BUSY, QUIET = Busy(1.7, 2, ("python (process 16000)",)), Busy(0.1, 2)


def said(*looks: Busy, terminal: bool = True, force: bool = False) -> list[str]:
    """Return the lines that are printed where the machine looks so, one look after the other."""
    out, left = Console(file=io.StringIO(), width=200, force_terminal=terminal, color_system=None), list(looks)
    neighbours.await_quiet(out, False, force, lambda seconds, gpu: left.pop(0) if len(left) > 1 else left[0])
    return out.file.getvalue().splitlines()


def test_a_quiet_machine_or_one_that_is_busy_for_a_moment_is_not_mentioned():
    assert said(QUIET) == said(BUSY, QUIET) == []


@pytest.mark.parametrize(
    ("after", "ending"), [((BUSY, QUIET), "Quiet now."), ((), "Measuring anyway.")], ids=["quiet", "busy"]
)
def test_a_terminal_waits_a_minute_at_most(after, ending):
    first, last = said(BUSY, BUSY, *after)
    assert first == (
        "Other programs use 1.7 of 2 cores now: python (process 16000). Measurements on a busy machine are unreliable. "
        "Waiting up to 60 s for them to stop; FORCE=1 measures anyway."
    )
    assert last == ending


@pytest.mark.parametrize("how", [{"terminal": False}, {"force": True}])
def test_a_log_and_force_go_on_at_once(how):
    (line,) = said(BUSY, **how)
    assert line.endswith("unreliable. Measuring anyway.")


@pytest.mark.parametrize(
    ("busy", "disturbs"),
    [(Busy(0.25, 2), False), (Busy(0.35, 2), True), (Busy(1.0, 64), False), (Busy(0.0, 64, (), 30), True)],
)
def test_a_large_machine_bears_more_and_a_gpu_at_work_none(busy, disturbs):
    assert busy.disturbs is disturbs
    assert ("30 % of the GPU" in busy.sentence()) == (busy.gpu_percent > 0)


@pytest.mark.parametrize("own", [False, True])
def test_a_process_that_computes_counts_unless_this_one_started_it(own, tmp_path, monkeypatch):
    """Its parent ends at once, so that it is nobody's child here, or lives on. Other tests may compute more."""
    monkeypatch.setattr(neighbours, "NAMED", 100)
    spins = f"import os\nopen({str(tmp_path / 'number')!r}, 'w').write(str(os.getpid()))\nwhile True: pass"
    starts = f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {spins!r}])\n"
    with subprocess.Popen([sys.executable, "-c", starts + "child.wait()" * own]):
        number = None
        while not number:
            with contextlib.suppress(FileNotFoundError):
                number = (tmp_path / "number").read_text()
        try:
            busy = neighbours.look(1.5, gpu=False)
        finally:
            os.kill(int(number), signal.SIGKILL)
    assert any(f"(process {number})" in name for name in busy.names) is not own
    assert own or busy.cores > 0.1
    assert not any(f"(process {os.getpid()})" in name for name in busy.names)
