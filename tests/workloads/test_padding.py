"""Sequences of different lengths, padded: what goes in, what is right, what is compared, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest
from doubles.environment import REAL, run_sweep
from doubles.small import SMALL
from field_rows import STANDS_FOR

import frameworks
import workloads
from measurement.parity import difference
from records.costs import tokens_of
from records.statuses import MEASURED
from worker.loading import padding_of
from workloads.bert import padded_lengths
from workloads.spec import without_padding

pytestmark = pytest.mark.slow

PADDED = {**SMALL["bert-tiny"], "batch_size": 3, "seq_len": 10, "mask": "padded"}


def float64(arrays: dict) -> dict:
    return {name: value.astype(np.float64) for name, value in arrays.items()}


def test_lengths_are_spread_evenly_and_hold_the_same_share_of_padding_in_any_batch():
    assert padded_lengths(1, 100) == [60]
    assert padded_lengths(2, 100) == [40, 80]
    assert padded_lengths(4, 100) == [30, 50, 70, 90]
    assert padded_lengths(64, 512)[0] < 110
    assert padded_lengths(64, 512)[-1] > 500
    assert padded_lengths(3, 1) == [1, 1, 1]  # none is empty
    for batch in (1, 2, 8, 64):
        assert sum(padded_lengths(batch, 512)) / (512 * batch) == pytest.approx(0.6, abs=0.01)


def test_padded_inputs_are_zeros_behind_each_sequence_in_an_order_that_the_seed_decides(small_bert):
    orders = set()
    for seed in range(20):
        inputs = small_bert.inputs(PADDED, seed)
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        lengths = mask.sum(axis=1)
        orders.add(tuple(lengths))
        assert sorted(lengths) == padded_lengths(3, 10)
        assert (mask[:, :-1] >= mask[:, 1:]).all()  # no hole
        assert ((ids > 0) == (mask > 0)).all()
    assert len(orders) == 6  # all there are
    plain = small_bert.inputs({**PADDED, "mask": "full"}, 3)["input_ids"]
    assert (
        (plain == small_bert.inputs(PADDED, 3)["input_ids"]) | (small_bert.inputs(PADDED, 3)["input_ids"] == 0)
    ).all()


def test_the_reference_gives_each_sequence_what_it_gets_alone(small_bert):
    """The same sequences one by one, at their own lengths and without any mask."""
    weights = float64(small_bert.seeded_weights(PADDED, 0))
    inputs = small_bert.inputs(PADDED, 1)
    together = small_bert.reference(PADDED, weights, inputs)
    for row, length in enumerate(inputs["attention_mask"].sum(axis=1)):
        ids = inputs["input_ids"][row : row + 1, :length]
        alone = small_bert.reference({**PADDED, "mask": "none"}, weights, {"input_ids": ids})
        assert np.allclose(together["last_hidden_state"][row, :length], alone["last_hidden_state"][0], atol=1e-12)
        assert np.allclose(together["pooler_output"][row], alone["pooler_output"][0], atol=1e-12)


def test_whoever_forgets_the_mask_is_a_mismatch_in_every_dtype():
    bert = workloads.get("bert-tiny")
    weights, right, wrong = float64(bert.seeded_weights(PADDED, 0)), {}, {}
    for call in range(bert.parity_calls):
        inputs = bert.inputs(PADDED, call)
        counts = inputs.pop("attention_mask")
        masked = bert.reference(PADDED, weights, {**inputs, "attention_mask": counts})
        forgotten = bert.reference(PADDED, weights, inputs)
        for outputs_by_name, outputs in ((right, masked), (wrong, forgotten)):
            outputs_by_name |= {f"{call}.{name}": value for name, value in without_padding(outputs, counts).items()}
    assert difference(right, right).within(bert.tolerance["fp32"])
    for dtype, tolerance in bert.tolerance.items():
        assert not difference(wrong, right).within(tolerance), dtype


def test_what_stands_at_padding_is_not_compared_and_all_else_is(small_bert):
    states = np.arange(2 * 3 * 3, dtype=float).reshape(2, 3, 3)  # (B, S, H), H as long as S
    pooled = np.arange(6.0).reshape(2, 3)
    counts = np.array([[1, 1, 0], [1, 0, 0]])
    left = without_padding({"states": states, "pooled": pooled}, counts)
    assert left["states"].tolist() == [[0, 1, 2], [3, 4, 5], [9, 10, 11]]
    assert left["pooled"] is pooled
    assert without_padding({"states": states}, None)["states"] is states


def test_the_padding_of_an_input_file_is_known_by_set(tmp_path):
    np.savez(tmp_path / "a.npz", **{"0.input_ids": [[1]], "0.attention_mask": [[1]], "1.attention_mask": [[0]]})
    masks = padding_of(str(tmp_path / "a.npz"), "attention_mask")
    assert {index: value.tolist() for index, value in masks.items()} == {0: [[1]], 1: [[0]]}
    assert padding_of(str(tmp_path / "a.npz"), None) == {}


def test_costs_with_and_without_padding(cell):
    parameters = (("batch_size", 4), ("seq_len", 100), ("mask", "padded"), ("attention", "explicit"))
    padded = cell(workload="bert-base", parameters=parameters)
    costs = tokens_of(padded)
    assert (costs["tokens_per_call"], costs["real_tokens_per_call"]) == (400, 240)
    bert = workloads.get("bert-base")
    alone = [bert.cost({**dict(parameters), "batch_size": 1, "seq_len": n}, "fp32").flops for n in (30, 50, 70, 90)]
    assert costs["real_flops"] == sum(alone) < bert.cost(dict(parameters), "fp32").flops
    full = cell(workload="bert-base", parameters=(*parameters[:2], ("mask", "full"), parameters[3]))
    assert tokens_of(full) == {
        "tokens_per_call": 400,
        "real_tokens_per_call": 400,
        "real_flops": bert.cost(dict(parameters), "fp32").flops,
    }
    assert tokens_of(cell())["real_tokens_per_call"] is None


def test_training_costs_without_padding_what_its_forward_and_backward_passes_save(cell):
    parameters = (("batch_size", 2), ("seq_len", 10), ("mask", "padded"), ("attention", "explicit"), ("accumulate", 3))
    trained = cell(workload="bert-tiny", pass_name="training", parameters=parameters)
    training, model = workloads.get("bert-tiny", "training"), workloads.get("bert-tiny")
    costs = tokens_of(trained)
    assert (costs["tokens_per_call"], costs["real_tokens_per_call"]) == (60, 36)
    saved = model.cost(dict(parameters), "fp32").flops - model.real_flops(dict(parameters))
    assert training.cost(dict(parameters), "fp32").flops - costs["real_flops"] == 9 * saved > 0


# What docs/methodology.md, "The same program", says of them.
EXPLAINED = {
    ("torch", "library"): "all: in eager, not in the graph (dtype bool); eager mode's Python branches on the value of "
    "all, the graph does not"
}
SWEEP = """
workload = "bert-tiny"
impl = ["library", "plain"]
mode = ["eager", "graph"]
batch = 3
seq = 16
mask = "padded"
attention = ["explicit", "fused"]
threads = 1
budget = 0.1
"""


GRAPHS = {"torch": '"dynamo"'}  # Inductor compiles four graphs for half a minute


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("framework", [name for name in REAL if frameworks.describe(name).has("plain", "bert")])
def test_every_framework_masks_padding_in_every_implementation(framework, tmp_path):
    """Compared with the reference at all positions that are no padding."""
    description, records = run_sweep(framework, tmp_path, SWEEP.replace('"graph"', GRAPHS.get(framework, '"graph"')))
    measured = [record for record in records if record["status"] in MEASURED]
    assert {record["status"] for record in records if record not in measured} <= {"unsupported"}, records
    having = {name for name in description.models if description.has(name, "bert")}
    assert {record["implementation"] for record in measured} == having
    found = {STANDS_FOR.get(record["mode"], record["mode"]) for record in measured}
    assert found == {description.baseline.name, *description.default_graph}
    for record in measured:
        assert record["parity_reference"] == "numpy"
        assert 0 < record["parity_max_abs_err"] <= 1e-4, record["cell"]
        graph = description.mode(record["mode"]).graph
        differs = EXPLAINED.get((framework, record["implementation"])) if graph else None
        assert record["program_difference"] == differs, record["cell"]
        assert (record["tokens_per_call"], record["real_tokens_per_call"]) == (48, sum(padded_lengths(3, 16)))
        assert record["real_flops"] < record["flops"]
        assert record["real_tokens_per_s"] < record["tokens_per_s"]
