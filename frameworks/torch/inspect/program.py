"""The operators of one call as torch itself dispatches them: ATen's, and the attention kernel that SDPA chose.

Eager mode's list comes from calling the model, a graph's from running the capture of Dynamo or torch.export with eager
kernels. So both have one form: eager's dispatcher splits composite operators in both.
"""

from __future__ import annotations

import contextlib
import copy
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from frameworks.program import NONE, Operation, Program
from frameworks.user_model import Uncounted

ATTENTION = "scaled_dot_product_attention"
_FUSED = re.compile(r"_scaled_dot_product_(\w+?)_attention")  # the kernel that SDPA chose; its math path has none
_KINDS = {
    "attention": r"attention|multi_head|transformer_encoder",
    "convolution": r"conv",
    "matmul": r"^_?(\w*_)?(mm|bmm|addmm|baddbmm|addbmm|matmul|mv|addmv|dot|einsum|addmm_activation|grouped_mm)$",
    "linear": r"linear",
    "recurrent": r"lstm|gru|rnn",
    "softmax": r"softmax",
    "normalisation": r"(layer|batch|group|instance|rms)_norm",
}
IN_NUMPY = "eager mode converts a tensor to NumPy during the call, and torch does not list NumPy's operators."
TRACED = "where gradients are recorded, torch traces {operator}, so the operators that it runs are not known."
READING = "_local_scalar_dense"  # dispatched by `item()` and a branch on a tensor's value
# They rename memory, as views do, though their schemas do not show it.
_RENAMING = {"detach_", "_unsafe_view", "_reshape_alias", "set_"}
_ADDED = {"lift_fresh_copy", "_assert_tensor_metadata"}  # by torch.export: a constant, a check of a dtype
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_EAGER = torch._C.DispatchKey.CompositeExplicitAutograd  # of the kernels of higher-order operators
_watchers: list[Callable[..., None]] = []


def executed(call: Callable[..., Any], inputs: Sequence[Any] = (), autograd: bool = False) -> Program:
    """Run `call(*inputs)` once; return its operators, in order.

    `autograd`: the call records gradients, for which autograd decomposes attention before it is dispatched. Nothing
    here waits for a device or reads a value, so the call may be under stream capture. Raises Uncounted.
    """
    listed: list[Operation] = []
    recorder = _Recorder(listed)
    # Only where it must be: `nn.MultiheadAttention` and the encoder's layer leave their fused path while it is active.
    seen = _AttentionCalls(recorder) if autograd else contextlib.nullcontext()
    with uncompiled(), recorder, seen:
        call(*inputs)
    return tuple(listed)


def shown(call: Callable[..., Any], inputs: Sequence[Any], autograd: bool = False) -> Program | str:
    """Return the operators of a call in eager mode, as `executed` does; a text where some of them are not known."""
    try:
        with taken_to_numpy() as taken:
            listed = executed(call, inputs, autograd)
    except Uncounted as error:
        return str(error)
    return IN_NUMPY if taken else listed


@contextlib.contextmanager
def taken_to_numpy() -> Iterator[list[torch.Size]]:
    """Collect the shapes of tensors that a block turns into arrays; Dynamo captures NumPy's functions as torch's."""
    taken: list[torch.Size] = []
    own = torch.Tensor.numpy  # which np.asarray calls too

    def noted(tensor: torch.Tensor, *arguments: Any, **named: Any) -> Any:
        taken.append(tensor.shape)
        return own(tensor, *arguments, **named)

    torch.Tensor.numpy = noted
    try:
        yield taken
    finally:
        torch.Tensor.numpy = own


def captured(graph: CapturedGraph, context: Callable[[Callable], Callable] = lambda call: call) -> Program | str:
    """Return the operators of a graph, or why they are not known; `context` is that of the captured call."""
    try:
        return executed(*graph.call(context))  # as eager mode is listed: before autocast, or after it
    except Uncounted as error:
        return str(error)


def uncompiled() -> contextlib.AbstractContextManager:
    """Enter a block in which torch compiles nothing, as torch.cond and flex_attention do in eager mode too.

    Under a dispatch mode Dynamo skips their frames, from then on in every call, which then fails within them.
    """
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else contextlib.nullcontext()


