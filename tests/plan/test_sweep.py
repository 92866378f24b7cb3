"""What is asked for: checked in one sentence, exit code 2, nothing started; and what the words mean."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import frameworks
import runner
import workloads
from environments import environments
from execution import preparation
from measurement import machine
from measurement.refusals import UsageError
from plan.plan import cells_of, plan, profile_of
from plan.sweep import from_file, over_file, resolve

BAD = {
    "framework": (["--framework", "torhc"], "There is no framework 'torhc'; did you mean 'torch'?"),
    "workload": (["--workload", "bert-bse"], "did you mean 'bert-base'?"),
    "mode": (["--framework", "torch", "--mode", "inductr"], "did you mean 'inductor'?"),
    "implementation": (["--impl", "libary"], "did you mean 'library'?"),
    "dtype": (["--dtype", "fp23"], "did you mean 'fp32'?"),
    "profile": (["--profile", "quik"], "did you mean 'quick'?"),
    "device": (["--device", "tpu"], "There is no device 'tpu'"),
    "device index": (["--device", "cpu:1"], "DEVICE must be cpu, gpu, gpu:<index> or gpu:all, not"),
    "sequence": (["--workload", "bert-base", "--seq", "600"], "seq_len can be at most 512, not 600."),
    "batch 0": (["--batch", "0"], "batch_size must be at least 1, not 0."),
    "batch x": (["--batch", "x"], "batch_size must be a whole number, not 'x'."),
    "mask": (["--mask", "half"], "mask must be one of none, full, padded, not 'half'."),
    "threads": (["--threads", "9999"], "THREADS can be at most"),
    "threads 0": (["--threads", "0"], "THREADS must be a whole number of at least 1"),
    "budget": (["--budget", "-1"], "BUDGET must be a number of seconds above 0"),
    "timeout": (["--timeout", "0"], "TIMEOUT must be a number of seconds above 0"),
    "seed": (["--seed", "-1"], "SEED must be a whole number from 0 to 2"),
    "seed of many digits": (["--seed", "9" * 26], "SEED must be a whole number from 0 to 2"),
    "batch of many digits": (["--batch", "9" * 20], "batch_size can be at most 1099511627776, not 9999"),
    "too many cells": (
        ["--batch", ",".join(map(str, range(1, 1201))), "--width", ",".join(map(str, range(1, 1201)))],
        "combinations; at most 1,000,000 are allowed: shorten a list.",
    ),
    "a job's option without a job": (["--partition", "x"], "PARTITION applies only to Slurm jobs: add LAUNCHER=slurm"),
    "a container that nothing starts": (["--container", "pyxis:image", "--python", "python3"], "add LAUNCHER=slurm"),
    "requirements": (
        ["--framework", "torch", "--workload", "mlp", "--requirements", "/nowhere.txt"],
        "/nowhere.txt cannot be read",
    ),
    "out": (["--out", "/proc/run"], "OUT=/proc/run cannot be written"),
    "mode of another framework": (["--mode", "function-xla"], "MODE=function-xla is not a mode here: numpy has"),
    "nothing that any machine measures": (["--dtype", "tf32"], "Nothing to measure: TF32 exists on GPUs only"),
    "cache": (["--compile-cache", "hot"], "There is no compile cache state 'hot'"),
    "flag of another workload": (
        ["--workload", "mlp", "--seq", "8"],
        "SEQ has no effect on the inference of mlp; it is a parameter of bert-base",
    ),
    "flag of another pass": (["--workload", "mlp", "--accumulate", "2"], "ACCUMULATE has no effect on the inference"),
    "implementation that does not exist": (["--workload", "mlp", "--impl", "library"], "mlp has no library model"),
    "filter": (["--filter", "nothing-like-it"], "No cell's name matches"),
    "sweep file": (["--sweep", "/nowhere/sweep.toml"], "cannot be read: No such file"),
    "checkpoint": (["--weights", "/nowhere/model"], "There is no checkpoint at /nowhere/model."),
    "run": (["--resume", "/nowhere/run"], "/nowhere/run contains no run"),
}


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["run", "dry run"])
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_starts_nothing(name, dry, tmp_path, capsys):
    words, sentence = BAD[name]
    out = tmp_path / "run"
    assert runner.main(["bench", "--framework", "numpy", "--impl", "plain", "--out", str(out), *words, *dry]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert sentence in line
    assert not out.exists()


BARE = f"PYTHON={sys.executable} has no torch: install it there, or omit PYTHON"


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["run", "dry run"])
@pytest.mark.parametrize(
    ("python", "sentence"),
    [
        ("/nowhere/python", "PYTHON=/nowhere/python: no interpreter '/nowhere/python'; give the path of one"),
        (sys.executable, BARE),
    ],
)
def test_an_interpreter_that_cannot_be_measured_starts_nothing(python, sentence, dry, tmp_path, capsys):
    words = ["bench", "--framework", "torch", "--impl", "plain", "--python", python, *dry]
    assert runner.main([*words, "--out", str(tmp_path / "run")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_packages_that_an_interpreter_lacks_are_named_with_what_it_has(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "lacking", lambda python, modules: ["jax"])
    users = {name: Path(sys.executable) for name in ("torch", "jax")}
    with pytest.raises(UsageError, match=r"PYTHON=mine has no jax: install it there.* only FRAMEWORK=torch\.$"):
        preparation.check_packages("mine", users, "PYTHON")
    monkeypatch.undo()
    modules = [("numpy",), ("absent_here", "rich"), ("absent_here", "absent_there")]
    assert environments.lacking(Path(sys.executable), modules) == ["absent_here"]
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -IS "$@"\n')  # without its packages
    bare.chmod(0o755)
    assert environments.lacking(bare, modules[:2]) == ["numpy", "absent_here"]


@pytest.mark.parametrize(
    ("file", "what"), [("plan.json", "a run"), ("reproduction.json", "a run"), ("explanation.json", "profiles")]
)
def test_nothing_is_overwritten(tmp_path, capsys, file, what):
    (tmp_path / file).write_text("{}")
    assert runner.main(["bench", "--framework", "numpy", "--impl", "plain", "--out", str(tmp_path)]) == 2
    assert f"already contains {what}" in capsys.readouterr().err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(file, "{}")]


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["run", "dry run"])
def test_an_out_that_cannot_be_written(dry, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "run"
    assert runner.main(["bench", "--framework", "numpy", "--impl", "plain", "--out", str(out), *dry]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_no_environment_is_made_for_a_gpu_that_is_not_there(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(machine, "has_gpu", lambda: False)
    out = tmp_path / "run"
    words = ["bench", "--framework", "torch", "--workload", "mlp", "--device", "gpu", "--out", str(out)]
    for dry in ([], ["--dry-run"]):
        assert runner.main([*words, *dry]) == 2
        printed = capsys.readouterr()
        assert "No NVIDIA GPU was found (nvidia-smi). If another Python" in printed.err
        assert "3 cells, about" in printed.out  # a plan for another machine is still a plan
    assert not out.exists()


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize(
    ("words", "commands"),
    [
        (["lock", "FRAMEWORK=jax,torch", "UPGRADE=1"], ["environments.environments lock 'jax' 'torch' --upgrade"]),
        (["lock"], ["environments.environments lock"]),
        (
            ["test", "FRAMEWORK=jax,torch"],
            ["environments.environments setup 'jax' 'torch' --device cpu", "pytest -k 'jax or torch'"],
        ),
        (["test", "FRAMEWORK=all"], ["environments.environments setup --device cpu", "pytest"]),
    ],
)
def test_make_locks_and_tests_the_frameworks_that_are_named(words, commands):
    printed = subprocess.run(["make", "-n", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {" ".join(line.split()).partition(" -m ")[2] for line in printed.splitlines()} >= set(commands)


SWEPT = frameworks.swept()


def cells(**given):
    return cells_of(resolve(given))


def test_defaults_are_every_framework_eager_and_graph_on_all_cpus():
    planned = cells()
    assert len(planned) == 2 * sum(1 + len(frameworks.describe(name).default_graph) for name in SWEPT)
    assert {cell.threads for cell in planned} == {machine.usable_cpus()}
    assert {cell.workload: cell.implementation for cell in planned} == {"bert-base": "library", "mlp": "plain"}
    assert "numpy" not in {cell.framework for cell in planned}


def test_words_for_modes():
    def modes(framework, mode):
        return [cell.mode for cell in cells(framework=framework, workload="mlp", mode=mode)]

    assert modes("torch", "graph") == modes("torch", "inductor") == ["eager", "inductor"]  # without it no speedup
    assert modes("paddle", "graph,eager") == ["eager", "to_static"]
    assert modes("tensorflow", "all") == ["eager", "function", "function-xla"]
    assert modes("torch,jax", "inductor,jit") == ["eager", "inductor", "eager", "jit"]
    assert modes("torch,jax", "inductor") == ["eager", "inductor"]  # jax has no such mode


def test_a_mode_that_no_framework_of_a_run_has_is_named_where_others_are_measured(tmp_path, capsys):
    def shown(*names: str) -> str:
        words = ["--framework", ",".join(names), "--workload", "mlp", "--mode", "inductor,function-xla"]
        assert runner.main(["bench", *words, "--dry-run", "--out", str(tmp_path / "run")]) == 0
        return capsys.readouterr().out

    assert "MODE=function-xla is not a mode here: torch has eager, inductor," in shown("torch").replace("\n", " ")
    assert "not a mode" not in shown("torch", "tensorflow")


def test_parameters_belong_to_the_implementations_that_have_them():
    planned = cells(
        framework="torch", workload="bert-tiny", impl="library,plain", attention="explicit,fused", mode="eager"
    )
    assert [cell.parameter("attention") for cell in planned] == [None, "explicit", "fused"]


def test_flags_win_over_the_file(tmp_path):
    (tmp_path / "s.toml").write_text('framework = ["torch", "jax"]\nbatch = [1, 4]\nprofile = "standard"\n')
    given = from_file(str(tmp_path / "s.toml"))
    assert resolve(given).profile == "standard"
    assert resolve({**given, "batch": "2"}).parameters["batch"] == [2]
    assert resolve(given).parameters["batch"] == [1, 4]


FILE = {"workload": ["resnet50", "lstm"], "pass": "training", "layout": "nchw", "batch": 8}


@pytest.mark.parametrize(
    ("of_file", "flags", "without"),
    [
        (FILE, {"workload": "lstm"}, {"layout"}),
        (FILE, {"workload": "lstm,vit-b16"}, set()),
        (FILE, {"dtype": "bf16"}, set()),
        (FILE, {"workload": "lstm", "layout": "nhwc"}, set()),  # asked for, and refused later
        (FILE | {"seq": 8, "workload": "resnet50"}, {"workload": "mlp"}, {"layout"}),  # SEQ never meant anything here
        (FILE | {"accumulate": 2}, {"pass": "inference"}, {"accumulate"}),
        (FILE, {"workload": "lstn"}, set()),
        (FILE, {"workload": "lstm", "pass": "trainign"}, set()),
    ],
)
def test_a_file_s_parameters_go_with_the_workloads_and_passes_that_have_them(of_file, flags, without):
    merged = over_file(of_file, flags)
    assert (of_file | flags).keys() - merged.keys() == without
    assert merged.items() <= (of_file | flags).items()


def test_a_sweep_of_many_workloads_is_narrowed_to_one(tmp_path, capsys):
    file = tmp_path / "s.toml"
    file.write_text('workload = ["resnet-tiny", "lstm-tiny"]\nimpl = "plain"\nlayout = "nchw"\nmode = "eager"\n')
    words = ["bench", "--framework", "torch", "--sweep", str(file), "--workload", "lstm-tiny", "--dry-run"]
    assert runner.main(words) == 0
    assert "lstm-tiny" in capsys.readouterr().out
    assert runner.main([*words, "--layout", "nchw"]) == 2
    assert "LAYOUT has no effect on the inference of lstm-tiny" in capsys.readouterr().err


def test_an_unknown_setting_in_the_file(tmp_path, capsys):
    (tmp_path / "s.toml").write_text('framwork = "torch"\n')
    assert runner.main(["bench", "--sweep", str(tmp_path / "s.toml"), "--out", str(tmp_path / "run")]) == 2
    assert "did you mean 'framework'?" in capsys.readouterr().err


def test_groups_differ_in_mode_and_bundles_share_processes():
    flags = dict(framework="torch", workload="mlp,bert-tiny", batch="1,2", mode="all", threads="1")
    made = plan(resolve(flags))
    assert [len(bundle.groups) for bundle in made.bundles] == [4]
    for bundle in made.bundles:
        for group in bundle.groups:
            assert len({cell.group_id for cell in group.cells}) == 1
            assert group.cells[0].mode == "eager"
    assert {reason for reason in made.impossible.values()} == {
        "PyTorch's mode inductor-whole-iteration does not run the inference pass.",
        "PyTorch's mode cuda-graph needs a GPU.",
        "PyTorch's mode inductor-reduce-overhead needs a GPU.",
    }
    assert [len(bundle.groups) for bundle in plan(resolve({**flags, "isolate": True})).bundles] == [1, 1, 1, 1]


def test_resuming_measures_eager_again_but_records_what_is_missing():
    sweep = resolve(dict(framework="torch", workload="mlp", batch="1,2"))
    first, second, *rest = cells_of(sweep)
    made = plan(sweep, frozenset({first.id, *(cell.id for cell in rest)}))
    (group,) = made.bundles[0].groups
    assert group.cells == (first, second)
    assert group.lacking == {second.id}
    assert plan(sweep, frozenset(cell.id for cell in cells_of(sweep))).bundles == ()


def test_filter_matches_text_or_wildcard():
    assert [cell.mode for cell in cells(framework="torch", workload="mlp", filter="/inductor")] == ["inductor"]
    assert {cell.framework for cell in cells(workload="mlp", filter="jax/*/eager")} == {"jax"}


def test_a_budget_scales_the_profile():
    profile = profile_of(resolve({"budget": "1", "profile": "quick"}))
    usual = profile_of(resolve({"profile": "quick"}))
    scale = 1 / usual.seconds_per_cell
    assert profile.seconds_per_cell == 1
    assert profile.warmup_seconds == pytest.approx(usual.warmup_seconds * scale)
    assert profile.maximum_seconds_per_cell == pytest.approx(usual.maximum_seconds_per_cell * scale)
    assert profile.most_processes == 3
    assert profile_of(resolve({"budget": "1", "profile": "quick", "device": "gpu"})).most_processes == 5


def test_dry_run_prints_every_cell_and_starts_nothing(tmp_path, capsys):
    words = ["bench", "--framework", "torch", "--workload", "mlp", "--mode", "all", "--dry-run", "--out"]
    assert runner.main([*words, str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "torch/mlp/plain/inference/cpu/fp32" in printed
    assert "needs a GPU" in printed
    swept = [mode for mode in frameworks.describe("torch").modes if not mode.is_rung and not mode.packages]
    assert f"{len(swept)} cells, about" in printed and "/dynamo" not in printed
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("framework", "device", "dtype", "attention"),
    [
        ("torch", "cpu", "fp32", "fused"),
        ("torch", "gpu:1", "bf16", "fused"),
        ("jax", "cpu", "fp32", "explicit"),
        ("jax", "gpu", "fp32", "explicit"),
        ("jax", "gpu", "bf16", "fused"),
        ("jax", "cpu", "fp16", "explicit"),
        ("paddle", "cpu", "fp32", "explicit"),
        ("paddle", "gpu", "fp32", "explicit"),
        ("paddle", "gpu", "bf16", "fused"),
        ("tensorflow", "gpu", "bf16", "explicit"),
        ("numpy", "cpu", "fp32", "explicit"),
    ],
)
def test_attention_is_fused_where_the_framework_has_a_kernel_of_it(framework, device, dtype, attention):
    words = dict(framework=framework, workload="gpt-tiny", device=device, dtype=dtype, mode="eager")
    (cell,) = cells_of(resolve(words))
    assert cell.parameter("attention") == attention
    assert f"attention={attention}/" in cell.id
    planned = cells_of(resolve({**words, "attention": "explicit,fused"}))
    assert [cell.parameter("attention") for cell in planned] == ["explicit", "fused"]


def test_a_default_graph_may_be_several_modes():
    cells = cells_of(resolve(dict(framework="tensorflow,torch", workload="mlp")))
    assert [cell.mode for cell in cells if cell.framework == "tensorflow"] == ["eager", "function", "function-xla"]
    assert [cell.mode for cell in cells if cell.framework == "torch"] == ["eager", "inductor"]


@pytest.mark.parametrize(
    ("framework", "graphs"),
    [
        ("torch", ["inductor", "inductor-reduce-overhead"]),
        ("jax", ["jit"]),
        ("paddle", ["to_static", "to_static-cinn"]),
    ],
)
def test_a_gpu_is_measured_in_the_recommended_modes_unless_others_are_named(framework, graphs):
    words = dict(framework=framework, workload="mlp", device="gpu")
    assert [cell.mode for cell in cells_of(resolve(words))] == ["eager", *graphs]
    assert [cell.mode for cell in cells_of(resolve({**words, "mode": "graph"}))] == ["eager", *graphs[:1]]


def test_no_parameter_of_a_user_s_model_can_take_the_name_of_an_option(tmp_path, capsys):
    """On a command line and in a sweep file; the parameter of another workload it may share."""
    model, file = tmp_path / "net.py", tmp_path / "sweep.toml"
    file.write_text(f'workload = "{model}"')
    for command, name in (("bench", "nodes"), ("explain", "dry_run"), ("ab", "versions"), ("bench", "threads")):
        model.write_text(f"import torch\ndef model(): ...\ndef inputs(batch_size=1, width=2, {name}=50): ...")
        for word in [f"WORKLOAD={model}"] + ([f"SWEEP={file}"] if name == "threads" else []):
            workloads._USER_MODELS.clear()
            assert runner.main([command, word]) == 2
            assert f"net.py: inputs has a parameter {name}, a name that the suite reserves" in capsys.readouterr().err
