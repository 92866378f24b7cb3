"""Small Paddle models, most of which do another thing under tracing: prints what the two modes' programs differ in.

Runs in Paddle's environment; prints one JSON object, from a model's name to the difference, null where there is none.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import paddle
import paddle.nn.functional as F
from paddle import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from frameworks import program
from frameworks.paddle.inspect import eager_log
from frameworks.paddle.inspect import program as programs
from frameworks.paddle.modes import graphs
from measurement.cells import Cell

CELL = Cell("paddle", "mlp", "plain", "inference", "cpu", "fp32", 1, (("batch_size", 2),), "eager")


def tracing() -> bool:
    return not paddle.in_dynamic_mode()


class Attention(nn.Layer):
    """Attention and a normalised GELU, whose function it keeps; `x` (2, 3, 4, 4), so that all products are square."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.activation = nn.Linear(4, 4), nn.LayerNorm(4, epsilon=1e-12), paddle._C_ops.gelu

    def forward(self, x):
        q = self.linear(x)
        weights = F.softmax(self.masked(self.scores(q, x)))
        return self.end(self.activation(self.normed(weights @ x)), x)

    def scores(self, q, x):
        return paddle.matmul(q, x, transpose_y=True)

    def masked(self, scores):
        return scores

    def normed(self, x):
        return self.norm(x)

    def end(self, y, x):
        return (y * 2 + x).reshape([2, -1])


class Promoted(Attention):
    """Casts that nobody wrote: Paddle's own, of the narrower operand."""

    def end(self, y, x):
        return paddle.concat([y.astype("float64") + x, y.astype("float64")])


class Number(Attention):
    """A comparison with a number, for which eager mode makes a tensor of the other operand's shape."""

    def end(self, y, x):
        return paddle.where(y == 0, x, y)


class Spelled(Attention):
    """What graphs spell otherwise: an index, numbers for `where` and for what a mask selects, an even spacing."""

    def end(self, y, x):
        y = paddle.where(y[:, :, paddle.to_tensor([0, 2])] > 0.0, y[:, :, paddle.to_tensor([0, 2])], 0.0)
        y[y > 1.0] = 0.0
        return y + paddle.linspace(0.0, 1.0, 4)


class Unmasked(Attention):
    def end(self, y, x):
        return y if tracing() else paddle.where(y > 0.0, y, 0.0)


class Labels(Attention):
    """Labels by probabilities, of which the user computes what Paddle computes to check those by numbers."""

    def end(self, y, x):
        return F.cross_entropy(y, x * (x != 0.0).astype("float32"), soft_label=True)


class Unlabelled(Attention):
    def end(self, y, x):
        labels = x if tracing() else x * (x != 0.0).astype("float32")
        return F.cross_entropy(y, labels, soft_label=True)


class Masked(Attention):
    def masked(self, scores):
        return scores + paddle.zeros([2, 1, 1, 4]) if tracing() else scores


class WiderMask(Attention):
    def masked(self, scores):
        return scores + paddle.zeros([2, 1, 4 if tracing() else 1, 4])


class Cast(Attention):
    def normed(self, x):
        return self.norm(x.astype("float16").astype("float32") if tracing() else x)


class Unfused(Attention):
    def normed(self, x):
        if not tracing():
            return self.norm(x)
        mean = x.mean(-1, keepdim=True)
        deviation = x - mean
        variance = (deviation * deviation).mean(-1, keepdim=True)
        return deviation * paddle.rsqrt(variance + 1e-12) * self.norm.weight + self.norm.bias


class Approximate(Attention):
    def end(self, y, x):
        return F.gelu(x, approximate=tracing())


class Epsilon(Attention):
    def normed(self, x):
        return F.layer_norm(x, [4], self.norm.weight, self.norm.bias, 1e-5 if tracing() else 1e-12)


class Transposed(Attention):
    def scores(self, q, x):
        return paddle.matmul(q, x, transpose_y=not tracing())


class Transposition(Attention):
    def scores(self, q, x):
        return paddle.matmul(q, x.transpose([0, 1, 3, 2])) if tracing() else super().scores(q, x)


class Unseen(Attention):
    """Calls a function that it keeps where it cannot be replaced."""

    KEPT = (paddle._C_ops.gelu,)

    def end(self, y, x):
        return self.KEPT[0](x)


class Branching(Attention):
    """Branches on a value, so that the captured program holds a block."""

    def end(self, y, x):
        if x.sum() > 0:
            y = y * 2
        return y


# Paddle's log of flash attention, which no CPU has a kernel for; the lines that are left out here are not read.
FLASH_ATTENTION = """
arguments of a call: ["flash_attn", {"dropout": 0.0, "causal": false}]
==========================Running_AD_API: flash_attn==========================
Forward Debug Info {
API_Name: flash_attn1
Input: [
( q , {
	Dtype: float16,
	Shape: 2, 4, 3, 8,
}),
( attn_mask , { UnDefinedTensor }), ]
Output: [
( out , {
	Dtype: float16,
	Shape: 2, 4, 3, 8,
}), ] }
==========================Finish_AD_API: flash_attn==========================
end of a call
"""


def flash_attention_difference() -> str | None:
    query, mask = "float16 (2,4,3,8)", "float16 (2,1,4,4)"
    operands = {"q": [query], "attn_mask": [mask]}
    captured = programs.Dispatch("flash_attn", operands, [query], {"dropout": 0.0, "causal": True})
    eager = eager_log.dispatches(FLASH_ATTENTION, CELL)
    return program.difference(programs.normal_form(eager), programs.normal_form([captured]))


def difference(model: nn.Layer) -> str | None:
    x = paddle.rand([2, 3, 4, 4])
    model.eval()
    with paddle.no_grad():
        try:
            eager = programs.executed(model, (x,), CELL)
            static = paddle.jit.to_static(model, full_graph=True, backend=None)
            static(x)
            return program.difference(eager, programs.captured(graphs.traced(static), CELL))
        except ValueError as error:
            return f"unknown: {error}"


def main() -> None:
    models = [Attention, *Attention.__subclasses__()]
    differences = {model.__name__: difference(model()) for model in models}
    differences["flash"] = flash_attention_difference()
    print(json.dumps(differences))
    model = Attention()
    assert type(model.activation) is type(len), "a stand-in was left behind"
    model(paddle.rand([2, 3, 4, 4]))  # writes nothing if Paddle's log is off again


if __name__ == "__main__":
    main()
