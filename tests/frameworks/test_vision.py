"""Networks for images and LSTMs in the real frameworks, one process each: parity with the reference, same program."""

from __future__ import annotations

import pytest
from doubles.environment import modes_apart, run_in
from field_rows import STANDS_FOR

import frameworks
import workloads

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
FAMILIES = ("resnet", "vit", "lstm")
PASSES = ("inference", "training")
LIBRARY = {"implementation": "library"}
NCHW, NHWC = {"layout": "nchw"}, {"layout": "nhwc"}
EXPLICIT, FUSED = {"attention": "explicit"}, {"attention": "fused"}
# (workload, pass, parameters, modes) of each framework; `test_the_cases_cover_...` says what they have in common.
CASES = {
    "torch": [
        *(("resnet-tiny", "inference", layout, ["eager"]) for layout in (NHWC, NHWC | LIBRARY)),
        ("resnet-tiny", "inference", NCHW, ["eager", "inductor-freezing"]),
        ("resnet-tiny", "training", NCHW, ["eager"]),
        ("resnet-tiny", "training", NHWC, ["eager", "dynamo"]),
        ("vit-tiny", "inference", NCHW | EXPLICIT, ["eager", "inductor"]),
        ("vit-tiny", "inference", NCHW | LIBRARY, ["eager"]),
        ("vit-tiny", "training", NHWC | FUSED, ["eager"]),
        ("lstm-tiny", "inference", {"cell": "fused"}, ["eager", "dynamo"]),
        ("lstm-tiny", "inference", {"cell": "unrolled"}, ["eager"]),
        ("lstm-tiny", "training", {"cell": "fused"}, ["eager"]),
        ("lstm-tiny", "training", {"cell": "unrolled"}, ["eager"]),
    ],
    "jax": [
        *(("resnet-tiny", kind, NHWC, ["eager", "jit"]) for kind in PASSES),
        ("resnet-tiny", "training", NCHW | {"accumulate": 2}, ["jit"]),
        ("vit-tiny", "inference", NCHW | FUSED, ["eager", "jit"]),
        ("vit-tiny", "training", NHWC | EXPLICIT, ["eager", "jit"]),
        *(("lstm-tiny", kind, {"cell": "scan"}, ["eager", "jit"]) for kind in PASSES),
        *(("lstm-tiny", kind, {"cell": "unrolled"}, ["jit"]) for kind in PASSES),
    ],
    "tensorflow": [
        ("resnet-tiny", "inference", NHWC, ["eager", "function"]),
        ("resnet-tiny", "inference", NCHW, ["eager", "function", "function-unoptimized", "function-xla"]),
        ("resnet-tiny", "training", NHWC, ["eager", "function"]),
        ("resnet-tiny", "training", NCHW, ["function-xla"]),
        ("vit-tiny", "inference", NHWC | EXPLICIT, ["eager", "function", "function-xla"]),
        ("vit-tiny", "inference", NCHW | EXPLICIT, ["eager"]),
        ("vit-tiny", "training", NHWC | EXPLICIT, ["eager", "function"]),
        ("vit-tiny", "training", NCHW | EXPLICIT, ["function-xla"]),
        *(("lstm-tiny", kind, {"cell": "fused"}, ["eager", "function"]) for kind in PASSES),
        *(("lstm-tiny", kind, {"cell": "scan"}, ["eager", "function", "function-xla"]) for kind in PASSES),
        *(("lstm-tiny", kind, {"cell": "unrolled"}, ["eager", "function"]) for kind in PASSES),
    ],
    "paddle": [  # LSTMs first: the predictor's fused one fails after a predictor and then a program in NHWC
        *(("lstm-tiny", "inference", {"cell": x}, ["eager", "to_static", "inference"]) for x in ("fused", "unrolled")),
        *(("lstm-tiny", "training", {"cell": x}, ["eager", "to_static"]) for x in ("fused", "unrolled")),
        *(("resnet-tiny", "inference", layout, ["eager", "to_static", "inference"]) for layout in (NCHW, NHWC)),
        *(("resnet-tiny", "training", layout, ["eager", "to_static"]) for layout in (NCHW, NHWC)),
        ("resnet50", "inference", NCHW | LIBRARY, ["eager", "to_static"]),  # the library has no smaller one
        ("vit-tiny", "inference", NCHW | EXPLICIT, ["eager", "to_static", "inference"]),
        ("vit-tiny", "inference", NHWC | EXPLICIT, ["eager", "to_static"]),
        *(("vit-tiny", "training", layout | EXPLICIT, ["eager", "to_static"]) for layout in (NCHW, NHWC)),
    ],
}  # fmt: skip
CELLS = {"tensorflow": ("fused", "scan", "unrolled"), "jax": ("scan", "unrolled")}
CELLS |= dict.fromkeys(("torch", "paddle"), ("fused", "unrolled"))
# An LSTM whose gradients leave out the memory cells is off by 7e-5 after three iterations.
CHECK = """
from importlib import import_module
import numpy as np
import workloads
from frameworks import program
from measurement.cells import Cell
from measurement.parity import difference
from workloads.rounding import stored

SHAPE = {"batch_size": 2, "seq_len": 3, "image": 32, "accumulate": 1}

def values(calls):
    named = ((f"{call}.{name}", v) for call, arrays in enumerate(calls) for name, v in arrays.items())
    return {name: np.array(v).reshape(-1) for name, v in named}

def check(framework, cases, conventions):
    adapter = import_module(f"frameworks.{framework}.adapter").Adapter()
    for name, pass_name, changes, modes in cases:
        workload = workloads.get(name, pass_name)
        implementation = changes.get("implementation", "plain")
        own = [p for p in workload.parameters if implementation in p.implementations]
        shape = {p.name: {**SHAPE, **changes}.get(p.name, p.default) for p in own}
        followed = {name: form for name, form in conventions.items() if name in workload.conventions(shape)}
        weights, sets = workload.seeded_weights(shape, 0), [workload.inputs(shape, seed) for seed in (1, 2, 3)]
        calls = workload.parity_calls
        held, *wide = [{key: stored(v, "fp32") for key, v in arrays.items()} for arrays in (weights, *sets[:calls])]
        expected = values(workload.references(shape | followed, held, wide))
        programs = []
        for mode in modes:
            parameters = tuple(shape.items())
            cell = Cell(framework, name, implementation, pass_name, "cpu", "fp32", 2, parameters, mode)
            adapter.configure(cell)
            adapter.start_compiler(cell)
            step = adapter.prepare(workload, cell, weights, sets)
            if step.load:
                step.load()
            step(), step.rewind()
            # Copies: what a call returns may be the model's own memory, which the next call writes to.
            got = values([{key: np.array(v) for key, v in adapter.to_numpy(step()).items()} for _ in range(calls)])
            assert got.keys() == expected.keys(), cell
            off = difference(got, expected)
            assert off.within(workload.tolerance["fp32"]), (cell, off)
            assert off.relative < (1e-4 if name.startswith("resnet") else 1e-5), (cell, off)
            if mode != "eager":
                captured = step.capture()
                assert captured.whole and captured.graphs == 1, (cell, captured)
            if len(modes) > 1:
                programs.append(step.program())
        for listed, mode in zip(programs[1:], modes[1:]):
            differs = program.verdict(programs[:1], listed)["program_difference"]
            assert differs is None, (name, pass_name, mode, differs)
"""
# What the description says of Paddle's batch norm, of Paddle alone: three values, of which the variances are 2/3 and 1.
ALONE = """
import paddle
for layout in ("NCHW", "NHWC"):
    for capture in (lambda norm: norm, lambda norm: paddle.jit.to_static(norm, full_graph=True)):
        norm = paddle.nn.BatchNorm2D(1, momentum=0.0, data_format=layout)
        capture(norm)(paddle.to_tensor([1.0, 2.0, 3.0]).reshape([3, 1, 1, 1]))
        assert abs(float(norm._variance[0]) - (2 / 3 if conventions["running_variance"] == "biased" else 1)) < 1e-6
"""
# What Paddle 3.3's predictor makes of a convolution in NHWC and the reshape behind it fails with oneDNN alone.
FAILS = f"""
VIT = "vit-tiny", "inference", {NHWC | EXPLICIT}
check("paddle", [(*VIT, ["eager", "inference-no-onednn"])], conventions)
try:
    check("paddle", [(*VIT, ["inference"])], conventions)
except ValueError as error:
    assert "onednn_kernel.phi_kernel" in str(error), error
else:
    raise AssertionError("the predictor takes channels last by now: it belongs to the cases")
"""


