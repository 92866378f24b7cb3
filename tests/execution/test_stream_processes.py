"""Streams of real processes: PyTorch's strategies give eager's outputs, counters agree, a fall-back is a flag."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from doubles.environment import interpreter
from doubles.suite import Finished

import runner
from execution.streams import kept_caches
from frameworks import stream as strategies
from frameworks.adapter import Unsupported
from measurement.refusals import DONE
from measurement.streams import StreamJob
from records import streams
from worker import stream

ROOT = Path(__file__).resolve().parents[2]
# torch compiles one graph for the first length, and a limit of one lets the next run eagerly.
MODEL = """
import torch
import torch._dynamo

torch._dynamo.config.recompile_limit = 1

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(10, 4)

    def forward(self, ids):
        return torch.relu(self.embed(ids)).cumsum(1)

def model():
    torch.manual_seed(0)
    return Net()

def inputs(batch_size=2, seq_len=8):
    return torch.randint(10, (batch_size, seq_len))
"""


# Attention over tokens with a mask, in other frameworks.
MASKED = {
    "tensorflow": """
import tensorflow as tf

class Net(tf.Module):
    def __init__(self):
        self.embed = tf.Variable(tf.random.stateless_normal((10, 4), (0, 1)))

    def __call__(self, ids, attention_mask):
        x = tf.gather(self.embed, ids)
        scores = tf.matmul(x, x, transpose_b=True) - 1e9 * (1.0 - tf.cast(attention_mask, x.dtype))[:, None, :]
        return tf.matmul(tf.nn.softmax(scores), x)

def model():
    return Net()

def inputs(batch_size=2, seq_len=8):
    ids = tf.random.uniform((batch_size, seq_len), 0, 10, tf.int32)
    return {"ids": ids, "attention_mask": tf.ones((batch_size, seq_len), tf.int32)}
""",
    "paddle": """
import paddle

class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.embed = paddle.nn.Embedding(10, 4)

    def forward(self, ids, attention_mask):
        x = self.embed(ids)
        scores = paddle.matmul(x, x, transpose_y=True) - 1e9 * (1.0 - attention_mask.astype(x.dtype)).unsqueeze(1)
        return paddle.matmul(paddle.nn.functional.softmax(scores), x)

def model():
    return Net()

def inputs(batch_size=2, seq_len=8):
    ids = paddle.randint(0, 10, (batch_size, seq_len))
    return {"ids": ids, "attention_mask": paddle.ones((batch_size, seq_len), "int64")}
""",
    "jax": """
import jax
import jax.numpy as jnp
import numpy as np

def model():
    def forward(embed, ids, attention_mask):
        x = embed[ids]
        scores = x @ x.transpose(0, 2, 1) - 1e9 * (1.0 - attention_mask.astype(x.dtype))[:, None, :]
        return jax.nn.softmax(scores) @ x
    return forward, jnp.asarray(np.random.default_rng(0).normal(size=(10, 4)), "float32")

def inputs(batch_size=2, seq_len=8):
    ids = np.random.randint(0, 10, (batch_size, seq_len))
    return {"ids": ids, "attention_mask": np.ones((batch_size, seq_len), "int32")}
