"""TensorFlow's adapter: chains that Grappler merges, memory that modes share, and starts whose graph is not whole."""

from __future__ import annotations

import pytest
from doubles.environment import MODELS, REFUSED, run_in

pytestmark = pytest.mark.slow
# A place in which a start is made; `own` is the text of a user model's file.
PLACE = """
import contextlib, tempfile
from pathlib import Path
from frameworks.start import Place
from frameworks.tensorflow import start

def place(framework="tensorflow", own=""):
    name, impl, shape = "mlp", "plain", {"batch_size": 2, "width": 8, "depth": 1}
    if own:
        name, impl, shape = "net.py", "own", {"batch_size": 2}
        (Path(tempfile.gettempdir()) / name).write_text(own)
        workloads.add({name: f"{tempfile.gettempdir()}/{name}"})
    workload = workloads.get(name)
    cell = Cell(framework, name, impl, "inference", "cpu", "fp32", 2, tuple(shape.items()), "eager")
    adapter = import_module(f"frameworks.{framework}.adapter").Adapter()
    adapter.configure(cell)
    weights, sets = workload.seeded_weights(shape, 0), [workload.inputs(shape, 0)]
    artefact = Path(tempfile.gettempdir()) / "artefact"
    return Place(adapter, workload, cell, weights, sets, artefact, "function", lambda _: contextlib.nullcontext())
"""
CALLS_PYTHON = """
import numpy as np
import tensorflow as tf

def model():
    return lambda x: tf.numpy_function(lambda a: a * 2, [x], tf.float32)

def inputs(batch_size=2):
    return np.ones((batch_size, 8), "float32")
"""


def test_a_chain_that_grappler_merges_is_refused_in_its_mode_alone():
    run_in(
        "tensorflow",
        MODELS,
        REFUSED,
        """
        from frameworks.tensorflow.adapter import Adapter

        adapter = Adapter()
        for name in ("pointwise-chain", "op-overhead", "fused-cos"):
            for mode in ("eager", "function", "function-unoptimized", "function-xla"):
                cell = Cell("tensorflow", name, "plain", "inference", "cpu", "fp32", 2, (("elements", 4),), mode)
                words = refused(adapter.refuse, cell) or ""
                merged = mode == "function" and name != "fused-cos"
                assert ("Grappler merges the chain" in words) == merged, (name, mode, words)
        """,
    )


def test_graph_modes_of_a_user_model_count_the_weights_and_inputs_that_modes_share():
    run_in(
        "tensorflow",
        MODELS,
        PLACE,
        """
        own = "import numpy as np\\nimport tensorflow as tf\\n"
        own += "def model():\\n    w = tf.Variable(tf.ones((8, 4)))\\n    return lambda x: x @ w\\n"
        own += "def inputs(batch_size=2):\\n    return np.ones((batch_size, 8), 'float32')\\n"
        given = place(own=own)
        adapter, adapter._gpu, adapter._count = given.adapter, object(), 1
        assert adapter.meter(given.cell).shared_bytes() == 0
        adapter._gpu = None
        adapter.prepare(given.workload, given.cell, given.weights, given.inputs)
        adapter._gpu = object()
        assert adapter.meter(given.cell).shared_bytes() == 4 * (8 * 4 + 2 * 8) + 16  # the state of Keras' generator
        """,
    )


def test_a_start_whose_graph_calls_python_is_refused():
    run_in(
        "tensorflow",
        MODELS,
        REFUSED,
        PLACE,
        f"""
        given = place(own={CALLS_PYTHON!r})
        step = start.Captured().step(given)
        step()
        assert "calls Python" in refused(step.capture), refused(step.capture)
        assert "calls Python" in refused(start.Exported().fill, given)
        """,
    )


def test_a_start_from_a_cache_without_the_model_is_refused(tmp_path):
    run_in(
        "tensorflow",
        f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}",
        MODELS,
        REFUSED,
        PLACE,
        """
        cached = start.Cached()
        (cached.cache / "of another model").touch()
        step = cached.step(place())
        step()
        assert "the persistent cache has no code of the model" in refused(step.capture), refused(step.capture)
        """,
    )


def test_a_file_that_changes_a_switch_of_the_process_is_refused():
    run_in(
        "tensorflow",
        MODELS,
        REFUSED,
        """
        import tensorflow as tf
        from frameworks.tensorflow.adapter import Adapter

        shape = (("batch_size", 1),)
        def cell(name):
            return Cell("tensorflow", name, "own", "inference", "cpu", "fp32", 1, shape, "eager")

        changes = {
            "enable_tensor_float_32_execution": lambda: tf.config.experimental.enable_tensor_float_32_execution(True),
            "set_synchronous_execution": lambda: tf.config.experimental.set_synchronous_execution(False),
            "set_log_device_placement": lambda: tf.debugging.set_log_device_placement(True),
            "set_jit": lambda: tf.config.optimizer.set_jit(True),
            "set_experimental_options": lambda: tf.config.optimizer.set_experimental_options(
                {"constant_folding": False}  # which is absent from the options read at its default
            ),
        }
        adapter = Adapter()
        adapter.configure(cell("a"))
        for name, change in changes.items():
            change()
            for _ in range(2):  # another shape of that file, which runs once
                assert f"changes {name}: remove" in refused(adapter.refuse, cell(name)), name
            adapter.refuse(cell("a"))  # another file of the process
        assert tf.config.experimental.get_synchronous_execution()
        """,
    )
