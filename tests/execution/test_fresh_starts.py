"""Starts of real processes: every strategy of PyTorch gives the correct answer, and its phases add up."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doubles.environment import BRIEFLY, interpreter
from doubles.suite import Finished

import frameworks
import runner
from commands import rounds
from execution.campaign import Campaign
from execution.rounds import time_left
from measurement.flags import OTHER_LOAD_CORES
from measurement.refusals import DONE, UsageError
from records import manifest, starts

ROOT = Path(__file__).resolve().parents[2]
MOST_UNACCOUNTED = 0.2  # a phase is missing or counted twice; from 3 % on a flag says that others kept the machine busy
MODEL = """
import torch

class Block(torch.nn.Linear):
    def forward(self, x):
        return torch.relu(super().forward(x))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = torch.nn.ModuleList(torch.nn.Embedding(100, 8) for _ in range(2))
        self.blocks = torch.nn.ModuleList({block}(8, 8) for _ in range(2))

    def forward(self, x):
        for table in self.tables:
            x = x + table.weight[0]
        for block in self.blocks:
            x = block(x)
        return x

def model():
    torch.manual_seed(0)
    return Net()

def inputs(batch_size=2):
    return torch.randn(batch_size, 8)
"""


def started(out: Path, *words: str) -> Finished:
    command = [sys.executable, "runner.py", "start", "--out", str(out), "--threads", "1", *words]
    done = subprocess.run(command, cwd=ROOT, env=BRIEFLY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return Finished(done.returncode, done.stdout, out)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A user model started once in every way."""
    interpreter("torch")
    folder = tmp_path_factory.mktemp("starts")
    (folder / "net.py").write_text(MODEL.format(block="Block"))
    done = started(folder / "run", "--workload", str(folder / "net.py"), "--processes", "1")
    assert done.code == DONE, done.output
    return done


def compiler_starts(record) -> int:
    """Return how often the C++ compiler ran."""
    return int(re.search(r"g\+\+ (\d+)", record.programs)[1])


@pytest.mark.slow
@pytest.mark.timeout(1200)  # with the fixture
def test_every_way_to_start_gives_the_right_answer(finished):
    records = {record.strategy: record for record in starts.JOURNAL.read(finished.folder)}
    assert set(records) == {"eager", *frameworks.describe("torch").starts}
    for name, record in records.items():
        assert record.status == "ok", (name, record.reason)
        assert abs(record.unaccounted) < MOST_UNACCOUNTED, name
        assert record.parity <= record.tolerance and record.steady_ms > 0 and record.memory_bytes > 1e7, name
        assert record.other_load_cores >= 0 and record.steal_share >= 0
        assert ("other_load" in (record.flags or "")) == (record.other_load_cores > OTHER_LOAD_CORES)
    compiled = records["compile"]
    assert compiled.trace_s > 0 and compiled.lowering_s > 0 and compiled.kernels_s > 0
    assert records["eager"].programs is None and records["eager"].trace_s is None
    assert compiler_starts(records["warm-cache"]) < compiler_starts(compiled)
    again = {name for name, record in records.items() if "compiled_again" in (record.flags or "")}
    assert again == {"shipped-cache"}  # which holds no C++ of a CPU
    assert "shipped-cache: the process compiles code that its cache lacks." in finished.output
    assert records["ahead-of-time"].load_s > 0 and records["ahead-of-time"].artefact_bytes > 1000


@pytest.mark.slow
def test_a_package_loads_where_no_compiler_is_on_the_path(finished):
    records = {record.strategy: record for record in starts.JOURNAL.read(finished.folder)}
    assert records["ahead-of-time"].compiler
    without = records["ahead-of-time-no-compiler"]
    assert (without.compiler, without.programs, without.status) == (None, None, "ok")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "ways", "reason"),
    [
        ((ROOT / "tests/field/torch/lstm.py").read_text(), ("compile", "warm-cache", "shipped-cache"), "wrap RNN, GRU"),
        (MODEL.format(block="torch.nn.Linear"), ("regional",), "Dynamo skips code of torch.nn's classes"),
    ],
)
def test_a_model_of_which_nothing_is_compiled_has_no_compiled_start(tmp_path, model, ways, reason):
    interpreter("torch")
    (tmp_path / "net.py").write_text(model)
    words = ("--workload", str(tmp_path / "net.py"), "--processes", "1", "--strategy", ",".join(ways))
    records = starts.JOURNAL.read(started(tmp_path / "run", *words).folder)
    assert sorted(record.strategy for record in records) == sorted(ways)
    for record in records:
        assert record.status == "unsupported" and reason in record.reason, record
        assert record.reason.startswith("torch.compile has compiled no part of the model: "), record


