"""The real frameworks at tiny shapes, through the real command line and real workers in their own environments."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import known_gaps
import pytest
from conftest import ROOT
from doubles.brief import brief, frozen
from doubles.environment import QUICKLY, REAL, bench, interpreter, run_sweep

import workloads
from frameworks.description import Framework
from measurement.profiles import PROFILES
from measurement.refusals import INCOMPLETE
from records.statuses import MEASURED

# Compiling for a dozen cells takes its time on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
PEAKS = ("matmul", "stream", "fused-cos")  # without all of them a framework has no peaks of its own
# Every model of every framework in eager mode and its graphs, with the attention that is its default; `test_padding.py`
# has the other, `tests/checks` the modes that are another one on a CPU, and `test_rungs.py` those of ladders alone.
SWEEP = """
workload = ["bert-tiny", "gpt-tiny", "matmul", "matvec", "pointwise-chain", "fused-cos", "stream", "op-overhead"]
impl = ["library", "plain"]
mode = "default"
batch = 2
seq = 16
mask = "full"
size = 64
elements = 4096
operators = 3
additions = 10
threads = 1
budget = 0.1
"""
# Transformers `test_generation.py` and `test_vision.py` have in these modes.
SWEEP_OF_OTHER_MODES = """
workload = "mlp"
impl = "plain"
mode = "others"
batch = 2
width = 32
depth = 2
threads = 1
budget = 0.1
"""
# The second process finds what the first one compiled; there are peaks.
SWEEP_OF_TWO_LAUNCHES = """
workload = "mlp"
impl = ["library", "plain"]
mode = "default"
batch = 2
width = 32
depth = 2
threads = 1
budget = 0.1
"""


@pytest.fixture(scope="session", params=REAL)
def swept(request, tmp_path_factory) -> tuple[Framework, list[dict]]:
    """A framework with the records of its tiny sweep."""
    once, twice = (tmp_path_factory.mktemp(f"{request.param}-{number}") for number in (1, 2))
    framework, records = run_sweep(request.param, once, SWEEP, SWEEP_OF_OTHER_MODES)
    return framework, records + run_sweep(request.param, twice, SWEEP_OF_TWO_LAUNCHES, launches=2)[1]


def reason_expected(framework: Framework, record: dict) -> bool:
    """Whether the framework's description says that there is no such cell here."""
    mode, family = framework.mode(record["mode"]), workloads.get(record["workload"]).family
    if "attention=fused" in (record["parameters"] or "") and not framework.fused_attention("cpu", "fp32"):
        return True
    has = framework.has(record["implementation"], family, record["pass"])
    return not has or "cpu" not in mode.devices or record["pass"] not in mode.passes


def test_every_cell_is_measured_or_says_why_not(swept):
    framework, records = swept
    for record in records:
        if gap := known_gaps.status(record):
            assert record["status"] == gap, (record["cell"], record["reason"])
        elif reason_expected(framework, record):
            assert record["status"] == "unsupported", record["cell"]
            assert record["reason"]
        else:
            assert record["status"] in MEASURED, (record["cell"], record["reason"], record["stderr_tail"])


def test_every_model_that_is_declared_is_there(swept):
    """A family that the description names and the folder lacks would be `unsupported`, whose reason says as much."""
    framework, records = swept
    there = {
        (record["implementation"], workloads.get(record["workload"]).family, record["mode"])
        for record in records
        if record["status"] in MEASURED or known_gaps.status(record)
    }
    modes = (framework.baseline.name, *framework.default_graph)
    swept = {workloads.get(record["workload"]).family for record in records}  # others have sweeps of their own
    declared = {(name, family) for name, families in framework.models.items() for family in families if family in swept}
    assert {(*model, mode) for model in declared for mode in modes} - there == set()


def test_outputs_agree_with_the_numpy_reference(swept):
    for record in (r for r in swept[1] if r["status"] in MEASURED):
        assert record["parity_reference"] == "numpy"
        assert 0 <= record["parity_max_abs_err"] <= 1e-4, record["cell"]


def test_graph_modes_capture_the_whole_model_once(swept):
    framework, records = swept
    for record in (r for r in records if r["status"] in MEASURED):
        if framework.mode(record["mode"]).graph:
            assert record["graphs"] == 1, record["cell"]
            assert not record["graph_breaks"]
            assert record["recompilations"] == 0
            assert record["effective_backend"]


def test_graph_modes_hold_the_program_of_eager_mode(swept):
    framework, records = swept
    graphs = [r for r in records if r["status"] in MEASURED and framework.mode(r["mode"]).graph]
    if {record["program_difference"] for record in graphs} == {"the framework does not show its operators"}:
        pytest.skip(f"{framework.title} lists no operators")
    for record in graphs:
        if explained := known_gaps.difference(record):
            assert record["program_difference"].startswith(explained), record["cell"]
        else:
            assert (record["program"], record["program_difference"]) == ("same", None), record["cell"]


def test_one_thread_keeps_one_core_busy(swept):
    for record in (r for r in swept[1] if r["status"] in MEASURED):
        assert record["threads_effective"] == 1, (record["cell"], record["cpu_per_wall"])
        assert record["threads_readback"] in (1, None)


