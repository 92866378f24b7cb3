"""BERT and small models written with `paddle.nn`, operator for operator as in the other frameworks' plain files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from frameworks.paddle.models import gpt as gpt_model
from frameworks.paddle.models import lstm as lstm_model
from frameworks.paddle.models import resnet as resnet_model
from frameworks.paddle.models import vit as vit_model
from frameworks.spellings import BERT, GPT, VIT, respelt
from workloads.bert import CLASSES
from workloads.bert import LAYER_NORM_EPSILON as BERT_EPSILON
from workloads.mlp import LAYER_NORM_EPSILON as MLP_EPSILON
from workloads.spec import Arrays, Parameters, Workload


class EncoderLayer(nn.Layer):
    """Self-attention and a two-layer perceptron, each followed by a residual sum and a layer norm."""

    def __init__(self, hidden: int, heads: int, intermediate: int, fused: bool):
        super().__init__()
        self.heads, self.head_size, self.fused = heads, hidden // heads, fused
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.projection = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, epsilon=BERT_EPSILON)
        self.expand = nn.Linear(hidden, intermediate)
        self.contract = nn.Linear(intermediate, hidden)
        self.output_norm = nn.LayerNorm(hidden, epsilon=BERT_EPSILON)

    def forward(self, x, mask):
        split = [0, 0, self.heads, self.head_size]  # 0 keeps a dimension
        q = self.query(x).reshape(split)  # (B, S, nh, hs)
        k = self.key(x).reshape(split)  # (B, S, nh, hs)
        v = self.value(x).reshape(split)  # (B, S, nh, hs)
        if self.fused:
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, training=False)  # (B, S, nh, hs)
        else:
            q, k, v = (y.transpose([0, 2, 1, 3]) for y in (q, k, v))  # (B, nh, S, hs)
            scores = paddle.matmul(q, k, transpose_y=True) * (1 / math.sqrt(self.head_size))  # (B, nh, S, S)
            if mask is not None:
                scores = scores + mask
            context = paddle.matmul(F.softmax(scores), v).transpose([0, 2, 1, 3])  # (B, S, nh, hs)
        x = self.attention_norm(x + self.projection(context.reshape([0, 0, -1])))  # (B, S, H)
        y = F.gelu(self.expand(x))  # (B, S, I), the exact GELU
        return self.output_norm(x + self.contract(y))  # (B, S, H)


class Bert(nn.Layer):
    """A BERT encoder with its pooler, for sequences of one segment."""

    def __init__(self, workload: Workload, fused: bool, classifies: bool):
        super().__init__()
        hidden = workload.hidden
        self.word_embeddings = nn.Embedding(workload.vocabulary, hidden)
        self.position_embeddings = nn.Embedding(workload.positions, hidden)
        self.token_type_embeddings = nn.Embedding(workload.token_types, hidden)
        self.embeddings_norm = nn.LayerNorm(hidden, epsilon=BERT_EPSILON)
        layers = (EncoderLayer(hidden, workload.heads, workload.intermediate, fused) for _ in range(workload.layers))
        self.layers = nn.LayerList(layers)
        self.pooler = nn.Linear(hidden, hidden)
        if classifies:
            self.classifier = nn.Linear(hidden, CLASSES)  # for the training pass, which applies it
        self.fused = fused

    def forward(self, input_ids, attention_mask=None):
        """Map `input_ids` and `attention_mask` (B, S), int64 -> hidden states (B, S, H) and pooled output (B, H)."""
        x = self.word_embeddings(input_ids)  # (B, S, H)
        x = x + self.position_embeddings(paddle.arange(input_ids.shape[1]))  # (S, H) broadcast
        x = x + self.token_type_embeddings(paddle.zeros_like(input_ids))  # (B, S, H)
        x = self.embeddings_norm(x)
        mask = None
        if attention_mask is not None:
            mask = (1 - attention_mask.astype(x.dtype)) * -1e4  # 0 where attended; -1e4 is within fp16
            mask = mask.unsqueeze([1, 2])  # (B, 1, 1, S)
            if self.fused:  # flash attention's own shape
                mask = mask.expand([-1, -1, input_ids.shape[1], -1])  # (B, 1, S, S)
        for layer in self.layers:
            x = layer(x, mask)
        return x, paddle.tanh(self.pooler(x[:, 0]))


class Mlp(nn.Layer):
    """`depth` blocks of `relu(layer_norm(linear(x)))`."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        self.linears = nn.LayerList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.LayerList(nn.LayerNorm(width, epsilon=MLP_EPSILON) for _ in range(depth))

    def forward(self, x):
        """Map `x` (B, W) -> (B, W)."""
        for linear, norm in zip(self.linears, self.norms):  # noqa: B905 (to_static's translation of zip has no strict)
            x = F.relu(norm(linear(x)))  # (B, W)
        return x


def bert(workload: Workload, parameters: Parameters, weights: Arrays) -> nn.Layer:
    """Return BERT with `weights` under their checkpoint names."""
    model = Bert(workload, parameters.get("attention") == "fused", classifies="classifier.weight" in weights)
    return load(model, weights, partial(respelt, spellings=BERT))


def gpt(workload: Workload, parameters: Parameters, weights: Arrays) -> nn.Layer:
    """Return the GPT with `weights` under their canonical names."""
    model = gpt_model.GptModel(workload, fused=parameters.get("attention") == "fused")
    return load(model, weights, partial(respelt, spellings=GPT))


