"""Users' own TensorFlow models in 16 bits, with Keras of either kind, and whatever a shell says of Keras."""

from __future__ import annotations

import json
import subprocess

import pytest
from conftest import ROOT
from doubles.environment import run_in

import frameworks
from environments import environments
from execution import campaign
from launchers import local

pytestmark = pytest.mark.slow

INPUTS = """
def inputs(batch_size=2):
    return np.random.randn(batch_size, 8).astype("float32")

def loss(output):
    return tf.reduce_mean(output**2)
"""
LAYERS = "[{0}.Input((8,)), {0}.layers.Dense(4, 'relu'), {0}.layers.BatchNormalization(), {0}.layers.Dense(2)]"
HEAD = "import numpy as np\nimport tensorflow as tf\n"
FILES = {
    "keras3": f"import keras\n{HEAD}\ndef model():\n    return keras.Sequential({LAYERS.format('keras')})\n{INPUTS}",
    "keras2": f"{HEAD}\ndef model():\n    return tf.keras.Sequential({LAYERS.format('tf.keras')})\n{INPUTS}",
    "lazy": f"{HEAD}\ndef model():\n    import keras\n    return keras.Sequential({LAYERS.format('keras')})\n{INPUTS}",
    "function": f"{HEAD}\ndef model():\n    return lambda x: tf.matmul(x, x, transpose_b=True)\n{INPUTS}",
    "module": f"{HEAD}\nclass Net(tf.Module):\n    def __init__(self):\n        self.w = tf.Variable(tf.ones((8, 2)))\n"
    f"    def __call__(self, x):\n        return x @ tf.cast(self.w, x.dtype)\n"
    f"\ndef model():\n    return Net()\n{INPUTS}",
}
MEASURED = """
import sys
from importlib import import_module
import numpy as np
import tensorflow as tf
import workloads
from frameworks.adapter import Unsupported
from measurement.cells import Cell
from worker import user_model_reference as examining

adapter = import_module("frameworks.tensorflow.adapter").Adapter()

def step_of(source, dtype, mode, pass_name="inference", shapes="static", **arguments):
    name = source.rpartition("/")[2]
    workloads.add({name: source})
    workload = workloads.get(name, pass_name)
    shape = {"batch_size": 2} | ({"image_size": 32} if source.startswith("keras:") else {}) | arguments
    cell = Cell("tensorflow", name, "own", pass_name, "cpu", dtype, 2, tuple(shape.items()), mode, shapes=shapes)
    adapter.configure(cell)
    return adapter.prepare(workload, cell, workload.seeded_weights(shape, 0), [workload.inputs(shape, 1)])

def measured(source, dtype, in_float32=()):
    kind = {"bf16": tf.bfloat16, "fp16": tf.float16}[dtype]
    for mode in ("eager", "function"):
        step = step_of(source, dtype, mode)
        output = step()
        assert output.dtype == kind, (source, mode, output.dtype)
        reference, (right,) = examining.reference(step.user_model, step.user_model.eager(1), 1, 1e-4)
        assert reference.endswith("float64"), reference
        (got,), (value,) = adapter.to_numpy(output).values(), right.arrays.values()
        assert np.abs(got - value).max() <= 6e-2 * np.abs(value).max(), (source, mode)
        model = step.user_model
        floating = [variable for variable in model.module.variables if variable.dtype.is_floating]
        held = {variable.name.rpartition("/")[2] for variable in floating if variable.dtype != kind}
        assert held == set(in_float32), (source, held)
        operations = tf.function(model.call).get_concrete_function(*model.sets[0]).graph.get_operations()
        products = [one for one in operations if one.type in ("MatMul", "Conv2D", "DepthwiseConv2dNative")]
        assert products and all(one.outputs[0].dtype == kind for one in products), (source, products)
    adapter.release()

def refused(words, *cell, **more):
    try:
        step_of(*cell, **more)
    except Unsupported as error:
        assert words in str(error), error
    else:
        raise AssertionError(cell)
    adapter.release()
"""
KEPT = ["gamma:0", "beta:0", "moving_mean:0", "moving_variance:0"]


