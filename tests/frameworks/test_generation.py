"""Passes with a cache in the real frameworks: parity, capture, 32 tokens, and faults that must not pass."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from conftest import ROOT
from doubles import generating
from doubles.environment import MODELS, bench, interpreter, modes_apart, run_in
from doubles.planted import sitecustomize as planted

import frameworks
from records.statuses import MEASURED
from workloads.rounding import stored

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
# How the differences of the library's graphs from eager mode begin, as docs/methodology.md explains them.
ATTENTION = "scaled_dot_product_attention: "
LIBRARY_DIFFERS = {
    ("static", "decode"): ATTENTION + "query float32 (2,2,2,16) in eager, float32 (2,4,1,16) in the graph",
    ("static", "prefill"): ATTENTION + "mask none in eager, bool (2,1,12,12) stride (0,144,12,1) in the graph",
    ("static", "generate"): ATTENTION + "mask none in eager, bool (2,1,12,44) stride (0,528,44,1) in the graph",
}
# PaddleNLP's attention multiplies its scores by a factor, of one in float32, in eager mode alone.
SCALED = "scale: in eager, not in the graph (x float32 {}) (2 times)"
PADDLENLP_DIFFERS = {
    ("dynamic", "decode"): SCALED.format("rank 4"),
    ("dynamic", "prefill"): SCALED.format("(2,4,12,12)"),
    ("dynamic", "generate"): SCALED.format("(2,4,12,12)"),
}
DIFFERS = {("torch", "library"): LIBRARY_DIFFERS, ("paddle", "library"): PADDLENLP_DIFFERS}
CACHES = {
    ("torch", "plain"): ["static", "dynamic"],
    ("torch", "library"): ["static", "dynamic"],
    ("paddle", "library"): ["dynamic"],
}
TUNED = "inductor-max-autotune-no-cudagraphs"  # takes 16 s a graph; it is swept by `test_every_framework.py`
RUNGS = {"paddle": ["inference-no-passes"]}  # of a ladder, which nobody deploys
NAMES = [name for name in frameworks.NAMES if "llama" in frameworks.describe(name).models.get("plain", ())]


# What is refused, by words of the reason: a mode, a cache with one place, a dtype.
REFUSED = {
    ("paddle", "to_static-cinn"): "compiles with CINN for NVIDIA GPUs only",
    (
        "torch",
        "inductor",
        "dynamic",
        1,
    ): "torch compiles a separate graph for a cache of one position: choose a longer PROMPT or CONTEXT.",
    ("paddle", "bf16"): "no bfloat16 matmul for cpu, so a model with its parameters cast cannot run: use DTYPE=fp32.",
    ("paddle", "fp16"): "no float16 matmul for cpu, so a model with its parameters cast cannot run: use DTYPE=fp32.",
}


@pytest.fixture(scope="module")
def expected_tokens() -> dict[str, list[list[int]]]:
    """By workload, what the reference generates after the first prompt, a row a step."""
    tokens = {}
    for name in generating.NAMES:
        place = generating.Place(name, "static", "generate")
        workload, parameters = place.workload, place.parameters
        weights = {key: stored(value, "fp32") for key, value in place.weights.items()}
        tokens[name] = workload.reference(parameters, weights, workload.sets(parameters, 0)[0])["tokens"].T.tolist()
    return tokens


def modes_of(description) -> list[str]:
    """Eager mode, the framework's first graph, and whatever else generates on a CPU and is deployed."""
    first = [description.baseline.name, description.default_graph[0]]
    apart = map(description.mode, modes_apart(description.name))
    others = [mode.name for mode in apart if "generate" in mode.passes and "cpu" in mode.devices and mode.name != TUNED]
    return first + [mode for mode in others if mode not in first] + RUNGS.get(description.name, [])


def refusal(name: str, place: generating.Place, mode: str) -> str | None:
    """Words of the reason for which a cell is refused; None where it is measured."""
    keys = (name, mode), (name, mode, place.cache, place.first), (name, place.dtype)
    return next((REFUSED[key] for key in keys if key in REFUSED), None)


