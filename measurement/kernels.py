"""The operator class of a kernel, by its name: one table for the names of every framework and device."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# In printing order. Idle is the time in which no kernel ran.
CLASSES = ("matmul", "attention", "normalisation", "pointwise", "copy", "other", "idle")

# The first pattern found in a name decides; names are compared in lower case. A fused kernel belongs to the first class
# that it contains: attention, matrix products, normalisation (layer norm, softmax and their reductions), pointwise
# operators, copies. `fusion{dot,add}` lists the operators that the compiler reports. Names of other generated kernels
# also contain operators around them, so their own kind is matched first.
_TABLE = (
    # Generated kernels: templates hold products, reductions normalise, the rest is pointwise.
    ("attention", r"triton_tem\w*attention"),
    ("matmul", r"triton_tem|triton_mm"),
    ("normalisation", r"triton_red|triton_per|cpp_fused\w*(?:norm|softmax|mean|var_|sum|amax)"),
    ("pointwise", r"triton_poi|cpp_fused"),
    # Fused attention: flash attention, cuDNN's and cutlass's, and the operators that call them.
    ("attention", r"fmha|flash|sdpa|scaled_dot_product|attention|multihead_matmul"),
    ("copy", r"memcpy|memset"),
    ("matmul", r"gemm|gemv|splitk|nvjet|cutlass|xmma|cublas|fprop|dgrad|wgrad|implicit_con|convolution|conv[123]d"),
    ("matmul", r"matmul|addmm|(?<![a-z])b?mm(?![a-z])|(?<![a-z])linear(?![a-z])|einsum|tensordot"),
    ("matmul", r"\bdot\b|dot_general|(?<![a-z])fc(?![a-z])"),
    ("normalisation", r"layer_?norm|rms_?norm|batch_?norm|group_?norm|softmax|moments|squareddifference"),
    ("normalisation", r"reduce|variance|(?<![a-z])(?:mean|var|std(?!::)|sum|max|amax)(?![a-z])"),
    (
        "pointwise",
        r"\{[^}]*\b(?:add|multiply|subtract|divide|exponential|tanh|rsqrt|sqrt|select|compare|erf|power|log)\b",
    ),
    ("pointwise", r"\{[^}]*\b(?:negate|maximum|minimum|abs|logistic|cosine|sine|and|or|xor)\b"),
    ("copy", r"copy|transpose|permute|gather|embedding|index_?select|(?<![a-z])take|concat|catarray|(?<![a-z])cat\b"),
    ("copy", r"slice|reshape|expand|\bpad\b|layout|reorder|\bcast\b|convert|readvariable|stopgradient|one_?hot"),
    (
        "copy",
        r"contiguous|\bclone\b|broadcast_in_dim|\{broadcast\}|strided|fill|\bempty|\bview\b|\bt\b|squeeze|resolve_",
    ),
    ("copy", r"\bshape\b|\bpack\b|\bfull|zeros|ones|iota|range|identity|feed|fetch|assign|eagerconst"),
    ("pointwise", r"elem(?:ent)?wise|pointwise|thnn_fused_\w*_cell|fusion|wrapped_|multi_tensor|adam|dropout|loss"),
    (
        "pointwise",
        r"gelu|relu|tanh|erf|\bcos|\bsin|exp|sqrt|pow|sigmoid|silu|neg|abs|where|select|clamp|add|sub|mul|div",
    ),
    ("pointwise", r"scale|bias|maximum|minimum|compare|logical|greater|less|equal"),
    # A whole recurrent layer is mostly products. JAX has no such kernel, but may name a program so.
    ("matmul", r"^(?!jit_).*(?:rnn|lstm|(?<![a-z])gru)"),
)
PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _TABLE)

# The operator of kernels if the softmax of scores and the products around it are separate.
UNFUSED_ATTENTION = "unfused attention"
_ATTENTION = re.compile(r"scaled_dot_product|flash_att|multihead|fused_attention|unfused attention")
# Only the decomposition of torch's attention contains `_safe_softmax`. A written-out softmax is recognised by the
# maximum over the scores; log_softmax belongs to a loss, not to attention.
_SOFTMAX = re.compile(
    r"(?<!log_)softmax|reduce_max|reduce,maximum|\{[^}]*exponential[^}]*reduce|\{[^}]*reduce[^}]*exponential"
)
# Products with a batch on both sides. oneDNN's product in Paddle is one if it absorbed transpositions or a scale.
_BATCHED = re.compile(r"bmm|batch_?matmul|batched|onednn_op\.fused_matmul")
_OF_A_WEIGHT = re.compile(
    r"addmm|(?<![a-z])mm(?![a-z])|linear|(?<![a-z])fc(?![a-z])|_mklmatmul|fusedmatmul|\{[^}]*\bdot\b"
)
_FUSED = re.compile(
    r"fmha|flash|sdpa_sm|efficient_attention|cudnn_attention|multihead|triton_tem\w*attention|fused_attention"
)


# A program that JAX compiles for one operator in eager mode, with a kernel named after a conversion in it. Users name
# their own programs, so a program's name decides only for such kernels.
_OF_ONE_OPERATOR = re.compile(r"jit_(\w+)/\w*convert\w*fusion")


def classify(name: str, operator: str = "") -> str:
    """Return the class of a kernel of `operator`; `other` if the table contains neither name.

    Every kernel of attention is attention. Otherwise the kernel's own name decides, unless JAX named it after a
    conversion in an operator that it compiled alone (`jit_erfc/loop_convert_fusion`): then the operator's name decides.
    """
    if is_attention(operator):
        return "attention"
    alone = _OF_ONE_OPERATOR.match(name.lower())
    texts = (alone[1] if alone else "", name.lower(), operator.lower())
    return next((kind for text in texts if text for kind, pattern in PATTERNS if pattern.search(text)), "other")


def is_attention(operator: str) -> bool:
    """Return whether an operator computes attention, fused or not."""
    return bool(_ATTENTION.search(operator.lower()))


def is_fused_attention(name: str) -> bool:
    """Return whether a kernel computes all of attention, not a part."""
    return bool(_FUSED.search(name.lower())) and classify(name) == "attention"


def is_softmax(name: str) -> bool:
    """Return whether a kernel computes a softmax, or its initial maximum."""
    return bool(_SOFTMAX.search(name.lower()))


def is_batched(name: str) -> bool | None:
    """Return whether a matrix product multiplies two activations, as in attention; None if the name is unclear."""
    text = name.lower()
    # `MatMul` is TensorFlow's product of matrices; Paddle's `matmul` takes any number of axes.
    return True if _BATCHED.search(text) else False if _OF_A_WEIGHT.search(text) or name == "MatMul" else None


def rows(kernels: Iterable[Sequence]) -> list[tuple[str, float, float, str]]:
    """Return kernels as (name, seconds, occurrences, operator); the operator is empty in profiles of older versions."""
    return [(name, took, count, *(rest or [""])) for name, took, count, *rest in kernels]


def by_class(kernels: Iterable[Sequence], idle_s: float) -> dict[str, float]:
    """Return seconds per call by class, in the order of `CLASSES`; kernels as `rows` takes them, per call."""
    seconds = dict.fromkeys(CLASSES, 0.0)
    for name, took, _, operator in rows(kernels):
        seconds[classify(name, operator)] += took
    return seconds | {"idle": idle_s}
