"""Forms in which torch's models are deployed: proof of the provider, refusals, and one run of all of them."""

from __future__ import annotations

import importlib.util

import pytest
from doubles.environment import QUICKLY, bench, run_in

import frameworks
from environments import environments
from measurement.refusals import DONE

FORMS = [mode.name for mode in frameworks.describe("torch").modes if mode.artefact]


@pytest.fixture(scope="module")
def packages():
    """The forms' packages in torch's environment, which `make test` makes: here other tests' workers hold it."""
    assert environments.existing("torch", "cpu", FORMS), "make test"


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    words = frameworks.lacking("torch", "openvino", "cpu")
    assert words.startswith("openvino needs openvino: pip install openvino==")
    assert words.endswith("make setup FRAMEWORK=torch DEVICE=cpu MODE=openvino.")
    assert frameworks.lacking("torch", "aot-inductor", "cpu") is None


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_form_is_built_loaded_and_measured_beside_eager_mode(packages, tmp_path):
    sizes = ("--width", "32", "--depth", "2", "--batch", "2")
    words = ("--framework", "torch", "--workload", "mlp", "--impl", "plain", "--mode", ",".join(FORMS))
    done = bench(tmp_path / "run", *words, *sizes, *QUICKLY)
    assert done.code == DONE, done.output
    records = {record["mode"]: record for record in done.records}
    assert records.keys() == {"eager", *FORMS} and records["eager"]["build_s"] is None
    for mode in FORMS:
        record = records[mode]
        assert record["build_s"] > 0 and record["load_s"] > 0 and record["artefact_bytes"] > 1000, record
        assert record["graphs"] == 1 and record["threads_readback"] == 1
    assert records["aot-inductor"]["program"] == "same" and records["openvino"]["program"] == "unknown"
    assert records["onnx-runtime"]["effective_backend"] == "ONNX Runtime, CPUExecutionProvider"


@pytest.mark.slow
def test_attention_in_an_artefact_is_eager_modes(packages):
    """Without gradients recorded, it is one operator in inference mode, and several parts of it in others."""
    run_in(
        "torch",
        """
import torch
from frameworks.torch import forms
from frameworks.torch.forms import aot_inductor
from frameworks.torch.inspect import program
from frameworks.torch.modes.inference import inference


class Attention(torch.nn.Module):
    def forward(self, x):  # torch.export adds a copy of the constant, and a check of the cast's dtype
        return torch.nn.functional.scaled_dot_product_attention(x, x, x).to(torch.float64) * torch.tensor(2.0)


module, tensors = Attention(), [torch.ones(1, 2, 8, 16)]
form, exported = aot_inductor.Form(torch.device("cpu"), 1, "fp32"), forms.exported_of(module, tensors)
eager = program.executed(inference(module), tensors)
with torch.inference_mode():
    assert form.program(exported, tensors) == eager
assert eager != program.executed(torch.no_grad()(module), tensors)
""",
    )


@pytest.mark.slow
def test_a_model_that_torch_export_traces_otherwise_has_another_program(packages, tmp_path):
    (tmp_path / "masking.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        mask = torch.ones(1, 1, 8, 8, dtype=torch.bool) if torch.compiler.is_compiling() else None\n"
        "        return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)\n"
        "def model():\n"
        "    return Net()\n"
        "def inputs(batch=1):\n"
        "    return torch.ones(batch, 2, 8, 16)\n"
    )
    run_in(
        "torch",
        f"""
import workloads
from frameworks.program import verdict
from frameworks.torch.adapter import Adapter
from measurement.cells import Cell

workloads.add({{"masking.py": {str(tmp_path / "masking.py")!r}}})
workload, adapter = workloads.get("masking.py"), Adapter()
shape = {{parameter.name: parameter.default for parameter in workload.parameters}}
given = workload.seeded_weights(shape, 0), [workload.inputs(shape, 0)]
listed = []
for mode in ("eager", "aot-inductor"):
    cell = Cell("torch", "masking.py", "own", "inference", "cpu", "fp32", 1, tuple(shape.items()), mode)
    adapter.configure(cell)
    adapter.start_compiler(cell)
    step = adapter.prepare(workload, cell, *given)
    if step.build:
        step.build().check()
        step.load()
    step()
    listed.append(step.program())
different = "scaled_dot_product_attention: mask none in eager, bool (1,1,8,8) stride (64,64,8,1) in the graph"
assert verdict(listed[:1], listed[1]) == {{"program": "differs", "program_difference": different}}
""",
    )


@pytest.mark.slow
def test_a_build_of_onnx_runtime_without_the_gpu_is_refused_at_the_start(packages):
    run_in(
        "torch",
        """
import torch
from frameworks.adapter import Unsupported
from frameworks.torch.forms import onnx_runtime

assert onnx_runtime.Form(torch.device("cpu"), 1, "fp32").start() == {}
try:
    onnx_runtime.Form(torch.device("cuda", 0), 1, "fp32").start()
except Unsupported as error:
    assert "has no CUDAExecutionProvider: install onnxruntime-gpu in place of it." in str(error)
else:
    raise AssertionError("the build for CPUs has no CUDA provider")
""",
    )


