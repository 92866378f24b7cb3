"""What JAX runs op by op, and what its jaxpr holds: the same for our models, and each planted difference is named."""

from __future__ import annotations

import pytest
from doubles.environment import served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
HEAD = """
import jax, jax.numpy as jnp
from frameworks import program as compared
from frameworks.jax.inspect import program

def difference(model, *arguments):
    model(*arguments)
    return compared.difference(program.executed(model, arguments), program.captured(jax.jit(model), arguments))

def traced(x):
    return isinstance(x, jax.core.Tracer)

def attention(q, k, v, mask=None):
    scores = jnp.einsum("bnqd,bnkd->bnqk", q, k)
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    return jax.nn.softmax(scores) @ v

q = jnp.ones((2, 3, 4, 8))
"""


run = served("jax", HEAD)


def test_one_model_is_the_same_program_whatever_jax_wraps_it_in(run):
    run(
        """
        def model(w, x):
            assert x.dtype == jnp.float32
            y = jax.nn.relu(x @ w + 1) * 2
            y = jax.checkpoint(lambda z: jax.nn.gelu(z, approximate=False))(y)
            y, _ = jax.lax.scan(lambda total, row: (total + row, None), jnp.zeros(4), y)
            return jax.nn.log_softmax(y[:2]).sum()

        w = jnp.ones((4, 4))
        assert difference(model, w, w) is None, difference(model, w, w)
        assert difference(jax.value_and_grad(model), w, w) is None, difference(jax.value_and_grad(model), w, w)
        held = [operation.name for operation in program.executed(model, (w, w))]
        assert {"dot_general", "max", "erfc", "exp", "reduce_max"} <= set(held), held
        """,
    )


def test_a_python_loop_is_the_same_program_as_a_scan_of_as_many_steps(run):
    run(
        """
        def looped(steps):
            def model(w, xs):
                total = jnp.zeros((4, 4))
                if traced(w):
                    return jax.lax.scan(lambda total, x: (total + x @ w, None), total, xs[:steps])[0]
                for index in range(len(xs)):
                    total = total + xs[index] @ w
                return total
            return model

        w, xs = jnp.ones((4, 4)), jnp.ones((3, 4, 4))
        assert difference(looped(3), w, xs) is None, difference(looped(3), w, xs)
        line = difference(looped(2), w, xs)
        assert line.startswith("dot_general: in eager, not in the graph"), line
        """,
    )


def test_a_mask_that_only_tracing_makes_is_named(run):
    run(
        """
        def model(q):
            mask = jnp.ones((2, 1, 4, 4), bool) if traced(q) else None
            return jnp.tanh(attention(q, q, q, mask))

        line = difference(model, q)
        assert line.startswith("select_n: in the graph, not in eager"), line
        (held,) = (x for x in program.captured(jax.jit(model), (q,)) if x.name == "select_n")
        assert held.arguments["mask"] == "bool (2,3,4,4)", held

        def biased(q):
            scores = jnp.einsum("bnqd,bnkd->bnqk", q, q)
            return jax.nn.softmax(scores + jnp.zeros((2, 1, 1, 4)) if traced(q) else scores) @ q

        line = difference(biased, q)
        assert line.startswith("add: in the graph, not in eager"), line
        """,
    )


def test_a_cast_that_only_tracing_makes_is_named(run):
    run(
        """
        def rounded(q):
            return jnp.tanh(q.astype(jnp.bfloat16).astype(jnp.float32) if traced(q) else q)

        line = difference(rounded, q)
        assert line.startswith("convert_element_type: in the graph, not in eager"), line
        casts = [x for x in program.captured(jax.jit(rounded), (q,)) if x.kind == "cast"]
        assert [x.arguments["new_dtype"] for x in casts] == ["bfloat16", "float32"], casts

        def lowered(q):
            p = q.astype(jnp.bfloat16)
            return jax.lax.dot(p[0, 0], p[0, 0].T, preferred_element_type=jnp.float32 if traced(q) else jnp.bfloat16)

        line = difference(lowered, q)
        assert line == "dot_general: preferred_element_type bfloat16 in eager, float32 in the graph", line

        def precise(q):
            return jnp.matmul(q, q.mT, precision="highest" if traced(q) else "default")

        line = difference(precise, q)
        expected = "dot_general: precision (DEFAULT,DEFAULT) in eager, (HIGHEST,HIGHEST) in the graph"
        assert line == expected, line
        """,
    )


def test_a_fused_operator_that_only_tracing_drops_is_named(run):
    run(
        """
        from jax.extend.core import Primitive

        fused = Primitive("dot_product_attention_fwd")  # stands for cuDNN's, which no CPU has
        fused.def_impl(attention)
        fused.def_abstract_eval(lambda q, k, v: q)
        fused_call = lambda q: fused.bind(q, q, q)

        line = difference(lambda q: attention(q, q, q) if traced(q) else fused_call(q), q)
        assert line.startswith("dot_product_attention_fwd: in eager, not in the graph"), line

        image = jnp.ones((1, 3, 8, 8))
        kernel = jnp.ones((4, 3, 1, 1))

        def model(image, kernel):
            if traced(image):
                return jnp.einsum("bchw,oc->bohw", image, kernel[:, :, 0, 0])
            return jax.lax.conv(image, kernel, (1, 1), "SAME")

        line = difference(model, image, kernel)
        assert line.startswith("conv_general_dilated: in eager, not in the graph"), line
        """,
    )


def test_listing_compiles_nothing_anew(run):
    run(
        """
        compiled = []
        jax.monitoring.register_event_duration_secs_listener(
            lambda event, seconds, **details: compiled.append(details) if "backend_compile" in event else None
        )
        model = jax.value_and_grad(lambda q: attention(q, q, q).sum())
        model(q), jax.jit(model)(q)
        before = len(compiled)
        assert before
        program.executed(model, (q,)), program.captured(jax.jit(model), (q,))
        assert len(compiled) == before, compiled[before:]
        """,
    )


def test_a_version_of_jax_without_the_trace_says_so(run):
    run(
        """
        from unittest.mock import patch
        from frameworks.adapter import Unsupported
        try:
            with patch.object(program, "_eval_trace", None):
                program.executed(jnp.tanh, (q,))
        except Unsupported as error:
            assert "does not expose" in str(error)
        else:
            raise AssertionError("listed without a trace")
        """,
    )


def test_our_models_are_the_same_program_in_every_mode_and_pass(run):
    run(
        """
        for name, implementation, pass_name, changes in CELLS:
            cell = (name, implementation, pass_name, changes)
            eager, graph = (program_of("jax", mode, *cell) for mode in ("eager", "jit"))
            line = compared.difference(eager, graph)
            assert line is None, (cell, line)
            assert sum(operation.kind == "matmul" for operation in eager) > 1
        """,
    )


def test_listing_leaves_the_state_of_a_training_as_it_was_once_it_is_rewound(run):
    run(
        """
        for mode in ("eager", "jit"):
            step = step_of("jax", mode, "mlp", "plain", "training", {})
            losses = [float(adapter.to_numpy(step())["loss"].item()) for _ in range(2)]
            assert losses[1] < losses[0]
            step.program()
            step.rewind()
            assert [float(adapter.to_numpy(step())["loss"].item()) for _ in range(2)] == losses, mode
        """,
    )
