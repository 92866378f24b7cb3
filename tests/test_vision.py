"""Networks for images and LSTMs in the real frameworks, one process each: parity with the oracle, the same program."""

from __future__ import annotations

import pytest
from doubles.environment import run_in

import frameworks
import workloads

pytestmark = pytest.mark.timeout(900)
FAMILIES = ("resnet", "vit", "lstm")
PASSES = ("inference", "training")
LIBRARY = {"implementation": "library"}
NCHW, NHWC = {"layout": "nchw"}, {"layout": "nhwc"}
EXPLICIT, FUSED = {"attention": "explicit"}, {"attention": "fused"}
# (workload, pass, parameters, modes) of each framework: every layout, kind of attention and kind of cell that it has.
# Compiling is what takes time: torch has one graph here, and JAX no eager mode, which compiles every operator.
CASES = {
    "torch": [
        *(("resnet-tiny", kind, layout, ["eager"]) for kind in PASSES for layout in (NCHW, NHWC)),
        ("vit-tiny", "inference", NCHW | EXPLICIT, ["eager"]),
        ("vit-tiny", "training", NHWC | FUSED, ["eager"]),
        ("resnet-tiny", "inference", NHWC | LIBRARY, ["eager"]),
        ("vit-tiny", "inference", NCHW | LIBRARY, ["eager"]),
        ("lstm-tiny", "training", {"cell": "fused"}, ["eager"]),
        ("lstm-tiny", "inference", {"cell": "fused"}, ["eager", "inductor"]),
        ("lstm-tiny", "inference", {"cell": "unrolled"}, ["eager"]),
    ],
    "jax": [
        ("resnet-tiny", "inference", NHWC, ["jit"]),
        ("resnet-tiny", "training", NCHW | {"accumulate": 2}, ["jit"]),
        ("vit-tiny", "inference", NCHW | FUSED, ["jit"]),
        ("vit-tiny", "training", NHWC | EXPLICIT, ["jit"]),
        ("lstm-tiny", "inference", {"cell": "scan"}, ["jit"]),
        ("lstm-tiny", "training", {"cell": "unrolled"}, ["jit"]),
    ],
    "tensorflow": [
        *(("resnet-tiny", kind, NHWC, ["eager", "function"]) for kind in PASSES),
        ("resnet-tiny", "inference", NCHW, ["eager", "function", "function-unoptimized"]),
        ("vit-tiny", "inference", NCHW | EXPLICIT, ["eager"]),
        ("vit-tiny", "training", NHWC | EXPLICIT, ["eager"]),
        ("vit-tiny", "training", NCHW | EXPLICIT, ["function-xla"]),
        *(("lstm-tiny", "inference", {"cell": cell}, ["eager", "function"]) for cell in ("fused", "scan")),
        ("lstm-tiny", "training", {"cell": "fused"}, ["eager", "function"]),
        ("lstm-tiny", "training", {"cell": "unrolled"}, ["eager"]),
    ],
    "paddle": [
        *(("resnet-tiny", "inference", layout, ["eager", "to_static"]) for layout in (NCHW, NHWC)),
        ("resnet-tiny", "training", NCHW, ["eager", "to_static"]),
        ("resnet50", "inference", NCHW | LIBRARY, ["eager", "to_static"]),  # the library has no smaller one
        ("vit-tiny", "inference", NHWC | EXPLICIT, ["eager", "to_static"]),
        ("vit-tiny", "training", NCHW | EXPLICIT, ["eager"]),
        *(("lstm-tiny", "inference", {"cell": cell}, ["eager", "to_static"]) for cell in ("fused", "unrolled")),
        ("lstm-tiny", "training", {"cell": "fused"}, ["eager", "to_static"]),
    ],
}  # fmt: skip
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

def check(framework, cases, gaps, conventions):
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
            step(), step.rewind()
            # Copies: what a call returns may be the model's own memory, which the next call writes to.
            got = values([{key: np.array(v) for key, v in adapter.to_numpy(step()).items()} for _ in range(calls)])
            assert got.keys() == expected.keys(), cell
            off = difference(got, expected)
            assert off.within(workload.tolerance["fp32"]), (cell, off)
            assert off.relative < 1e-4, (cell, off)
            if mode != "eager":
                captured = step.capture()
                assert captured.whole and captured.graphs == 1, (cell, captured)
            if len(modes) > 1:
                programs.append(step.program())
        for listed, mode in zip(programs[1:], modes[1:]):
            differs = program.verdict(programs[:1], listed)["program_difference"]
            known = gaps.get((name, pass_name))
            assert differs.startswith(known) if known else differs is None, (name, pass_name, mode, differs)
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
# How the first difference of a program begins where there is one: Paddle looks for labels to be ignored, eagerly alone.
GAPS = {
    "paddle": dict.fromkeys(
        [("resnet-tiny", "training"), ("lstm-tiny", "training")], "not_equal: in eager, not in the graph"
    ),
}


@pytest.mark.parametrize("framework", CASES)
def test_outputs_are_the_oracle_s_and_graphs_run_eager_s_program(framework):
    conventions = f"conventions = {frameworks.describe(framework).conventions('cpu')}"
    check = f"check({framework!r}, {CASES[framework]!r}, {GAPS.get(framework, {})!r}, conventions)"
    run_in(framework, CHECK, conventions, ALONE if framework == "paddle" else "", check)


@pytest.mark.parametrize("framework", CASES)
def test_every_family_and_pass_is_checked(framework):
    description = frameworks.describe(framework)
    checked = {(workloads.get(name).family, kind) for name, kind, *_ in CASES[framework]}
    assert checked >= {(family, "training") for family in FAMILIES if family in description.trained}
    for implementation, families in description.models.items():
        cases = [case for case in CASES[framework] if case[2].get("implementation", "plain") == implementation]
        assert {workloads.get(case[0]).family for case in cases} == set(FAMILIES) & set(families)


# As in `check`, of what is refused in turn; inference in NCHW runs in XLA alone where oneDNN is off.
REFUSED = """
from frameworks.adapter import Unsupported

def refused(name, pass_name, mode, changes, *words):
    try:
        check("tensorflow", [(name, pass_name, changes, [mode])], {}, {})
    except Unsupported as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError((name, pass_name, mode))
"""
OUT = "set LAYOUT=nhwc or MODE=function-xla."


@pytest.mark.parametrize("onednn", ["1", "0"])
def test_tensorflow_says_where_a_cpu_takes_no_channels_first(onednn):
    off = f"""
    import os
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = {onednn!r}
    NCHW = {NCHW | EXPLICIT}
    """
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
        check("tensorflow", [(name, "inference", NCHW, ["function-xla"])], {{}}, {{}})
    """
    run_in("tensorflow", off, CHECK, REFUSED, with_onednn if onednn == "1" else without)
