"""FLOPs and bytes of a call, counted while it runs operator by operator."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.thread import _worker
from functools import partial
from math import prod
from multiprocessing.pool import ThreadPool
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from frameworks.torch.inspect.program import IN_NUMPY, has_nested, run_within, taken_to_numpy, uncompiled
from frameworks.user_model import Counted, Uncounted

# Namespaces outside of which kernels are third-party; and ATen's own operators that torch does not count.
OWN_NAMESPACES = ("aten", "prim", "prims", "profiler")
_HEAVY = re.compile(
    r"_?sparse_|_?linalg_(?!vector_norm|cross)|_fft_|_ctc_loss|_?cdist|cholesky|_?lu_|lstsq|svd|qr|geqrf|ormqr|triangular|quantized_|q_|"
    r"(_?thnn_|_cudnn_|miopen_|mkldnn_)\w*(rnn|lstm|gru)|conv_tbc|\w*(mm|mv|dot|matmul|linear)(_|$)"
)
# Operators that read rows of their first operand, at places that a later one holds.
_GATHERS = ("embedding", "_embedding_bag", "_embedding_bag_forward_only", "index_select", "index", "gather", "take")
OF_COMPLEX = 4  # real products and sums in one of complex numbers, of which rules count one
IN_THREADS = "the model computes in threads of its own, and torch counts the operators of one thread."
BY = "torch.utils.flop_counter: products, convolutions and attention; bytes of every operator's operands and results"


def fused_lstm(rows: Sequence[int], of_inputs: Sequence[int], of_states: Sequence[int], *_: Any, **__: Any) -> int:
    """Return FLOPs of oneDNN's LSTM layer by shapes (steps, sequences, inputs), (gates, inputs), (gates, states).

    Both matrices are multiplied with every step of every sequence once.
    """
    return 2 * prod(rows[:-1]) * (prod(of_inputs) + prod(of_states))


def attention(query: Sequence[int], key: Sequence[int], value: Sequence[int], *_: Any, **__: Any) -> int:
    """Return FLOPs of fused attention by shapes (batch, heads, positions, size of a head)."""
    return sdpa_flop_count(query, key, value)


def attention_backward(gradient: Sequence[int], *operands: Any, **__: Any) -> int:
    """Return FLOPs of its gradient, whose operands follow the output's."""
    return sdpa_backward_flop_count(gradient, *operands[:3])


def product(matrix: Sequence[int], other: Sequence[int], *_: Any, **__: Any) -> int:
    """Return FLOPs of a product by shapes (..., m, k) and (k,) or (..., k, n)."""
    return 2 * prod(matrix) * (other[-1] if len(other) > 1 else 1)


def product_added(_added: Sequence[int], matrix: Sequence[int], other: Sequence[int], *_: Any, **__: Any) -> int:
    """Return FLOPs of a product that is added to the first operand; torch does not count the sum."""
    return product(matrix, other)


def product_of_groups(matrix: Sequence[int], other: Sequence[int], *_: Any, **__: Any) -> int:
    """Return FLOPs of products by shapes (m, k) and (k, n), of which either may have a number of groups before.

    Groups divide an axis where they do not number both.
    """
    groups = matrix[0] if len(matrix) == len(other) == 3 else 1
    return 2 * groups * prod(matrix[-2:]) * other[-1]


def trilinear(*operands: Any, **_: Any) -> int:
    """Return FLOPs of sums of products of three tensors, by their shapes and, for each, the axes that it lacks.

    Two are multiplied at every place. Sums have removed axes before the third is, so that product is not counted.
    """
    shapes, lacking = operands[:3], operands[3:6]
    rests = list(zip(map(iter, shapes), lacking, strict=True))
    axes = range(len(shapes[0]) + len(lacking[0]))
    return 2 * prod(max(1 if axis in lacks else next(sizes) for sizes, lacks in rests) for axis in axes)


# torch counts mm, addmm, bmm and baddbmm.
PRODUCTS = {
    **dict.fromkeys(("mv", "dot", "vdot", "_int_mm"), product),
    **dict.fromkeys(("addmv", "addmv_", "addmm_", "baddbmm_", "addbmm", "addbmm_", "_addmm_activation"), product_added),
    "_trilinear": trilinear,
    "_grouped_mm": product_of_groups,
}
# torch counts the kernels of GPUs.
ATTENTION_ON_CPUS = {
    "_scaled_dot_product_flash_attention_for_cpu": attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": attention_backward,
}


