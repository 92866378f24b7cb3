"""Users' models before a run: what their text shows, and the one eager call that each of them makes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import ClassVar

import pytest

import runner
from execution import early_checks
from execution.campaign import Campaign, Request
from launchers import local
from measurement.protocol import CHECK, Failed
from measurement.refusals import UsageError
from plan import plan, sweep
from records.runs import Run
from reports.terminal import PlainConsole
from workloads import signature

NET = """
import torch

def model():
    raise SystemExit

def inputs(batch_size, seq_len):
    return None
"""


@pytest.fixture
def net(tmp_path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(NET)
    return path


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("def get_model(): pass\ndef inputs(): pass", ("model",)),
        ("class Net:\n    def model(self): pass\n    inputs = 1", ("model", "inputs")),
        ("def outer():\n    def model(): pass\n    inputs = model", ("model", "inputs")),
        ("from net import Net as model\ninputs = lambda batch_size=1: batch_size", ()),
        ("if True:\n    model, inputs = print, print", ()),
        ("try:\n    import model\nexcept ImportError:\n    def model(): pass\ninputs: object = print", ()),
        ("def fill():\n    global model, inputs", ()),
        ("from net import *", ()),
        ("globals().update(model=print, inputs=print)", ()),
    ],
)
def test_what_a_file_cannot_have_is_read_off_its_text(tmp_path, text, missing):
    path = tmp_path / "net.py"
    path.write_text(f"import torch\n{text}\n")
    assert signature.read(path).missing == missing


def test_every_file_that_cannot_be_a_model_is_named(tmp_path, net, capsys):
    (tmp_path / "one.py").write_text("import torch\ndef get_model(): pass\ndef inputs(): pass")
    (tmp_path / "two.py").write_text("import torch\nx = (")
    files = ",".join(str(tmp_path / name) for name in ("one.py", "net.py", "two.py"))
    for words in ([], ["--dry-run"]):
        assert runner.main(["bench", "--workload", files, *words]) == 2
        said = capsys.readouterr().err
        assert "one.py has no model(): `make new NAME=my_model` writes one. two.py is not valid Python, line 2" in said


def test_a_model_is_checked_once_in_eager_mode_and_the_suite_s_workloads_are_not(net):
    flags = {
        "workload": f"{net},mlp",
        "framework": "torch,jax",
        "mode": "inductor",
        "seq": "64,8",
        "dtype": "fp32,bf16",
    }
    planned = plan.plan(sweep.resolve({**flags, "batch": "8,2", "mode": "graph"}))
    groups = [group for bundle in planned.bundles for group in bundle.groups]
    ((model, settings),) = early_checks.settings_of(groups).items()
    assert model == ("torch", "net.py") and len(settings) == 2  # a process for each dtype, if the first one fails
    cells = [cell for group in settings[0] for cell in group.cells]
    assert {cell.mode for cell in cells} == {"eager"}
    assert [cell.parameter("batch_size") for cell in cells] == [2, 2, 8, 8]


class Told:
    """A launcher whose workers say for each of its jobs what they were told to say; `jobs` are those."""

    interpreters: ClassVar = {("torch", "cpu"): Path("python")}

    def __init__(self, *answers):
        self.answers, self.jobs = list(answers), []

    def start_of(self, cell, folder, cache):
        return local.Launch(Path("python"), folder, {}, [], 900.0)

    def job(self, kind, groups, folder):
        assert kind == CHECK
        return [group.cells[0] for group in groups]

    def messages(self, start, job):
        self.jobs.append(job)
        answer = self.answers.pop(0)
        for cell, reason in zip(job, answer if isinstance(answer, list) else [], strict=False):
            yield Failed(cell.id, "error", reason).to_json()
        if isinstance(answer, Exception):
            start.log.write_text("before\nTerminated by hand\n")
            raise answer

    def __call__(self, folder):
        self.run = Run(folder)
        return self


def checked(names: str, told: Told, **flags: str) -> str:
    """Check the models among some workloads in torch; what was printed."""
    planned = plan.plan(sweep.resolve({"framework": "torch", "mode": "eager", **flags, "workload": names}))
    console = PlainConsole(width=500, file=io.StringIO())
    early_checks.check([group for bundle in planned.bundles for group in bundle.groups], told, console)
    return console.file.getvalue()


def test_models_that_do_not_run_end_the_command_and_beside_others_they_do_not(net):
    other = net.with_name("other.py")
    other.write_text(NET)
    crash = local.WorkerFailure("crash", "The worker was killed by SIGTERM.")
    with pytest.raises(UsageError) as refused:
        checked(f"{net},{other}", Told(["KeyError: 'x' (net.py:3)"], crash))
    assert str(refused.value) == (
        "net.py in PyTorch does not run: KeyError: 'x' (net.py:3); other.py in PyTorch does not run: "
        "The worker was killed by SIGTERM. Its last line: Terminated by hand"
    )
    for words in (f"{net},{other}", f"{net},mlp"):
        said = checked(words, Told(["KeyError: 'x' (net.py:3)"], []))
        assert "net.py in PyTorch does not run and is skipped: KeyError: 'x' (net.py:3)" in said
        assert ("other.py in PyTorch: an eager call succeeded" in said) == ("other" in words)


def test_a_model_that_runs_in_one_shape_or_setting_runs(net):
    told = Told(["batch 1 is too small"])
    assert "an eager call succeeded" in checked(str(net), told, batch="1,2") and len(told.jobs) == 1
    told = Told(["no bf16"], [])
    assert "an eager call succeeded" in checked(str(net), told, dtype="bf16,fp32") and len(told.jobs) == 2
    told = Told()
    told.interpreters = {}  # of a dry run
    assert "net.py in PyTorch: not checked on CPU: its environment is not installed yet." in checked(str(net), told)


@pytest.mark.parametrize("reason", [[], ["KeyError: 'x' (net.py:3)"]])
def test_a_model_is_checked_where_there_is_an_environment(net, reason):
    """A dry run on both devices before the GPU's environment is there, which may run the model all the same."""
    told = Told(reason)
    said = checked(str(net), told, device="cpu,gpu:0")
    assert len(told.jobs) == 1 and "not checked on GPU: its environment is not installed yet." in said
    assert ("an eager call succeeded" in said) == (reason == []) and ("does not run" in said) == (reason != [])


def test_a_resumed_run_checks_no_model(net, monkeypatch):
    calls = []
    monkeypatch.setattr(early_checks, "check", lambda *parts: calls.append(parts))
    begun = Campaign.start(Request({"workload": str(net)}), PlainConsole(file=io.StringIO()))
    begun.check({})
    assert len(calls) == 1
    begun.resumed = Run(net.parent)
    begun.check({})
    assert len(calls) == 1