""",
}
EAGERLY = {"tensorflow": "tf.config.run_functions_eagerly(True)", "paddle": "paddle.jit.enable_to_static(False)"}


def streamed(folder: Path, *more: str) -> tuple[Finished, dict[str, streams.StreamRecord]]:
    """Serve a few calls of three lengths, two batch sizes among them, in one process of each strategy."""
    (folder / "few.csv").write_text("length,batch,count\n5,2,1\n9,3,1\n12,3,1\n")
    out, given = folder / "run", ("--lengths", str(folder / "few.csv"), "--processes", "1", "--caches", "cold")
    command = [sys.executable, "runner.py", "stream", "--out", str(out), "--threads", "1", "--seq", "12", *given, *more]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return Finished(done.returncode, done.stdout, out), {one.strategy: one for one in streams.JOURNAL.read(out)}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_padded_and_dynamic_calls_give_eagers_outputs_and_counters_agree(tmp_path):
    interpreter("torch")
    names = "marked,dynamic,longest,longest-cuda-graphs,polymorphic"
    words = ("--workload", "bert-tiny", "--impl", "plain", "--calls", "8", "--strategy", names)
    done, found = streamed(tmp_path, *words, "--policy", "torch-openmp-idle=sleep")
    assert done.code == DONE, done.output
    assert {record.policies for record in found.values()} == {"torch-openmp-idle=sleep"}
    assert "torch-openmp-idle=sleep" in done.output  # in the heading
    for name in ("eager", "marked", "dynamic", "longest"):
        record = found[name]
        assert record.status == "ok", (name, record.reason)
        assert record.parity <= record.tolerance and record.compilations == record.reported, name
        assert record.fell_back is None and record.number == 8 and len(record.calls) == 8, name
    counts = {name: found[name].compilations for name in ("eager", "marked", "dynamic", "longest")}
    assert counts == {"eager": 0, "marked": 1, "dynamic": 1, "longest": 2}
    assert (found["marked"].shapes, found["longest"].shapes) == (3, 2)
    assert found["longest"].padded_share > 0 == found["marked"].padded_share
    assert found["longest"].compile_s > 0
    assert "need a GPU" in found["longest-cuda-graphs"].reason
    assert "measure STRATEGY=dynamic,marked" in found["polymorphic"].reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "compilations", "refused", "reason"),
    [
        ("tensorflow", {"dynamic": 1, "longest": 2}, "marked", "has no strategy marked: "),
        ("paddle", {"dynamic": 1, "longest": 2}, "marked", "has no strategy marked: "),
        ("jax", {"static": 3, "polymorphic": 3, "longest": 2}, "dynamic", "JAX compiles for each shape"),
    ],
)
def test_calls_are_padded_and_dynamic_in_every_framework(tmp_path, framework, compilations, refused, reason):
    interpreter(framework)
    (tmp_path / "net.py").write_text(MASKED[framework])
    words = ("--workload", str(tmp_path / "net.py"), "--calls", "8", "--strategy", ",".join((*compilations, refused)))
    done, found = streamed(tmp_path, "--framework", framework, *words)
    assert done.code == DONE, done.output
    for name, count in compilations.items():
        record = found[name]
        assert record.status == "ok", (name, record.reason)
        assert record.parity <= record.tolerance and record.fell_back is None, name
        assert record.compilations == record.reported == count, name
    assert found["longest"].padded_share > 0 and found["longest"].shapes == 2
    assert reason in found[refused].reason


@pytest.mark.slow
@pytest.mark.parametrize("framework", EAGERLY)
def test_graphs_that_a_switch_turns_off_are_a_fall_back(tmp_path, framework):
    interpreter(framework)
    text = MASKED[framework].replace("def model():", f"def model():\n    {EAGERLY[framework]}")
    (tmp_path / "net.py").write_text(text)
    words = ("--framework", framework, "--workload", str(tmp_path / "net.py"), "--calls", "3", "--strategy", "static")
    done, found = streamed(tmp_path, *words)
    assert done.code == DONE, done.output
    assert (found["static"].fell_back, found["static"].flags.split(";")[0], found["static"].compilations) == (
        1,
        "fell_back",
        0,
    )


@pytest.mark.slow
def test_a_silent_fall_back_of_a_user_model_is_a_flag_with_its_call(tmp_path):
    interpreter("torch")
    (tmp_path / "net.py").write_text(MODEL)
    words = ("--workload", str(tmp_path / "net.py"), "--calls", "6", "--strategy", "static,longest")
    done, found = streamed(tmp_path, *words)
    assert done.code == DONE, done.output
    static = found["static"]
    assert (static.status, static.flags.split(";")[0], static.compilations, static.reported) == (
        "ok",
        "fell_back",
        1,
        1,
    )
    assert 2 <= static.fell_back <= 6
    assert f"static runs eager mode's code for new lengths from call {static.fell_back} on." in done.output
    assert found["longest"].status == "ok" and found["longest"].padded_share > 0  # cumsum is causal
    kept = streams.JOURNAL.read(done.folder)
    again, _ = streamed(tmp_path, *words[:-1], "static")
    assert again.code == DONE and streams.JOURNAL.read(done.folder) == kept


HELPED = """
import torch