@contextlib.contextmanager
def watched(watcher: Callable[..., None]) -> Iterator[None]:
    """Call `watcher`, while entered, with the arguments of every attention operator that is listed."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def run_within(mode: TorchDispatchMode, operator: HigherOrderOperator, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run a higher-order operator, such as torch.cond, so that `mode` sees the operators that eager mode runs for it.

    The kernels of control flow refuse modes, and compute in functions alone, which then enter the mode themselves.
    Raises Uncounted for an operator without functions, such as a user's Triton kernel.
    """

    def entering(value: Any) -> Any:
        def entered(*given: Any, **named: Any) -> Any:
            with mode:
                return value(*given, **named)

        return entered if callable(value) and not _is_tensor(value) else value

    kernel = operator.py_kernels.get(_EAGER)
    if kernel is None or not any(entering(value) is not value for value in args):
        raise Uncounted(f"torch does not show what {operator.name()} computes.")
    try:
        with mode:
            return kernel(*args, **kwargs)
    except AssertionError as error:
        if "mode should never be enabled" not in str(error).lower():
            raise
        return operator(*map(entering, args), **kwargs)


class CapturedGraph:
    """The graph that Dynamo handed to a backend, with everything needed to run it again.

    It holds no additional memory: inputs are the model's weights and the tensors of the first call.
    """

    def __init__(self) -> None:
        self._graph: torch.fx.GraphModule | None = None
        self._inputs: list[Any] = []

    def keep(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
        """Keep a graph before its backend rewrites it; of several for one shape the latest, which is the one in use."""
        inputs = [_hint(value) for value in inputs]
        if self._graph is None or list(map(_signature, inputs)) == list(map(_signature, self._inputs)):
            self._graph, self._inputs = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph)), inputs

    def call(self, context: Callable[[Callable], Callable]) -> tuple[Callable, list[Any], bool]:
        """Return the graph under `context`, its inputs, and whether a call records gradients there."""
        if self._graph is None:
            raise RuntimeError("torch.compile has captured nothing")
        return context(self._graph), [_real(value) for value in self._inputs], context(torch.is_grad_enabled)()