def mlp(weights: Arrays) -> nn.Layer:
    """Return the MLP whose width and depth are those of `weights`."""

    def name(canonical: str) -> str:  # layers.0.linear.weight -> linears.0.weight
        _, layer, part, tensor = canonical.split(".")
        return f"{part}s.{layer}.{tensor}"

    depth = sum(key.endswith("linear.weight") for key in weights)
    return load(Mlp(len(weights["layers.0.linear.bias"]), depth), weights, name)


class Matmul(nn.Layer):
    """One matrix product."""

    def __init__(self, size: int):
        super().__init__()
        self.weight = self.create_parameter([size, size])

    def forward(self, x):
        """Map `x` (N, N) -> (N, N)."""
        return paddle.matmul(x, self.weight, transpose_y=True)


class PointwiseChain(nn.Layer):
    """`repeat` multiplications of a vector by a parameter."""

    def __init__(self, repeat: int):
        super().__init__()
        self.repeat = repeat
        self.factor = self.create_parameter([1])
        # `*` broadcasts the factor, at a tenth of the speed: `frameworks.policies` decides which one is measured.
        self.multiply = paddle.scale if os.environ.get("SUITE_PADDLE_MULTIPLY") == "scale" else paddle.multiply

    def forward(self, x):
        """Map `x` (N,) -> (N,)."""
        for _ in range(self.repeat):
            x = self.multiply(x, self.factor)  # (N,)
        return x


class FusedCos(nn.Layer):
    """`repeat` cosines of a vector."""

    def __init__(self, repeat: int):
        super().__init__()
        self.repeat = repeat

    def forward(self, x):
        """Map `x` (N,) -> output (N,)."""
        for _ in range(self.repeat):
            x = paddle.cos(x)  # (N,)
        return x


class Stream(nn.Layer):
    """A vector added to itself."""

    def forward(self, x):
        """Map `x` (N,) -> output (N,)."""
        return x + x


class OpOverhead(nn.Layer):
    """`additions` tiny additions, each on the last one's result."""

    def __init__(self, additions: int):
        super().__init__()
        self.additions = additions
        self.up, self.down = self.create_parameter([1]), self.create_parameter([1])

    def forward(self, x):
        """Map `x` (N,) -> output (N,)."""
        terms = (self.up, self.down)  # looked up once: a layer's attributes are slow
        for index in range(self.additions):
            x = x + terms[index % 2]  # (N,)
        return x


def resnet(workload: Workload, parameters: Parameters, weights: Arrays) -> nn.Layer:
    """Return the residual network with `weights` under their canonical names."""
    names = resnet_model.names(workload)
    return load(resnet_model.ResNetModel(workload, str(parameters["layout"])), weights, names.__getitem__)


def vit(workload: Workload, parameters: Parameters, weights: Arrays) -> nn.Layer:
    """Return the vision transformer with `weights` under their canonical names."""
    model = vit_model.ViTModel(workload, parameters, fused=parameters["attention"] == "fused")
    return load(model, weights, partial(respelt, spellings=VIT))


def lstm(workload: Workload, parameters: Parameters, weights: Arrays) -> nn.Layer:
    """Return the LSTM with `weights` under their canonical names."""
    return load(lstm_model.LstmModel(workload, str(parameters["cell"])), weights, str)


def state(workload: Workload, model: nn.Layer, names: tuple[str, ...]) -> dict[str, paddle.Tensor]:
    """Return the tensors of a model above that hold running statistics, which are called `names`."""
    tensors, keys = model.state_dict(), resnet_model.names(workload) if names else {}
    return {name: tensors[keys[name]] for name in names}


# By family: the model of (workload, parameters, weights).
MODELS = {
    "bert": bert,
    "gpt": gpt,
    "resnet": resnet,
    "vit": vit,
    "lstm": lstm,
    "mlp": lambda workload, parameters, weights: mlp(weights),
    "matmul": lambda workload, parameters, weights: load(Matmul(parameters["size"]), weights, str),
    "pointwise-chain": lambda workload, parameters, weights: load(PointwiseChain(parameters["repeat"]), weights, str),
    "fused-cos": lambda workload, parameters, weights: load(FusedCos(parameters["repeat"]), weights, str),
    "stream": lambda workload, parameters, weights: load(Stream(), weights, str),
    "op-overhead": lambda workload, parameters, weights: load(OpOverhead(parameters["additions"]), weights, str),
}


def load(
    model: nn.Layer, weights: Arrays, parameter_name: Callable[[str], str | None], turned: tuple[str, ...] = ()
) -> nn.Layer:
    """Copy every weight into the parameter of its name, linear ones (out, in) transposed to Paddle's (in, out).

    Weights named in `turned` are transposed too; one whose parameter is None is skipped. They take the parameters' own
    type: Paddle's default one when the model was made. Raises ValueError for a weight without a parameter, a parameter
    without a weight, and a wrong shape.
    """
    linear = {f"{name}.weight" for name, layer in model.named_sublayers() if isinstance(layer, nn.Linear)}
    missing = dict(model.named_parameters())
    for checkpoint_name, array in weights.items():
        name = parameter_name(checkpoint_name)
        if name is None:
            continue
        if name not in missing:
            raise ValueError(f"{checkpoint_name}: the model has no parameter {name!r} left to take it.")
        parameter = missing.pop(name)
        values = np.ascontiguousarray(array.T if name in linear or checkpoint_name in turned else array)
        if list(values.shape) != parameter.shape:
            raise ValueError(f"{checkpoint_name}: shape {values.shape}, but {name!r} has {parameter.shape}.")
        parameter.set_value(paddle.to_tensor(values, parameter.dtype))  # it takes no other type than its own
    if missing:
        raise ValueError(f"no weight for {', '.join(missing)}.")
    return model
