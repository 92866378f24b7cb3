"""User models in torch: built from their file, called as their user calls them, compared with their own eager mode."""

from __future__ import annotations

import contextlib
import copy
import enum
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
import torch
from torch.utils import _pytree as pytree

from frameworks import user_file, user_model
from frameworks.adapter import Step, Unsupported
from frameworks.copies import copies_in_functions, entries, of_copies
from frameworks.torch import FRAMEWORK, forms
from frameworks.torch.inspect import program
from frameworks.torch.inspect.counting import counted
from frameworks.torch.modes import cuda_graph, flat
from frameworks.torch.modes.state import State
from frameworks.torch.user_model import graph_breaks, hubs
from frameworks.user_file import Fault
from frameworks.user_model import Call, Counted, Inputs
from frameworks.values import Rules, Values, held, walk
from measurement.cells import Cell
from workloads.user_model import UserModel

# How a model may be called, the cheapest first: one that differentiates in forward needs more than the first.
AUTOGRAD = {"inference_mode": torch.inference_mode, "no_grad": torch.no_grad, "enabled": torch.enable_grad}
# Hardly any operator supports 16-bit complex numbers.
COMPLEX = {torch.float64: torch.complex128}
# Frames that torch traces by itself: those of control flow, and flex_attention's.
OPERATORS, FLEX = "/torch/_higher_order_ops/", "_flex_attention_hop_wrapper"
ON_META = "a tensor on the meta device, which holds no values: make it on the CPU."
_compiling: set[str] = set()  # files whose models call torch.compile
ALREADY = "_torchdynamo_orig_callable"  # of a function that torch.compile wrapped: the original
_DEEP_COPIED = (torch.strided, torch.sparse_coo, torch._mkldnn)  # by copy.deepcopy itself
DISABLED = "_torchdynamo_disable"  # of results of torch.compiler.disable, which have ALREADY too


class TorchRules(Rules):
    """Arrays of torch's tensors, and the parts of those that are not dense."""

    lists_are_arrays = True  # Dynamo leaves numbers of Python as they are

    def array(self, value: Any) -> np.ndarray | None:
        if not isinstance(value, torch.Tensor) or self.parts(value) is not None:
            return None
        tensor = value.detach().to_dense() if value.layout == torch._mkldnn else value.detach()
        tensor = tensor.dequantize() if tensor.is_quantized else tensor.resolve_conj().resolve_neg()
        if _is_real(tensor) and tensor.dtype not in (torch.float64, torch.complex64, torch.complex128):
            tensor = tensor.to(torch.float32)
        tensor = tensor.cpu()
        try:
            return tensor.numpy()
        except RuntimeError:
            if type(tensor) is torch.Tensor:
                raise
            return None  # a subclass that shows no parts

    def parts(self, value: Any) -> Mapping[str, Any] | None:
        if isinstance(value, torch.device | torch.dtype):
            return {}
        if isinstance(value, torch.Generator):
            return {"state": value.get_state()}  # which calls change, as they change a buffer
        if not isinstance(value, torch.Tensor):
            return self._registered(value)
        if value.is_leaf and value.grad is not None:  # a call on the same tensor adds to it
            return {"value": value.detach(), "grad": value.grad}
        if value.layout in (torch.sparse_coo,):
            value = value.detach().coalesce()
            return {"indices": value.indices(), "values": value.values(), "shape": tuple(value.shape)}
        if value.layout in (torch.sparse_csr, torch.sparse_bsr):
            rows, columns = value.crow_indices(), value.col_indices()
            return {"rows": rows, "columns": columns, "values": value.values(), "shape": tuple(value.shape)}
        if value.layout in (torch.sparse_csc, torch.sparse_bsc):
            rows, columns = value.row_indices(), value.ccol_indices()
            return {"rows": rows, "columns": columns, "values": value.values(), "shape": tuple(value.shape)}
        if value.is_nested:
            return {str(index): part for index, part in enumerate(value.unbind())}
        if type(value) not in (torch.Tensor, torch.nn.Parameter) and hasattr(value, "__tensor_flatten__"):
            return {name: getattr(value, name) for name in value.__tensor_flatten__()[0]}
        return None

    def opaque(self, value: Any) -> bool:
        return isinstance(value, torch.nn.Module)

    @staticmethod
    def _registered(value: Any) -> Mapping[str, Any] | None:
        """Return the children of a container that was registered with torch's pytrees."""
        if type(value) not in pytree.SUPPORTED_NODES:
            return None
        children, _ = pytree.SUPPORTED_NODES[type(value)].flatten_fn(value)
        return {str(index): child for index, child in enumerate(children)}


