"""Passes with a cache in the real frameworks: parity, capture, 128 tokens, and faults that must not pass."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from conftest import ROOT
from doubles import generating
from doubles.planted import sitecustomize as planted
from test_frameworks import bench, interpreter

import frameworks
import workloads
from measurement.schema import MEASURED

pytestmark = pytest.mark.timeout(1200)
# How the differences of the library's graphs from eager mode begin, as docs/methodology.md explains them.
ATTENTION = "scaled_dot_product_attention: "
LIBRARY_DIFFERS = {
    ("static", "decode"): ATTENTION + "query float32 (2,2,2,16) in eager, float32 (2,4,1,16) in the graph",
    ("static", "prefill"): ATTENTION + "mask none in eager, bool (2,1,12,12) stride (0,144,12,1) in the graph",
    ("static", "generate"): ATTENTION + "mask none in eager, bool (2,1,12,140) stride (0,1680,140,1) in the graph",
}
NO_CAST = "cast: in the graph, not in eager (x float32 {}, to float32) (2 times)"  # which PaddleNLP asks for
PADDLENLP_DIFFERS = {
    ("dynamic", "decode"): NO_CAST.format("rank 4"),
    ("dynamic", "prefill"): NO_CAST.format("(2,4,12,12)"),
    ("dynamic", "generate"): NO_CAST.format("(2,4,12,12)"),
}
DIFFERS = {("torch", "library"): LIBRARY_DIFFERS, ("paddle", "library"): PADDLENLP_DIFFERS}
CACHES = {
    ("torch", "plain"): "static,dynamic",
    ("torch", "library"): "static,dynamic",
    ("paddle", "library"): "dynamic",
}
# Graph modes tried beside the framework's first, which is another one.
OTHERS = {("paddle", "plain"): ("inference", "inference-no-passes")}
NAMES = [name for name in frameworks.NAMES if "llama" in frameworks.describe(name).models.get("plain", ())]


@pytest.fixture(scope="module")
def expected_tokens() -> dict[str, list[list[int]]]:
    """By workload, what the oracle generates after the first prompt, a row a step."""
    tokens = {}
    for name in ("llama-tiny", "gpt-tiny"):
        generate, parameters = workloads.get(name, "generate"), generating.parameters_of(name, "generate", "static")
        weights = generating.weights_of(generate, "generate", parameters)
        tokens[name] = generate.reference(parameters, weights, generate.sets(parameters, 0)[0])["tokens"].T.tolist()
    return tokens


@pytest.mark.parametrize(("name", "implementation"), [*((name, "plain") for name in NAMES), *DIFFERS])
def test_a_model_generates_what_the_oracle_does(name, implementation, expected_tokens):
    """In eager mode, the first graph mode and others, and with a loop over tokens or layers in a graph."""
    description = frameworks.describe(name)
    others = (*OTHERS.get((name, implementation), ()), *generating.STACKED.get(name, ()))
    modes = [description.baseline.name, description.default_graph[0], *others]
    caches = CACHES.get((name, implementation), "static").split(",")
    environment = os.environ | description.environment(1, "cpu")
    command = [str(interpreter(name)), "tests/doubles/generating.py", name, ",".join(modes), ",".join(caches)]
    command.append(implementation)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = {tuple(row["place"]): row for row in json.loads(done.stdout.splitlines()[-1])}
    whole = generating.WHOLE.get(name, [])
    assert set(rows) == {
        (*place, mode)
        for place in generating.places(caches, implementation)
        for mode in [*modes, *(whole if place[2] == "generate" else [])]
    }
    for (workload, cache, kind, mode), row in rows.items():
        what = f"{workload} {cache} {kind} {mode}"
        assert row["agrees"], what
        if mode != description.baseline.name:
            begins = DIFFERS.get((name, implementation), {}).get((cache, kind))
            assert row["program"] == ("differs" if begins else "same"), what
            assert (row["program_difference"] or "").startswith(begins or ""), what
            assert (row["program_difference"] is None) == (begins is None), what
            assert row["whole"], what
            assert row["graphs"] == (2 if kind == "generate" and mode not in whole else 1), what
            assert not row["compiled_again"], what
        assert row["parts"] == (expected_tokens[workload] if kind == "generate" and mode not in whole else None), what
    assert {len(tokens) for tokens in expected_tokens.values()} == {128, 32}
    for tokens in expected_tokens.values():  # else what repeats itself would pass
        assert len({tuple(step) for step in tokens}) > len(tokens) // 4


@pytest.mark.parametrize("name", [name for name in NAMES if name != "torch"])
def test_a_cache_that_grows_is_torch_s_alone_of_plain_models(name, tmp_path):
    words = ["--framework", name, "--workload", "gpt-tiny", "--pass", "decode,generate", "--mode", "eager"]
    words += ["--cache", "dynamic", "--context", "8", "--prompt", "4", "--tokens", "3", "--threads", "1"]
    done = bench(tmp_path / "run", *words, "--python", str(interpreter(name)))
    assert [(record["status"], record["pass"]) for record in done.records] == [
        ("unsupported", "decode"), ("unsupported", "generate"),
    ]  # fmt: skip
    assert all(record["reason"].endswith("CACHE=static.") for record in done.records)


def test_paddlenlp_s_llama_is_measured_on_its_own_cache_and_refused_on_another(tmp_path):
    words = ["--framework", "paddle", "--workload", "llama-tiny", "--impl", "library", "--pass", "prefill,decode"]
    words += ["--mode", "eager,inference", "--cache", "static,dynamic", "--context", "8", "--prompt", "4"]
    done = bench(tmp_path / "run", *words, "--threads", "1", "--budget", "0.1", "--python", str(interpreter("paddle")))
    reasons = {
        (record["pass"], record["mode"], dict(p.split("=") for p in record["parameters"].split(";")).get("cache")):
        "" if record["status"] in MEASURED else record["reason"] for record in done.records
    }  # fmt: skip
    assert {cell for cell, reason in reasons.items() if not reason} == {
        ("prefill", "eager", None), ("decode", "eager", "dynamic"),
    }, reasons  # fmt: skip
    assert reasons["decode", "eager", "static"].endswith("CACHE=dynamic.")
    inference = [reason for (_, mode, _), reason in reasons.items() if mode == "inference"]
    assert len(inference) == 3 and all(reason.endswith("IMPL=plain.") for reason in inference)


def test_a_fault_in_the_cache_the_mask_or_the_positions_is_a_mismatch(tmp_path, monkeypatch):
    """In a Llama (the library's too) and a GPT, on both caches; generations have 12 + 5 and 13 + 5 places."""
    interpreter("torch")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests/doubles/planted"))
    lengths = (16, planted.EARLY, planted.OTHER_BASE, planted.UNMASKED), (12, planted.NOT_CAUSAL)
    contexts, prompts = (",".join(map(str, some)) for some in lengths)
    words = ["--framework", "torch", "--workload", "llama-tiny,gpt-tiny", "--pass", "decode,prefill,generate"]
    words += [
        "--impl",
        "plain,library",
        "--mode",
        "eager",
        "--cache",
        "static,dynamic",
        "--context",
        contexts,
        "--prompt",
        prompts,
    ]
    done = bench(tmp_path / "run", *words, "--tokens", "5", "--threads", "1", "--budget", "0.02")
    assert len(done.records) == 3 * (2 * 4 + 2 + 2 * 2), done.output
    for record in done.records:
        shape = dict(part.split("=") for part in record["parameters"].split(";"))
        right = record["pass"] != "generate" and int(shape.get("context", shape.get("prompt"))) in (16, 12)
        # A dynamic cache has no mask that could be forgotten.
        right |= (shape.get("cache"), shape.get("context")) == ("dynamic", str(planted.UNMASKED))
        if right:
            assert record["status"] in MEASURED, (record["cell"], record["reason"])
        else:
            assert record["status"] == "mismatch", record["cell"]
            assert record["parity_rel_rms_err"] > record["parity_tolerance"]
            assert record["pass"] == "generate" or "Outputs differ from numpy's" in record["reason"]
