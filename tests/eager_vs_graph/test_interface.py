"""`compare` from Python: the file form of a model, and what cannot be handed to another process."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.environment import FEW_PROCESSES, QUICKLY, bench, interpreter

sys.path.insert(0, str(ROOT))
import eager_vs_graph as evg
import runner
from eager_vs_graph import carried, interface
from measurement.refusals import DONE
from workloads import signature


class Owned:
    """A class that counts as one of torch's."""

    device = "cpu"

    def __call__(self, x):
        return x

    def forward(self, x):
        return x

    def buffers(self):
        return []

    def parameters(self):
        return [self]


class OnMeta(Owned):
    device = "meta"


Owned.__module__ = "torch.nn"


def test_the_file_shows_its_framework_and_what_it_loads(tmp_path):
    path = carried.write(tmp_path / "model", Owned(), 3, loss=abs)
    read = signature.read(path)
    assert (read.frameworks, read.settings["framework"], read.trains) == (("torch",), "torch", True)
    assert not signature.read(carried.write(tmp_path / "other", Owned(), 3)).trains


def test_what_torch_compile_returned_is_measured_uncompiled():
    compiled = Owned()
    compiled._orig_mod = Owned()
    assert carried._uncompiled(compiled) is compiled._orig_mod


def test_a_function_of_torch_becomes_a_module(tmp_path):
    text = carried.write(tmp_path / "a", abs, Owned(), framework=None).read_text()
    assert "class Function(torch.nn.Module)" in text and 'Function(carried()["model"])' in text
    assert "class Function(" not in carried.write(tmp_path / "b", Owned(), 3).read_text()


def test_classes_of_a_keras_model_s_own_layers_travel_with_it():
    of_keras = {"__module__": "keras.layers"}
    layers = [type("Dense", (), of_keras)(), Owned()]
    model = type("Model", (), {"_flatten_layers": lambda self: layers, **of_keras})()
    assert carried._keras_classes(model) == [("keras", {"Owned": Owned})]
    assert carried._keras_classes(Owned()) == []


def test_a_compiled_function_is_measured_uncompiled():
    compiled = lambda x: x  # noqa: E731
    compiled._torchdynamo_orig_callable = abs
    assert carried._uncompiled(compiled) is abs


def lacking(x):
    """A function that holds what no pickle takes."""
    return x, FRAME


FRAME = sys._getframe()
WRONG = {
    "no framework": (lambda x: x, 3, {}, "name it with framework="),
    "nothing": ([], {}, {}, "name it with framework="),
    "an unknown framework": (Owned(), 3, {"framework": "pytorch"}, "choose from torch, paddle, tensorflow, jax"),
    "a missing framework": (abs, 3, {"framework": "jax"}, "has no jax: install it there"),
    "a class": (Owned, Owned(), {}, "the class Owned: give an instance, such as Owned"),
    "a path": ("model.py", Owned(), {}, "The model is a str, which cannot be called: give a module"),
    "None": (None, Owned(), {}, "The model is a NoneType, which cannot be called"),
    "a list": (Owned(), [Owned(), Owned()], {}, "give a tuple of the call's arguments, or .* takes one list"),
    "a generator": (Owned(), (x for x in ()), {}, "give tensors, such as next"),
    "a generator among inputs": (Owned(), {"x": iter([3])}, {}, "give tensors, such as next"),
    "a model on meta": (OnMeta(), 3, {}, "load weights and make inputs on another device"),
    "inputs on meta": (Owned(), (OnMeta(),), {}, "load weights and make inputs on another device"),
    "a frame": (lambda x: lacking(FRAME), Owned(), {}, "cannot be pickled .* run eager-vs-graph on it"),
}


@pytest.mark.parametrize(("model", "inputs", "options", "sentence"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_one_sentence_with_the_way_out(tmp_path, model, inputs, options, sentence):
    with pytest.raises(evg.Problem, match=sentence) as refused:
        evg.compare(model, inputs, out=tmp_path, **options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "do not fit into memory.* run eager-vs-graph on it"),
        (OSError(28, "No space left on device"), "No space left on device.*out="),
    ],
)
def test_a_model_too_large_for_memory_or_disk_is_one_sentence(tmp_path, monkeypatch, error, sentence):
    def fail(*arguments):
        raise error

    if isinstance(error, OSError):
        monkeypatch.setattr(Path, "write_bytes", fail)
    else:
        monkeypatch.setattr("cloudpickle.dumps", lambda *arguments, **options: fail())
    with pytest.raises(evg.Problem, match=sentence):
        evg.compare(Owned(), 3, out=tmp_path)


