"""The claims of gpt-fast and decode-claims on records that make each hold, fail, and untellable."""

from __future__ import annotations

from dataclasses import replace

import pytest
from doubles.synthetic import FAILS, HOLDS, OPEN, timed, verdict

import experiments
from experiments.evidence import Evidence, Records
from experiments.judge import APART
from experiments.spec import ALL, PUBLISHED
from measurement.statistics import Interval


def decoded(framework: str, mode: str, milliseconds: float, batch: int = 1, **options) -> dict:
    shared = {"workload": "llama-1b", "pass": "decode", "dtype": "bf16", "device": "gpu:0", "batch_size": batch}
    parameters = {"context": 1024, "attention": "explicit"}
    gain = None if mode == "eager" else 0.0
    return timed(milliseconds, gain, framework=framework, mode=mode, parameters=parameters, **shared, **options)


@pytest.mark.parametrize(
    ("text", "graphs", "batch", "expected"),
    [
        ("With CUDA graphs, compiling changes", 1.0, 1, HOLDS),
        ("With CUDA graphs, compiling changes", 1.35, 1, FAILS),
        ("With CUDA graphs, compiling changes", 1.03, 1, OPEN),
        ("With CUDA graphs, compiling makes", 1.0, 1, HOLDS),
        ("With CUDA graphs, compiling makes", 0.9, 1, HOLDS),
        ("With CUDA graphs, compiling makes", 1.35, 1, FAILS),
        ("With CUDA graphs, compiling makes", 1.02, 1, OPEN),
        ("At batch 1 ", 1.35, 1, HOLDS),
        ("At batch 1 ", 0.9, 1, FAILS),
        ("At batch 1 ", 1.001, 1, OPEN),
        ("At batch 1 ", 1.35, 8, OPEN),
        ("At batch 128", 0.9, 128, HOLDS),
        ("At batch 128", 1.1, 128, FAILS),
        ("At batch 128", 0.9, 1, OPEN),
    ],
)
def test_compiling_beside_cuda_graphs(text, graphs, batch, expected):
    records = [decoded("torch", mode, ms, batch, spread=0.002) for mode, ms in (
        ("eager", 4.0), ("cuda-graph", graphs), ("inductor-reduce-overhead", 1.0)
    )]  # fmt: skip
    assert verdict("decode-claims", text, records, ALL) == expected


def test_modes_timed_in_turn_are_judged_by_their_paired_ratio():
    """The two latencies scatter together: alone they cannot tell what the rounds do."""
    records = [
        decoded("torch", mode, ms, spread=0.3) for mode, ms in (("cuda-graph", 1.3), ("inductor-reduce-overhead", 1.0))
    ]
    experiment = experiments.get("decode-claims")
    (claim,) = [claim for claim in experiment.claims if claim.sentence.startswith("At batch 1 ")]
    alone = Evidence(Records(records))
    assert experiment.answers(claim, alone)[ALL].verdict == OPEN
    together = replace(alone, paired=lambda this, other: Interval(1.3, 1.28, 1.32))
    assert experiment.answers(claim, together)[ALL].verdict == HOLDS


@pytest.mark.parametrize(
    ("text", "torch", "jax", "expected"),
    [
        ("A token takes 4 to 5", 4.5, 1.0, HOLDS),
        ("A token takes 4 to 5", 2.0, 1.0, FAILS),
        ("A token takes 4 to 5", 5.0, 1.0, OPEN),
        ("A token takes more than 10", 1.0, 14.0, HOLDS),
        ("A token takes more than 10", 4.5, 1.0, FAILS),
        ("A token takes more than 10", 1.0, 10.0, OPEN),
    ],
)
def test_torch_and_jax(text, torch, jax, expected):
    records = [decoded("torch", "eager", torch), decoded("jax", "jit", jax)]
    assert verdict("decode-claims", text, records, ALL) == expected
    assert verdict("decode-claims", text, records[:1], ALL) == OPEN


