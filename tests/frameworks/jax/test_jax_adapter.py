"""JAX's adapter: TF32, memory that modes share, states under training, and starts whose module is not whole."""

from __future__ import annotations

import pytest
from doubles.environment import MODELS, REFUSED, run_in

pytestmark = pytest.mark.slow
# A place in which a start of a user model is made.
PLACE = """
import contextlib
from pathlib import Path
import jax
from frameworks.start import Place
from frameworks.jax import start

def place(folder, own, pass_name="inference"):
    (Path(folder) / "net.py").write_text(own)
    workloads.add({"net.py": f"{folder}/net.py"})
    workload, shape = workloads.get("net.py", pass_name), {"batch_size": 2}
    cell = Cell("jax", "net.py", "own", pass_name, "cpu", "fp32", 2, tuple(shape.items()), "eager")
    adapter = import_module("frameworks.jax.adapter").Adapter()
    adapter.configure(cell)
    weights, sets = workload.seeded_weights(shape, 0), [workload.inputs(shape, 0)]
    return Place(adapter, workload, cell, weights, sets, Path(folder), "jit", lambda _: contextlib.nullcontext())

def trained(folder, own):
    given = place(folder, own, "training")
    return given.adapter.prepare(given.workload, given.cell, given.weights, given.inputs)
"""
OWN = """
import jax
import jax.numpy as jnp
import numpy as np

def model():
    return (lambda w, x: {}), jnp.ones((8, 4))

def inputs(batch_size=2):
    return np.ones((batch_size, 8), "float32")

def loss(output):
    return (output**2).mean()
"""
PRODUCT = OWN.format("x @ w")
# A call reads a dict, which counts in a module how often it is filled again.
READS_A_DICT = (
    OWN.format("x @ w * len(WORDS)")
    + """
class Words(dict):
    def clear(self):
        np.cleared = getattr(np, "cleared", 0) + 1
        super().clear()

WORDS = Words((f"word {number}", number) for number in range(2000))
"""
)
# The same of a loss under jax.jit.
LOSS_READS_A_DICT = (
    READS_A_DICT.replace("x @ w * len(WORDS)", "x @ w")
    + """
@jax.jit
def loss(output):
    return (output**2).mean() * len(WORDS)
"""
)
# What a call reads besides the parameters that model() returns.
FROZEN = OWN.format("x @ w * TABLE[0]") + "\nTABLE = jnp.ones((2, 4))\n"
CALLS_PYTHON = OWN.format("jax.pure_callback(np.asarray, jax.ShapeDtypeStruct((2, 4), 'float32'), x @ w)")


def test_tf32_is_the_precision_in_which_xla_has_kernels_of_all_kinds():
    """Of Precision.HIGH XLA makes no Triton kernels; an algorithm would convert whole and complex numbers."""
    run_in(
        "jax",
        """
        import jax, jax.numpy as jnp
        from jax import export
        from frameworks.jax.adapter import PRECISION

        def model(x, w, image, kernel, ids, complex):
            convolved = jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME")
            return x @ w, convolved, ids @ ids, complex @ complex

        shapes = [(4, 4), (4, 4), (1, 3, 8, 8), (2, 3, 3, 3)]
        given = [*map(jnp.ones, shapes), jnp.ones((4, 4), jnp.int32), jnp.ones((4, 4), jnp.complex64)]

        def lowered(dtype):
            with jax.default_matmul_precision(PRECISION[dtype][1]):
                text = export.export(jax.jit(model), platforms=["cuda"])(*given).mlir_module()
            return [line for line in text.splitlines() if "stablehlo.dot_general" in line or "convolution(" in line]

        strict, tf32 = lowered("fp32"), lowered("tf32")
        assert len(strict) == len(tf32) >= 4
        assert all("HIGHEST" in line for line in strict), strict
        assert not any("HIGH" in line or "algorithm" in line for line in tf32), tf32
        for kind in ("xi32>", "xcomplex<f32>>"):
            assert any(kind in line for line in tf32), (kind, tf32)
        """,
    )


@pytest.mark.parametrize(("dtype", "allowed"), [("fp32", False), ("tf32", True), ("bf16", False)])
def test_whether_products_of_a_cell_s_dtype_may_use_tf32_is_read_back(dtype, allowed):
    run_in(
        "jax",
        MODELS,
        f"""
        from dataclasses import replace
        from unittest.mock import patch
        import jax
        from frameworks.jax import adapter, runtime

        cell = Cell("jax", "mlp", "plain", "inference", "gpu:0", {dtype!r}, 2, (), "eager")
        with patch.object(runtime, "find", lambda device: jax.devices("cpu")[0]):
            assert adapter.Adapter().configure(cell).tf32 is {allowed}
        """,
    )


