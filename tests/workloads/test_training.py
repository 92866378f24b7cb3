"""The training oracle: derivatives against differences, AdamW against its formulas, accumulation against one batch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles.float64 import convolution64
from doubles.small import SMALL, TRAINED, workload
from pytest import approx

import workloads
from measurement.parity import nearest_to_its_limit
from workloads import training
from workloads.autograd import Variable
from workloads.training import adamw, training_of

STEP = 1e-6


def variables(model, parameters: dict, seed: int = 0) -> dict[str, Variable]:
    rng = np.random.default_rng(seed)
    return {name: Variable(rng.standard_normal(shape) * 0.5) for name, shape in model.weight_shapes(parameters).items()}


@pytest.mark.parametrize("name", TRAINED)
def test_derivatives_are_those_of_small_changes(name, small_bert):
    """Along a random direction for each weight, so that every value takes part."""
    trained = training_of(workload(name, small_bert))
    parameters = {**SMALL[name], "accumulate": 1}
    weights, inputs = variables(trained, parameters), trained.inputs(parameters, 1)
    trained.model.loss(parameters, weights, inputs).backward()
    rng = np.random.default_rng(1)
    for key, weight in weights.items():
        if key in trained.model.state(parameters):
            continue
        direction = rng.standard_normal(weight.shape)
        losses = []
        for sign in (1, -1):
            moved = {**weights, key: Variable(weight.value + sign * STEP * direction)}
            losses.append(float(trained.model.loss(parameters, moved, inputs).value))
        slope = (losses[0] - losses[1]) / (2 * STEP)
        assert float((weight.gradient * direction).sum()) == approx(slope, rel=1e-3, abs=1e-7), (
            key
        )  # erf is interpolated: its slope errs by 5e-5


def test_the_loss_on_variables_is_the_loss_on_arrays(small_bert):
    for name in TRAINED:
        trained = training_of(workload(name, small_bert))
        parameters = {**SMALL[name], "accumulate": 1}
        weights, inputs = variables(trained, parameters), trained.inputs(parameters, 1)
        plain = {key: weight.value.astype(np.float32) for key, weight in weights.items()}
        assert float(trained.model.loss(parameters, weights, inputs).value) == approx(
            float(trained.model.loss(parameters, plain, inputs)), rel=1e-5
        )


@pytest.mark.parametrize(("convention", "fewer"), [({}, 1), ({"running_variance": "biased"}, 0)])
def test_running_statistics_move_a_tenth_of_the_way_to_the_batch_s(convention, fewer):
    """The first norm's, whose input is one convolution; the variance is the unbiased one unless asked for otherwise."""
    trained = workloads.get("resnet-tiny", "training")
    parameters = {**SMALL["resnet-tiny"], "accumulate": 1, **convention}
    weights, inputs = trained.seeded_weights(parameters, 0), trained.inputs(parameters, 1)
    outputs = trained.references(parameters, weights, [inputs])[0]
    assert set(outputs) == {"loss", *trained.model.state(parameters)}
    wide = convolution64_of(inputs["images"], weights["conv1.weight"].astype(np.float64))
    for channel, values in enumerate(np.moveaxis(wide, 1, 0)):
        for name, of_batch in (("running_mean", values.mean()), ("running_var", values.var(ddof=fewer))):
            before = float(weights[f"bn1.{name}"][channel])
            assert outputs[f"bn1.{name}"][channel] == approx(before + 0.1 * (of_batch - before), rel=1e-6)


def convolution64_of(images, kernel):
    return np.stack([convolution64(image, kernel, 2, 3) for image in images])


def test_two_steps_of_adamw_by_hand():
    weight, moments = np.array([2.0]), (np.zeros(1), np.zeros(1))
    rate, decay, (b1, b2), epsilon = 6e-4, 0.1, (0.9, 0.95), 1e-8
    adamw(weight, np.array([0.5]), moments, 1)
    first = 2.0 * (1 - rate * decay) - rate * 0.5 / (0.5 + epsilon)  # both corrections undo the first averaging
    assert weight[0] == approx(first, rel=1e-12)
    adamw(weight, np.array([-1.0]), moments, 2)
    mean = (b1 * (1 - b1) * 0.5 + (1 - b1) * -1.0) / (1 - b1**2)
    square = (b2 * (1 - b2) * 0.25 + (1 - b2) * 1.0) / (1 - b2**2)
    assert weight[0] == approx(first * (1 - rate * decay) - rate * mean / (math.sqrt(square) + epsilon), rel=1e-12)


