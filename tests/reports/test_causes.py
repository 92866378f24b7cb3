"""What `make explain` says of a graph mode that loses: rules on synthetic samples, and the controls that it plans."""

from __future__ import annotations

import json

import pytest

from analysis import losses
from commands import explain
from execution import campaign
from measurement.kernels import CLASSES
from measurement.refusals import INTERRUPTED
from reports import causes, explanation

SCATTER = (0.99, 0.995, 1.0, 1.0, 1.005, 1.01, 0.99, 1.01, 1.0, 0.995)


def entry(mode: str, seconds: float, launch: str = "0001", scatter=SCATTER, **changes) -> dict:
    """A profiled cell of BERT-tiny in torch whose calls take about `seconds`."""
    cell = {
        "framework": "torch", "workload": "bert-tiny", "implementation": "library", "pass_name": "inference",
        "device": "cpu", "dtype": "fp32", "threads": 1, "parameters": {"batch_size": 2, "seq_len": 16, "mask": "none"},
        "shapes": "static", "mode": mode,
    } | changes  # fmt: skip
    samples = [seconds * share for share in scatter]
    name = f"{cell['implementation']}/{json.dumps(cell['parameters'])}/{mode}"
    return cell | {
        "cell": name, "status": "explained", "launch": launch, "samples_s": samples, "latency_s": seconds,
        "classes": dict.fromkeys(CLASSES, 0.0) | {"matmul": seconds}, "kernels": [], "trace": None,
    }  # fmt: skip


def pair(eager_s: float, graph_s: float, **changes) -> list[dict]:
    return [entry("eager", eager_s, **changes), entry("inductor", graph_s, **changes)]


def masked(eager_s: float, graph_s: float, **changes) -> list[dict]:
    return pair(eager_s, graph_s, parameters={"batch_size": 2, "seq_len": 16, "mask": "full"}, **changes)


def plain(eager_s: float, graph_s: float, **changes) -> list[dict]:
    parameters = {"batch_size": 2, "seq_len": 16, "mask": "none", "attention": "fused"}
    return pair(eager_s, graph_s, parameters=parameters, implementation="plain", **changes)


LOSS = pair(1.0, 2.4)


def said(*controls: list[dict]) -> list[str]:
    return causes.why(LOSS, [*LOSS, *(entry for control in controls for entry in control)])


def test_a_loss_that_goes_with_the_mask_comes_with_it():
    loss, mask = said(masked(1.0, 0.9))
    assert loss.startswith("inductor is slower than eager: 0.42×")
    assert mask.startswith("With the mask given in both modes, inductor is 1.11×")
    assert mask.endswith(": in one process each, the path without a mask explains the loss.")


def test_a_loss_that_the_suite_s_own_model_has_not_comes_with_the_library_s():
    *_, model = said(plain(1.0, 0.9))
    assert model.startswith("In the suite's own model with the framework's fused attention, inductor is 1.11×")
    assert model.endswith(": in one process each, the library's model explains the loss.")


def images(eager_s: float, graph_s: float, layout: str = "nchw", **changes) -> list[dict]:
    parameters = {"batch_size": 2, "image": 32, "layout": layout}
    shared = {"workload": "resnet-tiny", "implementation": "plain", "parameters": parameters, "device": "gpu:0"}
    return pair(eager_s, graph_s, **shared, **changes)


def test_a_loss_may_come_with_the_layout_or_with_strict_float32():
    loss = images(1.0, 1.1)
    _, layout, strict = causes.why(loss, [*loss, *images(0.5, 0.55, "nhwc"), *images(0.5, 0.25, dtype="tf32")])
    assert layout.startswith("With channels last in both modes, inductor is 0.91×")
    assert layout.endswith("the loss remains, so channels first does not explain it.")
    assert strict.startswith("With TF32 in both modes, inductor is 2.00×")
    assert strict.endswith(": in one process each, strict float32 explains the loss.")


def test_the_layout_and_tf32_are_controls_where_they_can_be_changed():
    cells = explain.control_cells(images(1.0, 1.1))
    assert [(cell.dtype, cell.mode, dict(cell.parameters)["layout"]) for cell in cells] == [
        ("fp32", "eager", "nhwc"),
        ("fp32", "inductor", "nhwc"),
        ("tf32", "eager", "nchw"),
        ("tf32", "inductor", "nchw"),
    ]
    assert {cell.dtype for cell in explain.control_cells(images(1.0, 1.1, dtype="bf16"))} == {"bf16"}