class NoControlFlow(TorchFunctionMode):
    """Raises Uncounted for higher-order operators, such as torch.cond, which autograd would trace."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if isinstance(func, HigherOrderOperator):
            raise Uncounted(TRACED.format(operator=func.name()))
        return func(*args, **(kwargs or {}))


class _AttentionCalls(NoControlFlow):
    """Sees `scaled_dot_product_attention` where autograd decomposes it before it is dispatched."""

    def __init__(self, recorder: _Recorder):
        super().__init__()
        self._recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") == ATTENTION:
            return self._recorder.attention(func, args, kwargs or {})
        return super().__torch_function__(func, types, args, kwargs)


class _Recorder(TorchDispatchMode):
    """Appends each dispatched operator that computes something to `listed`."""

    supports_higher_order_operators = True

    def __init__(self, listed: list[Operation]):
        super().__init__()
        self._listed = listed
        self._in_attention = False
        self._latest: Any = None  # the result of the operator listed last

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if isinstance(func, HigherOrderOperator):
            return run_within(self, func, args, kwargs)
        if _name(func) == ATTENTION and not self._in_attention:
            with self:
                return self.attention(func, args, kwargs)
        # A tensor subclass may decompose an operator into itself endlessly: it is listed whole.
        decomposed = not types and not has_nested((args, kwargs))  # whose kernels are their own
        if decomposed and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), _COMPOSITE):
            with self:  # without autograd such operators arrive whole; their own C++ decomposes them, not the tracers'
                return func._op_dk(_COMPOSITE, *args, **kwargs)
        result = func(*args, **kwargs)
        if _name(func) == READING and args[0] is self._latest:
            self._listed[-1] = replace(self._listed[-1], read=True)
        if listed := list(_listed_as(func, args, kwargs, result)):
            self._listed += listed
            self._latest = result
        return result

    def attention(self, func: Callable, args: tuple, kwargs: dict) -> torch.Tensor:
        """Run fused attention and list it as one operator, with the kernel that was chosen for it."""
        for watcher in _watchers:
            watcher(*args, **kwargs)
        start, self._in_attention = len(self._listed), True
        try:
            result = func(*args, **kwargs)
        finally:
            self._in_attention = False
            parts = self._listed[start:]
            del self._listed[start:]
        chosen = [match[1] for part in parts if (match := _FUSED.match(part.name))]
        backend = chosen[0] if chosen else "math"
        arguments, sizes = _attention_arguments(*args, **kwargs, backend=backend), _sizes([*args, *kwargs.values()])
        self._listed.append(Operation(ATTENTION, "attention", arguments, sizes=sizes))
        return result


def _attention_arguments(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False, backend
) -> dict[str, str]:
    """Return the arguments that choose the kernel, the most important first.

    The default scale is 1 / sqrt(head size).
    """
    mask = NONE if attn_mask is None else _text(attn_mask, always_strides=True)
    scale = query.size(-1) ** -0.5 if scale is None else scale
    return {
        "mask": mask,
        "backend": backend,
        "causal": _text(bool(is_causal)),
        "scale": _text(float(scale)),
        "dropout": _text(float(dropout_p)),
        "enable_gqa": _text(bool(enable_gqa)),
        "query": _text(query),
        "key": _text(key),
        "value": _text(value),
    }


def _listed_as(func: Any, args: tuple, kwargs: dict, result: Any) -> Iterator[Operation]:
    """Yield the operator as it is listed: not at all where it renames memory, makes a constant or reads a number."""
    name, operands = _name(func), [value for value in _flat([*args, *kwargs.values()]) if _is_tensor(value)]
    if func.is_view or name in _RENAMING | _ADDED or (name == READING and operands[0].device.type == "cpu"):
        return
    if not operands and torch.Tag.nondeterministic_seeded not in func.tags:
        return
    results = [value for value in _flat([result]) if _is_tensor(value)]
    dtypes = [_dtype(operands[0]) if operands else NONE, _dtype(results[0]) if results else NONE]
    if name == "_to_copy" and dtypes[0] != dtypes[1]:
        floating = operands[0].is_floating_point() and results[0].is_floating_point()
        yield Operation("cast", "cast" if floating else "", {"from": dtypes[0], "to": dtypes[1]})
        return
    kind = next((kind for kind, pattern in _KINDS.items() if re.search(pattern, name)), "")
    arguments = _arguments(func, args, kwargs) if kind else {}
    yield Operation(name, kind, {**arguments, "dtype": dtypes[1]}, sizes=_sizes([*operands, *results]))


def _sizes(values: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(one.shape) for one in values if _is_tensor(one) and not one.is_nested)


def _arguments(func: Any, args: tuple, kwargs: dict) -> dict[str, str]:
    """Return every argument that was given, by its name in the operator's schema."""
    named = {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)} | kwargs
    return {name: _text(value) for name, value in named.items() if value is not None}


def _text(value: Any, always_strides: bool = False) -> str:
    if isinstance(value, list | tuple) and any(map(_is_tensor, value)):  # weights of a layer: never their values
        return f"[{', '.join(map(_text, value))}]"
    if not _is_tensor(value):
        return f"{value:.6g}" if isinstance(value, float) else str(value).replace(" ", "").lower()
    if value.is_nested or value.layout is not torch.strided:
        return f"{_dtype(value)} {'nested' if value.is_nested else str(value.layout).removeprefix('torch.')}"
    shape, strides = (f"({','.join(map(str, sizes))})" for sizes in (value.shape, value.stride()))
    dense = value.is_contiguous() and not always_strides
    return f"{_dtype(value)} {shape}" + ("" if dense else f" stride {strides}")


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _name(func: Any) -> str:
    return func._schema.name.removeprefix("aten::") if hasattr(func, "_schema") else str(func)


def has_nested(values: Any) -> bool:
    """Return whether there is a nested tensor of strided rows among values, which composite operators do not take."""
    return any(_is_tensor(leaf) and leaf.is_nested and leaf.layout is torch.strided for leaf in tree_leaves(values))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value


def _hint(value: Any) -> Any:
    """Return a symbolic size as the number it had when it was traced."""
    return value.node.hint if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool) else value


def _signature(value: Any) -> Any:
    return (value.dtype, tuple(map(_hint, value.shape))) if _is_tensor(value) else value


def _real(value: Any) -> Any:
    """Return a tensor with storage in place of a fake one; ones, which are valid indices as well."""
    if not isinstance(value, torch._subclasses.FakeTensor):
        return value
    shape, strides = [_hint(size) for size in value.shape], [_hint(stride) for stride in value.stride()]
    made = torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device).fill_(1)
    return made.requires_grad_(value.requires_grad)