class File(user_file.UserFile):
    """A user's file, whose functions run with the default dtype and the gradients that it set, unlike calls."""

    _set: dict[str, tuple[torch.dtype, bool]] = {}  # noqa: RUF012 - by path, of the process

    def __init__(self, path: str):
        with self._as_it_set(path):
            super().__init__(path)

    @property
    def default(self) -> torch.dtype:
        """Return torch's default dtype as the file set it."""
        return self._set[self.path][0]

    def call(self, function: str, **arguments: Any) -> Any:
        with self._as_it_set(self.path):
            return super().call(function, **arguments)

    @contextlib.contextmanager
    def _as_it_set(self, path: str) -> Iterator[None]:
        before = torch.get_default_dtype()
        dtype, gradients = self._set.get(path, (torch.float32, True))
        torch.set_default_dtype(dtype)
        try:
            with torch.set_grad_enabled(gradients):
                yield
                gradients = torch.is_grad_enabled()
        finally:
            self._set[path] = torch.get_default_dtype(), gradients
            torch.set_default_dtype(before)


class Model(user_model.UserModel):
    """A user's module. Each mode trains a copy of it, and inference runs the module itself."""

    rules, ways, compiler = TorchRules(), AUTOGRAD, "torch.compile"
    wanted = "a torch.nn.Module"
    # What stands for the first gradient of each parameter with one beyond rounding, once eager mode has shown them.
    learning: Mapping[str, Any] = {}
    unchanged: Sequence[str] = ()  # parameters without a first gradient, which eager mode leaves as they are

    @property
    def device(self) -> torch.device:
        return self.adapter.device

    def opened(self, workload: UserModel) -> Any:
        return File(workload.source) if workload.is_file else hubs.Library(workload.source)

    def seed(self, seed: int) -> None:
        user_file.seed_python(seed)
        torch.manual_seed(seed)

    @staticmethod
    def fits(made: Any) -> bool:
        return isinstance(made, torch.nn.Module)

    def built(self, made: torch.nn.Module) -> torch.nn.Module:
        module, self.removed = plain(made, self.file.module)
        if any(tensor.is_meta for tensor in (*module.parameters(), *module.buffers())):
            raise Fault(f"model() of {self.file.name} returned {ON_META}")
        try:
            (module.train if self.trains else module.eval)()  # either may be the user's own, and return nothing
        except NotImplementedError as error:
            if not any(isinstance(part, torch.fx.GraphModule) and "train" in vars(part) for part in module.modules()):
                raise  # the user's own; torch.export sets one that raises
            raise Unsupported(
                f"model() of {self.file.name} returned an exported program ({error}): return the original module."
            ) from error
        if any(map(torch.nn.parameter.is_lazy, (*module.parameters(), *module.buffers()))):
            self._initialize(module)
        if any(tensor.is_inference() for tensor in (*module.parameters(), *module.buffers())):
            module = deep_copy(module)  # of tensors that can be written to outside of inference mode
        with _sharing_memory(module):
            module.to(self.device)  # in place: a user's own may return nothing
        _cast_module(module, getattr(torch, self.dtype))
        chosen = isinstance(self.file, File) and self.file.default != torch.float32
        torch.set_default_dtype(getattr(torch, self.dtype) if chosen else torch.float32)
        self._state = State(module, parameters=False)
        return module

    def _initialize(self, module: torch.nn.Module) -> None:
        """Call a module of lazy layers, such as nn.LazyLinear, which makes their parameters."""
        args, kwargs = self.fresh(self.cast(self.sets[0], "float32"))
        self.seed(self.seed_of_weights)
        with torch.no_grad(), self.naming_inputs():
            module.to(self.device)(*args, **kwargs)

    def cast(self, inputs: Inputs, dtype: str) -> Inputs:
        return moved(inputs, self.device, getattr(torch, dtype))

    def fresh(self, inputs: Inputs) -> Inputs:
        given = list(walk(inputs, _parts))
        clones = {id(one): one.detach().clone().requires_grad_(one.requires_grad) for one in given if _must_clone(one)}
        return copy.deepcopy(inputs, _with_dicts(given, clones))

    def copied(self, dtype: str) -> torch.nn.Module:
        return _cast_module(deep_copy(self.module), getattr(torch, dtype))

    def in_a_copy(self, calls: int) -> list[Values]:
        return self._in_turn(self.calling(deep_copy(self.module)), calls, self.fresh)

    def settle(self) -> None:
        super().settle()
        if self.keep_what_is_made_once(self.module.modules()):
            self._state = State(self.module, parameters=False)

    def restore(self) -> None:
        self._state.restore()

    @contextlib.contextmanager
    def by_default(self, dtype: str) -> Iterator[None]:
        before = torch.get_default_dtype()
        torch.set_default_dtype(getattr(torch, dtype))
        try:
            yield
        finally:
            torch.set_default_dtype(before)

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        before = _compiled_frames()
        try:
            with _refusing_graphs(self.file.name):
                yield
        finally:
            if _compiled_frames() - before:
                _compiling.add(self.file.name)
        if self.file.name in _compiling:  # once a process: its next copy finds its code compiled
            raise Unsupported(
                "the model calls torch.compile itself, so its eager mode would run compiled code: remove torch.compile "
                "from it."
            )

    def operators(self, inputs: Inputs) -> program.Program:
        return program.executed(self.call, inputs)

    def shown(self) -> program.Program | str:
        """Return the operators of a call in eager mode; a text where NumPy computes some of them."""
        try:
            return program.shown(self.call, self.fresh(self.sets[0]))
        finally:
            self.restore()

    def cost(self) -> Counted:
        traced = self.autograd is torch.enable_grad
        try:
            with program.NoControlFlow() if traced else contextlib.nullcontext():
                return counted(self.call, self.module, lambda: self.fresh(self.sets[0]))
        finally:
            self.restore()

    def memory(self, dtype: str) -> tuple[int, int]:
        size = getattr(torch, dtype).itemsize
        tensors = (*self.module.parameters(), *self.module.buffers())
        needed = sum(one.numel() * max(size, one.element_size()) for one in tensors)
        if self.device.type != "cuda":
            return needed, user_model.free_host_memory()
        kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return needed, torch.cuda.mem_get_info(self.device)[0] + kept

    def confirmed(self) -> bool:
        """Return whether the first outputs are those under no_grad, where the model does not differentiate either.

        In inference mode torch 2.11's func.grad returns 0, and graphs of func.jacrev fail. The same call is made twice,
        so only an operator that adds in any order may differ, by its rounding.
        """
        if self.autograd is not torch.inference_mode or self._first is None:
            return True
        with torch.no_grad(), _differentiating() as derivatives:
            args, kwargs = self.fresh(self.sets[0])
            self.seed(0)
            try:
                again = self.compared(self.module(*args, **kwargs)).arrays
            finally:
                self.restore()
        first = self._first.arrays
        return not derivatives and first.keys() == again.keys() and all(map(_close, first.values(), again.values()))


