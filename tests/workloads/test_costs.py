"""FLOPs and bytes against counting what the oracle does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles.small import SMALL, workload
from pytest import approx

import workloads


def _plain(value):
    return value.view(np.ndarray) if isinstance(value, Counting) else value


class Counting(np.ndarray):
    """An array that counts two FLOPs for every multiply-add of a matrix product, by whether both sides are batched."""

    counts: dict[str, int]

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [_plain(value) for value in inputs]
        if "out" in options:
            options["out"] = tuple(_plain(value) for value in options["out"])
        result = getattr(ufunc, method)(*plain, **options)
        if ufunc is np.matmul:
            kind = "attention" if plain[1].ndim > 2 else "matmul"
            Counting.counts[kind] += 2 * result.size * plain[0].shape[-1]
        return result.view(Counting) if isinstance(result, np.ndarray) else result


MULTIPLYING = [
    name
    for name in SMALL
    if "matmul" in {o.operator_class for o in workloads.get(name).cost(SMALL[name], "fp32").operators}
]


@pytest.mark.parametrize("name", MULTIPLYING)
def test_flops_of_matrix_products_are_those_the_oracle_does(name, small_bert):
    model, parameters = workload(name, small_bert), SMALL[name]
    Counting.counts = {"matmul": 0, "attention": 0}
    weights = {key: value.view(Counting) for key, value in model.seeded_weights(parameters, 0).items()}
    inputs = {key: value.view(Counting) for key, value in model.inputs(parameters, 1).items()}
    model.reference(parameters, weights, inputs)
    analytic = {cost.operator_class: cost.flops for cost in model.cost(parameters, "fp32").operators}
    assert {kind: analytic.get(kind, 0) for kind in Counting.counts} == Counting.counts


@pytest.mark.parametrize("seq_len", [128, 512])
def test_matrix_products_are_nearly_all_of_bert_s_flops(seq_len):
    parameters = {**SMALL["bert-base"], "batch_size": 8, "seq_len": seq_len}
    cost = workloads.get("bert-base").cost(parameters, "fp32")
    products = sum(part.flops for part in cost.operators if part.operator_class in ("matmul", "attention"))
    assert 0.99 < products / cost.flops < 1.0


def test_bert_base_flops_are_the_known_22_giga_per_128_tokens():
    # 2 x 85M encoder weights x 128 tokens = 21.7 G, attention 0.6 G
    cost = workloads.get("bert-base").cost({**SMALL["bert-base"], "batch_size": 1, "seq_len": 128}, "fp32")
    assert cost.flops == approx(22.4e9, rel=0.01)


def test_the_gpts_have_their_published_sizes():
    for name, millions in (("gpt2-124m", 123.6), ("gpt-10m", 10.65)):
        shapes = workloads.get(name).weight_shapes({})
        counted = sum(math.prod(shape) for key, shape in shapes.items() if key != "wpe.weight")
        assert counted / 1e6 == approx(millions, rel=1e-3)


def test_training_flops_are_the_usual_estimate():
    """6 N + 12 L H Q T a token (Chowdhery et al. 2022, appendix B), and little for everything else."""
    parameters = {"batch_size": 12, "seq_len": 1024, "attention": "explicit", "accumulate": 40}
    cost = workloads.get("gpt2-124m", "training").cost(parameters, "bf16")
    estimate = 40 * 12 * 1024 * (6 * 123.6e6 + 12 * 12 * 768 * 1024)
    products = sum(part.flops for part in cost.operators if part.operator_class in ("matmul", "attention"))
    assert products == approx(estimate, rel=1e-3)
    assert estimate < cost.flops < 1.05 * estimate


@pytest.mark.parametrize("name", SMALL)
def test_compulsory_bytes_are_weights_inputs_and_outputs_once(name, small_bert):
    model, parameters = workload(name, small_bert), SMALL[name]
    weights, inputs = model.seeded_weights(parameters, 0), model.inputs(parameters, 1)
    # Rows of tables that 2 x 5 tokens read at most; GPT's embedding is its output layer as well.
    touched = {"word": 2 * 5, "position": 5, "token_type": 1, "wpe.weight": 5, "embedding.weight": 2 * 5}
    touched |= {"model.embed_tokens.weight": 2 * 5} if "lm_head.weight" in weights else {}
    values = 0
    for key, value in weights.items():
        kind = key.removeprefix("embeddings.").removesuffix("_embeddings.weight")
        values += touched[kind] * value.shape[1] if kind in touched else value.size
    values += sum(value.size for value in model.reference(parameters, weights, inputs).values())
    values += sum(value.size for value in inputs.values() if value.dtype == np.float32)
    integers = sum(value.nbytes for value in inputs.values() if value.dtype != np.float32)
    for dtype, width in (("bf16", 2), ("fp32", 4)):
        # A single scalar may be left out, as the chain's factor is.
        assert model.cost(parameters, dtype).compulsory_bytes == approx(values * width + integers, abs=width)


@pytest.mark.parametrize("name", SMALL)
def test_unfused_traffic_is_at_least_the_compulsory(name, small_bert):
    cost = workload(name, small_bert).cost(SMALL[name], "fp32")
    assert cost.unfused_bytes >= cost.compulsory_bytes > 0
    assert cost.flops > 0


def _by_class(cost) -> dict:
    return {part.operator_class: part for part in cost.operators}


@pytest.mark.parametrize("name", ["bert-base", "gpt2-124m"])
def test_fused_attention_writes_no_scores(name):
    """Its traffic grows with the length of the sequence, that of attention written out with its square."""
    model = workloads.get(name)

    def growth(fused: bool) -> float:
        short, long = ({**SMALL.get(name, {"attention": "fused"}), "batch_size": 64, "seq_len": n} for n in (256, 512))
        return model.cost(long, "bf16", fused).unfused_bytes / model.cost(short, "bf16", fused).unfused_bytes

    assert growth(fused=True) < 2.0
    assert growth(fused=False) > 2.5


def test_causal_attention_that_is_fused_computes_half_of_the_scores():
    parameters = {"batch_size": 2, "seq_len": 63, "attention": "fused"}
    model = workloads.get("gpt2-124m")
    written, fused = (_by_class(model.cost(parameters, "bf16", how)) for how in (False, True))
    assert fused["attention"].flops / written["attention"].flops == approx(64 / 63 / 2)
    assert fused["normalisation"].transcendentals / written["normalisation"].transcendentals == approx(64 / 63 / 2)
    assert fused["matmul"] == written["matmul"]
    bert = workloads.get("bert-base")
    written, fused = (_by_class(bert.cost({**parameters, "mask": "none"}, "bf16", how)) for how in (False, True))
    assert fused["attention"].flops == written["attention"].flops


def test_the_known_call_of_an_h200_moves_no_more_than_its_time_allows():
    """BERT-base, 64 x 512 in bf16 with fused attention: 14.66 ms, at 4.16 TB/s and 766 TFLOP/s."""
    cost = workloads.get("bert-base").cost({"batch_size": 64, "seq_len": 512, "mask": "none"}, "bf16", True)
    assert cost.unfused_bytes / 4.16e12 < cost.flops / 766e12 < 14.66e-3


def test_transcendentals_are_those_of_softmax_gelu_and_cosines():
    parameters = {"batch_size": 2, "seq_len": 5, "mask": "none"}
    bert = workloads.get("bert-base").cost(parameters, "fp32")
    assert bert.transcendentals == 12 * (2 * 12 * 5 * 5 + 2 * 5 * 3072) + 2 * 768
    assert workloads.get("fused-cos").cost({"elements": 7, "repeat": 3}, "fp32").transcendentals == 21
    assert workloads.get("pointwise-chain").cost({"elements": 7, "repeat": 3}, "fp32").transcendentals == 0


@pytest.mark.parametrize("pass_name", ["inference", "training"])
def test_an_lstm_reads_its_states_matrix_at_each_position_in_every_mode(pass_name):
    """Fusing spares no product of a recurrence: what its modes move differs by less than pointwise traffic does."""
    common = {"batch_size": 1, "cell": "fused", "accumulate": 1}
    short, long = (workloads.get("lstm", pass_name).cost(common | {"seq_len": n}, "fp32") for n in (64, 128))
    matrices = 64 * 4 * 2 * 512 * 4 * 512 * (2 if pass_name == "training" else 1)  # of 64 more positions, two layers
    assert long.fused_bytes - short.fused_bytes == approx(matrices, rel=0.01)
    assert matrices < long.unfused_bytes - short.unfused_bytes
    assert long.fused_bytes < long.unfused_bytes


def test_a_network_without_recurrence_reads_no_weight_twice(small_bert):
    cost = workload("bert-base", small_bert).cost(SMALL["bert-base"], "fp32")
    assert cost.fused_bytes == cost.compulsory_bytes