def test_the_time_left_is_known_once_each_arm_was_timed():
    took = {("eager", "cold"): [10.0, 20.0], ("static", "cold"): [105.0]}
    to_come = [("eager", "cold"), ("static", "cold"), ("eager", "cold")]
    assert time_left(took, to_come) == "; about 2 min left for this cell"
    assert time_left(took, [*to_come, ("dynamic", "cold")]) == time_left(took, []) == ""


@pytest.mark.slow
def test_a_damaged_artefact_is_made_again_and_what_is_there_is_kept(tmp_path):
    """The same OUT goes on with what is missing: one more process of one way."""
    interpreter("onnxruntime")
    out, way = tmp_path / "run", "ahead-of-time"
    words = ("--framework", "onnxruntime", "--workload", "mlp", "--strategy", way)
    assert started(out, *words, "--processes", "1").code == DONE
    artefact = max(out.glob(f"artefacts/*/{way}/*"), key=lambda path: path.stat().st_size)
    os.truncate(artefact, artefact.stat().st_size // 2)
    before = starts.JOURNAL.read(out)
    done = started(out, *words, "--processes", "2")
    assert done.code == DONE, done.output
    assert f"Making the artefact of {way} again, because {artefact.name} is truncated or was changed." in done.output
    *kept, last = starts.JOURNAL.read(out)
    assert kept == before
    assert (last.strategy, last.round, last.status) == (way, 1, "ok")
    shutil.rmtree(out / "artefacts")
    (out / "artefacts").touch()
    refused = started(out, *words, "--processes", "3")
    assert refused.code == 2 and "Traceback" not in refused.output
    sentence = "Not a directory; choose another path, then try again. Resume with the same command and make start OUT="
    assert sentence in refused.output


JAX_MODEL = """
import jax.numpy as jnp
import numpy as np

def model():
    weights = np.random.default_rng(0).normal(size=(8, 8)).astype("float32")
    params = {"weights": jnp.asarray(weights), "activation": lambda x: jnp.tanh(x)}
    return (lambda params, x, train: params["activation"](x @ params["weights"])), params

def inputs(batch_size=2):
    return {"x": np.random.default_rng(1).normal(size=(batch_size, 8)).astype("float32"), "train": False}
"""


@pytest.mark.slow
def test_jax_starts_in_every_way_but_by_region(tmp_path):
    """A user model, in its own framework although none is named, with a function and a flag that no file can hold."""
    interpreter("jax")
    (tmp_path / "net.py").write_text(JAX_MODEL)
    ways = frameworks.describe("jax").starts
    words = ("--workload", str(tmp_path / "net.py"), "--processes", "1", "--strategy", ",".join((*ways, "regional")))
    done = started(tmp_path / "run", *words)
    assert done.code == DONE, done.output
    records = {record.strategy: record for record in starts.JOURNAL.read(done.folder)}
    assert {name for name, record in records.items() if record.is_right} == set(ways)
    assert records["regional"].status == "unsupported" and "jax.lax.scan" in records["regional"].reason
    assert records["compile"].trace_s > 0 and records["compile"].kernels_s > 0
    assert records["warm-cache"].kernels_s is None and records["warm-cache"].load_s > 0
    assert records["ahead-of-time"].trace_s is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "ways"),
    [
        ("tensorflow", "shipped-cache,exported"),
        ("paddle", "exported,ahead-of-time"),
        ("onnxruntime", "eager,exported,ahead-of-time"),
    ],
)
def test_other_frameworks_load_what_another_process_wrote(tmp_path, framework, ways):
    interpreter(framework)
    words = ("--framework", framework, "--workload", "mlp", "--processes", "1", "--strategy", f"{ways},regional")
    done = started(tmp_path / "run", *words)
    assert done.code == DONE, done.output
    records = {record.strategy: record for record in starts.JOURNAL.read(done.folder)}
    lacking = records.pop("regional")
    assert lacking.status == "unsupported" and "has no strategy regional: " in lacking.reason
    assert set(records) == set(ways.split(","))
    for name, record in records.items():
        assert record.status == "ok" and abs(record.unaccounted) < MOST_UNACCOUNTED, (name, record.reason)
        assert not record.artefact_bytes or (record.load_s or record.trace_s) > 0, name


