"""Programs that a framework starts in a worker, and the wait for them; and phases of a start, which add up."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from conftest import ROOT

from worker.start import Phases, living_children

CODE = """
import subprocess, sys, threading
from worker.started import Programs
seen = Programs()
for _ in range(2):
    subprocess.run([sys.executable, "-c", "import time; time.sleep(0.1)"], check=True)
subprocess.check_output("true", shell=True)
before = seen.seconds
beside = threading.Thread(target=subprocess.run, args=(["sleep", "1"],))
beside.start(); beside.join()
print(seen.summary().replace(sys.executable.rpartition("/")[2], "PYTHON"), seen.seconds == before >= 0.2)
"""


def test_programs_are_named_and_only_the_main_thread_s_wait_counts():
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split(", ") == ["PYTHON 2", "true 1", "sleep 1 True\n"]


def test_blocks_of_one_phase_add_up():
    phases = Phases()
    with phases("build"):
        time.sleep(0.02)
    with phases("build"), pytest.raises(ValueError), phases("load"):
        raise ValueError
    phases.add("first_run", 1.5)
    assert phases.seconds["build"] >= 0.02 and phases.seconds["first_run"] == 1.5
    assert set(phases.seconds) == {"build", "load", "first_run"}


def test_the_peak_of_a_living_child_is_seen():
    code = "data = bytearray(60_000_000); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout and child.stdout.readline() == b"\n"
        assert living_children() > 60_000_000
        child.communicate(b"\n")