def test_graph_modes_of_a_user_model_count_the_weights_and_inputs_that_modes_share(tmp_path):
    run_in(
        "jax",
        MODELS,
        PLACE,
        f"""
        from dataclasses import replace
        given = place({str(tmp_path)!r}, {PRODUCT!r})
        on_gpu, adapter = replace(given.cell, device="gpu:0"), given.adapter
        assert adapter.meter(on_gpu).shared_bytes() == 0
        adapter.prepare(given.workload, on_gpu, given.weights, given.inputs)
        assert adapter.meter(on_gpu).shared_bytes() == 4 * (8 * 4 + 2 * 8)
        """,
    )


def test_eager_training_of_a_user_model_keeps_one_state(tmp_path):
    run_in(
        "jax",
        MODELS,
        PLACE,
        f"""
        import gc
        step = trained({str(tmp_path)!r}, {PRODUCT!r})

        def occupied():
            gc.collect()
            return sum(array.nbytes for array in jax.live_arrays())

        before = occupied()
        for _ in range(2):
            step()
        assert occupied() == before
        assert any(operation.kind == "matmul" for operation in step.program())
        """,
    )


@pytest.mark.parametrize("own", [READS_A_DICT, LOSS_READS_A_DICT], ids=["model", "loss"])
def test_eager_training_leaves_a_large_dict_alone_that_calls_only_read(tmp_path, own):
    run_in(
        "jax",
        MODELS,
        PLACE,
        f"""
        import numpy as np
        step = trained({str(tmp_path)!r}, {own!r})
        step()
        before = np.cleared
        step()
        assert np.cleared == before
        """,
    )


def test_a_graph_of_training_is_given_the_arrays_that_are_not_trained(tmp_path):
    run_in(
        "jax",
        MODELS,
        PLACE,
        f"""
        from frameworks.jax.modes import training
        from frameworks.jax.user_model import captured
        subject = trained({str(tmp_path)!r}, {FROZEN!r}).user_model
        state = (subject.params, {{}}, training.optimizer().init(subject.params))
        iterate = training.iteration(subject.objective, 1, scanned=True)
        traced = jax.make_jaxpr(iterate)(state, subject.frozen, subject.model.sets[0])
        assert len(subject.params["trained"]) == 1 and captured.constants(traced) == []
        """,
    )


def test_a_start_whose_module_calls_python_is_refused(tmp_path):
    run_in(
        "jax",
        MODELS,
        REFUSED,
        PLACE,
        f"""
        given = place({str(tmp_path)!r}, {CALLS_PYTHON!r})
        step = start.Compile().step(given)
        step()
        assert "calls back into Python" in refused(step.capture), refused(step.capture)
        assert "calls back into Python" in refused(start.AheadOfTime().fill, given)
        """,
    )


def test_a_start_from_a_cache_without_the_model_is_refused(tmp_path):
    run_in(
        "jax",
        MODELS,
        REFUSED,
        PLACE,
        f"""
        jax.config.update("jax_compilation_cache_dir", {str(tmp_path / "cache")!r})
        given = place({str(tmp_path)!r}, {PRODUCT!r})
        for words in ("the compilation cache has no executable of the model", None):
            step = start.Cached().step(given)
            step()
            found = refused(step.capture)
            assert found is None if words is None else words in found, found
            jax.clear_caches()
        """,
    )


def test_a_file_that_changes_the_precision_of_products_is_refused():
    run_in(
        "jax",
        MODELS,
        REFUSED,
        """
        import jax
        from frameworks.jax.adapter import Adapter

        parameters = (("batch_size", 1), ("width", 8), ("depth", 1))
        cell, other = (Cell("jax", name, "plain", "inference", "cpu", "fp32", 1, parameters, "jit") for name in "ab")
        adapter = Adapter()
        adapter.configure(cell)
        for name in ("float32", "highest"):
            jax.config.update("jax_default_matmul_precision", name)
            adapter.refuse(cell)
        for name in ("bfloat16", "tensorfloat32", None):
            jax.config.update("jax_default_matmul_precision", name)
            for _ in range(2):  # another shape of that file, which runs once
                assert "changes jax_default_matmul_precision: remove" in refused(adapter.refuse, cell)
            assert jax.config.jax_default_matmul_precision == "highest"
            adapter.refuse(other)
        """,
    )


def test_switches_for_debugging_are_refused():
    run_in(
        "jax",
        MODELS,
        REFUSED,
        """
        import jax
        from frameworks.jax.adapter import DEBUGGING, Adapter

        parameters = (("batch_size", 1), ("width", 8), ("depth", 1))
        cell = Cell("jax", "mlp", "plain", "inference", "cpu", "fp32", 1, parameters, "eager")
        assert "jax_debug_key_reuse" in DEBUGGING
        for name in DEBUGGING:
            jax.config.update(name, True)
            assert f"{name} is set" in refused(Adapter().refuse, cell), name
            jax.config.update(name, False)
        """,
    )