def helped(x, depth):
    torch._dynamo.graph_break()
    return torch.tanh(x * (1.0 + depth))

class Net(torch.nn.Module):
    def forward(self, x):
        for depth in range(10):
            x = helped(x, depth)
        return x

def model():
    return Net()

def inputs(batch_size=2, seq_len=8):
    return torch.randn(batch_size, seq_len, 4)
"""


@pytest.mark.slow
def test_parts_in_no_graph_are_a_flag_and_no_fall_back_for_a_length(tmp_path):
    interpreter("torch")
    (tmp_path / "net.py").write_text(HELPED)
    (tmp_path / "lstm.py").write_text(HELPED.replace("Net()", "torch.nn.LSTM(4, 4)"))
    files = f"{tmp_path / 'net.py'},{tmp_path / 'lstm.py'}"
    done, _ = streamed(tmp_path, "--workload", files, "--calls", "4", "--strategy", "dynamic")
    found = {(one.workload, one.strategy): one for one in streams.JOURNAL.read(done.folder)}
    part, lstm = found["net.py", "dynamic"], found["lstm.py", "dynamic"]
    assert (part.status, part.fell_back) == ("ok", None) and "partial" in part.flags.split(";"), done.output
    assert "dynamic: only a part of the model runs in graphs." in done.output
    assert lstm.status == "unsupported" and "has compiled no part of the model: " in lstm.reason, done.output


UNMASKED = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.seen = torch.nn.Embedding(10, 4), []

    def forward(self, ids):
        x = self.embed(ids)
        return CODE

def model():
    torch.manual_seed(0)
    return Net()

def inputs(batch_size=2, seq_len=8):
    return torch.randint(1, 10, (batch_size, seq_len))
"""


@pytest.mark.slow
@pytest.mark.parametrize("code", ["x.cumsum(1)[:, -1]", "x.mean(1)", "x.flip(1).cumsum(1)"])
def test_a_padding_that_changes_outputs_is_refused_before_the_stream(tmp_path, code):
    interpreter("torch")
    (tmp_path / "net.py").write_text(UNMASKED.replace("CODE", code))
    done, found = streamed(tmp_path, "--workload", str(tmp_path / "net.py"), "--calls", "3", "--strategy", "longest")
    assert done.code == DONE, done.output
    assert (found["longest"].status, found["longest"].reason) == (
        "unsupported",
        "padding changes the outputs at real positions, and inputs() gives nothing with 'mask' in its name.",
    )


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "pads"), [("static", False), ("longest", True)])
def test_eager_mode_computes_padded_calls_only_where_a_strategy_pads(tmp_path, strategy, pads):
    interpreter("torch")
    seen = tmp_path / "padded"  # written by a call with the token 0, which inputs() never gives
    (tmp_path / "net.py").write_text(UNMASKED.replace("CODE", f"x if ids.all() else open({str(seen)!r}, 'w') and x"))
    done, found = streamed(tmp_path, "--workload", str(tmp_path / "net.py"), "--calls", "3", "--strategy", strategy)
    assert done.code == DONE, done.output
    assert found[strategy].status == "ok", found[strategy].reason
    assert seen.exists() == pads


@pytest.mark.slow
def test_a_model_whose_forward_takes_a_mask_gets_one_where_padding_changes_outputs(tmp_path):
    interpreter("torch")
    config = {"model_type": "distilbert", "dim": 16, "hidden_dim": 32, "n_heads": 2, "n_layers": 1, "vocab_size": 50}
    (tmp_path / "config.json").write_text(json.dumps(config))
    words = ("--workload", f"transformers:{tmp_path}", "--calls", "3", "--strategy", "longest")
    done, found = streamed(tmp_path, *words)
    assert done.code == DONE, done.output
    longest = found["longest"]
    assert longest.status == "ok", longest.reason
    assert longest.padded_share > 0 and longest.parity <= longest.tolerance