@pytest.mark.parametrize("framework", CASES)
def test_outputs_agree_with_the_reference_and_graphs_run_eager_s_program(framework):
    conventions = f"conventions = {frameworks.describe(framework).conventions('cpu')}"
    check = f"check({framework!r}, {CASES[framework]!r}, conventions)"
    more = [ALONE, FAILS] if framework == "paddle" else []
    run_in(framework, CHECK, conventions, check, *more, TF_ENABLE_ONEDNN_OPTS="1")  # on some CPUs off unless asked for


def cells_of(framework: str) -> set[tuple[str, str, str, str]]:
    """Family, pass, form (layout or kind of cell) and mode of every case of the plain models."""
    return {
        (workloads.get(name).family, kind, changes.get("layout") or changes["cell"], mode)
        for name, kind, changes, modes in CASES[framework]
        if changes.get("implementation", "plain") == "plain"
        for mode in modes
    }


@pytest.mark.parametrize("framework", CASES)
def test_the_cases_cover_every_mode_and_every_form(framework):
    """Of each architecture and pass: eager mode and, but for torch, every graph that is deployed on a CPU.

    Torch has a graph of each architecture in inference, and one in training. Dynamo alone captures some of them, since
    Inductor takes 10 to 30 s a graph; `test_every_framework.py` and `test_passes_and_shapes.py` have its other graphs.
    Each layout and each kind of cell is there in each pass, if not in each mode.
    """
    description, cells = frameworks.describe(framework), cells_of(framework)
    for kind in PASSES:
        here = {(family, mode) for family, of, _, mode in cells if of == kind}
        apart = [mode for mode in map(description.mode, modes_apart(framework)) if mode.graph and kind in mode.passes]
        graphs = {mode.name for mode in apart if "cpu" in mode.devices} - {"to_static-cinn"}  # which is refused
        assert here >= {(family, "eager") for family in FAMILIES}
        if framework == "torch":
            families = {family for family, mode in here if STANDS_FOR.get(mode, mode) in graphs}
            assert families == (set(FAMILIES) if kind == "inference" else {"resnet"})
        else:
            assert here >= {(family, mode) for family in FAMILIES for mode in graphs}
        forms = {form for _, of, form, _ in cells if of == kind}
        assert forms == {"nchw", "nhwc", *CELLS[framework]}