def prepare(model: Model, cell: Cell) -> Step:
    """Return the step of the model in the cell's mode. Where it breaks into several graphs, the step reports where."""
    fields: dict[str, Any] = {"restore": model.restore, "user_model": model}
    if cell.mode == "eager":
        return Step(model.call, model.sets, program=model.shown, **fields)
    if cell.mode == cuda_graph.MODE:
        replayed = Replayed(model, model.call, cuda_graph.Recorder(model.device), model.restore)
        listed = partial(replayed.operations, program.executed)
        return Step(replayed, model.sets, replayed.capture, program=listed, **fields)
    if FRAMEWORK.mode(cell.mode).artefact:
        return _deployed(model, cell, fields)
    compiled, backend = graph_breaks.compiled(model.module, cell, model.device, model.source)
    autograd = model.autograd

    def call(args: tuple, kwargs: dict[str, Any]) -> Any:
        backend.begin()
        with autograd():
            return compiled(*args, **kwargs)

    listed = partial(backend.listed, lambda call: autograd()(call))
    # A forward that records gradients runs graphs of its backward where none can be timed separately.
    watch = backend.watch if model.settings["autograd"] == "inference_mode" else None
    return Step(call, model.sets, backend.capture, program=listed, watch=watch, **fields)


def _deployed(model: Model, cell: Cell, fields: dict[str, Any]) -> Step:
    """Return the step of the model in a deployed form; a forward pass that differentiates may do so."""
    called = lambda args, kwargs: model.module(*args, **kwargs)  # noqa: E731
    made = partial(forms.Deployed, cell, model.device, model.module, autograd=model.autograd)
    fixed = Fixed(model, called, made, f"{cell.mode}'s artefact")
    return fixed.made.step(fixed, model.sets, **fields)


