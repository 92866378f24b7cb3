"""Whether two modes run the same program: the operators each one executes, and the first difference that decides.

Parity compares numbers; two programs may agree in every digit and still choose other kernels, as an attention mask of
ones does. So an adapter lists the operators that its framework dispatches in eager mode, and those of the captured
graph, in one normal form:

- operators that only rename memory (views, reshapes, transposes of a view, identities) and constants are omitted;
- a composite operator (layer norm, GELU, softmax, linear) stands for its parts where the framework calls it by name,
  since every graph splits it differently;
- arguments that choose a kernel are kept: dtypes, shapes and strides of masks, causal, scale, target dtypes of casts.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# Among several differences, those that decide about time come first: these classes in order, then the rest.
DECIDING = ("attention", "convolution", "matmul", "linear", "recurrent", "softmax", "normalisation", "cast")
NONE = "none"


@dataclass(frozen=True)
class Operation:
    """One operator as a framework dispatched it.

    `kind` is one of `DECIDING` where it is such an operator (`attention` only where it is the fused one), else empty.
    `arguments` are those that choose a kernel, as text by name; a mask is `bool (64,1,512,512) stride (0,512,1,0)`.
    Names are the framework's own, in lower case, the same in eager mode and in graphs. A difference names arguments in
    this order, the most important first. Three properties alone are no difference. `read`: Python reads the result's
    value, as in a branch that depends on data. `spare`: a graph holds the operator though nothing needs its result, or
    all of its operands are constants, and eager mode may lack it. `sizes`: shapes of all operands and results, where
    they are known.
    """

    name: str
    kind: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    read: bool = False
    spare: bool = False
    sizes: tuple[tuple[int, ...], ...] = ()

    @property
    def key(self) -> tuple:
        """Name and arguments, which must be equal in both programs."""
        return (self.name, *sorted(self.arguments.items()))

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of its arguments, where these are known."""
        return tuple(self.arguments[name].split(" ")[0] for name in DTYPE_IN if self.arguments.get(name))


# Classes whose dtype decides which hardware computes.
PRODUCTS = ("attention", "convolution", "matmul", "linear", "recurrent")

# Arguments that begin with the dtype, by framework.
DTYPE_IN = ("dtype", "query", "operand 0", "x", "input", "q")

Program = Sequence[Operation]
Pair = tuple[Operation | None, Operation | None]  # eager mode's operator and the graph's at its place


def product_dtypes(program: Program) -> tuple[str, ...]:
    """Return the dtypes of a program's products, the most frequent first."""
    products = [operation.arguments for operation in program if operation.kind in PRODUCTS]
    texts = [next((given[name] for name in DTYPE_IN if name in given), "") for given in products]
    dtypes = Counter(text.partition(" ")[0] for text in texts)
    return tuple(dtype for dtype, _ in dtypes.most_common() if "float" in dtype or "complex" in dtype)


def verdict(eager: Sequence[Program | str], graph: Program | str) -> dict[str, str | None]:
    """Return the columns `program` and `program_difference` of a graph mode.

    `eager` holds the program of the group's eager mode, if that was measured; a text is the reason why a program is
    unknown.
    """
    first = eager[0] if eager else "eager mode was not measured in the same group"
    unknown = [program for program in (*eager[:1], graph, first) if isinstance(program, str)]
    if isinstance(first, str) or isinstance(graph, str):
        return {"program": "unknown", "program_difference": unknown[0]}
    deciding = difference(first, graph)
    return {"program": "differs" if deciding else "same", "program_difference": deciding}


def difference(eager: Program, graph: Program) -> str | None:
    """Return one line that names the deciding difference between the operators of eager mode and of the graph.

    None where the two are the same. Operators are aligned by their names in the order of execution. Among several
    differences it names the one whose operator comes first in `DECIDING`.
    """
    if len(eager) == len(graph) and all(map(_alike, eager, graph)):
        return None
    pairs = _paired(_without_moved(list(_aligned(eager, graph))))
    pairs, whole = list(_without_spare(pairs, graph)), pairs
    apart = [(a, b) for a, b in pairs if a is None or b is None or not _alike(a, b)]
    if whole and not apart:
        return None
    pairs = apart
    if not pairs:
        return "the same operators in another order"
    rank = min(map(_rank, pairs))
    lines = [_line(*pair) for pair in pairs if _rank(pair) == rank]
    count = lines.count(lines[0])
    line = f"{lines[0]} ({count} times)" if count > 1 else lines[0]
    read = next((a.name for a, b in pairs if a and b is None and a.read), None)
    return f"{line}; eager mode's Python branches on the value of {read}, the graph does not" if read else line


