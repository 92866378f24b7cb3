"""Which class of operators a kernel belongs to, by its name: one table, for names of every framework and device."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
    ("copy", r"\bshape\b|\bpack\b|\bfull|zeros|ones|iota|range|identity|feed|fetch|assign"),
    ("pointwise", r"elementwise|pointwise|fusion|wrapped_|multi_tensor|adam|dropout|loss"),
    (
        "pointwise",
        r"gelu|relu|tanh|erf|\bcos|\bsin|exp|sqrt|pow|sigmoid|silu|neg|abs|where|select|clamp|add|sub|mul|div",
    ),
    ("pointwise", r"scale|bias|maximum|minimum|compare|logical|greater|less|equal"),
)
PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _TABLE)


def classify(name: str) -> str:
    """The class of a kernel; `other` for a name that the table does not know."""
    return next((kind for kind, pattern in PATTERNS if pattern.search(name.lower())), "other")


def by_class(kernels: Iterable[tuple[str, float, float]], idle_s: float) -> dict[str, float]:
    """Seconds per call by class, in the order of `CLASSES`; `kernels` are (name, seconds, occurrences) per call."""
    seconds = dict.fromkeys(CLASSES, 0.0)
    for name, took, _ in kernels:
        seconds[classify(name)] += took
    return seconds | {"idle": idle_s}