def test_a_working_folder_that_takes_no_run_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("egvg-runs").write_text("")
    with pytest.raises(evg.Problem, match=r"egvg-runs cannot be written .*out="):
        evg.compare(Owned(), 3)


NO_FIGURES = json.dumps(
    {"figures": 2 * [{"latency_ms_median": None, "reason": "every value is NaN: give other inputs."}]}
)


def test_a_model_without_figures_is_its_record_s_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(interface, "_run", lambda words, quiet: NO_FIGURES)
    with pytest.raises(evg.Problem, match=r"^every value is NaN: give other inputs\.$"):
        evg.compare(Owned(), 3, out=tmp_path)


def test_options_become_words_of_the_command_line(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(interface, "_run", lambda words, quiet: given.extend(words) or NO_FIGURES)
    options = {"energy": True, "isolate": False, "seed": 0, "threads": [1, 2], "budget": None, "filter": "-x"}
    with pytest.raises(evg.Problem):
        evg.compare(Owned(), 3, modes=("eager", "inductor"), out=tmp_path, pass_="training", **options)
    arguments = vars(runner.parse(given)[1])
    expected = {"energy": True, "seed": "0", "threads": "1,2", "filter": "-x", "mode": "eager,inductor"}
    expected |= {"isolate": None, "budget": None, "pass": "training", "out": str(tmp_path / "run"), "json": True}
    assert {name: arguments[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"modes": "foo"}, "There is no mode 'foo'"),
        ({"device": "tpu"}, "There is no device 'tpu'"),
        ({"dtype": "int9"}, "There is no dtype 'int9'"),
        ({"profile": "fast"}, "There is no profile 'fast'"),
        ({"batch": 8}, "BATCH has no effect"),
    ],
)
def test_an_option_that_is_unknown_is_one_sentence(tmp_path, option, sentence):
    with pytest.raises(evg.Problem, match=sentence):
        evg.compare(Owned(), 3, out=tmp_path, quiet=True, **option)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(carried.Unfit, match="choose another folder with out="):
        carried.write(tmp_path / "file" / "model", Owned(), 3)


MAIN = """
import math, sys
sys.path.insert(0, {root!r})
from pathlib import Path
import torch
from eager_vs_graph import carried

def root(x):
    return math.sqrt(x)

class Net(torch.Module):
    def forward(self, x):
        return root(x)

carried.write(Path("carried"), Net(), 4)
"""
LOADS = """
import sys
sys.path.insert(0, "carried")
import model
net = model.model()
names = net.forward.__func__.__globals__
print(names["__name__"], sys.modules[names["__name__"]].math.sqrt(net.forward(model.inputs()) * 8))
"""


def test_compilers_find_the_globals_of_the_caller_s_main_by_their_module(tmp_path):
    """Dynamo looks for `math` of an inlined function in the module that its globals name: __main__ is the worker's."""
    (tmp_path / "torch.py").write_text("class Module:\n    __call__ = parameters = buffers = lambda self: []\n")
    (tmp_path / "main.py").write_text(MAIN.format(root=str(ROOT)))
    for words in (["main.py"], ["-c", LOADS]):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr
    assert done.stdout == "carried_caller 4.0\n"


SCRIPT = """
import json, sys
sys.path.insert(0, {root!r})
import torch
import torch.nn.functional as F
import eager_vs_graph as evg

def activated(x):
    return F.relu(x)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x):
        return activated(self.layer(x))

result = evg.compare(Net(), (torch.randn(4, 8),), modes="inductor", budget=0.3, threads=1, out={out!r})
try:
    evg.compare(Net(), (torch.randn(4, 9),), modes="inductor", out={other!r}, quiet=True)
    problem = None
except evg.Problem as error:
    problem = str(error)
frame = result.frame
print(json.dumps([list(frame["mode"]), list(frame.status), result.verdict, str(result.report()), problem]))
"""
# The same model as a file.
FILE = """
import torch
import torch.nn.functional as F

def activated(x):
    return F.relu(x)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x):
        return activated(self.layer(x))

def model():
    return Net()

def inputs():
    return (torch.randn(4, 8),)
"""
REFERENCE = 5  # among the columns after the cell
PROGRAM = ("cell", "status", "program", "flops", "bytes", "graphs", "parity_reference", "computes_in")


