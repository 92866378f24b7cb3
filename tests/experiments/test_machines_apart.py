"""Figures of two machines are compared in no claim of a published table, and the answer says why."""

from __future__ import annotations

import pytest
from doubles.synthetic import timed

import experiments
from experiments.evidence import Evidence, Records
from experiments.first_principles import chain
from experiments.judge import APART
from experiments.spec import ALL, Verdict

GRAPH = "alpha graph"


def chained(workload: str, axis: str, *latencies: tuple[int, float], mode: str = "eager") -> list[dict]:
    """Records along one parameter, or the batch."""
    return [
        timed(ms, mode=mode, workload=workload, **({axis: n} if axis == "batch_size" else {"parameters": {axis: n}}))
        for n, ms in latencies
    ]


def gaining(name: str, *gains: tuple, spread: float = 0.01, device: str = "gpu:0", **columns) -> list[dict]:
    """Records of a graph with gains in percent along a column."""
    return [timed(10.0, gain, spread, device=device, **{name: value}, **columns) for value, gain in gains]


def resnet(dtype: str, per_s: float) -> dict:
    shape = {"workload": "resnet50", "batch_size": 64, "parameters": {"layout": "nhwc"}, "device": "gpu:0"}
    return timed(64e3 / per_s, framework="torch", mode="eager", dtype=dtype, items_per_s=per_s, **shape)


def bert(framework: str, mode: str, dtype: str, ms: float) -> dict:
    shape = {"workload": "bert-base", "batch_size": 8, "seq_len": 128, "pass": "training", "device": "gpu:0"}
    return timed(ms, framework=framework, mode=mode, dtype=dtype, **shape)


ADDITIONS = [timed(ms, mode="eager", workload="op-overhead", framework=name, parameters={"additions": 10})
             for name, ms in (("python", 1.0), ("alpha", 500.0))]  # fmt: skip
GRAPH_TOO = timed(500.0, 1.0, workload="op-overhead", parameters={"additions": 10})
# Table, how its claim begins, whom it is put to, and the records that decide it: the second is another machine's.
CLAIMS = [
    ("first-principles", "Fused, a chain", GRAPH, chained("pointwise-chain", "repeat", (1, 1), (64, 1), mode="graph")),
    ("first-principles", "Fused, a long", GRAPH, chained("pointwise-chain", "repeat", (4, 1), (16, 4), mode="graph")),
    ("first-principles", "Unfused, eager", "alpha", chained("pointwise-chain", "repeat", (1, 1), (64, 64))),
    ("first-principles", "Fused, x.cos", GRAPH, chained("fused-cos", "repeat", (1, 1), (2, 1), mode="graph")),
    ("first-principles", "Unfused, x.cos", "alpha", chained("fused-cos", "repeat", (1, 1), (2, 2))),
    ("first-principles", "Python adds", "alpha", ADDITIONS),
    ("first-principles", "At the smallest", "alpha", chained("mlp", "batch_size", (1, 1), (2, 1))),
    ("first-principles", "At the largest", "alpha", chained("mlp", "batch_size", (1, 1), (2, 2))),
    ("torch2-gpt", "It saves more on", GRAPH, gaining("workload", ("gpt-10m", 24), ("gpt2-124m", 15))),
    ("tf32-mlp", "Graph mode gains", GRAPH, gaining("dtype", ("tf32", 40), ("fp32", 10))),
    ("vision-docs", "It saves less of ViT", GRAPH, gaining("batch_size", (1, 19), (16, 2), workload="vit-b16")),
    ("paddle-bert", "On the GPU the gain shrinks as sequences", GRAPH,
     gaining("seq_len", (32, 40), (128, 10), batch_size=1, threads=1)),
    ("cnn-training", "In eager mode", ALL, [resnet("bf16", 2630.0), resnet("tf32", 1000.0)]),
    ("keras-io", "Compiled, it trains", ALL,
     [bert("torch", "eager", "fp32", 34.3), bert("torch", "inductor", "tf32", 10.0)]),
    ("keras-io", "TensorFlow trains", ALL,
     [bert("tensorflow", "function-xla", "tf32", 10.0), bert("jax", "jit", "tf32", 12.0)]),
]  # fmt: skip


@pytest.mark.parametrize(("table", "text", "side", "records"), CLAIMS, ids=lambda value: str(value)[:24])
def test_a_claim_holds_on_one_machine_and_cannot_be_told_on_two(table, text, side, records):
    experiment = experiments.get(table)
    (claim,) = [claim for claim in experiment.claims if claim.sentence.startswith(text)]
    asked = [GRAPH_TOO] * (side == "alpha") + [timed(1.0, mode="eager", workload="other")] * (side == GRAPH)

    def answer(*machines: str):
        measured = [record | {"machine_id": name} for record, name in zip(records, machines, strict=True)]
        return experiment.answers(claim, Evidence(Records([*measured, *asked])))[side]

    assert answer("a", "a").verdict == Verdict.HOLDS
    several = answer("a", "b")
    assert several.verdict == Verdict.OPEN and APART in several.numbers


@pytest.mark.parametrize(
    ("table", "text", "axis"),
    [
        ("vision-docs", "It saves less of ViT", "batch_size"),
        ("paddle-bert", "On the GPU the gain shrinks as the", "batch_size"),
    ],
)
def test_a_trend_is_followed_on_each_machine_that_has_one(table, text, axis):
    experiment = experiments.get(table)
    (claim,) = [claim for claim in experiment.claims if claim.sentence.startswith(text)]
    shared = {"workload": "vit-b16", "seq_len": 128, "threads": 1}
    falling = gaining(axis, (1, 40), (16, 10), **shared, machine_id="a")
    rising = gaining(axis, (1, 5), (4, 20), (16, 30), **shared, machine_id="b")

    def verdict(*records: dict) -> Verdict:
        eager = timed(1.0, mode="eager", workload="other", device="gpu:0")
        return experiment.answers(claim, Evidence(Records([*records, eager])))[GRAPH].verdict

    assert verdict(*falling, rising[1]) == Verdict.HOLDS
    assert verdict(*falling, *rising) == Verdict.FAILS


def test_how_far_a_chain_is_flat_compares_by_machine():
    first, *others = (
        [record | {"machine_id": name} for record in chained("pointwise-chain", "repeat", *latencies, mode="graph")]
        for name, latencies in (("a", [(1, 10), (64, 10.5), (256, 40)]), ("b", [(1, 1), (64, 4)]), ("c", [(256, 9)]))
    )
    assert chain.flat_up_to(Evidence(Records(first))) == "64"
    assert chain.flat_up_to(Evidence(Records([*first, *others[0], *others[1]]))) == "64, 1"
    assert chain.flat_up_to(Evidence(Records([first[0], *others[1]]))) == ""
