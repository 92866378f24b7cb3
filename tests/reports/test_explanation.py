"""Profiles side by side, and the command end to end in every framework at a tiny shape."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest
from conftest import ROOT
from doubles.environment import BRIEFLY, REAL

import frameworks
import runner
from commands.explain import entries_in
from environments import environments
from measurement.kernels import CLASSES, UNFUSED_ATTENTION, by_class, classify, is_softmax
from reports import explanation

pytestmark = pytest.mark.slow

PROFILED = [name for name in REAL if (ROOT / "frameworks" / name / "inspect" / "profiler.py").exists()]
FLASH = "pytorch_flash::flash_fwd_kernel"


def entry(mode: str, kernels: list[tuple], idle_ms: float = 0.0, **changes) -> dict:
    """A profiled cell; kernels in milliseconds."""
    seconds = [(name, took / 1e3, *rest) for name, took, *rest in kernels]
    return {
        "cell": f"alpha/bert/{mode}", "mode": mode, "pass_name": "inference", "status": "explained",
        "latency_s": 0.015, "trace": None,
        "classes": by_class(seconds, idle_ms / 1e3), "kernels": seconds, **changes,
    }  # fmt: skip


EAGER = entry("eager", [("nvjet_a", 9.0, 72), (FLASH, 3.0, 12), ("vectorized_elementwise_kernel", 2.0, 60)])
GRAPH = entry("graph", [("nvjet_a", 9.0, 72), ("nvjet_b", 8.0, 24), ("triton_poi_fused_gelu", 1.9, 24)], idle_ms=0.4)


def test_what_differs_names_class_kernels_and_counts():
    attention, matmul = sorted(explanation.differences([EAGER, GRAPH]))
    assert attention == f"graph: attention 3 → 0 ms (-3); only in eager: {FLASH} (3 ms); 12 → 0 kernels."
    assert matmul == "graph: matmul 9 → 17 ms (+8); only in graph: nvjet_b (8 ms); 72 → 96 kernels."


def test_the_largest_difference_comes_first():
    assert explanation.differences([EAGER, GRAPH])[0].startswith("graph: matmul")


def test_nothing_differs_from_itself_or_without_eager():
    assert explanation.differences([EAGER, {**EAGER, "mode": "graph"}]) == []
    assert explanation.differences([GRAPH]) == []


def test_rows_hold_milliseconds_shares_and_unknown_kernels():
    odd = entry("graph", [("nvjet_a", 3.0, 1), ("spectre_7", 1.0, 1)])
    flops = {"flops": {"matmul": 998, "normalisation": 2}}
    assert explanation.rows([EAGER | flops])[0][:2] == ("matmul", "99.8 %")
    rows = {name: values for name, _, *values in explanation.rows([EAGER, odd])}
    assert rows["matmul"] == ["9 (64 %)", "3 (75 %)"]
    assert rows["attention"] == ["3 (21 %)", ""]
    assert rows["other"] == ["", "1 (25 %)"]
    assert rows["total"] == ["14", "4"]
    assert rows["number of unknown kernels"] == ["0", "1"]
    assert "idle" not in rows


def test_kernels_have_a_column_of_operators_where_any_is_known():
    assert explanation.longest(EAGER)[0][-1] == "kernel" and len(explanation.longest(EAGER)[1][0]) == 4
    known = entry("graph", [("gemm_f32", 17.5, 24, UNFUSED_ATTENTION)])
    assert explanation.longest(known)[1] == [("17.5", "24", "attention", "gemm_f32", UNFUSED_ATTENTION)]


def test_unfused_attention_is_attention_and_said_to_be():
    parts = [
        ("gemm_f32", 17.5, 24, UNFUSED_ATTENTION),
        ("triton_per_fused__safe_softmax_5", 4.6, 12, UNFUSED_ATTENTION),
    ]
    graph = entry("graph", [("nvjet_a", 9.0, 72), *parts])
    assert graph["classes"]["attention"] == pytest.approx(0.0221)
    assert explanation.differences([EAGER, graph])[0].startswith("graph: attention 3 → 22.1 ms (+19)")
    assert "Attention is fused in eager, matrix products and a softmax in graph." in explanation.attention(
        [EAGER, graph]
    )
    assert explanation.attention([EAGER, {**EAGER, "mode": "graph"}]) == []


MASKED = {
    "call": "query bfloat16 (64,12,512,64); mask bool (64,1,512,512) stride (0,512,1,0)", "count": 12,
    "mask": "bool (64,1,512,512) stride (0,512,1,0)", "chosen": "math",
    "refused": {"flash": "Flash Attention does not support a mask.", "cuDNN": "torch gives no reason"},
}  # fmt: skip


def test_a_framework_s_own_refusal_is_printed():
    eager = EAGER | {"framework": "alpha", "attention": [MASKED | {"mask": "none", "chosen": "flash", "refused": {}}]}
    graph = GRAPH | {"framework": "alpha", "attention": [MASKED]}
    refusal, mask = explanation.refusals([eager, graph])
    assert refusal.startswith("graph: the attention operator is called 12 times a call with query bfloat16")
    assert refusal.endswith(
        "alpha uses its composed path (math) and no fused kernel. "
        "Refused: flash: Flash Attention does not support a mask; cuDNN: torch gives no reason."
    )
    assert mask == "Attention mask: none in eager, bool (64,1,512,512) stride (0,512,1,0) in graph."
    assert explanation.refusals([eager, eager | {"mode": "graph"}]) == []
    assert explanation.refusals([EAGER, GRAPH]) == []  # frameworks that do not tell


def test_what_no_rule_knows_is_said():
    odd = entry("graph", [("nvjet_a", 3.0, 1), ("spectre_7", 1.0, 1)])
    assert explanation.not_known([EAGER, odd]) == [
        "1 ms (25.0 %) of graph are in kernels of unknown purpose, such as spectre_7."
    ]
    assert "in kernels of unknown purpose" in explanation.markdown([EAGER, odd])


def test_shapes_are_kept_apart_and_failures_told():
    other = entry("eager", [("nvjet_a", 1.0, 1)], cell="alpha/mlp/eager")
    failed = {"cell": "alpha/mlp/graph", "mode": "graph", "status": "unsupported", "reason": "No profiler."}
    assert list(explanation.by_shape([EAGER, GRAPH, other, failed])) == ["alpha/bert", "alpha/mlp"]
    assert "alpha/mlp/graph: unsupported: No profiler." in explanation.markdown([other, failed])


def explain(out: Path, *words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "runner.py", "explain", "--out", str(out), "--threads", "1", *words]
    return subprocess.run(command, cwd=ROOT, env=BRIEFLY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


LAYERS = 2  # of bert-tiny


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [name for name in PROFILED if frameworks.describe(name).has("plain", "bert")])
def test_every_framework_is_explained_and_its_attention_found(name, tmp_path):
    """A BERT with attention spelled out, which Inductor computes as one kernel."""
    assert (environments.path(name, "cpu") / "bin" / "python").exists(), f"make setup FRAMEWORK={name}"
    words = ["--framework", name, "--workload", "bert-tiny", "--impl", "plain", "--batch", "2", "--seq", "16"]
    done = explain(tmp_path / "run", *words, "--attention", "explicit")
    assert done.returncode == 0, done.stdout
    entries = explanation.explained(entries_in(tmp_path / "run"))
    entries = [entry for entry in entries if not entry.get("control")]  # on a busy machine a graph may lose
    description = frameworks.describe(name)
    assert sorted(e["mode"] for e in entries) == sorted([description.baseline.name, *description.default_graph])
    for entry in entries:
        check_profile(entry, description.mode(entry["mode"]).graph)
        check_attention(entry)
    assert "same" in {entry.get("program") for entry in entries}
    page = (tmp_path / "run/explanation.md").read_text()
    assert "| ms per call | FLOPs | eager |" in page
    assert not list((tmp_path / "run/launches").glob("*/dumps"))


def check_profile(entry: dict, graph: bool) -> None:
    """Times by class add up to what was profiled."""
    assert tuple(entry["classes"]) == CLASSES
    assert entry["classes"]["matmul"] > 0, entry["mode"]
    assert entry["classes"]["normalisation"] > 0, entry["mode"]
    counts = {kind: sum(row[2] for row in explanation.of_class(entry, kind)) for kind in CLASSES}
    assert counts["other"] < 0.1 * sum(counts.values()), entry["kernels"]
    assert 0 < entry["busy_s"] <= entry["profiled_s"] * (1 + 1e-6)
    # Kernels that run side by side may share more than the time in which any of them runs, and never less.
    shared = sum(entry["classes"].values()) - entry["classes"]["idle"]
    assert shared == pytest.approx(sum(row[1] for row in entry["kernels"]))
    assert shared >= entry["busy_s"] * (1 - 1e-6)
    assert entry["classes"]["idle"] == pytest.approx(max(entry["profiled_s"] - entry["busy_s"], 0.0))
    assert Path(entry["trace"]).stat().st_size > 0
    assert entry["latency_s"] == pytest.approx(median(entry["samples_s"]))  # a busy machine may leave one sample
    assert ("program" in entry) == graph


def check_attention(entry: dict) -> None:
    """Its products are found, two a layer, or it is one kernel."""
    parts = explanation.of_class(entry, "attention")
    innermost = [row for row in parts if classify(row[0]) == "matmul" and not row[0].endswith("::matmul")]
    products = sum(count for _, _, count, _ in innermost)
    if explanation.attention_form(entry) == "fused":
        assert products == 0
    else:
        assert products == pytest.approx(2 * LAYERS), entry["kernels"]
        assert any(is_softmax(row[0]) for row in parts), entry["kernels"]


def test_what_has_no_profiler_says_so(tmp_path):
    done = explain(tmp_path / "run", "--framework", "numpy", "--workload", "mlp", "--width", "8", "--depth", "1")
    assert done.returncode == 3, done.stdout  # nothing was profiled
    (entry,) = entries_in(tmp_path / "run")
    assert (entry["status"], entry["reason"]) == ("unsupported", "NumPy has no profiler on this device.")


def test_a_run_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "plan.json").write_text("{}")
    assert runner.main(["explain", "--framework", "numpy", "--workload", "mlp", "--out", str(tmp_path)]) == 2
    assert "already contains a run" in capsys.readouterr().err
