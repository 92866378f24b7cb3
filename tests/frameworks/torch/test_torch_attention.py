"""How torch's attention operator is called, eager and in a graph, and torch's own reasons for its choice of kernel."""

from __future__ import annotations

import json
import subprocess

import pytest
from conftest import ROOT

from environments import environments

pytestmark = pytest.mark.slow

SCRIPT = """
import json, warnings
import torch
import torch.nn.functional as F
from frameworks.adapter import Step
from frameworks.torch.inspect import attention, program

HEADS = torch.randn(2, 4, 16, 8)
WIDE = torch.randn(2, 4, 16, 12)
STRIDED = torch.ones(16, dtype=torch.bool).expand(2, 1, 16, 16).transpose(-1, -2)  # stride (0,0,1,0)

def told(function, *inputs):
    with torch.inference_mode():
        return attention.described(Step(function, [inputs]), eager=True)

def twice(q, v):
    F.scaled_dot_product_attention(q, q, v, is_causal=True)
    return F.scaled_dot_product_attention(q, q, v, is_causal=True)

def model(q, mask):
    return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)

graphs = []
torch.compile(model, backend=lambda graph, inputs: graphs.append(graph) or graph, fullgraph=True)(HEADS, STRIDED)

def listed():
    return program.executed(graphs[0], (HEADS, STRIDED), autograd=True)

library = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()

def fused_path():
    with torch.inference_mode():
        return program.executed(lambda x: library(x, x, x, need_weights=False), [torch.randn(2, 4, 8)])

def refuses(parameters, debug):
    warnings.warn("Memory efficient kernel not used because: (Triggered internally at /a/sdp_utils.cpp:900.)")
    warnings.warn("Mask needs a last stride of 1. (Triggered internally at /a/sdp_utils.cpp:1.)")
    return False

attention.cuda.can_use_flash_attention = lambda parameters, debug: False
attention.cuda.can_use_efficient_attention = refuses
attention.cuda.can_use_cudnn_attention = lambda parameters, debug: True
call = attention.Call(*[attention.Tensor.described(HEADS)] * 3)
with torch.autocast("cpu", torch.bfloat16):
    autocast = str(attention.Tensor.described(HEADS))
print(json.dumps({
    "fused": told(twice, HEADS, HEADS),
    "unfused": told(twice, HEADS, WIDE),
    "graph": attention.described(Step(model, [(HEADS, STRIDED)], program=listed), eager=False),
    "a graph that is not listed": attention.described(Step(model, [(HEADS, STRIDED)]), eager=False),
    "a fused path": attention.described(Step(library, [()], program=fused_path), eager=True),
    "no attention": told(torch.relu, HEADS),
    "again": list(attention.Tensor.described(STRIDED).again().stride()),
    "gpu": dict(attention._refused_on_gpu([HEADS] * 3, None, call)),
    "autocast": autocast,
}))
"""


@pytest.fixture(scope="module")
def told() -> dict:
    """What the module says in torch's own environment."""
    interpreter = environments.path("torch", "cpu") / "bin" / "python"
    done = subprocess.run([interpreter, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_call_that_is_fused_has_no_refusal(told):
    (call,) = told["fused"]
    assert (call["chosen"], call["refused"], call["count"], call["mask"]) == ("flash", {}, 2, "none")
    assert call["call"].startswith("query float32 (2,4,16,8) stride (512,128,8,1); key ")
    assert call["call"].endswith("mask none; causal")


def test_a_refusal_is_in_torch_s_own_words(told):
    (call,) = told["unfused"]
    assert call["chosen"] == "math"
    assert "same last dimension" in call["refused"]["flash"]
    assert "Triggered internally" not in call["refused"]["flash"]
    assert "not used because" not in call["refused"]["flash"]


def test_a_graph_s_calls_are_those_of_its_program(told):
    (call,) = told["graph"]
    assert call["mask"] == "bool (2,1,16,16) stride (0,0,1,0)"
    assert told["a graph that is not listed"] == []


def test_a_fused_path_that_never_calls_the_operator_is_not_left(told):
    assert told["a fused path"] == []


def test_a_model_without_attention_has_no_calls(told):
    assert told["no attention"] == []


def test_a_mask_s_strides_are_kept(told):
    assert told["again"] == [0, 0, 1, 0]


def test_reasons_on_a_gpu_are_asked_of_each_kernel(told):
    assert told["gpu"] == {"flash": "torch gives no reason", "memory-efficient": "Mask needs a last stride of 1."}


def test_dtypes_are_those_behind_autocast(told):
    assert told["autocast"].startswith("bfloat16 ")
