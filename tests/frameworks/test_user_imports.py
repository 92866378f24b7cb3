"""User files share no process, and import their own modules before the suite's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from execution.alternation import paired
from frameworks.user_imports import SUITE
from plan import plan, sweep

pytestmark = pytest.mark.slow

NET = """from {module} import {name}


def model():
    return {name}


def inputs(batch_size=8):
    return None
"""
LATE = "def model():\n    return late\n\n\ndef late():\n    import {module}\n\n    return {module}.answer()\n"


def found(file: Path) -> dict:
    """What a process that is set up as a worker finds in a user's file."""
    words = [sys.executable, ROOT / "tests/checks/user_imports.py", file]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def two_files(tmp_path: Path) -> list[str]:
    """Two folders, each with a `model.py` of torch and a module called `net` beside it."""
    for version in ("v1", "v2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "model.py").write_text("import torch\n" + NET.format(module="net", name="answer"))
        (tmp_path / version / "net.py").write_text(f"def answer():\n    return {version!r}\n")
    return [str(tmp_path / version / "model.py") for version in ("v1", "v2")]


def test_each_file_has_processes_of_its_own(tmp_path):
    given = {"workload": [*two_files(tmp_path), "mlp"], "framework": "torch", "mode": "eager", "batch": "1,8"}
    bundles = plan.plan(sweep.resolve(given)).bundles
    assert [[cell.workload for group in bundle.groups for cell in group.cells] for bundle in bundles] == [
        ["v1.model.py"] * 2,
        ["v2.model.py"] * 2,
        ["mlp"] * 2,
    ]


def test_both_sides_of_ab_measure_every_file(tmp_path):
    given = {"workload": two_files(tmp_path), "framework": "torch", "mode": "eager"}
    planned = plan.plan(sweep.resolve(given))
    assert paired([planned, planned], isolate=False) == [[bundle, bundle] for bundle in planned.bundles]


@pytest.mark.parametrize("module", [*SUITE, "net"])
@pytest.mark.parametrize("text", [NET, LATE], ids=["at once", "in a call"])
def test_a_module_of_the_user_s_is_found_before_one_of_the_suite_s(tmp_path, module, text):
    (tmp_path / "model.py").write_text(text.format(module=module, name="answer"))
    (tmp_path / f"{module}.py").write_text("def answer():\n    return 'the user'\n")
    told = found(tmp_path / "model.py")
    assert told["user"] == "the user" and told["named"] and told["first"] == str(tmp_path)
    assert told["suite"] == ["numpy", "mlp", "measurement.statistics"]


def test_a_package_of_the_user_s_is_found_with_its_modules(tmp_path):
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "spec.py").write_text("def answer():\n    return 'the user'\n")
    (tmp_path / "workloads" / "__init__.py").write_text("")
    (tmp_path / "model.py").write_text(NET.format(module="workloads.spec", name="answer"))
    assert found(tmp_path / "model.py")["user"] == "the user"