def test_records_say_how_they_were_obtained(swept):
    framework, records = swept
    has_peaks = all(framework.has("plain", family) for family in PEAKS)
    for record in (r for r in records if r["status"] in MEASURED):
        assert record["framework_version"]
        assert record["device_name"]
        assert json.loads(record["settings"])
        assert record["first_call_s"] > 0
        assert (record["compiler_start_s"] or 0) >= (0.1 if record["mode"] == "inductor" else 0)
        if record["launches"] == 1:  # its run measured no peaks
            continue
        assert bool(record["peak_tflops"]) == has_peaks
        if has_peaks:
            assert f"peak_tflops: {framework.name} " in record["peak_source"]
            assert record["regime"] in ("compute", "bandwidth", "latency", "overhead")


def test_a_transposed_weight_is_a_mismatch(tmp_path):
    """Reference from the right weights, framework from wrong ones: one square matrix transposed."""
    import numpy as np

    import runner
    from commands import bench as command
    from execution import campaign, peak_benchmarks
    from execution.reference_data import ReferenceData, Store
    from launchers import local
    from plan.plan import plan
    from plan.sweep import resolve

    interpreter("torch")
    cells = ["--framework", "torch", "--workload", "mlp", "--width", "32", "--depth", "2", "--mode", "eager"]
    _, arguments = runner.parse(["bench", *cells, *QUICKLY, "--out", str(tmp_path / "run")])
    (group,) = plan(resolve(campaign.options_of(arguments))).bundles[0].groups
    store = Store(None, 0)
    store.prepare([group], lambda text: None)
    right = store(group)
    wrong = tmp_path / "weights"
    wrong.mkdir()
    for path in right.weights.glob("*.npy"):
        value = np.load(path)
        np.save(wrong / path.name, value.T if path.name == "layers.1.linear.weight.npy" else value)

    class Tampered(Store):
        def for_worker(self, group):
            reference_data = super().for_worker(group)
            if group.cells[0].workload != "mlp":
                return reference_data
            return ReferenceData(wrong, reference_data.inputs, reference_data.reference, reference_data.weights_name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaign, "Store", Tampered)
        patch.setattr(peak_benchmarks, "groups_for", lambda cell: ())
        patch.setattr(local, "worker_command", frozen(local.worker_command))
        patch.setitem(PROFILES, "quick", brief(PROFILES["quick"], 1))
        assert command.bench(campaign.Request.from_arguments(arguments)) == INCOMPLETE
    (record,) = (json.loads(line) for line in (tmp_path / "run/records.jsonl").read_text().splitlines())
    assert record["status"] == "mismatch"
    assert record["parity_max_abs_err"] > 0.1
    assert "Outputs differ from numpy's" in record["reason"]


def test_paddle_takes_weights_in_a_type_that_numpy_lacks():
    """A GPU's bf16 cells need it; no CPU has the matrix products to measure it there."""
    code = (
        "import numpy, paddle\n"
        "from frameworks.paddle.models import plain\n"
        "paddle.set_default_dtype('bfloat16')\n"
        "weight = numpy.arange(16, dtype=numpy.float32).reshape(4, 4)\n"
        "shapes = {'linear.weight': weight, **dict.fromkeys(('linear.bias', 'norm.weight', 'norm.bias'), weight[0])}\n"
        "model = plain.mlp({f'layers.0.{name}': values for name, values in shapes.items()})\n"
        "assert all(parameter.dtype == paddle.bfloat16 for parameter in model.parameters())\n"
        "assert (model.linears[0].weight.astype('float32').numpy() == weight.T).all()\n"
    )
    subprocess.run([str(interpreter("paddle")), "-c", code], cwd=ROOT, check=True, capture_output=True)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory) -> Path:
    """A checkpoint of bert-tiny with random weights, as transformers writes it."""
    folder = tmp_path_factory.mktemp("checkpoint") / "tiny"
    code = (
        "import sys; from transformers import BertConfig, BertModel\n"
        "config = BertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512)\n"
        "BertModel(config).save_pretrained(sys.argv[1])\n"
    )
    subprocess.run([str(interpreter("torch")), "-c", code, str(folder)], check=True, capture_output=True)
    return folder


CHECKPOINT_SWEEP = ["--workload", "bert-tiny", "--seq", "16", "--mode", "eager", *QUICKLY]


def test_a_checkpoint_gives_every_framework_the_same_weights(checkpoint, tmp_path):
    interpreter("jax")
    words = [*CHECKPOINT_SWEEP, "--framework", "torch,jax", "--weights", str(checkpoint)]
    done = bench(tmp_path / "run", *words)
    assert done.code == 0, done.output
    assert len(done.records) == 2
    for record in done.records:
        assert record["status"] in MEASURED, record["reason"]
        assert record["weights"].startswith("tiny#")
        assert record["parity_max_abs_err"] <= 1e-4


def test_a_checkpoint_with_a_missing_tensor_starts_nothing(checkpoint, tmp_path):
    from safetensors.numpy import load_file, save_file

    tensors = load_file(checkpoint / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.bias"]
    (tmp_path / "holed").mkdir()
    save_file(tensors, tmp_path / "holed/model.safetensors")
    done = bench(tmp_path / "run", *CHECKPOINT_SWEEP, "--framework", "torch", "--weights", str(tmp_path / "holed"))
    assert done.code == 2
    assert "has no tensor encoder.layer.1.output.dense.bias, which bert-tiny needs." in done.output
    assert not (tmp_path / "run").exists()