def test_a_loss_that_stays_is_not_explained():
    _, mask, model, left = said(masked(1.0, 2.4), plain(1.0, 2.5))
    assert "inductor is 0.42×: in one process each, the loss remains" in mask
    assert mask.endswith(", so the path without a mask does not explain it.")
    assert "the library's model does not explain it" in model
    assert left == "It is unknown why inductor is slower; no control isolates the cause."


def test_a_part_of_a_loss_leaves_the_rest_unknown():
    _, mask, left = said(masked(1.0, 1.2))
    claim = "in one process each, the path without a mask explains part of the loss"
    assert mask.endswith(f": {claim}; the rest is unexplained.")
    assert left.startswith("It is unknown why")


def test_a_control_that_scatters_cannot_tell():
    noisy = masked(1.0, 2.0)
    noisy[1]["samples_s"] = [0.4, 4.0, 0.5, 3.0, 2.0, 0.6, 5.0, 2.5, 0.4, 2.2]
    _, mask, left = said(noisy)
    assert mask.endswith(": it is inconclusive whether the path without a mask explains the loss.")
    assert left.startswith("It is unknown why")


def test_a_control_without_an_interval_cannot_tell():
    few = masked(1.0, 0.9, scatter=SCATTER[:3])
    _, mask, left = said(few)
    assert (
        mask
        == "The control with the mask given in both modes has no result for inductor: too few samples for an interval."
    )
    assert left.startswith("It is unknown why")


def test_a_control_that_could_not_run_says_why():
    eager, graph = plain(1.0, 1.0)
    refused = {"status": "unsupported", "reason": "It refuses this shape.", "samples_s": []}
    _, model, left = said([eager, graph | refused])
    assert model.endswith("the framework's fused attention has no result for inductor: It refuses this shape.")
    assert left.startswith("It is unknown why")
    assert said([graph])[1].endswith(": eager mode was not measured.")


def test_without_a_control_nothing_is_known():
    assert said()[1:] == ["It is unknown why inductor is slower; no control ran."]


def test_another_program_is_said_in_place_of_no_cause():
    """Its difference is what such a comparison is of; without one the cause is open."""
    eager, graph = LOSS
    told = graph | {"program": "differs", "program_difference": "gelu: in eager, not in the graph"}
    assert explanation.sentences([eager, told], [eager, told])[:2] == [
        causes.why(LOSS, LOSS)[0],
        "inductor runs other operators than eager: gelu: in eager, not in the graph.",
    ]
    same = graph | {"program": "same", "program_difference": None}
    assert "other operators" not in " ".join(explanation.sentences([eager, same], [eager, same]))
    assert any(line.startswith("It is unknown why") for line in explanation.sentences([eager, same], [eager, same]))


def test_no_loss_no_reason():
    for others in (pair(1.0, 1.0), pair(1.0, 0.5), pair(1.0, 2.4, scatter=SCATTER[:5]), LOSS[1:]):
        assert causes.why(others, others) == []
    scattered = [entry("eager", 1.0), entry("inductor", 1.05)]
    scattered[1]["samples_s"] = [0.5, 2.0, 0.6, 1.8, 1.05, 0.7, 2.2, 1.3, 0.5, 1.2]
    assert causes.why(scattered, scattered) == []  # slower, and not by more than its interval


def test_samples_of_two_launches_are_not_paired():
    assert losses.speedup(entry("eager", 1.0), entry("inductor", 2.0)).relative_half_width < 1e-9  # round by round
    apart = losses.speedup(entry("eager", 1.0), entry("inductor", 2.0, launch="0002"))
    assert 0.48 < apart.low < 0.499 < 0.501 < apart.high < 0.52
    wide = entry("inductor", 1.0, launch="0002", scatter=(0.1, 0.1, 0.1, 0.1, 0.1, 9.0, 9.0, 9.0, 9.0, 9.0))
    assert 0 < losses.speedup(entry("eager", 1.0), wide).low < 0.5  # its interval in seconds would reach below zero
    assert losses.speedup({}, {}) is None  # profiles of before