@pytest.mark.parametrize("framework", CASES)
def test_every_family_of_every_implementation_is_checked(framework):
    for implementation, families in frameworks.describe(framework).models.items():
        cases = [case for case in CASES[framework] if case[2].get("implementation", "plain") == implementation]
        assert {workloads.get(case[0]).family for case in cases} == set(FAMILIES) & set(families)


# As in `check`, of what is refused in turn; inference in NCHW runs in XLA alone where oneDNN is off.
REFUSED = """
from frameworks.adapter import Unsupported

def refused(name, pass_name, mode, changes, *words):
    try:
        check("tensorflow", [(name, pass_name, changes, [mode])], {})
    except Unsupported as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError((name, pass_name, mode))
"""
OUT = "set LAYOUT=nhwc or MODE=function-xla."


@pytest.mark.parametrize("onednn", ["1", "0"])
def test_tensorflow_says_where_a_cpu_takes_no_channels_first(onednn):
    shape = f"NCHW = {NCHW | EXPLICIT}"
    with_onednn = f"""
    for name in ("resnet-tiny", "vit-tiny"):
        for mode in ("eager", "function", "function-unoptimized"):
            refused(name, "training", mode, NCHW, "gradients of convolutions with explicit padding", {OUT!r})
    refused("lstm-tiny", "inference", "function-xla", {{"cell": "fused"}}, "XLA has no kernel of it", "CELL=scan")
    """
    without = f"""
    for name in ("resnet-tiny", "vit-tiny"):
        for mode in ("eager", "function", "function-unoptimized"):
            refused(name, "inference", mode, NCHW, "without oneDNN", {OUT!r})
    for name in ("resnet-tiny", "vit-tiny"):
        check("tensorflow", [(name, "inference", NCHW, ["function-xla"])], {{}})
    """
    refusals = with_onednn if onednn == "1" else without
    run_in("tensorflow", shape, CHECK, REFUSED, refusals, TF_ENABLE_ONEDNN_OPTS=onednn)


# cuDNN's operator by JAX's own reference of it, which runs on a CPU, and takes what the operator takes.
IN_PLACE_OF_CUDNN = """
import jax, jax.numpy as jnp
from jax.experimental import rnn
from frameworks.adapter import Unsupported
from frameworks.jax.models import lstm

def reference(x, state, memory, packed, lengths, *shape):
    return rnn.lstm_ref(x, state, memory, *rnn.unpack_lstm_weights(packed, *shape[:3], shape[4]), lengths, *shape)

rnn.lstm = reference
workload = workloads.get("lstm-tiny", "inference")
shape = {"batch_size": 2, "seq_len": 3, "cell": "fused"}
weights, inputs = workload.seeded_weights(shape, 0), workload.inputs(shape, 1)

def built(device, dtype):
    cell = Cell("jax", "lstm-tiny", "plain", "inference", device, dtype, 2, tuple(shape.items()), "jit")
    return lstm.build(workload, cell, weights, jnp.asarray, jnp.float32)

for device, dtype in (("cpu", "fp32"), ("gpu:0", "bf16")):
    try:
        built(device, dtype)
    except Unsupported as error:
        assert "CELL=scan" in str(error) and "DEVICE=gpu" in str(error), error
    else:
        raise AssertionError((device, dtype))
params, forward, _ = built("gpu:0", "fp32")
got = jax.jit(forward)(params, jnp.asarray(inputs["input_ids"], jnp.int32))
off = difference(*(values([outputs]) for outputs in (got, workload.reference(shape, weights, inputs))))
assert off.within(1e-5), off
"""


def test_jax_gives_cudnn_s_lstm_its_weights_in_cudnn_s_order():
    run_in("jax", CHECK, IN_PLACE_OF_CUDNN)
