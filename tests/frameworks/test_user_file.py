"""A user's file at the boundary: its command line, its imports, and the way out of errors of its first call."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from doubles.environment import run_in

from frameworks import user_file
from frameworks.user_file import Fault, UserFile, disagreement, naming_inputs, text_of

PARSES = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--width', {how})\n"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return what writes a file of the user's and runs it, as a worker with arguments of its own."""
    monkeypatch.setattr(sys, "argv", ["worker", "job.json", "7"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(user_file, "put_first", lambda folder: sys.path.insert(0, folder))  # it hides the suite

    def run(text: str) -> UserFile:
        path = tmp_path / f"net{len(list(tmp_path.glob('*.py')))}.py"
        path.write_text(text)
        return UserFile(str(path))

    return run


def test_a_file_sees_the_command_line_of_a_script(written):
    file = written("import sys\nseen = [*sys.argv]\ndef model():\n    return seen, lambda: sys.argv\n")
    seen, forward = file.call("model")
    assert seen == forward() == [file.path]


def test_arguments_with_defaults_are_parsed(written):
    file = written(
        PARSES.format(how="default='8'") + "width = parser.parse_args().width\ndef model():\n    return width"
    )
    assert file.call("model") == "8"


@pytest.mark.parametrize("begin", ["", "def model():\n    "], ids=["at once", "in a call"])
def test_an_argument_that_is_required_has_a_way_out(written, begin):
    with pytest.raises(Fault) as raised:
        written(PARSES.format(how="required=True") + f"{begin}parser.parse_args()\n").call("model")
    assert "called exit(2): files run without command-line arguments: parse them in `if __name__" in str(raised.value)


def test_an_exit_of_another_kind_is_not_blamed_on_arguments(written):
    with pytest.raises(Fault, match=r"^net0\.py called exit\(2\)\.$"):
        written("import sys\nsys.exit(2)\n")


def test_streams_that_a_file_closes_are_open_again(written, monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.StringIO())
    written("import sys\nsys.stdout.close()\nsys.stderr = None\n")
    assert sys.stdout.writable() and sys.stderr.writable()


@pytest.mark.parametrize("begin", ["", "def model():\n    "], ids=["at once", "in a call"])
def test_a_relative_import_has_a_way_out(written, begin):
    with pytest.raises(Fault) as raised:
        written(f"{begin}from .layers import Block\n").call("model")
    place = f"(net0.py:{1 + bool(begin)})"
    assert f"{place}: import by absolute name; the file's folder is on sys.path." in str(raised.value)


def test_another_import_error_stays_as_it_is(written):
    with pytest.raises(ModuleNotFoundError):
        written("import absent_here\n")


# A module of a framework that has no `parameters` but these.
MODULE = """
import numpy as np

class Net:
    def __init__(self):
        self._parameters = {{"weight": np.ones(2, "{own}")}}
        {attribute}

    def parameters(self):
        return iter(self._parameters.values())

def model():
    return Net()
"""
DIFFERS = "mat1 and mat2 must have the same dtype, but got Double and Float"
ATTRIBUTE = "self.parts = [{'mean': np.ones(2, 'float64')}]"


@pytest.mark.parametrize(
    ("own", "attribute", "error", "such"),
    [
        ("float64", ATTRIBUTE, DIFFERS, "no tensors held as plain attributes, such as mean (float64): register"),
        ("float32", ATTRIBUTE, DIFFERS, "no tensors held as plain attributes, such as mean (float64): register"),
        ("float64", "", DIFFERS, "no tensor that forward makes"),
        ("float32", "", DIFFERS, None),  # the user's own mistake
        ("float64", ATTRIBUTE, "mat1 and mat2 shapes cannot be multiplied (2x8 and 16x4)", None),
        ("float64", ATTRIBUTE, "Float is not Float32", None),
    ],
)
def test_tensors_that_the_cast_leaves_behind_are_named(written, own, attribute, error, such):
    made = written(MODULE.format(own=own, attribute=attribute)).call("model")
    made._parameters["weight"] = made._parameters["weight"].astype("float32")  # as the suite does
    with pytest.raises(RuntimeError) as raised, naming_inputs(lambda: "argument 1 of shape (2,)"):
        raise RuntimeError(error)
    said = disagreement(raised.value)
    if such is None:
        assert said.endswith("change inputs() or model() so that they agree.")
    else:
        assert f"to DTYPE, here float32, but {such}" in said


@pytest.mark.parametrize(
    ("given", "error", "named"),
    [
        ("x of shape (2,)", "forward() got an unexpected keyword argument 'x'", True),
        ("x of shape (2,)", "missing a required argument: 'batch'", True),
        ("x of shape (2,)", "The first argument to `Layer.call` must always be passed.", True),
        ("argument 1 of shape (2,), argument 2 of shape (2,)", "forward() takes 2 positional arguments but 3", True),
        ("argument 1 of shape (2,)", "missing 1 required positional argument: 'y'", False),
        ("x of shape (2,)", "shapes cannot be multiplied", False),
    ],
)
def test_arguments_that_do_not_fit_name_the_way_to_pass_one(given, error, named):
    with pytest.raises(TypeError) as raised, naming_inputs(lambda: given):
        raise TypeError(error)
    assert ("`return (inputs,)`" in disagreement(raised.value)) == named


# What a mode's capture says of a user's file after a call, by framework.
CAPTURED = """
import tempfile
from pathlib import Path
import workloads
from frameworks.{framework}.adapter import Adapter
from measurement.cells import Cell

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "net.py")
    path.write_text({text!r})
    workloads.add({{path.name: str(path)}})
    workload = workloads.get(path.name, "inference")
    cell = Cell({framework!r}, path.name, "own", "inference", "cpu", "fp32", 1, (), {mode!r})
    adapter = Adapter()
    adapter.configure(cell)
    step = adapter.prepare(workload, cell, workload.seeded_weights({{}}, 0), [workload.inputs({{}}, 1)])
    step()
    said = step.capture().detail
    assert {words!r} in said and "not called yet" not in said, said
"""
TORCH = """
import torch
{switch}

@torch.library.custom_op("field::scale", mutates_args=())
def scale(x: torch.Tensor) -> torch.Tensor:
    return x * 2

class Net(torch.nn.Linear):
    def forward(self, x):
        return scale(super().forward(x))

def model():
    return Net(8, 8)

def inputs():
    return torch.ones(2, 8)
"""
TENSORFLOW = """
import tensorflow as tf
tf.config.run_functions_eagerly(True)

def model():
    return tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(8)])

def inputs():
    return tf.ones((2, 8))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "mode", "text", "words"),
    [
        (
            "torch",
            "dynamo",
            TORCH.format(switch="torch.compiler.set_stance('force_eager')"),
            'compiled nothing: torch.compiler.set_stance("force_eager") is on, so no graph runs: remove it',
        ),
        (
            "torch",
            "dynamo",
            TORCH.format(switch="import torch._dynamo\ntorch._dynamo.config.suppress_errors = True"),
            "There was no fake impl registered for",
        ),
        (
            "tensorflow",
            "function",
            TENSORFLOW,
            "tf.config.run_functions_eagerly is on, so no graph runs: turn it off",
        ),
    ],
    ids=["stance", "suppressed errors", "functions run eagerly"],
)
def test_a_switch_of_the_file_that_leaves_no_graph_is_named(framework, mode, text, words):
    run_in(framework, CAPTURED.format(framework=framework, mode=mode, text=text, words=words))


@pytest.mark.parametrize(
    ("error", "arrays", "named"),
    [
        (AttributeError("'Tensor' object has no attribute 'astype'"), True, True),
        (TypeError("expected np.ndarray (got Tensor)"), True, True),
        (AttributeError("'Tensor' object has no attribute 'astype'"), False, False),
        (AttributeError("'Net' object has no attribute 'embed_tensor'"), True, False),
        (TypeError("forward() got an unexpected keyword argument 'tensor'"), True, False),
        (RuntimeError("The size of tensor a must match the size of tensor b"), True, False),
    ],
)
def test_a_model_of_arrays_is_asked_to_take_tensors(error, arrays, named):
    with pytest.raises(type(error)) as raised, naming_inputs(lambda: "x of shape (2,)", arrays):
        raise error
    assert disagreement(raised.value).endswith("let the model take tensors.") == named


@pytest.mark.parametrize(
    ("file", "kept"), [(f"{Path(user_file.__file__).parent}/jax/modes/jit.py", False), ("/me/jax/net.py", True)]
)
def test_a_sentence_on_a_traced_function_is_kept_if_it_is_the_user_s(file, kept):
    sentence = f"\nThe error occurred while tracing the function attend at {file}:30 for jit. It depends on x."
    assert text_of(TypeError(f"A boolean.{sentence}")) == f"A boolean.{sentence * kept}"