MASKED_BY_JAX = """
import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx

def attended(embed, ids, mask):
    x = embed[ids]
    scores = x @ x.transpose(0, 2, 1)
    return jax.nn.softmax(scores if mask is None else jnp.where(mask[:, None, :], scores, -1e9)) @ x

class Net(linen.Module):
    @linen.compact
    def __call__(self, ids, attention_mask=None):
        return attended(self.param("embed", linen.initializers.normal(1.0), (10, 4)), ids, attention_mask)

class Own(nnx.Module):
    def __init__(self):
        self.embed = nnx.Param(jax.random.normal(jax.random.key(0), (10, 4)))

    def __call__(self, ids, mask=None):
        return attended(self.embed[...], ids, mask)

def model():
    return CODE

def inputs(batch_size=2, seq_len=8):
    return np.random.randint(1, 10, (batch_size, seq_len))
"""


@pytest.mark.slow
@pytest.mark.parametrize("code", ["Net()", "Own()"])
def test_a_model_of_flax_that_takes_a_mask_gets_one_where_padding_changes_outputs(tmp_path, code):
    interpreter("jax")
    (tmp_path / "net.py").write_text(MASKED_BY_JAX.replace("CODE", code))
    words = ("--framework", "jax", "--workload", str(tmp_path / "net.py"), "--calls", "3", "--strategy", "longest")
    done, found = streamed(tmp_path, *words)
    assert done.code == DONE, done.output
    longest = found["longest"]
    assert longest.status == "ok", longest.reason
    assert longest.padded_share > 0 and longest.parity <= longest.tolerance


ATTENTION = """
import torch

def attended(x, blocked):
    scores = x @ x.mT
    return torch.softmax(scores if blocked is None else scores.masked_fill(blocked[:, None, :], -1e9), -1) @ x

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.dense = torch.nn.Embedding(10, 4), torch.nn.Linear(6, 4)

    def forward(self, x, MASK):
        x = self.dense(x) if x.is_floating_point() else self.embed(x)
        return CODE

def model():
    torch.manual_seed(0)
    return Net()

def inputs(batch_size=2, seq_len=8):
    ids, frames = torch.randint(1, 10, (batch_size, seq_len)), torch.randn(batch_size, seq_len, 6)
    zeros = torch.zeros(batch_size, seq_len)
    return GIVEN
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mask", "code", "given", "reason"),
    [
        ("mask", "torch.softmax(x @ x.mT + mask[:, None, :], -1) @ x", "ids, zeros", None),
        ("key_padding_mask", "attended(x, key_padding_mask)", "{'x': ids, 'key_padding_mask': zeros.bool()}", None),
        ("padding_mask=None", "attended(x, padding_mask)", "frames", None),
        ("mask", "attended(x, mask == 0)[:, -1]", "ids, zeros + 1", "and padding is neither 0, 1 nor -10000 in mask."),
        (
            "mask, blocked_mask",
            "attended(x, mask == 0) + attended(2 * x, blocked_mask)",
            "ids, zeros + 1, zeros.bool()",
            None,
        ),
        (
            "other, mask=None, other_mask=None",
            "attended(x, mask), attended(self.embed(other), other_mask)",
            "ids, ids[:, : seq_len // 2]",
            None,
        ),
        ("mask=None", "attended(x, mask).flatten(0, 1)", "ids", None),
    ],
)
def test_a_mask_of_any_name_marks_padding_by_the_value_that_keeps_the_outputs(tmp_path, mask, code, given, reason):
    interpreter("torch")
    text = ATTENTION.replace("MASK", mask).replace("CODE", code).replace("GIVEN", given)
    (tmp_path / "net.py").write_text(text)
    done, found = streamed(tmp_path, "--workload", str(tmp_path / "net.py"), "--calls", "3", "--strategy", "longest")
    assert done.code == DONE, done.output
    longest = found["longest"]
    assert longest.status == ("unsupported" if reason else "ok"), longest.reason
    assert reason in longest.reason if reason else longest.padded_share > 0


SALIENT = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.score = torch.nn.Linear(4, 1)

    def forward(self, x):
        score = self.score(x.tanh())
        score.sum().backward()
        return score.detach(), x.grad

def model():
    return Net()

def inputs(batch_size=2, seq_len=8):
    return torch.randn(batch_size, seq_len, 4, requires_grad=True)
"""


