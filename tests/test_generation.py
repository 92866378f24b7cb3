"""Passes with a cache in the real frameworks: parity, capture, 128 tokens, and faults that must not pass."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from conftest import ROOT
from doubles.generating import PARAMETERS, weights_of
from doubles.planted import sitecustomize as planted
from test_frameworks import bench, interpreter

import frameworks
import workloads
from measurement.schema import MEASURED

pytestmark = pytest.mark.timeout(1200)
NAMES = [name for name in frameworks.NAMES if "llama" in frameworks.describe(name).models.get("plain", ())]


@pytest.fixture(scope="module")
def expected_tokens() -> list[list[int]]:
    """What the oracle generates after the first prompt, a row a step."""
    generate, parameters = workloads.get("llama-tiny", "generate"), PARAMETERS["generate"]
    weights = weights_of(generate, "generate", parameters)
    return generate.reference(parameters, weights, generate.sets(parameters, 0)[0])["tokens"].T.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_a_llama_generates_what_the_oracle_does(name, expected_tokens):
    """In eager mode and in the framework's first graph mode, from logits and a cache that are right."""
    description = frameworks.describe(name)
    modes = [description.baseline.name, description.default_graph[0]]
    environment = os.environ | description.environment(1, "cpu")
    command = [str(interpreter(name)), "tests/doubles/generating.py", name, ",".join(modes)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = json.loads(done.stdout.splitlines()[-1])
    assert [(row["pass"], row["mode"]) for row in rows] == [(kind, mode) for kind in PARAMETERS for mode in modes]
    for row in rows:
        what = f"{row['pass']} {row['mode']}"
        assert row["agrees"], what
        if row["mode"] != description.baseline.name:
            assert (row["program"], row["program_difference"]) == ("same", None), what
            assert row["whole"], what
            assert row["graphs"] == (2 if row["pass"] == "generate" else 1), what
            assert not row["compiled_again"], what
        assert row["parts"] == (expected_tokens if row["pass"] == "generate" else None), what
    assert len(expected_tokens) == 128
    assert len({tuple(tokens) for tokens in expected_tokens}) > 32  # else what repeats itself would pass


def test_a_fault_in_the_cache_the_mask_or_the_rotary_base_is_a_mismatch(tmp_path, monkeypatch):
    interpreter("torch")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests/doubles/planted"))
    lengths = (16, planted.EARLY, planted.OTHER_BASE, planted.UNMASKED), (12, planted.NOT_CAUSAL)
    contexts, prompts = (",".join(map(str, some)) for some in lengths)
    words = ["--framework", "torch", "--workload", "llama-tiny", "--pass", "decode,prefill,generate", "--mode", "eager"]
    words += ["--context", contexts, "--prompt", prompts, "--tokens", "5", "--threads", "1", "--budget", "0.02"]
    done = bench(tmp_path / "run", *words)
    assert len(done.records) == 8, done.output
    generated = [record for record in done.records if record["pass"] == "generate"]
    assert len(generated) == 2  # with caches of 12 + 5 and 13 + 5 places, both of them faulty
    for record in generated:
        assert record["status"] == "mismatch", record["cell"]
        assert record["parity_rel_rms_err"] > record["parity_tolerance"]
    for record in (record for record in done.records if record not in generated):
        length = int(record["parameters"].split(";")[0].partition("=")[2])
        if length in (16, 12):
            assert record["status"] in MEASURED, record["reason"]
        else:
            assert record["status"] == "mismatch", record["cell"]
            assert "Outputs differ from numpy's" in record["reason"]
