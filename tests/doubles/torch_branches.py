"""Models that do something else while torch.compile traces them, and the difference that is found, as JSON by name.

Run with an interpreter that has torch, in the suite's checkout. The backend is real Dynamo's, without a compiler.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses import FakeTensorMode

from frameworks.program import difference
from frameworks.torch.inspect.program import CapturedGraph, captured, executed

B, S, HEADS, HIDDEN = 2, 4, 2, 8
# What eager mode executes in each of these models, with and without autograd.
OPERATORS = ["addmm", "scaled_dot_product_attention", "addmm", "gelu", "_softmax", "add", "native_layer_norm"]


def traced() -> bool:
    return torch.compiler.is_compiling()


class Block(nn.Module):
    """A transformer's block; a double overrides one of its parts."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)

    def attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v)

    def activation(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, S, H = x.shape
        q, k, v = (y.view(B, S, HEADS, -1).transpose(1, 2) for y in self.qkv(x).split(H, dim=2))  # (B, nh, S, hs)
        context = self.attention(q, k, v).transpose(1, 2).reshape(B, S, H)
        return self.norm(x + F.softmax(self.activation(self.out(context)), dim=-1))


class Masked(Block):
    def attention(self, q, k, v):
        mask = None
        if traced():
            keys = torch.arange(k.size(2)) >= 0  # (S,)
            mask = keys[None, None, :, None].expand(q.size(0), 1, -1, k.size(2))  # (B, 1, S, S), stride 0 along keys
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class Full(Block):
    def attention(self, q, k, v):
        mask = torch.ones(q.size(0), 1, q.size(2), k.size(2), dtype=torch.bool) if traced() else None
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class Causal(Block):
    def attention(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=traced(), scale=q.size(-1) ** -0.5)


class Unfused(Block):
    def attention(self, q, k, v):
        if traced():
            return F.softmax(q @ k.transpose(-2, -1) * q.size(-1) ** -0.5, dim=-1) @ v
        return super().attention(q, k, v)


class Copied(Block):
    def attention(self, q, k, v):
        return super().attention(q.contiguous() if traced() else q, k, v)


class Cast(Block):
    def activation(self, x):
        return F.gelu(x.to(torch.bfloat16).to(x.dtype) if traced() else x)


class Mixed(Block):
    """Autocast within, behind operands that were cast up, as rotary positions are."""

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(x)

    def attention(self, q, k, v):
        return F.scaled_dot_product_attention(q.float(), k.float(), v)


class Dropped(Block):
    def activation(self, x):
        return x * 0.5 * (1 + torch.erf(x / 2**0.5)) if traced() else F.gelu(x)


class Library(nn.Module):
    """torch's own attention, whose eager mode takes a fused path in inference that Dynamo does not capture."""

    FUSED = "_native_multi_head_attention"

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(HIDDEN, HEADS, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class Encoder(nn.TransformerEncoderLayer):
    """torch's own layer, whose fused path Dynamo captures."""

    FUSED = "_transformer_encoder_layer_fwd"

    def __init__(self) -> None:
        super().__init__(HIDDEN, HEADS, 2 * HIDDEN, dropout=0.0, batch_first=True)


MODELS = {model.__name__: model for model in (Block, Masked, Full, Causal, Unfused, Copied, Cast, Dropped)}


def of(model: nn.Module, context: Callable, dynamic: bool = False, fake: bool = False) -> str | None:
    """The difference between `model` called under `context` and what Dynamo makes of it."""
    held, x = CapturedGraph(), torch.randn(B, S, HIDDEN)

    def backend(graph: torch.fx.GraphModule, inputs: list) -> Callable:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            kept = [mode.from_tensor(value, static_shapes=True) for value in inputs] if fake else inputs
        held.keep(graph, kept)
        return graph.forward

    def under(call: Callable) -> Callable:
        def called(*inputs):
            with context():
                return call(*inputs)

        return called

    torch._dynamo.reset()
    under(torch.compile(model, backend=backend, fullgraph=True, dynamic=dynamic))(x)
    with context():
        autograd = torch.is_grad_enabled()
    eager, graph = executed(under(model), [x], autograd), captured(held, under)
    names = [operation.name for operation in eager if operation.name != "cast"]
    fused = getattr(model, "FUSED", None)
    assert names == ([fused] if fused else OPERATORS) or (autograd and fused), eager
    return difference(eager, graph)


def main() -> None:
    torch.manual_seed(0)
    differences = {}
    for name, model in (MODELS | {"Library": Library, "Encoder": Encoder}).items():
        differences[f"inference {name}"] = of(model().eval(), torch.inference_mode)
        differences[f"training {name}"] = of(model(), torch.enable_grad)
    for name in ("Block", "Masked"):
        differences[f"dynamic {name}"] = of(MODELS[name]().eval(), torch.inference_mode, dynamic=True)
        differences[f"fake {name}"] = of(MODELS[name](), torch.enable_grad, fake=True)
    differences["inference Mixed"] = of(Mixed().eval(), torch.inference_mode)
    autocast = lambda: torch.autocast("cpu", torch.bfloat16)  # noqa: E731
    differences["autocast Block"] = of(Block(), autocast)
    print(json.dumps(differences))


if __name__ == "__main__":
    main()