@contextlib.contextmanager
def _taken_apart() -> Iterator[None]:
    """Switch off the fused paths of `nn.MultiheadAttention` and the encoder's layer, which are not counted."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


class _Noted(TorchDispatchMode):
    """Appends the operators that a thread runs to a list."""

    supports_higher_order_operators = True

    def __init__(self, operators: list[Any]) -> None:
        super().__init__()
        self._operators = operators

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        self._operators.append(func)
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def _run_in_threads() -> Iterator[list[Any]]:
    """Collect the operators that a block runs in threads that it starts, and in pools of threads.

    Modes see one thread alone. Threads that exist before, and serve a queue of the user's own, are not seen.
    """
    operators: list[Any] = []
    run, submit = threading.Thread.run, ThreadPoolExecutor.submit
    apply, tasks = ThreadPool.apply_async, ThreadPool._guarded_task_generation  # type: ignore[attr-defined]

    def noted(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        with _Noted(operators):
            return function(*args, **kwargs)

    def noted_run(thread: threading.Thread) -> None:
        lasting = getattr(thread, "_target", None) is _worker  # a pool's thread, which serves later calls
        run(thread) if lasting else noted(run, thread)

    threading.Thread.run = noted_run  # type: ignore[method-assign]
    ThreadPoolExecutor.submit = lambda pool, /, *work, **named: submit(pool, noted, *work, **named)  # type: ignore
    patched = {
        "apply_async": lambda pool, func, *rest, **named: apply(pool, partial(noted, func), *rest, **named),
        "_guarded_task_generation": lambda pool, job, func, items: tasks(pool, job, partial(noted, func), items),
    }
    for name, function in patched.items():
        setattr(ThreadPool, name, function)
    try:
        yield operators
    finally:
        threading.Thread.run, ThreadPoolExecutor.submit = run, submit  # type: ignore[method-assign]
        for name in patched:  # which Pool has, as processes do
            delattr(ThreadPool, name)


class _Counter(TorchDispatchMode):
    """Sums FLOPs by torch's rules, and bytes that operators read and write (0 for a view); notes those without a rule.

    `rows` are the bytes that gathers read, by the storage of their table. `whole` are storages that others read.
    """

    supports_higher_order_operators = True

    def __init__(self, rules: Mapping[Any, Any]) -> None:
        super().__init__()
        self._rules = rules
        self.flops = self.moved = 0
        self.rows: dict[int, int] = {}
        self.whole: set[int] = set()
        self.uncounted: set[str] = set()
        self._handed = False  # an operator to a subclass of tensors, whose turn comes after this mode's

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, HigherOrderOperator):
            return run_within(self, func, args, kwargs)
        if any(kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ for kind in types):
            return self._of_subclass(func, args, kwargs)
        if func._overloadpacket not in self._rules and not has_nested((args, kwargs)):
            with self:  # count its components
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        self._count(func, args, kwargs, result)
        return result

    def _of_subclass(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """Run an operator of a subclass of tensors; count it by itself where no operator on the parts is seen.

        A subclass that disables its dispatch passes every mode. A product is uncounted if what is seen has none.
        """
        if self._handed:
            self._handed = False
            return NotImplemented
        flops, moved, uncounted = self.flops, self.moved, len(self.uncounted)
        self._handed = True
        with self:
            result = func(*args, **kwargs)
        tensors = result is None or any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(result))
        computes = tensors and not func._opname.startswith("_nested_get_")  # else it asks for a layout, or for a part
        if computes and (self.flops, len(self.uncounted)) == (flops, uncounted):
            if self.moved == moved:
                self._count(func, args, kwargs, result)
            elif func._overloadpacket in self._rules or _HEAVY.match(func._opname):
                self.uncounted.add(f"{func.name()} of a subclass")
        return result

    def _count(self, func: Any, args: tuple, kwargs: dict, result: Any) -> None:
        """Add the FLOPs and bytes of a call of an operator."""
        rule = self._rules.get(func._overloadpacket)
        if rule and _is_sparse(args):
            self.uncounted.add(f"{func.name()} of sparse operands")
        elif rule:
            is_complex = any(leaf.is_complex() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))
            self.flops += rule(*args, **kwargs, out_val=result) * (OF_COMPLEX if is_complex else 1)
        elif func.namespace not in OWN_NAMESPACES or _HEAVY.match(func._opname):
            self.uncounted.add(func.name())
        if not func.is_view:
            self._add(func._opname, args, kwargs, result)

    def _add(self, name: str, args: tuple, kwargs: Mapping[str, Any], result: Any) -> None:
        """Add the bytes of a call of an operator."""
        if name in _GATHERS and args:
            table, *args = args
            row = table[:1].nbytes if "embedding" in name else table.element_size()
            places = args[0].numel() if "embedding" in name else tree_leaves(result)[0].numel()
            read = min(places * row, _bytes_of(table))
            self.rows[_storage(table)] = self.rows.get(_storage(table), 0) + read
            self.moved += read
        self.whole |= {_storage(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)}
        self.moved += nbytes((args, kwargs, result))

    def unread(self, held: Sequence[torch.Tensor]) -> int:
        """Return the bytes of the tensors that no operator reads: rows of tables that only gathers read."""
        tables = {_storage(tensor): _bytes_of(tensor) for tensor in held}
        return sum(max(0, tables.get(table, 0) - read) for table, read in self.rows.items() if table not in self.whole)


def counted(call: Callable[..., Any], module: torch.nn.Module, fresh: Callable[[], Sequence[Any]]) -> Counted:
    """Return FLOPs and bytes of `call(*fresh())`; weights, buffers, inputs and outputs must move once.

    Of a table that only gathers read, such as an embedding's, only the rows must.

    `fresh` makes separate inputs for each call, and is not counted. Nor is a first call, which may initialize a model
    by its inputs' values, as k-means does in vector quantization. Raises Uncounted where it runs kernels that may
    compute much and have no rule.
    """
    rules: dict[Any, Callable[..., int]] = {torch.ops.aten.mkldnn_rnn_layer: fused_lstm}
    named = (ATTENTION_ON_CPUS | PRODUCTS).items()  # an earlier torch lacks some
    rules |= {getattr(torch.ops.aten, name): rule for name, rule in named if hasattr(torch.ops.aten, name)}
    rules = FlopCounterMode(display=False, custom_mapping=rules).flop_registry
    computed, moved = _Counter(rules), _Counter(rules)
    with uncompiled():
        call(*fresh())
        given, inputs = fresh(), fresh()
        with _taken_apart(), computed, taken_to_numpy() as taken, _run_in_threads() as in_threads:
            call(*given)
        if taken or in_threads:
            raise Uncounted(IN_NUMPY if taken else IN_THREADS)
        with moved:
            output = call(*inputs)
    if moved.uncounted:
        raise Uncounted.naming(moved.uncounted)
    held = [*module.parameters(), *module.buffers()]
    return Counted(
        flops=int(computed.flops),
        bytes=nbytes((held, inputs, output)) - moved.unread(held),
        unfused_bytes=moved.moved,
        by=BY,
    )


def nbytes(values: Any) -> int:
    """Return bytes of all tensors in a tree, each storage once."""
    tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    return sum({id(tensor): _bytes_of(tensor) for tensor in tensors}.values())


def _is_sparse(values: Any) -> bool:
    """Return whether a tensor among values keeps some of its values alone, of which rules know nothing."""
    layouts = {leaf.layout for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)}
    return not layouts <= {torch.strided, torch.jagged, torch._mkldnn}


def _storage(tensor: torch.Tensor) -> int:
    """Return an identity that a tensor shares with its views."""
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided and not tensor.is_nested else id(tensor)


def _bytes_of(tensor: torch.Tensor) -> int:
    if tensor.layout == torch.sparse_coo:
        return tensor._indices().nbytes + tensor._values().nbytes
    if tensor.is_nested:
        return tensor.values().nbytes
    return tensor.element_size() * tensor.numel() if tensor.layout == torch.strided else tensor.values().nbytes
