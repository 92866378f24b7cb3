"""Whether two modes run the same program: the operators each one executes, and the first difference that decides.

Parity compares numbers; two programs may agree in every digit and still choose other kernels, as an attention mask of
ones does. So an adapter lists what its framework itself dispatches in eager mode, and what the captured graph holds,
in one normal form:

- operators that only rename memory (views, reshapes, transposes of a view, identities) and constants are left out;
- a composite operator stands for its parts where the framework calls it by name (layer norm, GELU, softmax, linear),
  since every graph takes those apart in its own way;
- arguments that choose a kernel are kept: dtypes, shapes and strides of masks, causal, scale, target dtypes of casts.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

# What decides about time comes first when several differences are found: the classes of operators, then the rest.
DECIDING = ("attention", "convolution", "matmul", "linear", "recurrent", "softmax", "normalisation", "cast")
NONE = "none"


@dataclass(frozen=True)
class Operation:
    """One operator as a framework dispatched it.

    `kind` is one of `DECIDING` where it is such an operator (`attention` only where it is the fused one), else empty.
    `arguments` are those that choose a kernel, as text by name; a mask is `bool (64,1,512,512) stride (0,512,1,0)`.
    Names are the framework's own, in lower case, the same in eager mode and in graphs.
    """

    name: str
    kind: str = ""
    arguments: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple:
        """What must be equal in both programs."""
        return (self.name, *sorted(self.arguments.items()))


Program = Sequence[Operation]


def verdict(eager: Sequence[Program | str], graph: Program | str) -> dict[str, str | None]:
    """The columns `program` and `program_difference` of a graph mode.

    `eager` holds the program of the group's eager mode, if that was measured; a text is the reason why a program is
    not known.
    """
    for program in (*eager[:1], graph):
        if isinstance(program, str):
            return {"program": "unknown", "program_difference": program}
    if not eager:
        return {"program": "unknown", "program_difference": "eager mode was not measured beside it"}
    deciding = difference(eager[0], graph)
    return {"program": "differs" if deciding else "same", "program_difference": deciding}


def difference(eager: Program, graph: Program) -> str | None:
    """One line that names the deciding difference between what eager mode executes and what the graph holds.

    None where the two are the same. Operators are aligned in the order of execution; among several differences the
    one whose operator comes first in `DECIDING` is named.
    """
    eager_keys, graph_keys = [operation.key for operation in eager], [operation.key for operation in graph]
    if eager_keys == graph_keys:
        return None
    matcher = difflib.SequenceMatcher(a=eager_keys, b=graph_keys, autojunk=False)
    differences: list[tuple[int, str]] = []
    for tag, a_start, a_end, b_start, b_end in matcher.get_opcodes():
        if tag != "equal":
            differences += _of_stretch(eager[a_start:a_end], graph[b_start:b_end])
    if not differences:  # the same operators in another order
        return "the same operators in another order"
    rank = min(rank for rank, _ in differences)
    lines = [line for found, line in differences if found == rank]
    line, count = lines[0], Counter(lines)[lines[0]]
    return f"{line} ({count} times)" if count > 1 else line


def _of_stretch(eager: Program, graph: Program) -> list[tuple[int, str]]:
    """The differences between two stretches that replace each other, each with its rank."""
    left, right = list(eager), list(graph)
    differences = []
    for operation in eager:
        partner = next((other for other in right if other.name == operation.name), None)
        if partner is None:
            continue
        left.remove(operation)
        right.remove(partner)
        if partner.key != operation.key:
            differences.append((_rank(operation), _of_arguments(operation, partner)))
    differences += [(_rank(operation), f"{operation.name}: in eager, not in the graph") for operation in left]
    differences += [(_rank(operation), f"{operation.name}: in the graph, not in eager") for operation in right]
    return differences


def _of_arguments(eager: Operation, graph: Operation) -> str:
    names = sorted(
        name
        for name in eager.arguments.keys() | graph.arguments.keys()
        if eager.arguments.get(name, NONE) != graph.arguments.get(name, NONE)
    )
    parts = [
        f"{name} {eager.arguments.get(name, NONE)} in eager, {graph.arguments.get(name, NONE)} in the graph"
        for name in names
    ]
    return f"{eager.name}: {'; '.join(parts)}"


def _rank(operation: Operation) -> int:
    return DECIDING.index(operation.kind) if operation.kind in DECIDING else len(DECIDING)