@pytest.mark.slow
def test_padded_inputs_keep_their_gradients(tmp_path):
    interpreter("torch")
    (tmp_path / "net.py").write_text(SALIENT)
    done, found = streamed(tmp_path, "--workload", str(tmp_path / "net.py"), "--calls", "3", "--strategy", "longest")
    assert done.code == DONE, done.output
    assert found["longest"].status == "ok", found["longest"].reason


PREDICTING = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(1000, 64), torch.nn.Linear(64, 1000)
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 3)

    def forward(self, ids, mask):
        logits = self.head(self.encoder(self.embed(ids), src_key_padding_mask=mask == 0))
        return logits, logits.argmax(-1)

def model():
    return Net()

def inputs(batch_size=2, seq_len=8):
    return torch.randint(1, 1000, (batch_size, seq_len)), torch.ones(batch_size, seq_len, dtype=torch.long)
"""


@pytest.mark.slow
def test_eager_mode_s_own_error_is_allowed_in_streams_as_elsewhere(tmp_path):
    """Whole numbers that rounding changes in eager mode, too."""
    interpreter("torch")
    (tmp_path / "net.py").write_text(PREDICTING)
    (tmp_path / "more.csv").write_text("length,batch,count\n40,8,1\n64,8,1\n")
    words = ("--lengths", str(tmp_path / "more.csv"), "--seq", "64", "--dtype", "bf16", "--strategy", "longest")
    done, found = streamed(tmp_path, "--workload", str(tmp_path / "net.py"), "--calls", "4", *words)
    assert done.code == DONE, done.output
    assert {name: one.status for name, one in found.items()} == {"eager": "ok", "longest": "ok"}, done.output


PULLED = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(10, 64)

    def forward(self, ids):
        x = self.embed(ids) + 48 - 48
        return x + 0.3 * (ids == 0).to(x.dtype).mean(1)[:, None, None]

def model():
    return Net()

def inputs(batch_size=2, seq_len=8):
    return torch.randint(1, 10, (batch_size, seq_len))
"""


@pytest.mark.slow
def test_padding_has_no_allowance_for_what_eager_mode_rounds(tmp_path):
    """Eager mode is off by 0.07 in bf16, and a graph may be by 0.21; padding changes the outputs by 0.1 to 0.15."""
    interpreter("torch")
    (tmp_path / "net.py").write_text(PULLED)
    (tmp_path / "two.csv").write_text("length,batch,count\n32,2,1\n64,2,1\n")
    words = ("--lengths", str(tmp_path / "two.csv"), "--seq", "64", "--dtype", "bf16", "--strategy", "longest")
    done, found = streamed(tmp_path, "--workload", str(tmp_path / "net.py"), "--calls", "4", *words)
    assert found["eager"].status == "ok", done.output
    assert "padding changes the outputs" in found["longest"].reason, done.output


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        ([0.019, 0.001], 0),  # both are rounding
        ([0.9, 0.15, 0.2], 1),  # a wrong mask within the tolerance
        ([1.2, 0.7], 1),
        ([math.inf, 0.1, 0.15], 1),
        ([3.0, 2.0], 0),  # no way is right: the reason is that of the model as it is
        ([math.inf, math.inf], 0),
    ],
)
def test_the_first_of_the_least_changes_by_padding_is_taken(changes, chosen):
    assert stream.first_alike(changes) == chosen