@pytest.mark.parametrize(("name", "implementation"), [*((name, "plain") for name in NAMES), *DIFFERS])
def test_a_model_generates_what_the_reference_does(name, implementation, expected_tokens, tmp_path):
    """In eager mode: logits and cache at places 1, 64 and 1024 and the three after each, in bf16 and fp16 at 64; after
    a prompt; and 32 tokens. A Llama with a static cache at place 64 in every other mode as well; a GPT with
    one cache, and a Llama with a growing one, in the framework's first graph at place 64.

    Of the library decode begins at place 1024 alone. A model of the suite that takes a first place for another one is
    seen: so each would be.
    """
    description, library = frameworks.describe(name), implementation == "library"
    modes = modes_of(description)[: 2 if library else None]
    caches = CACHES.get((name, implementation), ["static"])
    environment = os.environ | description.environment(1, "cpu")
    environment |= dict.fromkeys(description.cache_variables, str(tmp_path))  # what lies elsewhere is another run's
    command = [str(interpreter(name)), "tests/doubles/generating.py", name, ",".join(modes), ",".join(caches)]
    command.append(implementation)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = {tuple(row["place"]): row for row in json.loads(done.stdout.splitlines()[-1])}
    assert {generating.Place(*place) for *place, _ in rows} == set(generating.places(caches, implementation))
    assert {mode for *_, mode in rows} == set(modes)
    for (*fields, mode), row in rows.items():
        place = generating.Place(*fields)
        if reason := refusal(name, place, mode):
            assert reason in (row["refused"] or ""), (place, mode, row)
        else:
            check(name, library, place, mode, row, expected_tokens[place.name])


def check(name: str, library: bool, place: generating.Place, mode: str, row: dict, tokens: list[list[int]]) -> None:
    """What a cell that was measured must be."""
    what = f"{place} {mode} {row}"
    assert row["refused"] is None and row["agrees"], what
    whole, generates = mode in generating.WHOLE, place.pass_name == "generate"
    if mode != frameworks.describe(name).baseline.name:
        begins = DIFFERS.get((name, "library" if library else "plain"), {}).get((place.cache, place.pass_name))
        assert row["program"] == ("differs" if begins else "same"), what
        assert (row["program_difference"] or "").startswith(begins or ""), what
        assert (row["program_difference"] is None) == (begins is None), what
        assert row["whole"], what
        assert row["graphs"] == (2 if generates and not whole else 1), what
        assert not row["compiled_again"], what
    elif place.first and not library:
        assert row["misplaced"] == {"logits": False, "keys": False}, what
    assert row["parts"] == (tokens if generates and not whole else None), what


def test_what_the_reference_generates_repeats_nothing(expected_tokens):
    """Else what repeats itself would pass."""
    for tokens in expected_tokens.values():
        assert len(tokens) == generating.TOKENS
        assert len({tuple(step) for step in tokens}) > len(tokens) // 4


@pytest.mark.parametrize("name", [name for name in NAMES if name != "torch"])
def test_a_cache_that_grows_is_torch_s_alone(name):
    run_in(
        name,
        MODELS,
        f"""
from frameworks.adapter import Unsupported

for pass_name in ("decode", "generate"):
    try:
        changes = {{"cache": "dynamic", "context": 8, "prompt": 4, "tokens": 3}}
        step_of({name!r}, "eager", "gpt-tiny", "plain", pass_name, changes)
        raise AssertionError(pass_name)
    except Unsupported as refusal:
        assert str(refusal).endswith("CACHE=static."), refusal
""",
    )


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
        "--kv-cache",
        "static,dynamic",
        "--context",
        contexts,
        "--prompt",
        prompts,
    ]
    done = bench(tmp_path / "run", *words, "--tokens", "5", "--threads", "1", "--budget", "0.01")
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