class Fixed:
    """A user's module as a function of its tensors alone, made by `by_tensors(call, tensors of the first input set)`.

    All other inputs are constants. Raises `Unsupported` for an input set whose scalars differ from the first one's.
    """

    def __init__(self, model: Model, call: Call, by_tensors: Callable[..., Any], kind: str):
        self._wrapped, self._kind = call, kind
        self._known: dict[int, list[torch.Tensor]] = {}  # of the model's sets, by their keywords, which are its own
        tensors, self._held = flat.apart(model.sets[0])
        rest = [leaf for leaf in self._held[0] if not isinstance(leaf, flat.Given)]
        holding = [leaf for leaf in rest if _is_object(leaf) and model.values(leaf).arrays]
        if isinstance(next(iter(holding), None), torch.Generator):
            raise Unsupported(f"{kind} takes no generator: draw the numbers in inputs(), or make it in the model.")
        if holding:
            raise Unsupported(
                f"a {type(holding[0]).__name__} in the inputs contains tensors that {kind} cannot see: pass them as "
                f"arguments."
            )
        if model.keeps:
            raise Unsupported(model.not_written(kind))
        self._sets = {id(kwargs) for _, kwargs in model.sets}
        self.made = by_tensors(self._call, tensors)

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self.made(*(self._known.get(id(kwargs)) or self._tensors(args, kwargs)))

    def _tensors(self, args: tuple, kwargs: dict[str, Any]) -> list[torch.Tensor]:
        tensors, held = flat.apart((args, kwargs))
        if held != self._held:
            raise Unsupported(
                f"inputs() returns other scalars or another structure at each call, and {self._kind} fixes both: pass "
                "tensors."
            )
        if id(kwargs) in self._sets:
            self._known[id(kwargs)] = tensors
        return tensors

    def _call(self, *tensors: torch.Tensor) -> Any:
        return self._wrapped(*flat.joined(tensors, self._held))


class Replayed(Fixed):
    """A call in CUDA graphs, one for each shape of its inputs: tensors are copied into the recording."""

    def __init__(self, model: Model, call: Call, recorder: cuda_graph.Recorder, after_warm_up: Callable[[], None]):
        made = lambda call, _: cuda_graph.Replayed(call, recorder, after_warm_up)  # noqa: E731
        super().__init__(model, call, made, "a CUDA graph")
        self.capture, self.operations = self.made.capture, self.made.operations


def plain(module: Any, file: Any) -> tuple[torch.nn.Module, list[str]]:
    """Return the module without torch.compile, which its file lacks from now on too, and where it was removed.

    Raises Unsupported for TorchScript, which has no eager mode.
    """
    removed = []
    while (original := _original(module)) is not None:
        module, removed = original, ["the model"]
    for path, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            raise Unsupported(
                f"{path or 'what model() returned'} is TorchScript, which has no eager mode: use the original module."
            )
        for child_name, child in list(part._modules.items()):
            if (original := _original(child)) is not None:
                part._modules[child_name] = original
                removed.append(f"{path}.{child_name}".strip("."))
        if getattr(part, "_compiled_call_impl", None) is not None:
            part._compiled_call_impl = None
            removed.append(path or "the model")
        owners = [part, *type(part).__mro__, sys.modules.get(type(part).__module__)]
        removed += [found for owner in owners if owner is not None for found in _without_compile(owner)]
    return module, list(dict.fromkeys([*removed, *_without_compile(file)]))