WINDOWS = {
    "torch": """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(10, 4)

    def forward(self, ids, targets):
        x = self.embed(ids).unflatten(1, (-1, 8))
        return (torch.softmax(x @ x.mT, -1) @ x).flatten(1, 2), self.embed(targets)

def model():
    return Net()

def inputs(batch_size, seq_len):
    assert seq_len % 8 == 0
    return torch.randint(1, 10, (batch_size, seq_len)), torch.randint(1, 10, (batch_size, seq_len // 8 + 1))
""",
    "jax": """
import jax
import jax.numpy as jnp
import numpy as np

def model():
    def forward(embed, ids, targets):
        x = embed[ids].reshape(ids.shape[0], ids.shape[1] // 8, 8, 4)
        return (jax.nn.softmax(x @ x.swapaxes(2, 3)) @ x).reshape(*ids.shape, 4), embed[targets]
    return forward, jnp.asarray(np.random.default_rng(0).normal(size=(10, 4)), "float32")

def inputs(batch_size, seq_len):
    assert seq_len % 8 == 0
    ids, targets = ((batch_size, size) for size in (seq_len, seq_len // 8 + 1))
    return np.random.randint(1, 10, ids), np.random.randint(1, 10, targets)
""",
}


@pytest.mark.slow
@pytest.mark.parametrize(("framework", "strategy"), [("torch", "dynamic"), ("jax", "polymorphic")])
def test_lengths_that_a_model_divides_are_taken_from_the_stream(tmp_path, framework, strategy):
    interpreter(framework)
    (tmp_path / "net.py").write_text(WINDOWS[framework])
    (tmp_path / "windows.csv").write_text("length,batch,count\n16,2,1\n24,4,1\n40,4,1\n")
    words = ("--lengths", str(tmp_path / "windows.csv"), "--seq", "40", "--strategy", f"{strategy},longest")
    done, found = streamed(
        tmp_path, "--framework", framework, "--workload", str(tmp_path / "net.py"), "--calls", "6", *words
    )
    assert done.code == DONE, done.output
    assert {name: one.status for name, one in found.items()} == dict.fromkeys(("eager", strategy, "longest"), "ok")
    assert found["longest"].padded_share > 0 and found["longest"].shapes < found[strategy].shapes


@pytest.mark.slow
def test_a_length_that_a_model_does_not_divide_is_no_error_of_the_suite(tmp_path):
    interpreter("torch")
    (tmp_path / "net.py").write_text(WINDOWS["torch"].replace("8", "24"))
    (tmp_path / "windows.csv").write_text("length,batch,count\n24,2,1\n48,2,1\n72,2,1\n")
    words = ("--lengths", str(tmp_path / "windows.csv"), "--seq", "72", "--strategy", "powers-of-two,quantiles")
    done, found = streamed(tmp_path, "--workload", str(tmp_path / "net.py"), "--calls", "6", *words)
    assert done.code == DONE, done.output
    assert found["quantiles"].status == "ok" and found["powers-of-two"].status == "unsupported", done.output
    assert " positions fails in eager mode, too (AssertionError): measure STRAT" in found["powers-of-two"].reason


@pytest.mark.parametrize(
    ("text", "raised"),
    [
        ("of another length", "in eager mode, too"),
        ("CUDA error: an illegal memory access was encountered", "^the graph"),
    ],
)
def test_eager_mode_is_not_blamed_on_a_device_that_failed(text, raised):
    def call(*inputs):
        raise RuntimeError(text)

    work = object.__new__(stream.StreamWork)
    work.workload, work.step = SimpleNamespace(has_reference=False), SimpleNamespace(call=call)
    work.job, work.inputs = StreamJob("longest", (5,), (8,), (1,), 5, 8), lambda *call: ()
    with pytest.raises((RuntimeError, Unsupported), match=raised), work.refusing_lengths():
        raise RuntimeError("the graph failed")


class Served(strategies.Server):
    def flatten(self, inputs):
        return list(inputs[0]), lambda leaves: (tuple(leaves), {})


