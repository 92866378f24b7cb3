"""Whether Paddle's graphs are eager mode's program: what the two hold, and that planted differences are named."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from conftest import ROOT
from doubles.environment import bench, interpreter

from records.statuses import MEASURED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
# What each model of the double is, against what must be said of it.
PLANTED = {
    "Masked": ("add: in the graph, not in eager",),  # attention's parts on a CPU: its mask is added
    "Unmasked": ("in eager, not in the graph",),
    "Unlabelled": ("not_equal: in eager, not in the graph",),
    "WiderMask": ("add: ", "y float32 (2,1,1,4) in eager, float32 (2,1,4,4) in the graph"),
    "Cast": ("cast: in the graph, not in eager",),
    "Unfused": ("layer_norm: in eager, not in the graph",),
    "Approximate": ("gelu: approximate False in eager, True in the graph",),
    "Epsilon": ("layer_norm: epsilon 1e-12 in eager, 1e-05 in the graph",),
    "Transposed": ("matmul: transpose_y True in eager, False in the graph",),
    "Transposition": ("matmul: transpose_y True in eager, False in the graph",),
    "flash": ("flash_attn: ", "attn_mask none in eager, float16 (2,1,4,4) in the graph", "causal False in eager, True"),
    "Unseen": ("unknown: Paddle does not log the attributes of gelu",),
    "Branching": ("unknown: the graph holds a branch or loop (if)",),
}
SWEEP = ["--framework", "paddle", "--workload", "bert-tiny,mlp", "--batch", "2", "--seq", "16", "--width", "32",
         "--depth", "2", "--threads", "1", "--budget", "0.01", "--mode", "all"]  # fmt: skip


@pytest.fixture(scope="session")
def differences() -> dict[str, str | None]:
    """What the double's models differ in, by their names."""
    command = [str(interpreter("paddle")), str(ROOT / "tests" / "doubles" / "paddle_programs.py")]
    environment = {**os.environ, "GLOG_minloglevel": "2"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "AD_API" not in done.stderr  # the log is on while operators are listed, and then off again
    return json.loads(done.stdout)


@pytest.mark.parametrize("model", ["Attention", "Promoted", "Number", "Spelled", "Labels"])
def test_a_model_that_tracing_does_not_change_is_the_same_program(differences, model):
    assert differences[model] is None


@pytest.mark.parametrize("model", PLANTED)
def test_what_tracing_changes_is_named(differences, model):
    for part in PLANTED[model]:
        assert part in (differences[model] or "")


def measured_graphs(out, *words: str) -> list[dict]:
    done = bench(out, *SWEEP, *words)
    assert done.code == 0, done.output
    return [r for r in done.records if r["mode"] != "eager" and r["status"] != "unsupported"]


@pytest.mark.parametrize("shapes", ["static", "dynamic"])
def test_graphs_of_inference_are_eager_mode_s_program(tmp_path, shapes):
    records = measured_graphs(tmp_path, "--impl", "library,plain", "--mask", "none,full", "--shapes", shapes)
    assert {(r["workload"], r["implementation"], r["mode"]) for r in records} == {
        (*cell, mode)
        for cell in (("bert-tiny", "library"), ("bert-tiny", "plain"), ("mlp", "plain"))
        for mode in ("to_static", "inference")
    }
    for record in records:
        assert record["status"] in MEASURED, record["reason"]
        assert (record["program"], record["program_difference"]) == ("same", None), record["cell"]


def test_forward_and_loss_of_training_are_compared_and_nothing_is_updated(tmp_path):
    """Parity, which comes before, begins with the first weights; so does a run that lists operators first."""
    records = measured_graphs(tmp_path, "--pass", "training", "--impl", "plain")
    assert {(r["workload"], r["mode"]) for r in records} == {("bert-tiny", "to_static"), ("mlp", "to_static")}
    for record in records:
        assert record["status"] in MEASURED, record["reason"]
        assert (record["program"], record["program_difference"]) == ("same", None)
