"""`compare` from Python: the file form of a model, and what cannot be handed to another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT))
from eager_vs_graph import carried
from workloads import signature


class Owned:
    """A class that counts as one of torch's."""


Owned.__module__ = "torch.nn"


def test_the_file_shows_its_framework_and_what_it_loads(tmp_path):
    path = carried.write(tmp_path / "model", Owned(), 3, loss=abs)
    read = signature.read(path)
    assert (read.frameworks, read.settings["framework"], read.trains) == (("torch",), "torch", True)
    assert not signature.read(carried.write(tmp_path / "other", Owned(), 3)).trains


def test_what_torch_compile_returned_is_measured_uncompiled(tmp_path):
    compiled = Owned()
    compiled._orig_mod = Owned()
    assert carried._uncompiled(compiled) is compiled._orig_mod


@pytest.mark.parametrize(
    ("model", "inputs", "sentence"),
    [
        (lambda x: x, 3, "framework is unknown"),
        ([], {}, "framework is unknown"),
        ((number for number in range(3)), Owned(), "cannot be pickled"),
        (sys._getframe(), Owned(), "cannot be pickled"),
    ],
)
def test_what_does_not_fit_is_one_sentence_with_the_way_out(tmp_path, model, inputs, sentence):
    with pytest.raises(carried.Unfit, match=sentence) as refused:
        carried.write(tmp_path / "model", model, inputs)
    assert any(way in str(refused.value) for way in ("framework=", "eager-vs-graph")) and "\n" not in str(refused.value)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(carried.Unfit, match="choose another folder with out="):
        carried.write(tmp_path / "file" / "model", Owned(), 3)


SCRIPT = """
import json, sys
sys.path.insert(0, {root!r})
import torch
import eager_vs_graph as evg

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x).relu()

result = evg.compare(Net(), (torch.randn(4, 8),), modes="inductor", budget=0.3, threads=1, out={out!r})
try:
    evg.compare(Net(), (torch.randn(4, 9),), modes="inductor", out={other!r}, quiet=True)
    problem = None
except evg.Problem as error:
    problem = str(error)
frame = result.frame
print(json.dumps([list(frame["mode"]), list(frame.status), result.verdict, str(result.report()), problem]))
"""


@pytest.mark.slow
def test_a_module_of_main_is_measured(tmp_path):
    """The caller has what the wheel depends on, in the runner's environment, and torch from its own."""
    torch = next((ROOT / ".venvs/torch-cpu/lib").glob("python*/site-packages"))
    file = tmp_path / "script.py"
    file.write_text(SCRIPT.format(root=str(ROOT), out=str(tmp_path / "a"), other=str(tmp_path / "b")))
    environment = os.environ | {"PYTHONPATH": str(torch)}
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    modes, statuses, verdict, page, problem = json.loads(done.stdout.splitlines()[-1])
    assert modes == ["eager", "inductor"] and statuses == ["ok", "ok"] and "torch" in verdict
    assert Path(page).read_text().startswith("<!DOCTYPE html>")
    assert "does not run" in problem
