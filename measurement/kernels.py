"""Which class of operators a kernel belongs to, by its name: one table, for names of every framework and device."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# In the order in which they are printed. Idle is the time in which no kernel was at work.
CLASSES = ("matmul", "attention", "normalisation", "pointwise", "copy", "other", "idle")

# The first pattern that is found in a name decides; names are compared in lower case. A fused kernel belongs to the
# first class of what it holds: attention, matrix products, normalisation (layer norm, softmax, and the reductions that
# these are made of), then pointwise operators, then copies. `fusion{dot,add}` is a fusion with what its compiler says
# that it holds; other generated kernels are named after operators around them too, and go by their own kind first.
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
    # A whole recurrent layer is products above all. JAX has no such kernel; a program of its may be called so.
    ("matmul", r"^(?!jit_).*(?:rnn|lstm|(?<![a-z])gru)"),
)
PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _TABLE)

# What a kernel is a part of where the softmax of scores and the products around it were found one by one.
UNFUSED_ATTENTION = "unfused attention"
_ATTENTION = re.compile(r"scaled_dot_product|flash_att|multihead|fused_attention|unfused attention")
# `_safe_softmax` is made by the decomposition of torch's attention alone. Where softmax is spelled out, the maximum
# over the scores shows it; a loss has a log_softmax, which is none of attention's.
_SOFTMAX = re.compile(
    r"(?<!log_)softmax|reduce_max|reduce,maximum|\{[^}]*exponential[^}]*reduce|\{[^}]*reduce[^}]*exponential"
)
# Products with a batch on both sides. oneDNN's product in Paddle is one where transpositions or a scale went into it.
_BATCHED = re.compile(r"bmm|batch_?matmul|batched|onednn_op\.fused_matmul")
_OF_A_WEIGHT = re.compile(
    r"addmm|(?<![a-z])mm(?![a-z])|linear|(?<![a-z])fc(?![a-z])|_mklmatmul|fusedmatmul|\{[^}]*\bdot\b"
)
_FUSED = re.compile(
    r"fmha|flash|sdpa_sm|efficient_attention|cudnn_attention|multihead|triton_tem\w*attention|fused_attention"
)


# A program that JAX compiles for one operator, in eager mode, where its kernel is named after a conversion in it. What
# a user compiles has a name of the user's: it decides of such kernels alone.
_OF_ONE_OPERATOR = re.compile(r"jit_(\w+)/\w*convert\w*fusion")


def classify(name: str, operator: str = "") -> str:
    """Return the class of a kernel that is a part of `operator`; `other` where the table knows neither.

    Whatever attention is made of is attention. Otherwise the kernel's own name decides, unless JAX named it after a
    conversion in an operator that it compiled alone (`jit_erfc/loop_convert_fusion`): then that operator's name does.
    """
    if is_attention(operator):
        return "attention"
    alone = _OF_ONE_OPERATOR.match(name.lower())
    texts = (alone[1] if alone else "", name.lower(), operator.lower())
    return next((kind for text in texts if text for kind, pattern in PATTERNS if pattern.search(text)), "other")


def is_attention(operator: str) -> bool:
    """Return whether it is an operator that computes attention, fused or not."""
    return bool(_ATTENTION.search(operator.lower()))


def is_fused_attention(name: str) -> bool:
    """Return whether a kernel is the whole of attention and not a part of it."""
    return bool(_FUSED.search(name.lower())) and classify(name) == "attention"


def is_softmax(name: str) -> bool:
    """Return whether a kernel computes a softmax, or the maximum that one begins with."""
    return bool(_SOFTMAX.search(name.lower()))


def is_batched(name: str) -> bool | None:
    """Return whether a matrix product is one of two activations, as in attention; None where its name is unclear."""
    text = name.lower()
    # TensorFlow's product of matrices is its capitalised name; Paddle's small one has any number of axes.
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