STRUCTURED = """
import dataclasses
from typing import NamedTuple

import paddle

class Out(NamedTuple):
    logits: paddle.Tensor
    others: list

@dataclasses.dataclass
class Score:
    score: paddle.Tensor

class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(8, 4)

    def forward(self, x):
        y = self.linear(x)
        return Out(y, [x.mean(-1), Score(y.sum(-1))])

def model():
    paddle.seed(0)
    return Net()

def inputs(batch_size=2):
    return paddle.randn((batch_size, 8))
"""


@pytest.mark.slow
def test_paddle_loads_a_user_model_with_the_form_of_its_outputs(tmp_path):
    """Also where a folder of the user has the name of one of the suite's packages, whose classes the form holds."""
    interpreter("paddle")
    (tmp_path / "frameworks").mkdir()
    (tmp_path / "net.py").write_text(STRUCTURED)
    words = ("--workload", str(tmp_path / "net.py"), "--processes", "1", "--strategy", "exported,ahead-of-time")
    records = starts.JOURNAL.read(started(tmp_path / "run", *words).folder)
    assert [(record.status, record.reason) for record in records] == [("ok", None)] * 2


SWITCHED_OFF = {
    "tensorflow": """
import tensorflow as tf

tf.config.run_functions_eagerly(True)

def model():
    w = tf.Variable(tf.ones((8, 8)))
    return lambda x: tf.tanh(x @ w)

def inputs(batch_size=2):
    return tf.ones((batch_size, 8))
""",
    "paddle": """
import paddle

paddle.jit.enable_to_static(False)

def model():
    return paddle.nn.Linear(8, 8)

def inputs(batch_size=2):
    return paddle.ones((batch_size, 8))
""",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "reasons"),
    [
        ("tensorflow", dict.fromkeys(("capture", "compile", "warm-cache"), "eagerly is on, so no graph runs")),
        # Paddle has no CINN on a CPU.
        ("paddle", {"capture": "captured nothing, so eager mode ran", "compile": "choose STRATEGY=capture"}),
    ],
    ids=["tensorflow", "paddle"],
)
def test_eager_mode_is_no_start_of_a_graph(tmp_path, framework, reasons):
    interpreter(framework)
    (tmp_path / "net.py").write_text(SWITCHED_OFF[framework])
    words = ("--framework", framework, "--workload", str(tmp_path / "net.py"), "--processes", "1", "--strategy")
    records = starts.JOURNAL.read(started(tmp_path / "run", *words, ",".join(("eager", *reasons))).folder)
    found = {record.strategy: record for record in records}
    assert found.pop("eager").status == "ok" and found.keys() == reasons.keys()
    for name, record in found.items():
        assert record.status == "unsupported" and reasons[name] in record.reason, record
        assert "Cause: " not in record.reason


