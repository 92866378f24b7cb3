"""The generate pass: its oracle, what is compared of it, and generations made of two steps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from doubles.small import workload
from pytest import approx

from frameworks.adapter import Capture, Step
from frameworks.generating import Generation
from measurement.parity import difference
from workloads.generate import generate_of

PARAMETERS = {"batch_size": 2, "prompt": 5, "tokens": 6, "attention": "explicit"}
SHAPE = (2, 6)


@pytest.fixture
def small():
    return workload("llama-tiny", None)


def outputs(tokens: np.ndarray, largest: np.ndarray) -> dict[str, np.ndarray]:
    """Of one call, as workers save them."""
    return {"0.tokens": tokens.reshape(-1).astype(np.float32), "0.largest": largest.reshape(-1)}


def test_the_oracle_generates_what_reading_everything_again_does(small):
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal(shape) * 0.5 for name, shape in small.weight_shapes({}).items()}
    inputs = small.inputs(PARAMETERS, 0)
    got = generate_of(small).reference(PARAMETERS, weights, inputs)
    ids = inputs["input_ids"]
    for step in range(PARAMETERS["tokens"]):
        logits = small.reference({"prompt": ids.shape[1]}, weights, {"input_ids": ids})["logits"]
        assert got["tokens"][:, step].tolist() == logits.argmax(-1).tolist()
        assert got["largest"][:, step] == approx(logits.max(-1), abs=1e-9)
        ids = np.concatenate([ids, logits.argmax(-1)[:, None]], 1)


def test_a_generation_costs_its_prompt_and_every_token_that_is_fed_back(small):
    generate = generate_of(small)
    read = small.cost(PARAMETERS, "bf16")
    once, twice = (generate.cost(PARAMETERS | {"prompt": 9 - n, "tokens": n}, "bf16") for n in (2, 3))
    before = (small.cost(PARAMETERS | {"prompt": n}, "bf16") for n in (7, 6))
    token, two = (whole.flops - part.flops for whole, part in zip((once, twice), before, strict=True))
    assert two == 2 * token > 0  # the cache has as many places in both
    assert generate.cost(PARAMETERS, "bf16").compulsory_bytes > read.compulsory_bytes
    assert generate.tokens_made(PARAMETERS) == 12
    assert [int(place[0]) for place in generate.places_given(PARAMETERS)] == [5, 6, 7, 8, 9]


def test_another_token_is_a_mismatch_in_fp32_and_told_in_bf16(small):
    """Beyond it nothing is compared: what follows another token is another text."""
    generate, rng = generate_of(small), np.random.default_rng(0)
    tokens, largest = rng.integers(0, 11, SHAPE), rng.standard_normal(SHAPE)
    reference = outputs(tokens, largest)
    other, elsewhere = tokens.copy(), largest.copy()
    other[1, 3:] += 1
    elsewhere[1, 4:] += 3
    generated = outputs(other, elsewhere)
    assert generate.first_differing(PARAMETERS, generated, reference) == 4
    assert not difference(*generate.comparable(PARAMETERS, generated, reference, "fp32")).within(1e-6)
    assert difference(*generate.comparable(PARAMETERS, generated, reference, "bf16")).within(1e-6)
    generated["0.largest"][-1] = np.nan
    assert not difference(*generate.comparable(PARAMETERS, generated, reference, "bf16")).within(1e-6)
    assert generate.first_differing(PARAMETERS, reference, reference) is None
    assert difference(*generate.comparable(PARAMETERS, reference, reference, "fp32")).within(0)


def test_a_logit_that_is_wrong_where_tokens_begin_to_differ_is_a_mismatch_in_any_dtype(small):
    """As where the cache is wrong: the other token is chosen for its own logit, not for rounding."""
    generate, rng = generate_of(small), np.random.default_rng(0)
    tokens, largest = rng.integers(0, 11, SHAPE), rng.standard_normal(SHAPE)
    other, wrong = tokens.copy(), largest.copy()
    other[:, 1:] += 1
    wrong[0, 1] += 0.1  # one of four logits that are compared, of twelve
    pair = outputs(other, wrong), outputs(tokens, largest)
    assert not difference(*generate.comparable(PARAMETERS, *pair, "bf16")).within(0.03)


def another_token(reference: dict, place: int) -> dict[str, np.ndarray]:
    """Outputs of the first call that choose the token at this place among the likeliest, from the third step on."""
    chosen = np.take_along_axis(reference["likeliest"], np.argsort(-reference["logits"]), -1)[..., place]
    chosen = np.where(np.arange(PARAMETERS["tokens"]) < 2, reference["tokens"], chosen)
    return outputs(chosen, reference["largest"])


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_a_token_that_rounding_cannot_choose_is_a_mismatch_beside_a_right_logit(small, dtype):
    """As where one token repeats itself, which only the reference's logit of it shows."""
    small = dataclasses.replace(small, vocabulary=40)
    weights = small.seeded_weights(PARAMETERS, 0)
    found = generate_of(small).reference(PARAMETERS, weights, small.inputs(PARAMETERS, 0))
    reference = {f"0.{name}": values.reshape(-1) for name, values in found.items()}

    def needed(mine: dict) -> float:
        return difference(*generate_of(small).comparable(PARAMETERS, mine, reference, dtype)).needed

    repeated = np.full(SHAPE, 17)
    repeated[:, 0] = found["tokens"][:, 0]
    assert needed(outputs(found["tokens"], found["largest"])) < 1e-6
    assert needed(another_token(found, 5)) > 0.1
    assert needed(outputs(repeated, found["largest"])) > 0.1
    apart = found["logits"] - found["largest"][..., None]
    found["logits"] = found["largest"][..., None] + 1e-3 * apart  # near ties
    reference["0.logits"] = found["logits"].reshape(-1)
    assert dtype == "fp32" or 0 < needed(another_token(found, 1)) < 1e-3


