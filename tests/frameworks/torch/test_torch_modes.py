"""Torch's modes whose proof needs torch itself, in its own interpreter; on a GPU where an environment sees one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.environment import interpreter, run_in

from environments import environments

CHECKS = {path.stem: path for path in sorted((ROOT / "tests/checks").glob("torch_*.py"))}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # compiling takes its time on a busy machine


def checked(python: Path, check: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(python), str(CHECKS[check]), *words], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("check", CHECKS)
def test_on_the_cpu(check):
    done = checked(interpreter("torch"), check)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == CHECKS[check].read_text().count("def check_")


def test_what_is_made_of_cuda_graphs_is_known_from_the_description():
    run_in(
        "torch",
        """
import torch
from frameworks.adapter import Unsupported
from frameworks.torch import FRAMEWORK
from frameworks.torch.modes import graphs
from frameworks.torch.adapter import Adapter
from measurement.cells import Cell

def refused(mode):
    parameters = (("batch_size", 1), ("width", 8), ("depth", 1))
    cell = Cell("torch", "mlp", "plain", "inference", "cpu", "fp32", 1, parameters, mode)
    try:
        Adapter().start_compiler(cell)
    except Unsupported as refusal:
        return "need a GPU" in str(refusal)

on_gpu = {"inductor-reduce-overhead", "cuda-graph", "cudagraphs"}
assert {mode for mode in on_gpu if refused(mode)} == on_gpu
assert not refused("eager")
recorded = {mode.name for mode in FRAMEWORK.modes if graphs.uses_cuda_graphs(mode.name, torch.device("cuda", 0))}
assert recorded == on_gpu | {"inductor-max-autotune", "inductor-max-autotune-freezing"}
assert not graphs.uses_cuda_graphs("inductor-max-autotune", torch.device("cpu"))
""",
    )


def test_a_compiled_call_sets_no_switch_of_torch():
    """Dynamo enters a context in every call of what `dynamic=False` compiled; `torch.compile(model)` has none.

    After a reset another batch size has a graph of fixed sizes again.
    """
    run_in(
        "torch",
        """
import torch
from torch._dynamo import eval_frame
from frameworks.torch.modes import graphs

entered = []
make = eval_frame.make_set_enable_dynamic
eval_frame.make_set_enable_dynamic = lambda enable: entered.append(enable) or make(enable)
model = torch.nn.Linear(4, 4)
for batch in (2, 3):
    compiled, _, listed = graphs.compile_model(model, "aot-eager", torch.device("cpu"), "static")
    with torch.inference_mode():
        compiled(torch.ones(batch, 4))
    sizes = [node.meta["example_value"].shape for node in listed.args[0]._graph.graph.nodes if node.op == "placeholder"]
    assert all(type(size) is int for shape in sizes for size in shape), sizes
    torch.compiler.reset()
assert entered == []
graphs.compile_model(model, "aot-eager", torch.device("cpu"), "dynamic")
assert entered == [True]
""",
    )


def test_a_second_process_says_that_it_loaded_its_graph(tmp_path):
    """In training Inductor builds its patterns even so, and a copy of its counters takes their place meanwhile.

    AOTAutograd finds forward and backward together, in the mode's own directory: nothing is traced for autograd again.
    """
    for loaded in (False, True):
        run_in(
            "torch",
            f"""
import os
from pathlib import Path
os.environ["TORCHINDUCTOR_CACHE_DIR"] = {str(tmp_path / "inductor")!r}
os.environ["TRITON_CACHE_DIR"] = {str(tmp_path / "triton")!r}
import torch
import workloads
from frameworks.torch.adapter import Adapter
from measurement.cells import Cell

for pass_name in ("training", "inference"):
    workload = workloads.get("mlp", pass_name)
    shape = {{parameter.name: parameter.default for parameter in workload.parameters}}
    shape |= {{"batch_size": 2, "width": 8, "depth": 2}}
    cell = Cell("torch", "mlp", "plain", pass_name, "cpu", "fp32", 1, tuple(shape.items()), "inductor")
    adapter = Adapter()
    adapter.configure(cell)
    adapter.start_compiler(cell)
    step = adapter.prepare(workload, cell, workload.seeded_weights(shape, 0), [workload.inputs(shape, 0)])
    step()
    assert step.capture().loaded is {loaded}, step.capture()
found = torch._dynamo.utils.counters["aot_autograd"]
assert bool(found["autograd_cache_miss"]) is not {loaded}, found
directories = {{path.name for path in Path({str(tmp_path)!r}).glob("*/*")}}
assert directories == {{"start", "inductor"}}, directories
""",
        )


def test_a_model_that_compiles_itself_in_eager_mode_has_its_own_caches(tmp_path):
    """Else it finds the code of a graph mode of the group before, or a resumed process misses what it stored."""
    run_in(
        "torch",
        f"""
import os
from pathlib import Path
os.environ["TORCHINDUCTOR_CACHE_DIR"] = {str(tmp_path / "inductor")!r}
import torch
import workloads
from frameworks.torch.adapter import Adapter
from measurement.cells import Cell

workload, adapter = workloads.get("mlp"), Adapter()
counters = torch._dynamo.utils.counters["inductor"]
for width in (8, 16):
    shape = {{parameter.name: parameter.default for parameter in workload.parameters}}
    shape |= {{"batch_size": 2, "width": width, "depth": 2}}
    for mode in ("eager", "inductor"):
        cell = Cell("torch", "mlp", "plain", "inference", "cpu", "fp32", 1, tuple(shape.items()), mode)
        adapter.configure(cell)
        adapter.start_compiler(cell)
        step = adapter.prepare(workload, cell, workload.seeded_weights(shape, 0), [workload.inputs(shape, 0)])
        if mode == "eager":
            torch._dynamo.reset()
            model = adapter.model(workload, cell, {{}})
            step = lambda: torch.compile(model)(torch.ones(2, width))
        step()
        assert Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).name == mode