@pytest.mark.slow
def test_memory_that_torch_does_not_allocate_is_unknown():
    run_in(
        "torch",
        """
import torch
from frameworks.torch import device
from frameworks.torch.adapter import Adapter
from measurement.cells import Cell

adapter = Adapter()
adapter.device = torch.device("cuda", 0)
cell = lambda mode: Cell("torch", "mlp", "plain", "inference", "gpu:0", "fp32", 1, (), mode)
assert adapter.meter(cell("onnx-runtime")).allocated_bytes() is None
assert {type(adapter.meter(cell(mode))) for mode in ("eager", "aot-inductor")} == {device.Meter}
""",
    )


@pytest.mark.slow
def test_a_machine_without_the_tools_of_aotinductor_is_refused_before_the_export(tmp_path):
    (tmp_path / "include").mkdir()
    for name in ("cuda.h", "cuda_runtime.h"):
        (tmp_path / "include" / name).touch()
    run_in(
        "torch",
        f"""
from types import SimpleNamespace as Double
from unittest import mock

import torch
import torch._inductor.config
from frameworks.adapter import Unsupported
from frameworks.torch import start
from frameworks.torch.forms import aot_inductor
from frameworks.torch.modes import graphs
from torch.utils import cpp_extension

gpu = torch.device("cuda", 0)
form = aot_inductor.Form(gpu, 1, "fp32")
assert "each call waits" in form.detail and not aot_inductor.Form(torch.device("cpu"), 1, "fp32").detail


def refused(act, words, kind=Unsupported):
    try:
        act()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)


with mock.patch.object(graphs, "missing_toolchain", lambda mode, device: None):  # Triton is there
    refused(form.start, "AOTInductor found no cuda.h: install the CUDA")
    ahead = Double(adapter=Double(device=gpu))
    refused(lambda: start.AheadOfTime().fill(ahead), "AOTInductor found no cuda.h: install the CUDA")
    with mock.patch.object(cpp_extension, "CUDA_HOME", {str(tmp_path)!r}):
        assert aot_inductor.missing_toolchain(gpu) is None
        with mock.patch.object(torch._inductor.config.cpp, "cxx", ("no-such-compiler",)):
            refused(form.start, "Inductor found no C++ compiler")

for words, kind in (("cannot find -lcuda", Unsupported), ("CUDA out of memory", RuntimeError)):
    with mock.patch.object(torch._inductor, "aoti_compile_and_package", mock.Mock(side_effect=RuntimeError(words))):
        refused(lambda: aot_inductor.compile_into(None, "model.pt2"), words, kind)
""",
    )


@pytest.mark.slow
def test_a_library_that_holds_a_libstdcpp_of_its_own_is_loaded_in_another_process_first(tmp_path):
    """With LD_PRELOAD both use one libstdc++. A refused package is not left where other processes would open it."""
    compiler, packages = tmp_path / "compiler", [tmp_path / f"{name}.pt2" for name in ("shared", "static", "preloaded")]
    compiler.write_text(
        '#!/bin/sh\ncase " $* " in *" -shared "*) set -- "$@" -static-libstdc++ ;; esac\nexec g++ "$@"\n'
    )
    compiler.chmod(0o755)
    run_in(
        "torch",
        f"""
import os
import subprocess
from pathlib import Path
from unittest import mock

import torch
from frameworks.adapter import Unsupported
from frameworks.torch import forms
from frameworks.torch.forms import aot_inductor
from measurement.cells import Cell

shared, static, preloaded = map(Path, {list(map(str, packages))!r})
exported = forms.exported_of(torch.nn.Linear(4, 4), [torch.ones(2, 4)])
library = subprocess.check_output(["g++", "-print-file-name=libstdc++.so.6"], text=True).strip()
uncached = torch._inductor.config.patch(force_disable_caches=True)

aot_inductor.compile_into(exported, shared)
assert not aot_inductor._holds_own_runtime(shared)
with uncached, mock.patch.object(torch._inductor.config.cpp, "cxx", ({str(compiler)!r},)):
    aot_inductor.compile_into(exported, static)
    try:
        aot_inductor.check(static)
    except Unsupported as error:
        assert "its own libstdc++" in str(error) and "set LD_PRELOAD" in str(error), error
    else:
        raise AssertionError("not refused")
    os.environ["EAGER_VS_GRAPH_ARTEFACTS"] = {str(tmp_path / "artefacts")!r}
    cell = Cell("torch", "mlp", "plain", "inference", "cpu", "fp32", 1, (), "aot-inductor")
    module = torch.nn.Linear(4, 4)
    deployed = forms.Deployed(cell, torch.device("cpu"), module, module, [torch.ones(2, 4)])
    artefact = deployed.step(deployed, [(torch.ones(2, 4),)]).build()
    try:
        artefact.check()
    except Unsupported:
        assert artefact.built and not list(Path(os.environ["EAGER_VS_GRAPH_ARTEFACTS"]).iterdir())
    else:
        raise AssertionError("not refused")
    with mock.patch.dict(os.environ, LD_PRELOAD=library):
        aot_inductor.compile_into(exported, preloaded)
        aot_inductor.check(preloaded)
assert aot_inductor._holds_own_runtime(preloaded)
""",
    )