def _alike(one: Operation, other: Operation) -> bool:
    """Return whether two operators are the same; a length that a graph leaves open matches any length."""
    if one.key == other.key:
        return True
    if one.name != other.name or one.arguments.keys() != other.arguments.keys():
        return False
    return all(_same_text(text, other.arguments[name]) for name, text in one.arguments.items())


def _same_text(one: str, other: str) -> bool:
    if one == other or "None" not in one + other:
        return one == other
    parts = [re.split(r"([(),])", text) for text in (one, other)]
    return len(parts[0]) == len(parts[1]) and all(a == b or "None" in (a, b) for a, b in zip(*parts, strict=True))


def _aligned(eager: Program, graph: Program) -> Iterator[Pair]:
    """Yield operators that differ at the same place, each with a partner of the same name if there is one."""
    names = [operation.name for operation in eager], [operation.name for operation in graph]
    matcher = difflib.SequenceMatcher(a=names[0], b=names[1], autojunk=False)
    for tag, a_start, a_end, b_start, b_end in matcher.get_opcodes():
        left, right = eager[a_start:a_end], graph[b_start:b_end]
        if tag == "equal":
            yield from ((a, b) for a, b in zip(left, right, strict=True) if not _alike(a, b))
        else:
            yield from _paired([*((a, None) for a in left), *((None, b) for b in right)])


def _without_moved(pairs: list[Pair]) -> list[Pair]:
    """Return the pairs without operators that both programs have at different places."""
    moved = Counter(a.key for a, _ in pairs if a) & Counter(b.key for _, b in pairs if b)
    to_leave = (Counter(moved), Counter(moved))
    kept = []
    for pair in pairs:
        sides: list[Operation | None] = []
        for operation, leave in zip(pair, to_leave, strict=True):
            if operation is not None and leave[operation.key] > 0:
                leave[operation.key] -= 1
                operation = None
            sides.append(operation)
        if any(sides):
            kept.append((sides[0], sides[1]))
    return kept


def _without_spare(pairs: list[Pair], graph: Program) -> Iterator[Pair]:
    """Yield the pairs without as many operators of the graph alone as it has spare ones that are equal to them."""
    spare = Counter(operation.key for operation in graph if operation.spare)
    for eager, operation in pairs:
        if eager is None and operation is not None and spare[operation.key] > 0:
            spare[operation.key] -= 1
        else:
            yield eager, operation


def _paired(pairs: list[Pair]) -> list[Pair]:
    """Pair operators without a partner with those of the same name without one on the other side."""
    partners: dict[str, list[int]] = {}
    for index, (a, b) in enumerate(pairs):
        if a is None and b is not None:
            partners.setdefault(b.name, []).append(index)
    joined, taken = [], set()
    for a, b in pairs:
        if a is not None and b is None and partners.get(a.name):
            partner = partners[a.name].pop(0)
            taken.add(partner)
            b = pairs[partner][1]
        joined.append((a, b))
    return [pair for index, pair in enumerate(joined) if index not in taken]


def _line(eager: Operation | None, graph: Operation | None) -> str:
    only = eager or graph
    if only and (eager is None or graph is None):
        where = "in eager, not in the graph" if eager else "in the graph, not in eager"
        arguments = ", ".join(f"{name} {value}" for name, value in only.arguments.items())
        return f"{only.name}: {where}" + (f" ({arguments})" if arguments else "")
    assert eager and graph
    both = [eager.arguments, graph.arguments]
    parts = []
    for name in dict.fromkeys([*eager.arguments, *graph.arguments]):
        ours, theirs = (arguments.get(name, NONE) for arguments in both)
        if ours != theirs:
            parts.append(f"{name} {ours} in eager, {theirs} in the graph")
    return f"{eager.name}: {'; '.join(parts)}"


def _rank(pair: Pair) -> int:
    kinds = [operation.kind for operation in pair if operation]
    return min(DECIDING.index(kind) if kind in DECIDING else len(DECIDING) for kind in kinds)
