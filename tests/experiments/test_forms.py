"""The claims on deployed forms, on records that make each hold, fail, and untellable."""

from __future__ import annotations

import pytest
from doubles.synthetic import FAILS, HOLDS, OPEN, timed, verdict

import experiments
from experiments.evidence import Evidence, Records
from experiments.spec import PUBLISHED


def forms(device: str, workload: str = "resnet50", **gains: float):
    """Records of eager mode and of modes by the share of time that they save, in percent."""
    shared = {"framework": "torch", "workload": workload, "device": device, "batch_size": 1, "dtype": "fp16"}
    saved = {mode.replace("_", "-"): gain for mode, gain in gains.items()}
    return [timed(9.0, **shared), *(timed(9.0, gain, mode=mode, **shared) for mode, gain in saved.items())]


@pytest.mark.parametrize(
    ("claim", "device", "better", "worse"),
    [
        ("On a GPU torch.compile is faster than ONNX", "gpu:0", "inductor", "onnx_runtime"),
        ("TensorRT is faster than torch.compile", "gpu:0", "tensorrt", "inductor"),
        ("On a CPU torch.compile is faster than ONNX", "cpu", "inductor", "onnx_runtime"),
    ],
)
def test_one_form_is_faster_than_another(claim, device, better, worse):
    assert verdict("forms", claim, forms(device, **{better: 50, worse: 20})) == HOLDS
    assert verdict("forms", claim, forms(device, **{better: 20, worse: 50})) == FAILS
    assert verdict("forms", claim, forms(device, **{better: 50, worse: 50})) == OPEN
    assert verdict("forms", claim, forms(device, **{better: 50})) == OPEN


@pytest.mark.parametrize(("gain", "expected"), [(70, HOLDS), (40, FAILS), (50, OPEN)])
def test_a_package_is_twice_as_fast(gain, expected):
    measured = forms("gpu:0", "bert-base", inductor=0, aot_inductor=gain)
    assert verdict("forms", "On a GPU an AOTInductor", measured) == expected
    assert verdict("forms", "On a GPU an AOTInductor", [one | {"latency_slowed": True} for one in measured]) == OPEN


@pytest.mark.parametrize(("gain", "expected"), [(-50, HOLDS), (50, FAILS), (0, OPEN)])
def test_openvino_is_slower_than_eager_mode(gain, expected):
    assert verdict("forms", "On a CPU OpenVINO", forms("cpu", openvino=gain)) == expected


def test_the_sources_contradict_each_other_on_tensorrt_alone():
    experiment = experiments.get("forms")
    answers = [experiment.answers(claim, Evidence(Records([])))[PUBLISHED] for claim in experiment.claims]
    assert [answer.verdict for answer in answers] == [HOLDS, FAILS, HOLDS, HOLDS, HOLDS]
    assert "resnet50 batch 64 fp16: tensorrt over inductor 1.68×" in answers[1].numbers
    assert "imtalker batch 1: tensorrt over inductor 0.831" in answers[1].numbers


def test_published_figures_of_one_shape_name_their_devices():
    experiment = experiments.get("forms")
    ours = Evidence(Records(forms("gpu:0", inductor=50)))
    _, ratios = experiment.tables(ours, experiment.published())
    row = next(row for row in ratios.rows if row[:3] == ("resnet50", "fp16", "64"))
    assert "L4: 1.44; A100: 1.54" in row