def test_outputs_that_do_not_fit_are_no_agreement(small):
    generate, good = generate_of(small), outputs(np.zeros(SHAPE), np.ones(SHAPE))
    for bad in ({}, {"0.tokens": good["0.tokens"]}, {**good, "0.largest": np.ones(3)}):
        assert generate.first_differing(PARAMETERS, bad, good) is None
        assert not difference(*generate.comparable(PARAMETERS, bad, good, "bf16")).within(1)


def generation(kept=lambda value: value) -> Step:
    """Counts on from a prompt; its steps give the same arrays in every call, as CUDA graphs do."""
    held = {"tokens": np.zeros(1, int), "largest": np.zeros(1)}

    def wrote(value: int) -> dict:
        held["tokens"][0], held["largest"][0] = value, value / 2
        return held

    read = Step(lambda prompt: wrote(prompt + 1), [], lambda: Capture(True, 1, 0, 2, "x", "7"), program=lambda: [1])
    proceed = Step(
        lambda token, place: wrote(int(token[0]) + place), [], lambda: Capture(True, 1, 0, 3, "x"), program=lambda: [2]
    )
    return Generation(read, proceed, [10, 100], np.stack, kept).step([(1,), (5,)])


def test_a_generation_feeds_each_token_back():
    step = generation(np.copy)
    assert [int(output["tokens"][0]) for output in step.called_in_parts()] == [2, 12, 112]
    last = step()
    assert int(last["tokens"][0]) == 116  # the second prompt's
    assert last["cache"]()["tokens"].reshape(-1).tolist() == [6, 16, 116]
    assert [int(output["tokens"][0]) for output in step.rebound([(7,)]).called_in_parts()] == [8, 18, 118]
    assert generation()()["cache"]()["tokens"].reshape(-1).tolist() == [112] * 3  # what is not kept is overwritten


def test_its_capture_is_that_of_both_parts():
    step = generation()
    assert step.capture() == Capture(True, 2, 0, 5, "x", "prompt: 7")
    assert step.program() == [1, 2]