def test_epsilon_before_the_correction_is_as_large_as_the_correction_makes_it():
    """Of a gradient of epsilon's size the first step is a half of the learning rate, or less than a fifth of it."""
    rate, decay, b2, epsilon = 6e-4, 0.1, 0.95, 1e-8
    for early, expected in ((False, 1 / 2), (True, 1 / (1 + 1 / math.sqrt(1 - b2)))):
        weight, moments = np.array([2.0]), (np.zeros(1), np.zeros(1))
        adamw(weight, np.array([epsilon]), moments, 1, early)
        assert weight[0] == approx(2.0 * (1 - rate * decay) - rate * expected, rel=1e-12)


def test_adamw_a_part_at_a_time_is_adamw_at_once(monkeypatch):
    """Parts end amid a matrix's rows; the gradient is one as a transposed weight's comes, not contiguous."""
    rng = np.random.default_rng(0)
    started, gradient = rng.standard_normal((5, 7)), rng.standard_normal((7, 5)).T
    updated = []
    for at_once in (1 << 14, 4):
        monkeypatch.setattr(training, "AT_ONCE", at_once)
        weight, moments = started.copy(), (np.zeros((5, 7)), np.zeros((5, 7)))
        for step in (1, 2):
            adamw(weight, gradient, moments, step)
        updated.append((weight, *moments))
    for whole, in_parts in zip(*updated, strict=True):
        assert np.array_equal(whole, in_parts)
    assert np.all(updated[0][0] != started)


@pytest.mark.parametrize("name", ["mlp", "bert-tiny", "gpt-tiny"])
def test_losses_change_with_the_updates_and_not_only_with_the_inputs(name, monkeypatch):
    trained = workloads.get(name, "training")
    parameters = {**SMALL[name], "accumulate": 1}
    weights = trained.seeded_weights(parameters, 0)
    sets = [trained.inputs(parameters, 1)] * 3
    losses = [float(outputs["loss"][0]) for outputs in trained.references(parameters, weights, sets)]
    assert losses[0] > losses[1] > losses[2]
    tolerance = trained.tolerance["fp32"]
    assert losses[0] - losses[1] > tolerance  # an optimizer that did nothing would be a mismatch
    monkeypatch.setattr(training, "LEARNING_RATE", 2 * training.LEARNING_RATE)
    other = [float(outputs["loss"][0]) for outputs in trained.references(parameters, weights, sets)]
    assert max(abs(a - b) for a, b in zip(losses, other, strict=True)) > tolerance


def exceeds(trained, losses: list, expected: list, dtype: str) -> bool:
    """Return whether losses of consecutive calls are a mismatch; states are not compared."""
    ours, right = ({f"{call}.loss": output["loss"] for call, output in enumerate(each)} for each in (losses, expected))
    pair = trained.comparable({}, ours, right, dtype)
    off, tolerance = nearest_to_its_limit([pair], lambda output: trained.tolerance_of(output, dtype))
    return not off.within(tolerance)


@pytest.mark.parametrize("name", TRAINED)
def test_missing_updates_and_gradients_of_one_rank_alone_exceed_the_tolerance(name, small_bert, monkeypatch):
    """In bf16, models of width 8 change too little; `test_torch_ranks.py` has a larger one."""
    trained = training_of(workload(name, small_bert))
    parameters = {**SMALL[name], "batch_size": 4, "accumulate": 1}
    weights, sets = trained.seeded_weights(parameters, 0), trained.sets(parameters, 0)[: trained.parity_calls]
    expected = trained.references(parameters, weights, sets)
    halves = [
        trained.references(
            {**parameters, "batch_size": 2},
            weights,
            [{k: np.split(v, 2)[part] for k, v in one.items()} for one in sets],
        )
        for part in (0, 1)
    ]
    apart = [{"loss": (one["loss"] + other["loss"]) / 2} for one, other in zip(*halves, strict=True)]
    monkeypatch.setattr(training, "adamw", lambda *_: None)
    kept = trained.references(parameters, weights, sets)
    assert not exceeds(trained, expected, expected, "fp32")
    assert exceeds(trained, apart, expected, "fp32")
    assert exceeds(trained, kept, expected, "fp32")
    assert exceeds(trained, kept, expected, "tf32")


@pytest.mark.parametrize("name", ["gpt-tiny", "vit-tiny", "lstm-tiny"])
def test_inputs_that_a_graph_ignores_exceed_the_tolerance(name):
    trained = workloads.get(name, "training")
    parameters = {**SMALL[name], "accumulate": 1}
    weights, sets = trained.seeded_weights(parameters, 0), trained.sets(parameters, 0)
    first, second, third, _ = sets
    assert all((second[key] == value).all() for key, value in first.items())
    expected = trained.references(parameters, weights, [first, second, third])
    assert exceeds(trained, trained.references(parameters, weights, [first] * 3), expected, "fp32")


