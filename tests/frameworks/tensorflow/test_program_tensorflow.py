"""What TensorFlow runs eagerly, and what its graph holds: alike for our models, and planted differences are named."""

from __future__ import annotations

import pytest
from doubles.environment import served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
HEAD = """
import tensorflow as tf
from frameworks import program as compared
from frameworks.tensorflow.inspect import program

def graph_of(model, arguments, trips=()):
    function = tf.function(model, autograph=False)
    function(*arguments)
    held = program.captured(function, arguments, trips)
    assert function.experimental_get_tracing_count() == 1
    return held

def difference(model, *arguments, trips=()):
    return compared.difference(program.executed(model, arguments), graph_of(model, arguments, trips))

def attention(q, k, v, mask=None):
    scores = tf.matmul(q, k, transpose_b=True)
    if mask is not None:
        scores = tf.where(mask, scores, float("-inf"))
    return tf.matmul(tf.nn.softmax(scores), v)

traced = lambda: not tf.executing_eagerly()
q = tf.ones((2, 3, 4, 8))
w = tf.Variable(tf.ones((4, 4)))
"""


run = served("tensorflow", HEAD)


def test_one_model_is_the_same_program_with_gradients_and_functions_inside(run):
    run(
        """
        inner = tf.function(lambda x: tf.nn.relu(tf.matmul(x, w) + 1.0), autograph=False)

        def gradient(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.log_softmax(tf.nn.gelu(tf.matmul(x, w) + 1.0)))
            return tape.gradient(loss, [w])

        x = tf.ones((4, 4))
        assert difference(gradient, x) is None, difference(gradient, x)
        held = [operation.name for operation in program.executed(inner, (x,))]
        assert held == ["matmul", "addv2", "relu"], held  # though the call traced it first
        forward = lambda x: tf.nn.gelu(inner(x)) * tf.reduce_mean(x, axis=0)
        assert difference(forward, x) is None, difference(forward, x)
        """,
    )


def test_strides_and_sizes_are_the_same_however_eager_mode_spells_them(run):
    run(
        """
        layers = tf.keras.layers
        model = tf.keras.Sequential([
            layers.Input((16, 16, 3)), layers.ZeroPadding2D(1), layers.Conv2D(4, 3, 2), layers.DepthwiseConv2D(3),
            layers.SeparableConv2D(4, 2), layers.MaxPooling2D(), layers.GlobalAveragePooling2D(),
        ])
        x = tf.ones((1, 16, 16, 3))
        assert difference(lambda x: model(x, training=False), x) is None, difference(model, x)
        (held,) = (x for x in graph_of(model, (x,)) if x.name == "conv2d" and x.arguments["strides"] == "[1, 2, 2, 1]")
        """,
    )


def test_a_python_loop_is_the_same_program_as_a_while_of_as_many_trips(run):
    run(
        """
        def model(xs):
            add = lambda index, total: (index + 1, total + tf.matmul(xs[index], w))
            return tf.while_loop(lambda index, _: index < 3, add, (tf.constant(0), tf.zeros((4, 4))))[1]

        xs = tf.ones((3, 4, 4))
        assert difference(model, xs, trips=(3,)) is None, difference(model, xs, trips=(3,))
        line = difference(model, xs, trips=(2,))
        assert line.startswith("matmul: in eager, not in the graph"), line
        """,
    )


def test_a_loop_s_gradient_is_the_same_program_and_a_product_that_it_drops_is_named(run):
    run(
        """
        def gradient(xs, drops=False):
            def step(index, state):
                state = tf.tanh(tf.matmul(xs[index], w) + tf.matmul(state, w))
                return index + 1, state if drops and traced() else tf.tanh(tf.matmul(state, w))

            with tf.GradientTape() as tape:
                start = (tf.constant(0), tf.zeros((4, 4)))
                loss = tf.reduce_mean(tf.while_loop(lambda index, _: index < 3, step, start)[1])
            return tape.gradient(loss, [w])

        xs = tf.ones((3, 4, 4))
        assert difference(gradient, xs, trips=(3,)) is None, difference(gradient, xs, trips=(3,))
        line = difference(lambda xs: gradient(xs, drops=True), xs, trips=(3,))
        assert line.startswith("matmul: in eager, not in the graph"), line
        """,
    )


def test_open_sizes_come_from_a_run_that_changes_no_variable_and_keeps_no_activation(run):
    run(
        """
        import resource

        calls, inside = tf.Variable(0.0), tf.Variable(0.0)

        def counting(x):
            rows = tf.boolean_mask(x, x[:, 0] > 0) * calls.assign_add(1.0)

            def product():
                return tf.matmul(tf.boolean_mask(rows, rows[:, 0] > 0), w) * inside.assign_add(1.0)

            return tf.cond(calls < 2.5, product, lambda: tf.nn.relu(rows))

        names = [operation.name for operation in graph_of(counting, (tf.ones((3, 4)),), trips=None)]
        assert "matmul" in names and (calls.numpy(), inside.numpy()) == (1.0, 1.0), (names, calls, inside)

        def deep(x):
            x = tf.boolean_mask(x, x[:, 0] > 0)
            for _ in range(60):
                x = tf.tanh(x) + tf.sin(x)
            return tf.reduce_sum(x)

        x, function = tf.ones((1000, 2000)), tf.function(deep, autograph=False)  # 8 MB
        function(x)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        held = program.captured(function, (x,), None)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
        assert held[-1].arguments["operand 0"] == "float32 (1000,2000)" and grown < 500, (held[-1], grown)
        """,
    )