def test_reasons_are_printed_with_the_shape_and_controls_named():
    controls = [entry | {"control": True} for entry in masked(1.0, 0.9)]
    page = explanation.markdown([*LOSS, *controls])
    assert "- inductor is slower than eager: 0.42×" in page
    assert "(control)" in page
    assert page.count("is slower than eager") == 1


def test_controls_are_planned_where_a_mode_loses():
    cells = explain.control_cells(LOSS)
    assert [(cell.implementation, cell.mode, dict(cell.parameters)) for cell in cells] == [
        ("library", "eager", {"batch_size": 2, "seq_len": 16, "mask": "full"}),
        ("library", "inductor", {"batch_size": 2, "seq_len": 16, "mask": "full"}),
        ("plain", "eager", {"batch_size": 2, "seq_len": 16, "mask": "none", "attention": "fused"}),
        ("plain", "inductor", {"batch_size": 2, "seq_len": 16, "mask": "none", "attention": "fused"}),
    ]
    assert explain.control_cells(pair(1.0, 0.9)) == []
    assert explain.control_cells([entry | {"control": True} for entry in LOSS]) == []  # no control of a control


def test_what_a_workload_has_not_is_no_control():
    mlp = {"workload": "mlp", "implementation": "plain", "parameters": {"batch_size": 1, "width": 64, "depth": 2}}
    assert explain.control_cells(pair(1.0, 2.4, **mlp)) == []
    fused = {
        "implementation": "plain",
        "parameters": {"batch_size": 2, "seq_len": 16, "mask": "full", "attention": "fused"},
    }
    assert {dict(cell.parameters)["mask"] for cell in explain.control_cells(pair(1.0, 2.4, **fused))} == {"none"}


def test_arguments_of_a_user_s_model_are_no_controls_whatever_they_are_called():
    """A value of them that the suite knows means something of its own there."""
    called = {"batch_size": 2, "mask": "none", "layout": "nchw", "attention": "explicit"}
    (_, graph) = pair(1.0, 2.4, workload="net.py", implementation="own", parameters=called, device="gpu:0")
    assert losses.controls(graph) == {losses.TF32: {"dtype": "tf32"}}
    assert set(losses.controls(graph | {"implementation": "library"})) > {losses.MASK, losses.LAYOUT, losses.PLAIN}


@pytest.mark.parametrize(("graph_s", "controls"), [(2.4, True), (0.9, False)])
def test_controls_run_only_where_a_mode_loses(graph_s, controls, tmp_path, monkeypatch):
    def profiled(executor, bundle, done):
        for cell in (cell for group in bundle.groups for cell in group.cells if cell.id not in done):
            seconds = {"eager": 1.0, "inductor": graph_s}[cell.mode]
            yield entry(cell.mode, seconds) | cell.to_json() | {"cell": cell.id}

    monkeypatch.setattr(explain, "profiled", profiled)
    monkeypatch.setattr(campaign.Campaign, "make_environments", lambda _: {})
    monkeypatch.setattr(campaign.Store, "prepare", lambda *_, **__: None)
    flags = {"framework": "torch", "workload": "bert-tiny", "batch": "2", "seq": "16", "threads": "1"}
    out = tmp_path / "run"
    assert explain.explain(campaign.Request(flags, out=str(out))) == 0
    entries = explain.entries_in(out)
    assert [entry.get("control", False) for entry in entries] == [False, False] + [True] * 4 * controls
    page = (out / "explanation.md").read_text()
    assert ("no control isolates the cause" in page) is controls


@pytest.mark.parametrize(("again", "says"), [("make reproduce RESUME=run", True), (None, False)])
def test_a_profiling_sweep_that_is_stopped_says_how_to_go_on(again, says, tmp_path, monkeypatch, capsys):
    """A part of a reproduction is gone on with; `make explain` alone begins anew."""

    def profiled(executor, bundle, done):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(explain, "profiled", profiled)
    monkeypatch.setattr(campaign.Campaign, "make_environments", lambda _: {})
    monkeypatch.setattr(campaign.Store, "prepare", lambda *_, **__: None)
    flags = {"framework": "torch", "workload": "bert-tiny", "batch": "2", "seq": "16", "threads": "1"}
    assert explain.explain(campaign.Request(flags, out=str(tmp_path / "run"), again=again)) == INTERRUPTED
    told = capsys.readouterr().out
    assert f"kept in {tmp_path / 'run'}" in told and (f"Resume with: {again}\n" in told) is says
    assert ("Resume with" in told) is says
