"""The modes of a group share one model of the suite: it is built once, and its weights are in memory once."""

from __future__ import annotations

import pytest
from doubles.environment import MODELS, run_in

WIDTH, DEPTH = 16, 2  # of `SHAPE` in MODELS


GRAPHS = {"torch": "inductor", "jax": "jit", "tensorflow": "function", "paddle": "to_static"}
BYTES_HELD = 4 * DEPTH * (WIDTH * WIDTH + 3 * WIDTH)  # a kernel and a bias, and two vectors of the normalisation


@pytest.mark.parametrize(("framework", "graph"), GRAPHS.items())
def test_modes_share_the_model_until_the_group_ends(framework, graph):
    run_in(
        framework,
        MODELS,
        f"""
        eager = step_of({framework!r}, "eager", "mlp", "plain", "inference", {{}})
        (model,) = adapter.models.values()
        step_of({framework!r}, {graph!r}, "mlp", "plain", "inference", {{}})
        (shared,) = adapter.models.values()
        assert shared is model
        adapter.release()
        assert not adapter.models
        """,
    )


@pytest.mark.parametrize(("framework", "graph"), [("jax", "jit"), ("tensorflow", "function")])
def test_memory_of_a_mode_includes_the_shared_weights(framework, graph):
    run_in(
        framework,
        MODELS,
        f"""
        step_of({framework!r}, "eager", "mlp", "plain", "inference", {{}})
        workload, shape = workloads.get("mlp", "inference"), {{**SHAPE, "accumulate": 1}}
        cell = Cell({framework!r}, "mlp", "plain", "inference", "gpu:0", "fp32", 2, tuple(shape.items()), {graph!r})
        adapter._gpu, adapter._count = None, 1
        before = adapter.meter(cell)
        assert before is None or before.shared_bytes() == 0
        adapter.prepare(workload, cell, workload.seeded_weights(shape, 0), [workload.inputs(shape, 0)])
        adapter._gpu = object()
        assert adapter.meter(cell).shared_bytes() == {BYTES_HELD}
        """,
    )


@pytest.mark.parametrize(("graph", "bytes_held"), [("eager", BYTES_HELD), ("to_static", BYTES_HELD), ("inference", 0)])
def test_a_predictor_of_paddle_has_its_own_weights(graph, bytes_held):
    run_in(
        "paddle",
        MODELS,
        f"""
        step_of("paddle", "eager", "mlp", "plain", "inference", {{}})
        shape = {{**SHAPE, "accumulate": 1}}
        cell = Cell("paddle", "mlp", "plain", "inference", "gpu:0", "fp32", 2, tuple(shape.items()), {graph!r})
        assert adapter.meter(cell).shared_bytes() == 0
        (adapter.models[cell.group_id],) = adapter.models.values()
        assert adapter.meter(cell).shared_bytes() == {bytes_held}
        """,
    )