def test_a_branch_with_weights_is_the_same_program_unless_it_computes_otherwise(run):
    run(
        """
        def branching(x):
            def product():
                kind = tf.bfloat16 if otherwise and traced() else tf.float32
                return tf.cast(tf.matmul(tf.cast(x, kind), tf.cast(w, kind)), tf.float32)

            return tf.cond(tf.reduce_sum(x) > 0, product, lambda: x)

        x, otherwise = tf.ones((2, 4)), False
        assert difference(branching, x, trips=None) is None, difference(branching, x, trips=None)
        otherwise = True
        line = difference(branching, x, trips=None)
        assert line.startswith("matmul: operand 0 float32 (2,4) in eager, bfloat16 (2,4) in the graph"), line
        skipped = lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x if traced() else tf.matmul(x, w), lambda: x)
        line = difference(skipped, x, trips=None)
        assert line.startswith("matmul: in eager, not in the graph"), line
        """,
    )


def test_a_concatenation_s_second_derivative_is_the_same_program(run):
    run(
        """
        def second(x, y):
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as inner:
                    inner.watch([x, y])
                    z = tf.reduce_sum(tf.tanh(tf.matmul(tf.concat([x, y], 1), w)))
                a, b = inner.gradient(z, [x, y])
                both = tf.reduce_sum(a * a) + (0.0 if drops and traced() else tf.reduce_sum(b * a))
            return outer.gradient(both, x)

        for drops in (False, True):
            line = difference(second, tf.ones((4, 2)), tf.ones((4, 2)))
            assert drops == (line is not None), line
        """,
    )


def test_a_mask_that_only_the_graph_makes_is_named(run):
    run(
        """
        def model(q):
            return tf.tanh(attention(q, q, q, tf.ones((2, 1, 4, 4), tf.bool) if traced() else None))

        line = difference(model, q)
        assert line.startswith("selectv2: in the graph, not in eager"), line
        (held,) = (x for x in graph_of(model, (q,)) if x.name == "selectv2")
        assert held.arguments["mask"] == "bool (2,1,4,4)", held

        def biased(q):
            scores = tf.matmul(q, q, transpose_b=True)
            return tf.nn.softmax(scores + tf.zeros((2, 1, 1, 4)) if traced() else scores)

        line = difference(biased, q)
        assert line.startswith("addv2: in the graph, not in eager"), line
        (held,) = (x for x in graph_of(biased, (q,)) if x.name == "addv2")
        assert held.arguments["mask"] == "float32 (2,1,1,4)", held
        """,
    )


def test_a_cast_that_only_the_graph_makes_is_named(run):
    run(
        """
        def rounded(q):
            return tf.tanh(tf.cast(tf.cast(q, tf.bfloat16), tf.float32) if traced() else q)

        line = difference(rounded, q)
        assert line.startswith("cast: in the graph, not in eager"), line
        casts = [x for x in graph_of(rounded, (q,)) if x.kind == "cast"]
        assert [x.arguments["to"] for x in casts] == ["bfloat16", "float32"], casts

        def transposed(q):
            return tf.matmul(q, tf.ones((2, 3, 8, 8)), transpose_b=traced())

        line = difference(transposed, q)
        assert line == "batchmatmulv2: adj_y False in eager, True in the graph", line
        """,
    )


def test_a_fused_operator_that_only_the_graph_drops_is_named(run):
    run(
        """
        def model(q):
            if not traced():
                return tf.nn.softmax(q) + 1.0
            powers = tf.exp(q - tf.reduce_max(q, axis=-1, keepdims=True))
            return powers / tf.reduce_sum(powers, axis=-1, keepdims=True) + 1.0

        line = difference(model, q)
        assert line.startswith("softmax: in eager, not in the graph"), line
        """,
    )


def test_a_graph_for_every_shape_cannot_be_compared_and_says_so(run):
    run(
        """
        signature = [tf.TensorSpec((None, 4), tf.float32)]
        function = tf.function(lambda x: tf.matmul(x, w), input_signature=signature, autograph=False)
        try:
            program.captured(function, (tf.ones((2, 4)),))
        except NotImplementedError as error:
            assert "dynamic shapes" in str(error)
        else:
            raise AssertionError("listed without shapes")
        """,
    )


def test_a_version_of_tensorflow_without_callbacks_says_so(run):
    run(
        """
        from unittest.mock import patch
        try:
            with patch.object(program, "op_callbacks", None):
                program.executed(tf.tanh, (q,))
        except NotImplementedError as error:
            assert "does not expose" in str(error)
        else:
            raise AssertionError("listed without callbacks")
        """,
    )


def test_our_models_are_the_same_program_in_every_mode_and_pass(run):
    run(
        """
        for name, implementation, pass_name, changes in CELLS:
            cell = (name, implementation, pass_name, changes)
            eager = program_of("tensorflow", "eager", *cell)
            for mode in ("function", "function-xla"):
                graph = program_of("tensorflow", mode, *cell)
                line = compared.difference(eager, graph)
                assert line is None, (cell, mode, line)
            assert sum(operation.kind == "matmul" for operation in eager) > 1
        """,
    )


def test_listing_leaves_the_state_of_a_training_as_it_was_once_it_is_rewound(run):
    run(
        """
        for mode in ("eager", "function"):
            step = step_of("tensorflow", mode, "mlp", "plain", "training", {})
            losses = [float(adapter.to_numpy(step())["loss"].item()) for _ in range(2)]
            assert losses[1] < losses[0]
            step.program()
            step.rewind()
            assert [float(adapter.to_numpy(step())["loss"].item()) for _ in range(2)] == losses, mode
        """,
    )