def test_each_of_a_bounded_number_of_ways_to_pad_is_a_sign_of_life():
    """Of six masks that `forward` may take, each alone, in pairs or with all others, there are 66 ways."""

    def forward(ids, a_mask=None, b_mask=None, c_mask=None, d_mask=None, e_mask=None, f_mask=None):
        raise AssertionError("is not called")

    model, sent = SimpleNamespace(module=SimpleNamespace(forward=forward)), []
    examples = [((np.zeros((2, length), int),), {}) for length in (8, 5)]
    work = object.__new__(stream.StreamWork)
    work.server = Served(SimpleNamespace(examples=examples, step=SimpleNamespace(user_model=model)))
    work.workload, work.job = SimpleNamespace(has_reference=False), StreamJob("longest", (5,), (8,), (1,), 5, 8)
    work.cell, work.channel = SimpleNamespace(id="cell"), SimpleNamespace(send=sent.append)
    work.changed_by_padding = lambda masking: (math.inf, str(masking.names))
    assert work.unfit_for_padding() == "()"
    assert [message.phase for message in sent] == [f"way {number} to pad" for number in range(1, 50)]


@pytest.mark.slow
def test_inputs_without_the_length_of_the_call_are_refused(tmp_path):
    interpreter("torch")
    (tmp_path / "net.py").write_text(MODEL.replace("(batch_size, seq_len)", "(batch_size, 8)"))
    done, found = streamed(tmp_path, "--workload", str(tmp_path / "net.py"), "--calls", "6", "--strategy", "static")
    assert not found and "tensors of the same sizes for seq_len=12 and 5" in done.output


def test_the_longest_call_of_a_file_of_lengths_is_called_first(capsys, tmp_path):
    (tmp_path / "few.csv").write_text("length,count\n5,1\n48,1\n")
    assert runner.main(["stream", "--lengths", str(tmp_path / "few.csv"), "--dry-run"]) == DONE
    assert "seq_len=48" in capsys.readouterr().out


@pytest.mark.slow
def test_a_user_model_that_keeps_what_calls_leave_is_refused(tmp_path):
    interpreter("torch")
    (tmp_path / "net.py").write_text(UNMASKED.replace("CODE", "self.seen.append(1) or x * len(self.seen)"))
    done, found = streamed(tmp_path, "--workload", str(tmp_path / "net.py"), "--calls", "3", "--strategy", "static")
    assert not found and "net.py does not run: two equal calls differ in " in done.output


COUNTS = """
import jax.numpy as jnp
import numpy as np
from flax import nnx

class Net(nnx.Module):
    def __init__(self):
        self.calls = nnx.Variable(jnp.zeros(()))

    def __call__(self, ids):
        self.calls[...] += 1.0
        return ids * self.calls[...]

def model():
    return Net()

def inputs(batch_size=2, seq_len=8):
    return np.random.randint(1, 10, (batch_size, seq_len))
"""


@pytest.mark.slow
def test_state_that_calls_change_is_restored_before_outputs_are_compared(tmp_path):
    interpreter("jax")
    (tmp_path / "net.py").write_text(COUNTS)
    words = ("--framework", "jax", "--workload", str(tmp_path / "net.py"), "--calls", "5", "--strategy", "static")
    done, found = streamed(tmp_path, *words)
    assert done.code == DONE, done.output
    assert {name: one.status for name, one in found.items()} == {"eager": "ok", "static": "ok"}


@pytest.mark.slow
def test_inputs_that_no_input_signature_takes_are_refused(tmp_path):
    interpreter("tensorflow")
    text = MASKED["tensorflow"].replace("attention_mask):", "attention_mask, more):")
    (tmp_path / "net.py").write_text(text.replace('return {"ids"', 'return {"more": None, "ids"'))
    names = ("--strategy", "dynamic,automatic")
    words = ("--framework", "tensorflow", "--workload", str(tmp_path / "net.py"), "--calls", "3", *names)
    done, found = streamed(tmp_path, *words)
    assert done.code == DONE, done.output
    assert found["automatic"].status == "ok", found["automatic"].reason
    assert found["dynamic"].status == "unsupported" and "gives a NoneType" in found["dynamic"].reason


