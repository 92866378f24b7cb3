"""Users' own models: what the runner reads of a file, how cells are called, and what a run holds to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import runner
import workloads
from environments import environments
from execution import comparison
from measurement.cells import Capture
from measurement.protocol import UserModelReport
from measurement.refusals import UsageError
from plan import plan, requirements, sweep, user_models, versions
from records import breaks, judgement
from records.cell_result import CellResult
from workloads import signature
from workloads.user_model import named

NET = """
import torch
import danger_that_is_not_installed
settings = {"tolerance": {"bf16": 0.1}}

def model():
    raise SystemExit

def inputs(batch_size, seq_len, width=64, *, kind="causal"):
    return None
"""


pytestmark = pytest.mark.slow


@pytest.fixture
def net(tmp_path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(NET)
    return path


def test_a_file_is_read_and_not_run(net):
    net_signature = signature.read(net)
    assert net_signature.parameters == (("batch_size", 1), ("seq_len", 128), ("width", 64), ("kind", "causal"))
    assert net_signature.frameworks == ("torch",)
    assert net_signature.settings == {"tolerance": {"bf16": 0.1}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def inputs(batch_size, width): pass", "width needs a default"),
        ("def inputs(width=2.5): pass", "whole number or a word"),
        ("def inputs(:", "not valid Python, line 1"),
        ("settings = {'speed': 1}", "settings must be a dict"),
        ("settings = {'tolerance': 3}", "from 0 to 1"),
        ("settings = {'framework': 'mxnet'}", "framework must be one of"),
        ("settings = 1 + 1", "settings must be a dict"),
        ("settings = {'framework': ['torch']}", "framework must be one of"),
        ("settings = {[1]: 2}", "settings must be a dict"),
        ("\0", "not valid Python"), ("# caf\udce9", "not in UTF-8, line 1: save it"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path, text, words):
    path = tmp_path / "bad.py"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(UsageError, match=words) as refused:
        user_models.register([str(path)])
    assert str(refused.value).startswith("bad.py") and "\n" not in str(refused.value)


def test_names_tell_files_apart_and_hold_no_slash(tmp_path):
    assert named(["/x/a/net.py", "timm:vit_tiny", "/y/lm.py"]) == {
        "net.py": "/x/a/net.py", "timm:vit_tiny": "timm:vit_tiny", "lm.py": "/y/lm.py",
    }  # fmt: skip
    assert set(named(["/x/a/net.py", "/x/b/net.py"])) == {"a.net.py", "b.net.py"}
    assert set(named([f"transformers:{tmp_path}", "transformers:org/name"])) == {
        f"transformers:{tmp_path.name}", "transformers:name",
    }  # fmt: skip
    for sources in (["/x/a/net.py", "/y/a/net.py"], ["/x/one two.py"]):
        with pytest.raises(UsageError):
            user_models.register(sources)


def test_a_sweep_has_the_axes_of_inputs(net):
    resolved = sweep.resolve({"workload": str(net), "width": "32,64", "batch": "2", "mode": "eager", "dtype": "bf16"})
    cells = plan.cells_of(resolved)
    assert {cell.framework for cell in cells} == {"torch"}
    assert [dict(cell.parameters) for cell in cells] == [
        {"batch_size": 2, "seq_len": 128, "width": width, "kind": "causal"} for width in (32, 64)
    ]
    assert cells[0].id.startswith("torch/net.py/own/inference/cpu/bf16/")
    assert workloads.get("net.py").tolerance["bf16"] == 0.1
    assert resolved.user_models == {"net.py": str(net)}


def test_beside_others_a_model_is_measured_in_its_framework_alone(net):
    resolved = sweep.resolve({"workload": f"{net},mlp", "framework": "torch,jax", "mode": "eager"})
    assert [(cell.framework, cell.workload) for cell in plan.cells_of(resolved)] == [
        ("torch", "net.py"), ("torch", "mlp"), ("jax", "mlp"),
    ]  # fmt: skip


def test_a_file_of_no_framework_is_asked_about(tmp_path):
    path = tmp_path / "net.py"
    path.write_text("def model(): pass\ndef inputs(): pass")
    for words in (str(path), f"{path},mlp"):
        with pytest.raises(UsageError, match=r"net\.py imports no framework: .* such as FRAMEWORK=torch\."):
            sweep.resolve({"workload": words})
    assert plan.cells_of(sweep.resolve({"workload": str(path), "framework": "jax"}))


def test_a_file_of_two_frameworks_is_asked_about(tmp_path):
    path = tmp_path / "net.py"
    path.write_text("import jax, torch\ndef model(): pass\ndef inputs(): pass")
    with pytest.raises(UsageError, match=r"net\.py imports torch and jax: name the model's framework"):
        sweep.resolve({"workload": str(path)})
    (cell,) = plan.cells_of(sweep.resolve({"workload": str(path), "framework": "jax", "mode": "eager"}))
    assert cell.framework == "jax"


def test_a_framework_that_a_file_is_not_for_is_refused(net):
    for words in (str(net), f"{net},mlp"):
        with pytest.raises(UsageError, match=r"net\.py is for torch, and FRAMEWORK=jax names another: omit FRAMEWORK"):
            sweep.resolve({"workload": words, "framework": "jax"})


def test_a_run_goes_on_with_the_file_that_it_was_begun_with(net):
    sources = user_models.register([str(net)])
    kept = user_models.digests(sources)
    user_models.check_unchanged(sources, kept)
    user_models.check_unchanged(sources, {})  # of a run that kept none
    workloads._USER_MODELS.clear()
    net.write_text(NET + "# changed\n")
    user_models.register([str(net)])
    with pytest.raises(UsageError, match=r"net\.py was changed"):
        user_models.check_unchanged(sources, kept)


def test_the_price_of_breaks_is_a_bound(cell, report):
    broken = Capture(False, 3, 2, 3, breaks=(("net.py:3", "print"), ("net.py:9", "item")))
    result = CellResult(
        cell(), reports=[report(capture=broken, user_model=UserModelReport("x", "eager", inside_s=0.3, whole_s=0.4))]
    )
    row = breaks.columns(result)
    assert row["outside_share"] == pytest.approx(0.25) and row["gain_at_best"] == pytest.approx(4 / 3)
    assert json.loads(row["graph_break_places"]) == [["net.py:3", "print"], ["net.py:9", "item"]]
    assert "2 graph breaks, 25 % of a call" in breaks.sentence(result)
    assert breaks.sentence(CellResult(cell(), reports=[report()])) is None


@pytest.mark.parametrize(
    ("mode", "error", "found"),
    [("inductor", -0.02, True), ("inductor", 0.04, False), ("eager", -0.01, True), ("eager", 0.1, "state")],
)
def test_where_eager_mode_is_off_three_times_its_error_is_allowed_in_every_mode(
    cell, report, tmp_path, mode, error, found
):
    signs = np.where(np.random.default_rng(0).random(64) < 0.5, 1.0, -1.0)  # as those of rounding
    for name, off in (("reference", 0.0), ("eager", 0.01)):
        np.savez(tmp_path / f"{name}.npz", **{"0.output": 1 + off * signs})
    files = {name: f"{tmp_path}/{name}.npz" for name in ("reference", "eager")}
    result = CellResult(
        cell(mode=mode), reports=[report(user_model=UserModelReport(**files, reference_name="float64"))]
    )
    try:
        parity = comparison.with_own_eager(result, [{"0.output": 1 + error * signs}], workloads.get("mlp"))
        assert parity.difference.within(parity.tolerance) == found and "3 times" in parity.reference
        result.parity = parity  # eager mode's 1 % are many times float32's tolerance
        assert "eager_error" in judgement.flags_of(result)
    except comparison.Changed as changed:
        assert found in str(changed)


@pytest.mark.parametrize(
    ("eager", "reference", "flagged"),
    [(1.0, 1.0, False), (np.inf, np.inf, False), (np.inf, 1.0, True), (np.inf, -np.inf, True), (np.nan, np.nan, True)],
)
def test_nan_and_lost_values_are_flagged(cell, report, tmp_path, eager, reference, flagged):
    files = {name: f"{tmp_path}/{name}.npz" for name in ("eager", "reference")}
    for path, value in zip(files.values(), (eager, reference), strict=True):
        np.savez(path, **{"0.y": np.array([value, 2.0])})
    result = CellResult(cell(), reports=[report(user_model=UserModelReport(**files, reference_name="float64"))])
    result.parity = comparison.with_own_eager(result, [{"0.y": np.array([eager, 2.0])}], workloads.get("mlp"))
    assert ("nan_outputs" in judgement.flags_of(result)) == flagged


def test_eager_mode_s_error_in_one_output_allows_none_in_another(cell, report, tmp_path):
    values = {"0.noise": np.array([1e-8, -1e-8]), "0.y": np.array([1.0, 2.0]), "0.ids": np.arange(10)}
    off = {"0.noise": values["0.noise"] * 1.1, "0.y": values["0.y"], "0.ids": values["0.ids"]}
    np.savez(tmp_path / "reference.npz", **values)
    np.savez(tmp_path / "eager.npz", **off)
    files = {name: f"{tmp_path}/{name}.npz" for name in ("reference", "eager")}
    result = CellResult(
        cell(mode="inductor"), reports=[report(user_model=UserModelReport(**files, reference_name="float64"))]
    )
    changes = {"": off, "0.y": off["0.y"] * 1.2, "0.ids": np.arange(10) // 9 * 9, "0.noise": values["0.noise"] * 1.25}
    held = {}
    for name, changed in changes.items():
        graph = {**off, name: changed} if name else off
        held[name] = comparison.with_own_eager(result, [graph], workloads.get("mlp")).holds
    assert held == {"": True, "0.y": False, "0.ids": False, "0.noise": True}


def test_only_a_file_with_a_loss_is_trained(net):
    flags = {"workload": str(net), "pass": "training", "mode": "eager"}
    with pytest.raises(UsageError, match=r"Add a function loss\(output\) that returns a scalar to net\.py"):
        plan.cells_of(sweep.resolve(flags))
    net.write_text(NET + "settings = {'tolerance': {'bf16': 0.1}}\nfrom torch.nn.functional import relu as loss\n")
    workloads._USER_MODELS.clear()
    (cell,) = plan.cells_of(sweep.resolve(flags))
    trained = workloads.get(cell.workload, "training")
    assert (trained.tolerance["bf16"], trained.tolerance["fp32"]) == (0.1, 1e-3)
    assert (trained.parity_calls, trained.restart) == (4, 3)


def test_requirements_make_an_environment_beside_the_locked_one(tmp_path, monkeypatch, net):
    variables = {}

    def resolved(base, text, name, word, report):
        variables[name] = text
        return "locked"

    monkeypatch.setattr(versions, "VENVS", tmp_path)
    monkeypatch.setattr(versions, "_resolved", resolved)
    monkeypatch.setattr(environments, "make", lambda recipe, report: recipe.home / "bin" / "python")
    more = tmp_path / "more.txt"
    more.write_text("timm\n")
    pythons = {requirements.interpreter(str(more), ["torch"], ["cpu"], print) for _ in range(2)}
    ((name, text),) = variables.items()
    assert pythons == {str(tmp_path / name / "bin" / "python")} and name.startswith("torch-cpu-with-")
    assert "torch==" in text and text.endswith("timm\n")
    with pytest.raises(UsageError, match="one framework"):
        requirements.interpreter(str(more), ["torch", "jax"], ["cpu"], print)
    words = ["bench", "--workload", str(net), "--requirements", str(more), "--python", "python3"]
    assert runner.main(words) == 2


def test_the_parameters_of_user_models_are_options(net):
    _, arguments = runner.parse(["bench", f"WORKLOAD=mlp,{net},missing.py,timm:resnet50", "KIND=a", "IMAGE=96"])
    assert (arguments.kind, arguments.image) == ("a", "96")