def programs(run: Path) -> list[list[str]]:
    """Return what each cell of a run executed."""
    with open(run / "results.csv", encoding="utf-8", newline="") as file:
        return [[row[name] for name in PROGRAM] for row in csv.DictReader(file)]


# The same model as __main__ hands it on, and as a file; both have a class or a function of their own.
FORMS = {
    "jax": """
import jax

def activated(x):
    return jax.nn.gelu(x)

def network(parameters, x):
    return activated(x @ parameters["up"])

def model():
    return network, {"up": jax.numpy.ones((8, 16))}

def inputs():
    return jax.numpy.ones((4, 8))
""",
    "tensorflow": """
import keras
import numpy as np

class Doubled(keras.layers.Layer):
    def call(self, x):
        return keras.ops.relu(x) * 2.0

def model():
    return keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16), Doubled()])

def inputs():
    return np.ones((4, 8), "float32")
""",
    "paddle": """
import paddle

class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.layer = paddle.nn.Linear(8, 16)

    def forward(self, x):
        return paddle.nn.functional.gelu(self.layer(x))

def model():
    return Net()

def inputs():
    return paddle.ones([4, 8])
""",
}
HANDS_ON = """
import sys
from pathlib import Path
sys.path.append({root!r})
from eager_vs_graph import carried
carried.write(Path("carried"), model(), inputs())
"""


@pytest.mark.slow
@pytest.mark.parametrize("framework", FORMS)
def test_a_model_of_main_runs_the_program_of_its_file_form(tmp_path, framework):
    packages = next((interpreter(framework).parent.parent / "lib").glob("python*/site-packages"))
    (tmp_path / "net.py").write_text(FORMS[framework])
    (tmp_path / "main.py").write_text(FORMS[framework] + HANDS_ON.format(root=str(ROOT)))
    environment = os.environ | {"PYTHONPATH": str(packages)}
    subprocess.run([sys.executable, "main.py"], cwd=tmp_path, env=environment, check=True)
    files = f"{tmp_path}/carried/model.py,{tmp_path}/net.py"
    done = bench(tmp_path / "run", "--framework", framework, "--workload", files, *QUICKLY)
    assert done.code == DONE, done.output
    forms = {"model.py": [], "net.py": []}
    for cell, *rest in programs(tmp_path / "run"):
        if framework == "tensorflow":  # Keras's pickle fixes float32, which the file's model() does not
            rest[REFERENCE] = rest[REFERENCE].partition(" in float")[0]
        forms[cell.split("/")[1]].append([cell.split("/")[2:], *rest])
    assert forms["model.py"] == forms["net.py"] and len(forms["net.py"]) >= 2


@pytest.mark.slow
def test_a_module_of_main_is_measured(tmp_path):
    """The caller has what the wheel depends on, in the runner's environment, and torch from its own."""
    torch = next((ROOT / ".venvs/torch-cpu/lib").glob("python*/site-packages"))
    file = tmp_path / "script.py"
    file.write_text(SCRIPT.format(root=str(ROOT), out=str(tmp_path / "a"), other=str(tmp_path / "b")))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([FEW_PROCESSES, str(torch)])}
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    modes, statuses, verdict, page, problem = json.loads(done.stdout.splitlines()[-1])
    assert modes == ["eager", "inductor"] and statuses == ["ok", "ok"] and "torch" in verdict
    assert Path(page).read_text().startswith("<!DOCTYPE html>")
    (tmp_path / "model.py").write_text(FILE)
    words = [*("--mode", "inductor", "--budget", "0.3", "--threads", "1"), "--out", str(tmp_path / "file")]
    command = [sys.executable, "-m", "eager_vs_graph", "model.py", *words]
    environment["PYTHONPATH"] += os.pathsep + str(ROOT)
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    carried_form, file_form = (programs(tmp_path / folder) for folder in ("a/run", "file"))
    assert carried_form == file_form and len(file_form) == 2
    assert "does not run" in problem