def test_accumulating_is_one_large_batch():
    parameters = {"batch_size": 6, "width": 5, "depth": 2, "accumulate": 1}
    trained = workloads.get("mlp", "training")
    weights = trained.seeded_weights(parameters, 0)
    whole = trained.inputs(parameters, 1)
    parts = {name: value.reshape(3, 2, 5) for name, value in whole.items()}
    at_once = trained.references(parameters, weights, [whole] * 2)
    in_parts = trained.references({**parameters, "batch_size": 2, "accumulate": 3}, weights, [parts] * 2)
    for a, b in zip(at_once, in_parts, strict=True):
        assert a["loss"] == approx(b["loss"], rel=1e-6)


def test_micro_batches_differ_and_lie_along_the_first_axis():
    trained = workloads.get("gpt-tiny", "training")
    parameters = {"batch_size": 2, "seq_len": 5, "attention": "explicit", "accumulate": 3}
    inputs = trained.inputs(parameters, 1)
    assert {name: value.shape for name, value in inputs.items()} == {"input_ids": (3, 2, 5), "targets": (3, 2, 5)}
    assert np.array_equal(inputs["input_ids"][:, :, 1:], inputs["targets"][:, :, :-1])
    assert not np.array_equal(inputs["input_ids"][0], inputs["input_ids"][1])
    assert trained.tokens_per_call(parameters) == 30
    assert trained.items_per_call(parameters) == 6


def test_a_llama_s_products_are_six_operations_a_weight_and_token():
    trained = workloads.get("llama-8b", "training")
    parameters = {"batch_size": 2, "seq_len": 16, "accumulate": 1, "ranks": 1}
    shapes = trained.weight_shapes(parameters)
    weights = sum(math.prod(shape) for name, shape in shapes.items() if len(shape) == 2 and "embed" not in name)
    wide, narrow = (
        {o.operator_class: o for o in trained.cost({**parameters, "states": states}, "bf16").operators}
        for states in ("fp32", "bf16")
    )
    assert wide["matmul"].flops == 6 * trained.tokens_per_call(parameters) * weights
    updated = 7 * 2 * sum(map(math.prod, shapes.values()))
    assert wide["pointwise"].bytes - narrow["pointwise"].bytes == updated


def test_what_the_oracle_does_not_use_cannot_be_differentiated():
    with pytest.raises(TypeError):
        np.sin(Variable(np.ones(2)))


@pytest.mark.parametrize(
    ("loss", "state", "holds", "limit"),
    [(0.01, 0.08, True, 0.1), (0.03, 0.08, False, 0.02), (0.01, 0.12, False, 0.1), (0.015, 0.001, True, 0.02)],
)
def test_a_deep_network_s_losses_are_held_to_more_than_its_running_statistics(loss, state, holds, limit):
    """What is off in a statistic stays off in the next iteration, and that it repeats is no sign of a fault."""
    trained = workloads.get("resnet50", "training")
    reference = {f"{call}.{name}": np.ones(8) for call in range(3) for name in ("loss", "bn1.running_mean")}
    outputs = {key: value * (1 + (loss if key.endswith("loss") else state)) for key, value in reference.items()}
    outputs |= {key: np.full(1, 1 + loss) for key in reference if key.endswith("loss")}
    reference |= {key: np.ones(1) for key in reference if key.endswith("loss")}
    pair = trained.comparable({}, outputs, reference, "bf16")
    off, tolerance = nearest_to_its_limit([pair], lambda output: trained.tolerance_of(output, "bf16"))
    assert (off.within(tolerance), tolerance) == (holds, limit)


@pytest.mark.parametrize(("name", "statistics"), [("gpt-tiny", {}), ("resnet-tiny", {"batch_statistics": "rank"})])
def test_ranks_share_one_global_batch(name, statistics, small_bert):
    """Two ranks' losses are one rank's on both batches; statistics of each rank's batch are rank 0's in the end."""
    trained = training_of(workload(name, small_bert))
    parameters = {**SMALL[name], "accumulate": 1, "ranks": 2, "strategy": "ddp"}
    one = {**parameters, "batch_size": 2 * parameters["batch_size"], "ranks": 1}
    weights, sets = trained.seeded_weights(parameters, 0), [trained.inputs(parameters, seed) for seed in (1, 2)]
    assert all((trained.inputs(one, 1)[key] == value).all() for key, value in sets[0].items())
    together = trained.references(parameters | statistics, weights, sets)
    alone = trained.references(one, weights, sets)
    same = [a["loss"][0] == approx(b["loss"][0], rel=1e-9) for a, b in zip(together, alone, strict=True)]
    assert all(same) is not bool(statistics)
    halves = trained.references(
        {**parameters, "ranks": 1}, weights, [{k: v[: len(v) // 2] for k, v in sets[0].items()}]
    )
    for key in trained.model.state(parameters):
        assert together[0][key] == approx(halves[0][key]), key
