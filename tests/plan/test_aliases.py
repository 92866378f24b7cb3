"""Words as people type them: other names, ranges, and what is answered where they mean nothing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest
from conftest import ROOT

import runner
from commands import published, table
from measurement import machine
from measurement.refusals import UsageError
from plan import sweep
from plan.aliases import ALIASES, numbers
from plan.plan import cells_of
from plan.sweep import presets, question_of, resolve


def cells(**given):
    return cells_of(resolve(given))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"framework": "tf"}, {"framework": "tensorflow"}),
        ({"framework": "PyTorch,paddlepaddle"}, {"framework": "torch,paddle"}),
        ({"device": "cuda"}, {"device": "gpu"}),
        ({"device": "cuda:0"}, {"device": "gpu:0"}),
        ({"workload": "bert"}, {"workload": "bert-base"}),
        ({"mode": "compile", "framework": "jax"}, {"mode": "graph", "framework": "jax"}),
        ({"dtype": "bfloat16,float32"}, {"dtype": "bf16,fp32"}),
        ({"pass": "train", "workload": "mlp"}, {"pass": "training", "workload": "mlp"}),
    ],
)
def test_other_names_are_understood(given, meant):
    assert cells(**given) == cells(**meant) != cells()


def test_cuda_all_means_every_gpu(monkeypatch):
    gpu = {"index": "0", "name": "X", "memory.total": "8 GiB"}
    monkeypatch.setattr("plan.hosts.visible_gpus", lambda: [gpu])
    assert resolve({"device": "cuda:all"}).places.gpus == ("0",)


def test_an_index_that_the_machine_lacks(monkeypatch):
    monkeypatch.setattr("plan.sweep.gpus", lambda: [{"index": "0"}])
    with pytest.raises(UsageError, match="There is no gpu:1: this machine has 1 GPU, from gpu:0"):
        resolve({"device": "cuda:1"})


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("32..512", [32, 64, 128, 256, 512]),
        ("1..8", [1, 2, 4, 8]),
        ("1..6", [1, 2, 4, 6]),  # the last one is always measured
        ("32..128..32", [32, 64, 96, 128]),
        ("32..100..32", [32, 64, 96, 100]),
        ("1..3..1", [1, 2, 3]),
        ("7", [7]),
        ("padded", ["padded"]),
    ],
)
def test_ranges(word, values):
    assert numbers("seq", word) == values


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        (
            "1-8",
            "BATCH=1-8 is not a list: write BATCH=1,2,4,8; BATCH=1..8 means the same, and BATCH=1..8..1 means every",
        ),
        ("32:512:32", "BATCH=32:512:32 is not a list: write BATCH=32,64,128,256,512;"),
        ("8..1", "BATCH=8..1 is an empty range"),
        ("0..4", "BATCH=0..4 is an empty range"),
        ("1..4..0", "BATCH=1..4..0 is an empty range"),
        ("1..100000..1", "BATCH=1..100000..1 is 100,000 values; at most 256"),
    ],
)
def test_what_is_no_range(word, sentence):
    with pytest.raises(UsageError) as error:
        numbers("batch", word)
    assert str(error.value).startswith(sentence)


def test_ranges_on_the_command_line_and_for_threads():
    planned = cells(framework="torch", workload="bert-tiny", mode="eager", seq="16..64", batch="1,2..3..1")
    assert [(c.parameter("batch_size"), c.parameter("seq_len")) for c in planned] == [
        (batch, length) for batch in (1, 2, 3) for length in (16, 32, 64)
    ]
    if machine.usable_cpus() > 1:
        assert resolve({"threads": "1..2"}).axes["threads"] == [1, 2]


def test_a_mode_that_is_none_is_answered_with_those_of_the_frameworks_asked_for(capsys):
    assert runner.main(["bench", "--framework", "tf", "--mode", "qqqqqq"]) == 2
    said = capsys.readouterr().err
    assert "choose from eager, graph, recommended, all, ladder, function, function-xla, function-unoptimized." in said
    assert runner.main(["bench", "--framework", "torch", "--mode", "reduce-overhead"]) == 2
    assert "did you mean 'inductor-reduce-overhead'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("framework", "word", "hint"),
    [
        ("all", "xla", "did you mean 'function-xla' or 'jit'? function-xla is TensorFlow's tf.function("),
        ("jax", "XLA", "did you mean 'jit'? jit is JAX's jax.jit(function)."),
        ("torch", "xla", "choose from eager, graph, recommended, all, ladder, inductor, "),
        ("torch", "cuda-graphs", "did you mean 'cuda-graph'? cuda-graph is PyTorch's torch.cuda.CUDAGraph ("),
        ("all", "cudagraph", "did you mean 'cuda-graph'? cuda-graph is PyTorch's torch.cuda.CUDAGraph ("),
        ("torch", "cuda_graphs", 'cudagraphs is PyTorch\'s torch.compile(model, backend="cudagraphs").'),
        ("torch", "max-autotune", "did you mean 'inductor-max-autotune'?"),
        ("torch", "torch.compile", "did you mean 'inductor'?"),
        ("paddle", "predictor", "did you mean 'inference'?"),  # by what its users type
        ("torch", "lader", "did you mean 'ladder'?"),
        ("torch", "graphs", "did you mean 'graph'?"),
        ("torch", "..", "choose from eager"),
    ],
)
def test_a_word_leads_to_the_modes_that_it_describes(framework, word, hint, capsys):
    """Letters alone led from `xla` to `ladder`, and from `cuda-graphs` to the backend for debugging."""
    assert runner.main(["bench", "--framework", framework, f"--mode={word}"]) == 2
    assert hint in capsys.readouterr().err


def test_a_flag_says_which_workloads_take_it(capsys):
    assert runner.main(["bench", "--workload", "mlp", "--seq", "8"]) == 2
    assert (
        "gpt2-124m, gpt-10m, gpt-tiny, lstm, lstm-tiny, and mlp takes BATCH, WIDTH, DEPTH." in capsys.readouterr().err
    )
    assert runner.main(["bench", "--workload", "mlp", "--accumulate", "2"]) == 2
    assert "is a parameter of PASS=training, and mlp takes BATCH, WIDTH, DEPTH." in capsys.readouterr().err


def test_a_dry_run_refuses_what_the_run_would(tmp_path, capsys):
    words = ["bench", "--framework", "numpy", "--workload", "mlp", "--dry-run", "--out", str(tmp_path)]
    assert runner.main(words) == 0
    assert "1 cell, about" in capsys.readouterr().out
    (tmp_path / "plan.json").write_text("{}")
    assert runner.main(words) == 2
    printed = capsys.readouterr()
    assert f"OUT={tmp_path} already contains a run" in printed.err and "1 cell, about" in printed.out


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["bench", "framework=torch"], "runner.py: There is no variable framework; did you mean FRAMEWORK?\n"),
        (["explain", "LAUNCHER=slurm"], "make explain does not take LAUNCHER; it takes FRAMEWORK WORKLOAD IMPL"),
        (["lint", "SEQ=8"], "make lint does not take SEQ; it takes none"),
        (["bench", "report", "ZZZZ=1"], "There is no variable ZZZZ; `HELP=1` lists them"),
    ],
)
def test_make_answers_a_variable_that_is_not_taken(words, sentence):
    """`make explain LAUNCHER=slurm` would have profiled on the login node."""
    done = subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert sentence in done.stderr


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize(("word", "answer"), [("bnech", "did you mean bench?"), ("qqqq", "`make` lists them")])
def test_make_answers_a_misspelt_target(word, answer):
    done = subprocess.run(["make", word], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"There is no target {word}; {answer}" in done.stderr


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_make_s_help_has_a_line_for_every_command():
    text = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"(?m)^  make (\w+)", text) == [*table.COMMANDS, "test", "lint", "lock", "clean"]


def test_every_preset_can_be_planned_and_says_what_it_answers(capsys, monkeypatch):
    monkeypatch.setattr(machine, "has_gpu", lambda: True)
    for name, path in presets().items():
        assert question_of(path).endswith("?")
        assert runner.main(["bench", "--preset", name, "--dry-run"]) == 0, name
        assert "cells, about" in capsys.readouterr().out


def test_a_preset_is_a_sweep_file_by_name_and_flags_win(capsys):
    words = ["bench", "--preset", "smoke", "--framework", "torch", "--dry-run"]
    assert runner.main([*words, "--batch", "3"]) == 0
    assert "torch/mlp/plain/inference/cpu/fp32/threads=1/batch_size=3,width=32,depth=2/eager" in capsys.readouterr().out
    assert runner.main(["bench", "--preset", "smok"]) == 2
    assert "There is no preset 'smok'; did you mean 'smoke'?" in capsys.readouterr().err
    assert runner.main([*words, "--sweep", "x.toml"]) == 2
    assert "use one of them" in capsys.readouterr().err


def test_a_folder_of_runs_says_how_many_there_are(tmp_path, capsys, record):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "records.jsonl").write_text(
            json.dumps(record(run_id=name, batch_size=ord(name)).to_row()) + "\n"
        )
    assert runner.main(["report", str(tmp_path)]) == 0
    assert f"2 runs found below {tmp_path}." in " ".join(capsys.readouterr().out.split())
    assert runner.main(["report", str(tmp_path / "a")]) == 0
    assert "found below" not in capsys.readouterr().out
    assert runner.main(["report", str(tmp_path / "a"), "--framework", "tf"]) == 2
    assert "no framework in these records 'tensorflow'" in capsys.readouterr().err


def test_the_documentation_has_every_name_and_every_preset():
    page = (ROOT / "docs/usage.md").read_text()
    text = page.partition("### Other names")[2].partition("### Workloads")[0]
    for flag, names in ALIASES.items():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{flag.upper()}` |")]
        for typed, meant in names.items():
            assert f"`{typed}`" in row
            assert f"`{meant}`" in row
    for name in presets():
        assert f"`{name}`" in page


def test_sweep_files_and_plans_are_read_under_former_names(tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text('workload = "fused-cos"\nrepeat = [1, 2]\n')
    assert sweep.from_file(str(file)) == {"workload": "fused-cos", "operators": [1, 2]}
    former = {"workload": "fused-cos", "repeat": [1, 2]}
    assert resolve(former) == resolve({"workload": "fused-cos", "operators": [1, 2]})
    assert resolve(former | {"operators": "3"}).parameters == {"operators": [3]}  # a resumed run's change shows
    assert published.command("bench", former) == "make bench WORKLOAD=fused-cos OPERATORS=1,2"


def test_a_user_s_parameter_keeps_a_former_name(tmp_path, capsys):
    model = tmp_path / "repeating.py"
    model.write_text("import torch\ndef model(): ...\ndef inputs(batch_size=1, repeat=4): ...")
    assert runner.parse(["bench", f"WORKLOAD={model}", "REPEAT=8"])[1].repeat == "8"
    assert capsys.readouterr().err == ""
    assert resolve({"workload": str(model), "repeat": "8"}).parameters == {"repeat": [8]}
    model.write_text("import torch\ndef model(): ...\ndef inputs(image=64, image_size=4): ...")
    assert runner.main(["bench", f"WORKLOAD={model}"]) == 2
    assert "parameters image and image_size set the same option: rename one." in capsys.readouterr().err


def test_no_two_variables_are_an_s_apart():
    names = {option.name for option in runner.every_option() if option.model is None}
    assert {name for name in names if f"{name}S" in names} == set()
