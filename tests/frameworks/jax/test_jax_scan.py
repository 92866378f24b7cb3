"""JAX's scan over stacked layers: a layer's code stands once, the cache is overwritten, and where it is refused."""

from __future__ import annotations

import pytest
from doubles.environment import served

from measurement.cells import Cell
from plan.plan import known_obstacle

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
HEAD = """
import jax, jax.numpy as jnp
from frameworks.adapter import Unsupported
from frameworks.jax.models import causal, llama
from frameworks.jax.modes import generation
from frameworks.jax.inspect import program
from frameworks.jax import runtime

DECODE, PREFILL = {"batch_size": 3, "context": 12, "cache": "static"}, {"batch_size": 3, "prompt": 8}
PASSES = (("decode", DECODE), ("prefill", PREFILL))
PLACES = [(name, *some) for name in ("llama-tiny", "gpt-tiny") for some in PASSES]

def step(mode, name="llama-tiny", kind="decode", shape=DECODE):
    return step_of("jax", mode, name, "plain", kind, shape)

def refusal(call, *arguments):
    try:
        call(*arguments)
    except Unsupported as error:
        return str(error)
    raise AssertionError("not refused")
"""


run = served("jax", HEAD)


def test_a_layer_s_code_stands_once_for_as_many_layers_as_the_model_has(run):
    run(
        """
        for place in PLACES:
            made = step("jit-scan", *place)
            layers = workloads.get(*place[:2]).model.layers
            assert layers == 2
            stacked = jax.tree.leaves((made.call.params["blocks"], made.call.cache))
            assert all(len(part) == layers for part in stacked), jax.tree.map(jnp.shape, stacked)
            shapes = runtime.shapes((made.call.params, made.call.cache, *made._inputs[0]))
            equations = made.call.advance.trace(*shapes).jaxpr.eqns
            (scan,) = (equation for equation in equations if equation.primitive.name == "scan")
            assert scan.params["length"] == layers
            products = sum(equation.primitive.name == "dot_general" for equation in equations)
            assert products == 1, "of the output layer alone"
        """,
    )


def test_a_scan_lists_its_layers_as_often_as_it_runs_them(run):
    """Beside eager mode it is the same program; one layer fewer is another."""
    run(
        """
        for place in PLACES:
            eager, graph = (step(mode, *place).program() for mode in ("eager", "jit-scan"))
            assert compared.difference(eager, graph) is None, (place, compared.difference(eager, graph))
            matrices, scores = 4, 2  # a layer
            assert sum(operation.kind == "matmul" for operation in graph) == 2 * (matrices + scores) + 1

        whole = jax.lax.scan
        jax.lax.scan = lambda layer, x, held: whole(layer, x, jax.tree.map(lambda part: part[:1], held))
        try:
            line = compared.difference(step("eager").program(), step("jit-scan").program())
        finally:
            jax.lax.scan = whole
        assert "in eager, not in the graph" in line, line
        """,
    )


def test_a_call_writes_into_the_cache_that_it_was_given(run):
    run(
        """
        for mode in ("jit", "jit-scan"):
            for place in PLACES:
                made = step(mode, *place)
                before = jax.tree.leaves(made.call.cache)
                memory = [part.unsafe_buffer_pointer() for part in before]
                jax.block_until_ready(made())
                assert all(part.is_deleted() for part in before), (mode, place)
                after = [part.unsafe_buffer_pointer() for part in jax.tree.leaves(made.call.cache)]
                assert after == memory, (mode, place)
                assert made.capture().whole and made.capture().graphs == 1, made.capture()
        """,
    )


def test_a_graph_that_leaves_its_cache_as_it_was_is_not_captured(run):
    """Planted: the new keys are of another type, so that none can lie in the old ones' memory."""
    run(
        """
        right = causal.through

        def narrowed(*arguments):
            x, (keys, values) = right(*arguments)
            return x, (keys.astype(jnp.bfloat16), values)

        causal.through = narrowed
        try:
            made = step("jit-scan")
            made()
            captured = made.capture()
        finally:
            causal.through = right
        assert not captured.whole
        assert captured.detail == "only 1 of 2 donated arrays are reused for results", captured
        """,
    )


def test_layers_that_are_not_alike_are_refused(run):
    run(
        """
        right = llama.parameters

        def uneven(*arguments):
            params = right(*arguments)
            params["blocks"][1]["gate_up"] = params["blocks"][1]["gate_up"][:-2]
            return params

        llama.parameters = uneven
        try:
            said = refusal(step, "jit-scan")
            step("jit")  # where a loop in Python takes each layer as it is, nothing is refused
        finally:
            llama.parameters = right
        assert said == "jax.lax.scan needs identical layers, and this model's differ: measure MODE=jit.", said
        for other in ({"b": jnp.ones(2)}, {"a": jnp.ones(2, jnp.bfloat16)}):
            assert refusal(causal.stacked, [{"a": jnp.ones(2)}, other]) == said
        assert causal.stacked([{"a": jnp.ones(2)}, {"a": jnp.zeros(2)}])["a"].tolist() == [[1, 1], [0, 0]]
        assert "CACHE=static" in refusal(step, "jit-scan", "gpt-tiny", "decode", DECODE | {"cache": "dynamic"})
        """,
    )


@pytest.mark.parametrize(
    ("workload", "implementation", "pass_name", "says"),
    [
        ("gpt-tiny", "plain", "inference", "JAX's mode jit-scan does not run the inference pass."),
        ("mlp", "plain", "training", "JAX's mode jit-scan does not run the training pass."),
        ("llama-tiny", "library", "decode", "JAX has no library implementation of llama-tiny ("),
        ("llama-tiny", "plain", "decode", None),
        ("gpt-tiny", "plain", "generate", None),
    ],
)
def test_what_has_no_stacked_layers_is_refused_before_anything_starts(workload, implementation, pass_name, says):
    cell = Cell("jax", workload, implementation, pass_name, "cpu", "fp32", 1, (), "jit-scan")
    obstacle = known_obstacle(cell)
    assert (obstacle is None) if says is None else obstacle.startswith(says)