def test_a_prompt_that_is_read_is_no_token():
    prompts = [decoded("torch", "eager", 4.5) | {"pass": "prefill"}, decoded("jax", "jit", 1.0) | {"pass": "prefill"}]
    tokens = [decoded("torch", "eager", 2.0), decoded("jax", "jit", 1.0)]
    assert verdict("decode-claims", "A token takes 4 to 5", prompts, ALL) == OPEN
    assert verdict("decode-claims", "A token takes 4 to 5", [*prompts, *tokens], ALL) == FAILS


def test_records_of_two_machines_have_no_ratio():
    """A host may let eager mode take twice as long: that is no difference between frameworks."""
    text = "A token takes 4 to 5"
    torch, jax = decoded("torch", "eager", 4.5, machine_id="a"), decoded("jax", "jit", 1.0, machine_id="a")
    slower = decoded("torch", "eager", 9.0, machine_id="b")
    assert verdict("decode-claims", text, [torch, jax, slower], ALL) == HOLDS
    assert verdict("decode-claims", text, [slower, jax], ALL) == OPEN
    assert verdict("decode-claims", text, [slower, torch, jax | {"machine_id": "c"}], ALL) == OPEN
    experiment = experiments.get("decode-claims")
    (claim,) = [claim for claim in experiment.claims if claim.sentence.startswith(text)]
    answer = experiment.answers(claim, Evidence(Records([slower, jax])))[ALL]
    assert answer.numbers.endswith(APART)


@pytest.mark.parametrize(("percent", "answers"), [(90, (HOLDS, HOLDS)), (70, (HOLDS, FAILS)), (68, (OPEN, FAILS))])
def test_the_share_of_the_bandwidth(percent, answers):
    shared = {"workload": "llama-7b", "pass": "generate", "dtype": "bf16", "device": "gpu:0", "batch_size": 1}
    shared |= {"parameters": {"quant": "none"}}
    shared |= {"tokens_per_s": 250.0, "datasheet_bandwidth_pct": percent}
    records = [timed(4.0, **shared), timed(4.0, 50.0, **shared)]
    texts = ("Compiled", "They take 80 %")
    assert tuple(verdict("gpt-fast", text, records, "alpha graph") for text in texts) == answers
    assert verdict("gpt-fast", "Weights in int8", records, "alpha graph") == OPEN


@pytest.mark.parametrize(("int8_ms", "expected"), [(2.7, HOLDS), (4.0, FAILS), (2.5, OPEN)])
def test_weights_in_int8_are_compared_mode_by_mode_and_on_one_machine(int8_ms, expected):
    shared = {
        "workload": "llama-7b",
        "pass": "generate",
        "dtype": "bf16",
        "device": "gpu:0",
        "batch_size": 1,
        "run_id": "gpu",
    }
    whole, small = (
        timed(ms, 50.0, **shared | {"parameters": {"quant": quant}}) for ms, quant in ((4.0, "none"), (int8_ms, "int8"))
    )
    assert verdict("gpt-fast", "Weights in int8", [whole, small], "alpha graph") == expected
    assert verdict("gpt-fast", "Weights in int8", [whole, small | {"mode": "other"}], "alpha graph") == OPEN
    assert verdict("gpt-fast", "Weights in int8", [whole, small | {"machine_id": "b"}], "alpha graph") == OPEN


def test_the_two_sources_of_gpt_fast_differ_in_the_share():
    answers = [verdict("gpt-fast", text, [], PUBLISHED) for text in ("Compiled", "They take 80 %", "Weights in int8")]
    assert answers == [HOLDS, FAILS, HOLDS]


@pytest.mark.parametrize("table", ["gpt-fast", "decode-claims"])
def test_every_figure_has_its_address(table):
    experiment = experiments.get(table)
    assert all(row["address"].startswith("https://github.com/") for row in experiment.published())
    assert experiment.tables(Evidence(Records([])), experiment.published())