def _original(module: Any) -> torch.nn.Module | None:
    """Return the module that torch.compile wrapped into this one; None for one that only delegates to such a part."""
    if not isinstance(module, torch.nn.Module) or "_orig_mod" not in module._modules:
        return None
    return module._modules["_orig_mod"]


def _without_compile(owner: Any) -> Iterator[str]:
    """Put back each function among an owner's attributes that torch.compile wrapped; yield their names.

    A decorator above torch.compile copies its marks, but calls the compiled function.
    """
    for name, value in list(getattr(owner, "__dict__", {}).items()):
        bound = isinstance(value, staticmethod | classmethod)
        held = value.__func__ if bound else value
        attributes = getattr(held, "__dict__", {}) if callable(held) else {}
        original = None if DISABLED in attributes else attributes.get(ALREADY)
        if original is not None and getattr(held, "__wrapped__", original) is original:
            setattr(owner, name, type(value)(original) if bound else original)
            yield name


@contextlib.contextmanager
def _differentiating() -> Iterator[list[None]]:
    """Count the derivatives that a block takes, as torch.func does."""
    taken: list[None] = []
    own = torch.autograd.grad

    def noted(*arguments: Any, **named: Any) -> Any:
        taken.append(None)
        return own(*arguments, **named)

    torch.autograd.grad = noted
    try:
        yield taken
    finally:
        torch.autograd.grad = own


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether arrays are equal up to 1 % of the largest value, NaN where the other is."""
    if one.shape != other.shape or one.dtype.kind not in "fc":
        return one.shape == other.shape and np.array_equal(one, other)
    largest = np.max(np.abs(one), initial=0, where=np.isfinite(one))
    return np.allclose(one, other, rtol=0.01, atol=0.01 * largest, equal_nan=True)


@contextlib.contextmanager
def _refusing_graphs(name: str) -> Iterator[None]:
    """Raise Unsupported within the block where TorchScript, a package of AOTInductor or a CUDA graph is called."""

    def refuse_script(script: Any, *_: Any, **__: Any) -> NoReturn:
        raise Unsupported(
            f"{name} calls {script.name}, which is TorchScript, so its eager mode would run a graph: remove "
            "torch.jit.script and torch.jit.trace from it, or set PYTORCH_JIT=0."
        )

    def refuse_package(*_: Any, **__: Any) -> NoReturn:
        raise Unsupported(
            f"{name} calls a package of AOTInductor, so its eager mode would run compiled code: call the original "
            "module."
        )

    def refuse_replay(*_: Any, **__: Any) -> NoReturn:
        raise Unsupported(
            f"{name} replays a CUDA graph, so its eager mode would run a graph: remove torch.cuda.CUDAGraph and "
            "torch.cuda.make_graphed_callables from it."
        )

    calls: list[tuple[Any, str, Callable]] = [(torch.cuda.CUDAGraph, "replay", refuse_replay)]
    calls += [(kind, "__call__", refuse_script) for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod)]
    packages = [(kind, call) for kind in vars(torch._C._aoti).values() for call in ("run", "boxed_run")]
    calls += [(kind, call, refuse_package) for kind, call in packages if hasattr(kind, call)]
    before = [(kind, call, getattr(kind, call)) for kind, call, _ in calls]
    for kind, call, refuse in calls:
        setattr(kind, call, refuse)
    try:
        yield
    finally:
        for kind, call, own in before:
            setattr(kind, call, own)


def deep_copy(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a module with the values that hooks compute into its attributes and their containers.

    copy.deepcopy keeps plain functions, such as hooks, and weak references, which hold the original: they get the copy.
    It drops the hooks of parameters, separates parameters that share their memory, and fails for sparse rows.
    """
    kept = [value for part in module.modules() for value in walk(vars(part), entries)]
    tensors = [value for value in kept if _is_tensor(value) and not isinstance(value, torch.nn.Parameter)]
    own = [value for value in tensors if not value.is_leaf or _must_clone(value)]
    copies = {id(value): value.detach().clone() for value in own}
    copied = copy.deepcopy(module, _with_dicts(kept, copies))
    named = dict(copied.named_parameters(remove_duplicate=False))  # a class may leave some out
    made = [(named[name], one) for name, one in module.named_parameters() if name in named]
    for group in _overlapping(one for _, one in made):
        _share_memory([(new, one) for new, one in made if any(one is other for other in group)])
    copies_in_functions((vars(part) for part in copied.modules()), copies)
    for new, parameter in made:
        if not parameter.requires_grad:
            continue
        for hook in (parameter._backward_hooks or {}).values():
            new.register_hook(of_copies(hook, copies))
        for hook in (parameter._post_accumulate_grad_hooks or {}).values():
            new.register_post_accumulate_grad_hook(of_copies(hook, copies))
    return copied


