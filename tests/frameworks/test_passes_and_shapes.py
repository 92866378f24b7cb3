"""The real frameworks under training, and at a sequence length that they have not seen; tiny shapes, real workers."""

from __future__ import annotations

import json
import re

import known_gaps
import pytest
from doubles.environment import QUICKLY, REAL, bench, interpreter, run_sweep
from field_rows import STANDS_FOR

import frameworks
import workloads
from frameworks.description import Framework
from measurement.refusals import INCOMPLETE
from records.statuses import MEASURED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

TRAINED = """
pass = "training"
batch = 2
threads = 1
budget = 0.01
"""
TRAINING = TRAINED + 'workload = ["bert-tiny", "gpt-tiny"]\nmode = "default"\nseq = 16\nmask = "full"\n'
# By Dynamo alone in torch: Inductor takes 20 s more for operators that the BERT has as well.
GPT = TRAINED + 'workload = "gpt-tiny"\nmode = {}\nseq = 16\n'
CAPTURED = {"torch": '["eager", "dynamo"]'}
# In every mode: those that compile an iteration for a minute `test_vision.py` has of a transformer.
ACCUMULATED = TRAINED + 'workload = "mlp"\nmode = "all"\nwidth = 32\ndepth = 2\naccumulate = 2\n'


@pytest.fixture(scope="session", params=[name for name in REAL if frameworks.describe(name).trained])
def trained(request, tmp_path_factory) -> tuple[Framework, list[dict]]:
    """A framework with the records of a few iterations of every model that is trained."""
    name, texts = request.param, [TRAINING]
    if name in CAPTURED:
        texts = [TRAINING.replace(', "gpt-tiny"', ""), GPT.format(CAPTURED[name])]
    return run_sweep(name, tmp_path_factory.mktemp(name), *texts, ACCUMULATED)


def test_losses_of_three_iterations_agree_with_the_reference(trained):
    framework, records = trained
    measured = [record for record in records if record["status"] in MEASURED]
    modes = (framework.baseline.name, *framework.default_graph)
    trained = {(workloads.get(r["workload"]).family, STANDS_FOR.get(r["mode"], r["mode"])) for r in measured}
    swept = {workloads.get(record["workload"]).family for record in records}  # test_vision has others
    assert trained >= {(family, mode) for family in set(framework.trained) & swept for mode in modes}
    for record in measured:
        assert record["parity_reference"] == "numpy"
        assert record["parity_max_abs_err"] <= 1e-3, record["cell"]
        assert "optimizer" in json.loads(record["settings"])
        assert record["recompilations"] in (0, None)


def test_what_cannot_train_says_so(trained):
    for record in (record for record in trained[1] if record["status"] not in MEASURED):
        assert record["status"] == "unsupported", (record["cell"], record["reason"])
        assert record["reason"]


@pytest.fixture(scope="session", params=[name for name in REAL if frameworks.describe(name).has("plain", "bert")])
def unseen(request, tmp_path_factory) -> list[dict]:
    """A framework's eager and default graph mode, static and dynamic, that meet another sequence length when warm."""
    interpreter(request.param)
    words = ["--workload", "bert-tiny", "--impl", "plain", "--seq", "16", "--unseen-seq", "24", *QUICKLY]
    if request.param in CAPTURED:  # `test_stream_processes.py` has dynamic shapes in Inductor's code
        words += ["--mode", ",".join(json.loads(CAPTURED[request.param]))]
    out = tmp_path_factory.mktemp("unseen") / "run"
    done = bench(out, *words, "--shapes", "static,dynamic", "--framework", request.param)
    assert done.code == 0, done.output
    return done.records


def test_a_static_graph_compiles_again_for_an_unseen_length_a_dynamic_one_does_not(unseen):
    for record in unseen:
        description = frameworks.describe(record["framework"])
        if gap := known_gaps.status(record):
            assert record["status"] == gap, record["reason"]
            continue
        assert record["status"] in MEASURED, record["reason"]
        assert record.get("unseen_problem") is None  # its outputs are right as well
        assert record["unseen_seq_len"] == 24
        assert record["unseen_first_call_s"] > 0
        assert record["unseen_latency_ms"] > 0
        if description.mode(record["mode"]).graph:
            assert record["unseen_compilations"] == (1 if record["shapes"] == "static" else 0)


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_build_for_the_cpu_says_so_when_asked_for_a_gpu(framework, tmp_path):
    words = ["--framework", framework, "--workload", "mlp", "--device", "gpu", *QUICKLY]
    done = bench(tmp_path / "run", *words, "--python", str(interpreter(framework)))
    assert done.code == INCOMPLETE, done.output
    assert [record["mode"] for record in done.records] == ["eager", *frameworks.describe(framework).recommended("gpu")]
    for record in done.records:
        assert record["status"] == "unsupported"
        assert re.search(
            r"supports the CPU only(, without a CUDA plug-in)?: install (a build for CUDA|jax\[cuda13\])\.$",
            record["reason"],
        )