assert counters["fxgraph_cache_hit"] == 0, counters
""",
    )


def test_gradients_are_kept_only_where_micro_batches_add_up_in_a_cuda_graph():
    """As if eager mode ran in CUDA graphs: losses are the oracle's either way."""
    run_in(
        "torch",
        """
import numpy as np
import workloads
from frameworks.torch.modes import training
from frameworks.torch.adapter import Adapter
from measurement.cells import Cell

made = []

class Trainer(training.Trainer):
    def __init__(self, *arguments, keep_gradients, **others):
        made.append(keep_gradients)
        super().__init__(*arguments, keep_gradients=keep_gradients, **others)

training.Trainer = Trainer
workload = workloads.get("mlp", "training")
for graphs in (True, False):
    training.graphs.uses_cuda_graphs = lambda mode, device: graphs
    for accumulate in (1, 2):
        shape = {parameter.name: parameter.default for parameter in workload.parameters}
        shape |= {"batch_size": 2, "width": 8, "depth": 2, "accumulate": accumulate}
        cell = Cell("torch", "mlp", "plain", "training", "cpu", "fp32", 1, tuple(shape.items()), "eager")
        adapter = Adapter()
        adapter.configure(cell)
        weights, sets = workload.seeded_weights(shape, 0), [workload.inputs(shape, seed) for seed in (1, 2, 3)]
        step = adapter.prepare(workload, cell, weights, sets)
        losses = [float(step()["loss"][0]) for _ in sets]
        expected = [float(np.ravel(call["loss"])[0]) for call in workload.references(shape, weights, sets)]
        assert np.allclose(losses, expected, rtol=1e-5), (losses, expected)
assert made == [False, True, False, False], made
""",
    )


def test_a_replay_that_computes_nothing_is_found():
    done = checked(interpreter("torch"), "torch_cuda_graph", "--double", "Idle")
    assert done.returncode != 0
    assert "AssertionError: nan" in done.stderr


@pytest.mark.parametrize("check", CHECKS)
def test_on_a_gpu(check):
    python = environments.path("torch", "gpu") / "bin" / "python"
    visible = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    if not python.exists() or subprocess.run([str(python), "-c", visible], capture_output=True).returncode:
        pytest.skip("no environment of torch sees a GPU: make setup FRAMEWORK=torch DEVICE=gpu")
    done = checked(python, check, "--device", "gpu:0")
    assert done.returncode == 0, done.stderr


def test_a_model_is_built_without_torchs_compiler():
    """An eager process need not import it; its initialisers of tensors without storage would."""
    run_in(
        "torch",
        """
import sys
import frameworks
import workloads
from measurement.cells import Cell

adapter = frameworks.load_adapter("torch")
for name in ("bert-tiny", "gpt-tiny", "vit-tiny"):
    workload = workloads.get(name, "inference")
    parameters = {one.name: one.default for one in workload.parameters}
    cell = Cell("torch", name, "plain", "inference", "cpu", "fp32", 1, tuple(parameters.items()), "eager")
    adapter.configure(cell)
    adapter.model(workload, cell, workload.seeded_weights(parameters, 0))
    assert "torch._dynamo" not in sys.modules, name
""",
    )


def test_a_file_that_changes_threads_or_precision_is_refused_and_the_next_model_is_not():
    """In torch's older and newer words."""
    run_in(
        "torch",
        """
import torch
from frameworks.adapter import Unsupported
from frameworks.torch.adapter import Adapter
from measurement.cells import Cell

parameters = (("batch_size", 1), ("width", 8), ("depth", 1))
cell = Cell("torch", "mlp", "plain", "inference", "cpu", "fp32", 1, parameters, "eager")
adapter = Adapter()
adapter.configure(cell)
adapter.refuse(cell)
for line in (
    "torch.set_num_threads(2)",
    "torch.set_float32_matmul_precision('high')",
    "torch.backends.cudnn.allow_tf32 = True",
    "torch.backends.fp32_precision = 'tf32'",
    "torch.backends.cudnn.conv.fp32_precision = 'tf32'",
    "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'",
):
    exec(line)
    try:
        adapter.refuse(cell)
    except Unsupported as refusal:
        assert "the model's file changes torch." in str(refusal), refusal
    else:
        raise AssertionError(line)
    try:
        adapter.refuse(cell)  # another shape or mode of that file, which runs once
    except Unsupported as refusal:
        adapter._changed.clear()
    else:
        raise AssertionError(line)
    adapter.refuse(cell)
""",
    )


def test_modes_do_not_share_torch_s_limit_of_compilations():
    """Each alone compiles eight forms of a call; the ninth is an error of a whole graph."""
    run_in(
        "torch",
        """
import torch
from frameworks.torch.modes import graphs

def model(x, word):
    return x + (2 if word == "2" else 1)

modes = [graphs.compile_model(model, mode, torch.device("cpu"), "static") for mode in ("dynamo", "aot-eager")]
for number in range(8):
    for compiled, _, _ in modes:
        compiled(torch.ones(2), str(number))
assert [capture().compilations for _, capture, _ in modes] == [8, 8], [c().compilations for _, c, _ in modes]
""",
    )