def _with_dicts(values: Iterable[Any], copies: dict[int, Any]) -> dict[int, Any]:
    """Add the copies of dicts whose `__getattr__` is `__getitem__` to a memo of copy.deepcopy; return it.

    copy.deepcopy itself fails: their KeyError of `__deepcopy__` is no AttributeError.
    """
    found = [value for value in values if isinstance(value, dict) and _raises_key_error(value)]
    copies |= {id(value): type(value).__new__(type(value)) for value in found}  # first, since one may hold another
    for value in found:
        dict.update(copies[id(value)], copy.deepcopy(dict(value), copies))
        vars(copies[id(value)]).update(copy.deepcopy(vars(value), copies))
    return copies


def _must_clone(value: Any) -> bool:
    """Return whether a value is a tensor for which copy.deepcopy fails, or whose copy has other lengths to torch."""
    return _is_tensor(value) and (value.is_nested or value.layout not in _DEEP_COPIED)


def _raises_key_error(value: dict[Any, Any]) -> bool:
    try:
        hasattr(value, "__deepcopy__")
    except KeyError:
        return True
    return False


def _overlapping(tensors: Iterable[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Return groups of tensors that overlap in one memory. Tensors of one file may lie side by side in it."""
    by_memory: dict[int, list[torch.Tensor]] = {}
    for one in tensors:
        plain = one.layout is torch.strided and not one.is_nested and not one.is_meta and type(one.data) is torch.Tensor
        if plain and one.numel():
            by_memory.setdefault(one.untyped_storage().data_ptr(), []).append(one)
    return [group for group in by_memory.values() if len(group) > 1 and _overlap(group)]


def _overlap(tensors: Iterable[torch.Tensor]) -> bool:
    spans = sorted(
        (one.storage_offset(), sum((size - 1) * step for size, step in zip(one.shape, one.stride(), strict=True)))
        for one in tensors
    )
    return any(begin + length >= following for (begin, length), (following, _) in itertools.pairwise(spans))


def _share_memory(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Let the first tensors of pairs share one memory, as the second ones do.

    It is a copy of all of their memory, in the dtype and on the device of the first of them. Views that nothing has
    moved follow the others.
    """
    moved = {new.dtype for new, one in pairs if new.data_ptr() != one.data_ptr()}
    if len({one.dtype for _, one in pairs}) > 1 or len(moved) > 1:
        return
    new, first = pairs[0]
    memory = first.untyped_storage()
    whole = torch.empty(0, dtype=first.dtype, device=first.device).set_(memory, 0, (len(memory) // first.itemsize,))
    whole = whole.to(new.device, new.dtype, copy=True)
    for new, one in pairs:
        new.data = whole.as_strided(one.shape, one.stride(), one.storage_offset())


def _cast_module(module: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """Cast parameters and buffers in place, each by its kind: complex ones stay complex."""
    with _sharing_memory(module):
        module._apply(partial(_cast, dtype=dtype))
    return module


@contextlib.contextmanager
def _sharing_memory(module: torch.nn.Module) -> Iterator[None]:
    """Keep tensors that share their memory sharing it, in a block that moves or casts a module.

    A buffer of several modules stays one tensor, as torch keeps parameters. Plain attributes may hold such a
    buffer too, or views.
    """
    places = [(part, name, buffer) for part in module.modules() for name, buffer in part._buffers.items()]
    buffers = {id(buffer): buffer for _, _, buffer in places if buffer is not None}
    registered = {id(one): one for one in (*module.parameters(), *buffers.values())}
    attributes = [{name: one for name, one in vars(part).items() if name != "_buffers"} for part in module.modules()]
    plain = [one for one in walk(attributes, entries) if _is_tensor(one)]
    views = [one for one in plain if id(one) not in registered and not one.requires_grad]
    groups = [
        [(one, one.data) for one in group if id(one) in registered or one.dtype == group[0].dtype]
        for group in _overlapping([*registered.values(), *views])
    ]
    yield
    made: dict[int, Any] = {}
    for part, name, before in places:
        part._buffers[name] = made.setdefault(id(before), part._buffers[name])
    for group in groups:
        pairs = [(made.get(id(one), one), before) for one, before in group]
        if any(new.data_ptr() != before.data_ptr() for new, before in pairs):
            _share_memory(pairs)
    for one in plain:
        if id(one) in made and made[id(one)] is not one:
            one.data = made[id(one)].data


def _cast(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor in the dtype of its kind; values of one byte stay, since code computes with their scales."""
    if tensor.is_complex():
        return tensor.to(COMPLEX.get(dtype, torch.complex64))
    return tensor.to(dtype) if tensor.is_floating_point() and tensor.itemsize > 1 else tensor


def moved(inputs: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """Return inputs on a device, their floating-point tensors in a dtype and arrays in containers as tensors.

    An object that is passed twice stays one object.
    """
    made: dict[int, Any] = {}  # by the identity of what is moved, as copy.deepcopy keeps it
    kept: list[Any] = []  # so that nothing else gets such an identity

    def one(leaf: Any, where: torch.device = device) -> Any:
        if id(leaf) not in made:
            kept.append(leaf)
            made[id(leaf)] = other(leaf, where)
        return made[id(leaf)]

    def other(leaf: Any, where: torch.device) -> Any:
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc":
            leaf = torch.from_numpy(leaf.copy())
        if isinstance(leaf, torch.Tensor):
            if leaf.is_meta:
                raise Fault(f"inputs() returned {ON_META}")
            moved = _cast(leaf.detach().to(where), dtype).requires_grad_(leaf.requires_grad)
            if type(leaf) is torch.Tensor:
                vars(moved).update(vars(leaf))  # attributes that a user gave it, and marks of dynamic axes
            return moved
        if not _is_object(leaf):
            return leaf
        itself = _moves_itself(leaf)  # and keeps some on the CPU, such as the batch sizes of packed sequences
        here = leaf.to(where) if itself else leaf
        here = leaf if here is None else here  # which may have moved in place
        for inner in filter(_is_tensor, walk(here, _parts)):
            one(inner, inner.device if itself else where)
        return copy.deepcopy(here, _with_dicts(walk(here, _parts), made))

    return pytree.tree_map(one, inputs, is_leaf=_moves_itself)


def _moves_itself(value: Any) -> bool:
    """Return whether a value is no tensor but has a method to move to a device, like packed sequences and graphs."""
    return not isinstance(value, torch.Tensor) and callable(getattr(type(value), "to", None))


def _parts(value: Any) -> list[Any]:
    return [] if isinstance(value, torch.Tensor) else held(value)


def _is_object(value: Any) -> bool:
    return not isinstance(value, torch.Tensor | str | bytes | bool | int | float | complex | enum.Enum | type(None))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _is_real(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _compiled_frames() -> set[tuple[str, float | None]]:
    """Return the latest compilations of graphs in this process, less those of operators that torch runs so itself.

    Eager mode, too, traces the frames of torch.cond and flex_attention, and runs these traces by eager kernels. Each is
    known by its number and start, since numbers begin again when a mode resets Dynamo.
    """
    dynamo = sys.modules.get("torch._dynamo.utils")
    latest = dynamo.get_compilation_metrics() if dynamo else ()
    return {
        (str(one.compile_id), one.start_time)
        for one in latest
        if one.graph_op_count and OPERATORS not in one.co_filename and one.co_name != FLEX
    }