@pytest.mark.slow
def test_a_form_is_refused_where_another_provider_or_precision_would_run_it(packages, tmp_path):
    (tmp_path / "branching.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x + 1 if x.sum() > 0 else x\n"
        "def model():\n"
        "    return Net()\n"
        "def inputs(batch=2):\n"
        "    return torch.ones(batch, 3)\n"
    )
    run_in(
        "torch",
        f"""
from types import SimpleNamespace as Double

import torch
import workloads
from frameworks.adapter import Unsupported
from frameworks.torch.adapter import Adapter
from frameworks.torch.forms import onnx_runtime, openvino
from measurement.cells import Cell

adapter = Adapter()


def refused(act, words):
    try:
        act()
    except Unsupported as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)


def step(name, mode, dtype="fp32", implementation="plain", **shape):
    workload = workloads.get(name)
    shape = {{parameter.name: parameter.default for parameter in workload.parameters}} | shape
    cell = Cell("torch", name, implementation, "inference", "cpu", dtype, 1, tuple(shape.items()), mode)
    adapter.configure(cell)
    adapter.start_compiler(cell)
    return adapter.prepare(workload, cell, workload.seeded_weights(shape, 0), [workload.inputs(shape, 0)])


form = onnx_runtime.Form(torch.device("cpu"), 1, "fp32")
session = lambda *nodes: Double(
    get_providers=lambda: sorted({{provider for provider, _ in nodes}}),
    get_provider_graph_assignment_info=lambda: [
        Double(ep_name=provider, get_nodes=lambda kind=kind: [Double(op_type=kind)]) for provider, kind in nodes
    ],
)
form._prove(session(("CUDAExecutionProvider", "MatMul")), "CUDAExecutionProvider")
refused(lambda: form._prove(session(("CPUExecutionProvider", "MatMul")), "CUDAExecutionProvider"), "has no CUDA")
mixed = session(("CUDAExecutionProvider", "MatMul"), ("CPUExecutionProvider", "Where"))
refused(lambda: form._prove(mixed, "CUDAExecutionProvider"), "1 Where on CPUExecutionProvider")

small = {{"width": 8, "depth": 1, "batch_size": 2}}
for mode in ("onnx-runtime", "openvino"):
    ready = step("mlp", mode, **small)
    ready.build().check()
    ready.load()
    wide = torch.ones(3, 8)
    try:
        ready.call(wide)
    except Exception:
        pass
    else:
        raise AssertionError(f"{{mode}} takes another shape")

halved = step("mlp", "openvino", "bf16", **small)
halved.build().check()
computes = openvino.openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
halved.load() if "BF16" in computes else refused(halved.load, "OpenVINO computes in f32 on this processor, not in bf16")

path = {str(tmp_path / "branching.py")!r}
workloads.add({{"branching.py": path}})
refused(step("branching.py", "openvino", implementation="own").build, "torch.export cannot export the model")
""",
    )


@pytest.mark.slow
def test_later_processes_open_what_the_first_one_built(packages, tmp_path):
    """A second build would fail here: its form writes nothing."""
    code = f"""
import os
from dataclasses import replace
os.environ["EAGER_VS_GRAPH_ARTEFACTS"] = {str(tmp_path / "artefacts")!r}
import torch
import workloads
from frameworks.torch import forms
from frameworks.torch.adapter import Adapter
from measurement.cells import Cell

workload, adapter = workloads.get("mlp"), Adapter()
shape = {{"batch_size": 2, "width": 8, "depth": 1}}
given = workload.seeded_weights(shape, 0), [workload.inputs(shape, 0)]
eager = Cell("torch", "mlp", "plain", "inference", "cpu", "fp32", 1, tuple(shape.items()), "eager")
adapter.configure(eager)
expected = adapter.prepare(workload, eager, *given)()
for form in {FORMS}:
    cell = replace(eager, mode=form)
    adapter.start_compiler(cell)
    step = adapter.prepare(workload, cell, *given)
    if LATER:
        forms.load(form).build = None
    artefact = step.build()
    assert artefact.size > 1000 and artefact.built == (not LATER), (form, artefact)
    if form == "openvino" and not LATER:  # as another process builds it at the same time
        adapter.prepare(workload, cell, *given).build().check()
    artefact.check()
    step.load()
    torch.testing.assert_close(step(), expected)
    assert form == "aot-inductor" or step.program() == "the runtime executes operators of its own"
"""
    for later in (False, True):
        run_in("torch", code.replace("LATER", str(later)))
    assert len(list((tmp_path / "artefacts").iterdir())) == len(FORMS)
    other = code.replace("LATER", "False").replace("seeded_weights(shape, 0)", "seeded_weights(shape, 1)")
    run_in("torch", other.replace(f"for form in {FORMS}", "for form in ['openvino']"))  # other weights
