"""The examples: model files that are planned, a workflow as in the docs, and a notebook that runs to its end."""

from __future__ import annotations

import os
from pathlib import Path

import nbclient
import nbformat
import pytest
from conftest import ROOT
from doubles.environment import FEW_PROCESSES

import runner
from workloads import signature

EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_is_a_model_s_file_of_its_framework(path):
    read = signature.read(path)
    assert not read.missing
    assert read.frameworks == ({"keras": "tensorflow"}.get(prefix := path.stem.partition("_")[0], prefix),)
    assert runner.parse(["bench", "--workload", str(path), "--batch", "1,8"])[1].batch == "1,8"


def test_the_workflow_is_the_one_of_the_docs():
    assert (EXAMPLES / "pull-request.yml").read_text() in (ROOT / "docs/ci.md").read_text()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    torch = next((ROOT / ".venvs/torch-cpu/lib").glob("python*/site-packages"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([FEW_PROCESSES, str(torch), str(ROOT)]))
    notebook = nbformat.read(EXAMPLES / "compare.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=1000, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert "torch" in printed[0]["text"]
    assert "inductor" in printed[1]["data"]["text/html"]
    assert printed[2]["data"]["text/html"].startswith("<iframe")
    assert list(Path(tmp_path, "egvg-runs").glob("run-*/run/results.csv"))