@pytest.mark.slow
def test_another_model_needs_another_folder(finished, capsys, monkeypatch):
    monkeypatch.setattr(Campaign, "prepare", lambda campaign: pytest.fail("weights were made before the refusal"))
    words = ["start", "--out", str(finished.folder), "--workload", "mlp", "--threads", "1"]
    assert runner.main(words) == 2
    assert "was started with other values: repeat them, or choose another OUT." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--processes", "0"], "PROCESSES must be a whole number of at least 1, not 0."),
        (["--strategy", "warm"], "There is no strategy 'warm'"),
        (["--pass", "training"], "does not take"),
        (["--accumulate", "2"], "does not take"),
        (["--sweep", str(ROOT / "experiments/edition/cpu-decode.toml")], "`start` measures inference only: omit PASS."),
        (["--shapes", "dynamic"], "does not take"),
        (["--energy"], "does not take"),
    ],
)
def test_what_start_does_not_take_is_refused_in_a_sentence(words, sentence, capsys, tmp_path):
    assert runner.main(["start", "--out", str(tmp_path / "run"), *words]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_strategies_of_starts_are_no_parameter_of_the_workload(capsys):
    """Training on several ranks has a STRATEGY as well."""
    words = ["--workload", "mlp", "--strategy", "compile,regional", "--processes", "3", "--dry-run"]
    assert runner.main(["start", *words]) == DONE
    plan = capsys.readouterr().out
    assert "6 processes, 3 of each strategy: compile, regional" in plan and "strategy=" not in plan


def test_a_user_model_is_started_in_its_own_framework():
    assert rounds.with_defaults({}, "mlp") == {"framework": "torch", "workload": "mlp"}
    assert rounds.with_defaults({"workload": ["a/net.py"]}, "mlp") == {"workload": ["a/net.py"]}
    assert rounds.with_defaults({"framework": ["jax"]}, "mlp")["framework"] == ["jax"]


def test_a_plan_of_starts_is_held_by_its_digest(tmp_path):
    (tmp_path / manifest.STARTS).write_text(json.dumps({"given": {}, "cells": [], "digest": "0"}))
    with pytest.raises(UsageError, match="was changed"):
        manifest.read(tmp_path / manifest.STARTS)


@pytest.mark.slow
def test_a_package_of_hidden_outputs_is_refused_as_by_bench(tmp_path):
    interpreter("torch")
    words = ("--workload", "tests/field/torch/unregistered_output.py", "--processes", "1")
    done = started(tmp_path / "run", *words, "--strategy", "ahead-of-time,ahead-of-time-no-compiler")
    record, variant = starts.JOURNAL.read(done.folder)
    assert record.status == "unsupported" and "Cause:" not in record.reason
    assert record.reason.startswith("the model returns a ModelOutput, in which torch.export sees no tensors: ")
    assert (variant.status, variant.reason) == (record.status, record.reason)
    processes = list((done.folder / "processes").glob("*/job.json"))
    assert len(processes) == 2  # one eager call, the reference; and one try to make the package


PARTLY_WRONG = """
import dataclasses

import torch

@dataclasses.dataclass
class Found:
    scores: torch.Tensor
    boxes: list

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        x = self.linear(x)
        return Found(x.softmax(-1), [x, {"labels": x.argmax(-1) + torch.compiler.is_compiling()}])

def model():
    return Net()

def inputs(batch_size=2):
    return torch.randn(batch_size, 8)
"""


@pytest.mark.slow
def test_one_wrong_part_of_a_structured_output_is_a_mismatch(tmp_path):
    interpreter("torch")
    (tmp_path / "net.py").write_text(PARTLY_WRONG)
    (tmp_path / "right.py").write_text(PARTLY_WRONG.replace(" + torch.compiler.is_compiling()", ""))
    words = ("--workload", f"{tmp_path / 'net.py'},{tmp_path / 'right.py'}", "--processes", "1")
    done = started(tmp_path / "run", *words, "--strategy", "eager,compile")
    found = {(one.workload, one.strategy): one.status for one in starts.JOURNAL.read(done.folder)}
    right = dict.fromkeys((("net.py", "eager"), ("right.py", "eager"), ("right.py", "compile")), "ok")
    assert found == {**right, ("net.py", "compile"): "mismatch"}, done.output


USERS = {
    # Only this process's model() loads the library, whose classes the outputs have, and sets what inputs() reads.
    "lazy": """
import torch

def model():
    from transformers import BertConfig, BertModel
    return BertModel(BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8))

def inputs(batch_size=2, seq_len=4):
    return {"input_ids": torch.ones(batch_size, seq_len, dtype=torch.long)}
""",
    "buffer": """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x):
        y = self.linear(x)
        self.mean.mul_(0.9).add_(0.1 * y.mean(0))
        return y - self.mean

def model():
    return Net()

def inputs(batch_size=2):
    return torch.randn(batch_size, 8)
""",
    "set_by_model": """
import torch

size = None

def model():
    global size
    size = 8
    return torch.nn.Linear(size, size)

def inputs(batch_size=2):
    return torch.randn(batch_size, size)
""",
}


@pytest.mark.slow
def test_a_package_needs_no_model_of_its_user(tmp_path):
    interpreter("torch")
    for name, text in USERS.items():
        (tmp_path / f"{name}.py").write_text(text)
    words = ("--workload", ",".join(str(tmp_path / f"{name}.py") for name in USERS), "--processes", "1")
    done = started(tmp_path / "run", *words, "--strategy", "ahead-of-time")
    found = {record.workload.partition(".")[0]: record for record in starts.JOURNAL.read(done.folder)}
    assert {name: record.status for name, record in found.items() if record.is_right} == {"lazy": "ok", "buffer": "ok"}
    assert found["set_by_model"].status == "error"
    assert "let inputs() use nothing that model() sets" in found["set_by_model"].reason


LAYERS = """
import torch

class Block(torch.nn.Module):
    def __init__(self, index):
        super().__init__()
        self.index, self.linear = index, torch.nn.Linear(8, 8)

    def forward(self, x, cache):
        cache[self.index] = x
        return torch.relu(self.linear(x))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(index) for index in range(10))

    def forward(self, x):
        cache = {}
        for block in self.blocks:
            x = block(x, cache)
        return x

def model():
    return Net()

def inputs(batch_size=2):
    return torch.randn(batch_size, 8)
"""


@pytest.mark.slow
def test_what_torch_compiles_no_more_is_a_flag_and_a_whole_call_of_it_no_start(tmp_path):
    interpreter("torch")
    (tmp_path / "net.py").write_text(LAYERS)
    files = f"{tmp_path / 'net.py'},tests/field/torch/counter.py"
    done = started(tmp_path / "run", "--workload", files, "--processes", "1", "--strategy", "compile,regional")
    found = {(one.workload, one.strategy): one for one in starts.JOURNAL.read(done.folder)}
    part, whole, counter = (
        found[each] for each in (("net.py", "regional"), ("net.py", "compile"), ("counter.py", "compile"))
    )
    assert (part.status, whole.status) == ("ok", "ok"), done.output
    assert "partial" in (part.flags or "") and "partial" not in (whole.flags or "")
    assert "regional: only a part of the model runs in graphs." in done.output
    assert counter.status == "unsupported" and "gave up after 8 compilations: " in counter.reason
    assert "so calls run eager mode's code" in counter.reason


CACHED = {
    "torch": (
        """
import os
import numpy
import torch

os.environ["TORCHINDUCTOR_CACHE_DIR"] = {cache!r}
WEIGHTS = torch.tensor(numpy.random.randn(8, 8))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(WEIGHTS)

    def forward(self, x):
        return torch.tanh(x @ self.weights)

def model():
    return Net()

def inputs(batch_size=2):
    return torch.randn(batch_size, 8)
""",
        "compile",
        "*.so",
    ),
    "jax": (
        """
import jax
import numpy

jax.config.update("jax_compilation_cache_dir", {cache!r})
WEIGHTS = numpy.random.randn(8, 8).astype("float32")

def model():
    return (lambda weights, x: jax.numpy.tanh(x @ weights)), jax.numpy.asarray(WEIGHTS)

def inputs(batch_size=2):
    return numpy.random.randn(batch_size, 8).astype("float32")
""",
        "shipped-cache",
        "*",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("framework", CACHED)
def test_a_file_chooses_no_cache_and_its_own_weights_are_seeded(tmp_path, framework):
    """Else later processes would find what earlier ones compiled, and each would have other weights."""
    interpreter(framework)
    text, strategy, kernels = CACHED[framework]
    (tmp_path / "net.py").write_text(text.format(cache=str(tmp_path / "cache")))
    words = ("--workload", str(tmp_path / "net.py"), "--processes", "1", "--strategy", strategy)
    (record,) = starts.JOURNAL.read(started(tmp_path / "run", *words).folder)
    assert record.status == "ok", record
    assert not list((tmp_path / "cache").rglob(kernels))


@pytest.mark.slow
def test_a_file_that_changes_during_a_run_ends_it(tmp_path):
    interpreter("torch")
    (tmp_path / "net.py").write_text(MODEL.format(block="Block") + '\nopen(__file__, "a").write("# more")\n')
    words = ("--workload", str(tmp_path / "net.py"), "--processes", "1", "--strategy", "eager")
    done = started(tmp_path / "run", *words)
    assert done.code == 2 and "net.py was changed since the run was started" in done.output


UNSEEDED = """
import numpy
import torch

def model():
    layer = torch.nn.Linear(8, 8)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(numpy.random.default_rng().normal(size=(8, 8))))
    return layer

def inputs(batch_size=2):
    return torch.randn(batch_size, 8)
"""


@pytest.mark.slow
def test_eager_mode_that_differs_between_processes_is_named(tmp_path):
    interpreter("torch")
    (tmp_path / "net.py").write_text(UNSEEDED)
    words = ("--workload", str(tmp_path / "net.py"), "--processes", "1", "--strategy", "eager")
    (record,) = starts.JOURNAL.read(started(tmp_path / "run", *words).folder)
    assert record.status == "mismatch" and "give the same values in each" in record.reason
