"""Programs that a framework starts in a worker, and the wait for them; and phases of a start, which add up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from types import SimpleNamespace

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


MODULES = {
    "clock": "now = 0.0",
    "library": "import clock; clock.now += 2.0; import part",
    "part": "import clock; clock.now += 0.5",
    "late": "import clock; clock.now += 4.0; raise ImportError",
    "own": "import clock; clock.now += 8.0",
    "main": """
import clock, importlib, time
from worker.start import Phases
from worker.started import Imports
phases, time.monotonic = Phases(Imports()), lambda: clock.now
with phases("build"):
    clock.now += 1.0
    import library, library, part
    try:
        importlib.import_module("late")
    except ImportError:
        pass
with phases("suite"):
    import own
with phases("build"):
    pass
print(phases.seconds)
""",
}


def test_imports_within_a_phase_are_no_part_of_it(tmp_path):
    for name, code in MODULES.items():
        (tmp_path / f"{name}.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    command = [sys.executable, str(tmp_path / "main.py")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "{'build': 1.0, 'imports': 6.5, 'suite': 8.0}\n"


def test_blocks_of_one_phase_add_up():
    phases = Phases(SimpleNamespace(seconds=0.0))
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
