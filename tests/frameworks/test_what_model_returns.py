"""What `model()` of a user's file returns and is no model, or none for its inputs: one sentence with the way out."""

from __future__ import annotations

import pytest
from doubles.environment import run_in

from frameworks.user_file import Fault, can_be_called, disagreement, kind, naming_inputs
from worker.channel import classify


class Net:
    def __call__(self, x):
        return x


def yields(x):
    yield x


@pytest.mark.parametrize(
    ("made", "called", "words"),
    [
        (Net(), True, "a value of type Net"),
        (lambda x: x, True, "a lambda"),
        (classify, True, "the function classify"),
        (Net, False, "the class Net, not an instance"),
        (yields, False, "the generator function yields"),
        (yields(1), False, "a value of type generator"),
        (None, False, "None"),
        ((Net, None), False, "a tuple of the class Net, not an instance and None"),
    ],
)
def test_no_class_and_no_generator_function_is_called_as_a_model(made, called, words):
    assert (can_be_called(made), kind(made)) == (called, words)


class Refused(Exception):
    """A framework's own."""


@pytest.mark.parametrize("error", [RuntimeError, IndexError, AttributeError, Refused, KeyError, Fault])
def test_an_error_of_the_first_call_names_what_the_call_was(error):
    with pytest.raises(error) as raised, naming_inputs(lambda: "x of shape (2, 8)"):
        raise error("no product")
    way_out = "; the call was model(x of shape (2, 8)): change inputs() or model() so that they agree."
    disagrees = error not in (KeyError, Fault)  # the user's own mistake, and what has a way out already
    assert disagreement(raised.value) == way_out * disagrees


def test_inputs_that_a_broken_device_holds_hide_no_error():
    with pytest.raises(RuntimeError, match="device lost") as raised, naming_inputs(lambda: str(1 / 0)):
        raise RuntimeError("device lost")
    assert not disagreement(raised.value)


# By framework: an import, an array (2, 8), a model of 16 inputs, and what a sentence on another type ends in.
FRAMEWORKS = {
    "torch": ("import torch", "torch.ones(2, 8)", "torch.nn.Linear(16, 4)", "return a torch.nn.Module."),
    "paddle": ("import paddle", "paddle.ones([2, 8])", "paddle.nn.Linear(16, 4)", "return a paddle.nn.Layer."),
    "tensorflow": (
        "import keras, numpy as np",
        "np.ones((2, 8), 'float32')",
        "keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(4)])",
        "return a Keras model, a tf.Module or a function.",
    ),
    "jax": (
        "import jax.numpy as jnp",
        "jnp.ones((2, 8))",
        "(jnp.matmul, jnp.ones((4, 16)))",
        "return (function, parameters), a Flax module with __call__, or a function.",
    ),
}
FILE = """
{begin}

class Net:
    def __call__(self, x):
        return x

def yields(x):
    yield x

def model():
    return {made}

def inputs():
    return {given}
"""
CHECK = """
import tempfile
from pathlib import Path
import workloads
from frameworks.{framework}.adapter import Adapter
from measurement.cells import Cell
from worker.channel import classify
from frameworks.user_file import disagreement

ADAPTER = Adapter()

def sentence(number, text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"net{{number}}.py")
        path.write_text(text)
        workloads.add({{path.name: str(path)}})
        workload = workloads.get(path.name, "inference")
        cell = Cell({framework!r}, path.name, "own", "inference", "cpu", "fp32", 1, (), "eager")
        ADAPTER.configure(cell)
        try:
            ADAPTER.prepare(workload, cell, workload.seeded_weights({{}}, 0), [workload.inputs({{}}, 1)])
        except Exception as error:
            status, reason = classify(error)
            return status, reason + disagreement(error)
        return "", ""

for number, (text, words) in enumerate({files!r}):
    status, said = sentence(number, text)
    assert status == "error" and all(word in said for word in words), (text, said)
"""


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_is_no_model_is_one_sentence_with_the_way_out(framework):
    begin, given, other, way_out = FRAMEWORKS[framework]
    cases = {made: (f"returned {kind(value)}: {way_out}",) for made, value in
             {"None": None, "Net": Net, "yields": yields}.items()}  # fmt: skip
    takes_functions = framework in ("tensorflow", "jax")
    words = "the model returned a generator, which computes" if takes_functions else f"returned a lambda: {way_out}"
    cases["lambda x: (part for part in x)"] = (words,)
    base = {"torch": "torch.nn.Module", "paddle": "paddle.nn.Layer"}.get(framework)
    nothing = f"type('Quiet', ({base},), {{'forward': lambda self, x: None}})()" if base else "lambda x: None"
    cases[nothing] = ("the model returned None, which holds no tensor or array: return one, a tuple or a dict.",)
    cases[other] = ("the call was model(argument 1 of shape (2, 8)): change inputs() or model()",)
    if framework == "torch":
        meta = "a tensor on the meta device, which holds no values: make it on the CPU."
        cases["torch.nn.Linear(8, 4, device='meta')"] = (f"model() of net{len(cases)}.py returned {meta}",)
    files = [(FILE.format(begin=begin, given=given, made=made), words) for made, words in cases.items()]
    if framework == "torch":
        on_meta = FILE.format(begin=begin, given=f"{given}.to('meta')", made="torch.nn.Linear(8, 4)")
        files.append((on_meta, (f"inputs() returned {meta}",)))
    run_in(framework, CHECK.format(framework=framework, files=files))