@pytest.fixture
def path(tmp_path):
    """The path of one of the files above."""

    def written(name: str) -> str:
        (tmp_path / f"{name}.py").write_text(FILES[name])
        return str(tmp_path / f"{name}.py")

    return written


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("name", ["keras3", "lazy", "function"])
def test_weights_and_products_have_the_cell_s_dtype(path, name, dtype):
    run_in("tensorflow", MEASURED, f"measured({path(name)!r}, {dtype!r})")


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_keras_2_keeps_batch_norm_s_variables_alone_in_float32(path, dtype):
    run_in(
        "tensorflow",
        MEASURED,
        f"measured({path('keras2')!r}, {dtype!r}, {KEPT})",
        "keras = sys.modules['tf_keras']",
        "assert (keras.backend.floatx(), keras.mixed_precision.global_policy().name) == ('float32', 'float32')",
        f"refused('or measure in fp32', {path('module')!r}, {dtype!r}, 'eager')",
        f"refused('set DTYPE=fp32', {path('keras3')!r}, 'bf16', 'eager', pass_name='training')",
    )


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_keras_own_applications_run_in_16_bits(dtype):
    run_in("tensorflow", MEASURED, f"measured('keras:MobileNetV2', {dtype!r})")


def test_an_argument_of_a_user_s_model_may_be_called_as_the_suite_s_parameters_are(tmp_path):
    """TensorFlow trains the suite's images in no such layout on a CPU, and has no such attention."""
    text = FILES["keras3"].replace("inputs(batch_size=2)", "inputs(batch_size=2, layout='nchw', attention='fused')")
    (tmp_path / "net.py").write_text(text)
    more = "layout='nchw', attention='fused'"
    run_in(
        "tensorflow",
        MEASURED,
        f"step = step_of({str(tmp_path / 'net.py')!r}, 'fp32', 'eager', 'training', {more})",
        "assert step() is not None",
    )


def test_nothing_is_counted_of_a_recurrent_layer_in_one_operator():
    """The profiler has no rule for it: its products, most of what it computes, would be none."""
    run_in(
        "tensorflow",
        """
import tensorflow as tf
from frameworks.tensorflow.inspect.counting import counted, traced
from frameworks.user_model import Uncounted

weights, bias = tf.Variable(tf.ones((16, 32))), tf.Variable(tf.zeros((32,)))
zeros, peepholes = tf.zeros((4, 8)), dict.fromkeys(("wci", "wcf", "wco"), tf.zeros((8,)))
shared = {"cs_prev": zeros, "h_prev": zeros, "w": weights, "b": bias, **peepholes}

def layer(name, x):
    length = {"seq_len_max": tf.constant(3, tf.int64)} if name.startswith("Block") else {}
    return getattr(tf.raw_ops, name)(x=x, **length, **shared).h

sequence = tf.ones((3, 4, 8))
for name, inputs in (("BlockLSTM", sequence), ("BlockLSTMV2", sequence), ("LSTMBlockCell", tf.ones((4, 8)))):
    try:
        reason = counted(traced(lambda x: layer(name, x), [inputs]), [inputs])
    except Uncounted as error:
        reason = str(error)
    assert reason == f"no rule for {name}", reason
product = counted(traced(lambda x: x @ weights[:8], [tf.ones((4, 8))]), [tf.ones((4, 8))])
assert product.flops == 2 * 4 * 8 * 32, product
""",
    )


def test_a_shell_s_keras_is_recorded_and_does_not_reach_the_workers(tmp_path, path, monkeypatch):
    told = {"backend": "jax", "floatx": "float16", "image_data_format": "channels_first"}
    (tmp_path / "keras.json").write_text(json.dumps(told))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert campaign.is_noted("KERAS_BACKEND") and campaign.is_noted("KERAS_HOME")
    check = f"""
step = step_of({path("keras3")!r}, "fp32", "eager", "training")
step()
import keras
from frameworks.tensorflow.modes.training import Trainer
rate = Trainer(lambda: None, [tf.Variable([1.0])], {{}}).optimizer.variables[1]
assert (rate.path.rpartition("/")[2], rate.dtype) == ("learning_rate", "float32"), rate
step_of("keras:MobileNetV2", "fp32", "eager")()
"""
    python = environments.path("tensorflow", "cpu") / "bin" / "python"
    variables = local.environment(frameworks.describe("tensorflow").environment(2, "cpu"))
    words = [str(python), "-c", MEASURED + check]
    done = subprocess.run(words, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