CALLS_PYTHON = {
    "tensorflow": (
        "tf.nn.softmax(scores)",
        "tf.ensure_shape(tf.numpy_function(lambda a: a, [tf.nn.softmax(scores)], x.dtype), scores.shape)",
    ),
    "jax": (
        "jax.nn.softmax(scores)",
        "jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct(scores.shape, x.dtype), jax.nn.softmax(scores))",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("framework", CALLS_PYTHON)
def test_a_graph_that_calls_python_is_refused(tmp_path, framework):
    interpreter(framework)
    (tmp_path / "net.py").write_text(MASKED[framework].replace(*CALLS_PYTHON[framework]))
    words = ("--framework", framework, "--workload", str(tmp_path / "net.py"), "--calls", "3", "--strategy", "static")
    done, found = streamed(tmp_path, *words)
    assert done.code == DONE, done.output
    assert found["static"].status == "unsupported" and "Python" in found["static"].reason


@pytest.mark.parametrize(
    ("words", "strategies"),
    [
        ([], "eager, automatic, dynamic, powers-of-two, longest"),
        (["--strategy", "marked"], "eager, marked"),
        (
            ["--strategy", "all"],
            "eager, static, automatic, dynamic, marked, powers-of-two, multiples-of-64",
        ),
    ],
)
def test_rare_strategies_are_measured_where_they_are_named(capsys, words, strategies):
    assert runner.main(["stream", *words, "--dry-run"]) == DONE
    assert f"5 of each strategy: {strategies}" in capsys.readouterr().out.replace("\n", "")


def test_a_sweep_file_says_how_long_the_longest_call_is(capsys, tmp_path):
    (tmp_path / "sweep.toml").write_text('workload = "bert-tiny"\nseq = 64\n')
    words = [
        "--sweep",
        str(tmp_path / "sweep.toml"),
        "--strategy",
        "longest",
        "--caches",
        "cold,warm",
        "--processes",
        "3",
        "--dry-run",
    ]
    assert runner.main(["stream", *words]) == DONE
    plan = capsys.readouterr().out
    assert "12 processes, 3 of each strategy and kind of caches: eager, longest" in plan and "seq_len=64" in plan


def test_streams_have_cold_caches_alone_where_no_process_loads_the_code_of_another(capsys):
    words = ["--framework", "torch,tensorflow", "--strategy", "longest", "--processes", "3", "--dry-run"]
    assert runner.main(["stream", *words, "--caches", "cold,warm"]) == DONE
    assert "18 processes, 3 of each strategy and kind of caches" in capsys.readouterr().out
    assert kept_caches("paddle", ["warm"]) == kept_caches("tensorflow", ["cold", "warm"]) == ["cold"]
    assert kept_caches("jax", ["warm"]) == ["warm"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--processes", "0"], "PROCESSES must be a whole number of at least 1, not 0."),
        (["--calls", "0"], "CALLS must be a whole number of at least 1, not 0."),
        (["--strategy", "lazy"], "There is no strategy 'lazy'"),
        (["--lengths", "news"], "LENGTHS must be chat, retrieval, or a CSV file"),
        (["--pass", "training"], "does not take"),
        (["--width", "8"], "does not take"),
        (["--lengths", "few.csv", "--batch", "2"], "few.csv holds batch sizes: omit BATCH."),
        (["--workload", "mlp"], "mlp has no sequence length: a stream needs the parameter seq_len."),
        (["--seq", "64,128"], "SEQ takes one number, the length of the longest call."),
    ],
)
def test_what_stream_does_not_take_is_refused_in_a_sentence(words, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("few.csv").write_text("length,batch,count\n5,2,1\n")
    assert runner.main(["stream", "--out", str(tmp_path / "run"), *words]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
