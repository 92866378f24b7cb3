"""Training of user models in torch: one optimizer iteration on their file's loss of the model's output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch

from frameworks import user_model
from frameworks.adapter import Capture, Step, Unsupported
from frameworks.program import product_dtypes
from frameworks.torch.inspect.counting import counted
from frameworks.torch.inspect.program import NoControlFlow, executed
from frameworks.torch.modes import training, whole_iteration
from frameworks.torch.user_model import graph_breaks
from frameworks.torch.user_model.model import Model, Replayed, deep_copy
from frameworks.user_file import Fault
from frameworks.user_model import Counted
from frameworks.values import Values
from measurement.cells import Cell
from workloads.training import UPDATED

EXAMPLE = "output.square().mean()"
MOST_NAMES = 5  # of parameters in a sentence
FLOOR = 1e-5  # of the largest gradient: a bias before a norm, or of keys, has rounding errors alone as gradient
FLOOR_OF_PRODUCTS = 1e-2  # the same where products are rounded to fewer bits than in fp32
LARGEST, SPREAD = 64, 1024  # values of a gradient that stand for it
MOST_OFF = 0.4  # of them, relative to their size: more is no rounding


class Training(user_model.Training):
    """A user's module under training."""

    model: Model

    def __init__(self, model: Model, cell: Cell):
        super().__init__(model)
        if not any(parameter.requires_grad for parameter in model.module.parameters()):
            raise Fault("model() has no parameters that require gradients, so there is nothing to train.")
        of_output = user_model.scalar_loss(model.file, _is_scalar, EXAMPLE)

        def loss(module: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
            return of_output(module(*args, **kwargs))

        self._bf16, self._loss = cell.dtype == "bf16", loss
        self._rounding = FLOOR if cell.dtype == "fp32" else FLOOR_OF_PRODUCTS
        self._hooked = any(one._post_accumulate_grad_hooks for one in model.module.parameters())
        if self._hooked:
            self._refuse_updates()

    def objective(self, module: torch.nn.Module) -> training.Objective:
        """Return a module with its loss, which a graph captures; a reference in float64 computes in it."""
        bf16 = self._bf16 and any(parameter.dtype == torch.float32 for parameter in module.parameters())
        return training.Objective(module, self._loss, self.model.device, bf16)

    def eager(self, calls: int) -> list[Values] | None:
        """Return eager mode's losses. Raises Unsupported where a copy would train other weights."""
        self._refuse_gradients_of_copy()
        return super().eager(calls)

    def refusing_untrained(
        self, capture: Callable[[], Capture], trained: torch.nn.Module, trainer: Any
    ) -> Callable[[], Capture]:
        """Return `capture`, which raises Unsupported once where iterations train other parameters than eager mode's.

        These are parameters of the copy `trained`. The loss of few iterations hardly shows it. Nor does it show other
        gradients, since AdamW divides by their size: they are refused where `trainer` has the first iteration's. So are
        parameters that eager mode leaves as they are in the first iteration.
        """
        checked = False

        def checked_capture() -> Capture:
            nonlocal checked
            if not checked:
                first, now = (dict(module.named_parameters()) for module in (self.model.module, trained))
                left = [name for name in self.model.learning if torch.equal(first[name], now[name])]
                checked = len(left) < len(self.model.learning)  # else no iteration has run yet
                if checked and left:
                    raise Unsupported(
                        f"eager mode trains {_named(left)}, and the graph leaves them as they are: remove code that "
                        "detaches them, or that computes without them, while a compiler traces it."
                    )
                shows = isinstance(trainer, training.Trainer | whole_iteration.Trainer)
                gradients = list(trainer.first_gradients() if shows else ())
                if checked and gradients:
                    self._refuse_more_trained(first, now)
                    self._refuse_gradients_of_graph(now, gradients)
            return capture()

        return checked_capture

    def _refuse_more_trained(self, first: Mapping[str, torch.Tensor], now: Mapping[str, torch.Tensor]) -> None:
        """Raise Unsupported where a graph's first iteration changes parameters that eager mode's leaves."""
        if more := [name for name in self.model.unchanged if not torch.equal(first[name], now[name])]:
            raise Unsupported(
                f"the graph trains {_named(more)}, and eager mode leaves them as they are: remove code that "
                "detaches them, or that computes without them, unless a compiler traces it."
            )

    def _refuse_gradients_of_graph(
        self, parameters: Mapping[str, torch.nn.Parameter], gradients: Iterable[tuple[torch.nn.Parameter, torch.Tensor]]
    ) -> None:
        """Raise Unsupported where first gradients are far from eager mode's."""
        found = dict(gradients)
        others = [
            name
            for name, eager in self.model.learning.items()
            if parameters[name] in found and eager.off(found[parameters[name]]) > MOST_OFF
        ]
        if others:
            raise Unsupported(
                f"gradients of {_named(others)} differ between the graph and eager mode: remove code that changes them "
                "in only one, such as a hook."
            )

    def _refuse_gradients_of_copy(self) -> None:
        """Raise Unsupported where a copy of the model has other gradients. Without room for both, compare nothing."""
        module = self.model.module
        if self._hooked or not self._has_room():  # hooks may change what a copy shares
            return
        copy = deep_copy(module)
        own = self._gradients(module)
        without = [(name, one) for name, one in module.named_parameters() if own.get(name, one) is None]
        before = [one.detach().clone() for _, one in without]
        again, copied = map(self._gradients, (module, copy))
        # A call may write to a parameter.
        self.model.unchanged = [name for (name, one), was in zip(without, before, strict=True) if torch.equal(one, was)]
        sizes = {name: _largest(gradient) for name, gradient in own.items() if gradient is not None}
        largest = max(sizes.values(), default=0.0)
        self.model.learning = {
            name: Fingerprint.taken_from(own[name]) for name, size in sizes.items() if size > self._rounding * largest
        }
        floor = FLOOR * largest
        others = [
            name
            for name, gradient in own.items()
            if alike(gradient, again[name], floor) and not alike(gradient, copied.get(name), floor)
        ]
        if others:
            raise Unsupported(
                f"each mode trains a copy of the model, in which {_named(others)} would have another gradient: hold "
                "parts of the model as attributes, not in objects, views or functions that copy.deepcopy keeps."
            )

    def _has_room(self) -> bool:
        try:
            self.model.refuse_without_memory("float32", user_model.COPIES_TO_TRAIN)
        except MemoryError:
            return False
        return True

    def _refuse_updates(self) -> None:
        """Raise Unsupported where hooks change their parameters once gradients are there, as optimizers in backward.

        Without room for copies, compare nothing.
        """
        if not self._has_room():
            return
        hooked = [one for one in self.model.module.parameters() if one._post_accumulate_grad_hooks]
        first = [one.detach().clone() for one in hooked]
        self._gradients(self.model.module)
        changed = [
            (one, was)
            for one, was in zip(hooked, first, strict=True)
            if not torch.allclose(one, was, rtol=0, atol=0, equal_nan=True)
        ]
        with torch.no_grad():
            for one, was in changed:
                one.copy_(was)
        if changed:
            raise Unsupported(
                "hooks of parameters change them in backward: remove them, for the suite runs the optimizer."
            )

    def with_gradients(self) -> list[str]:
        """Return the names in `objective` of the parameters that get a gradient in an eager call.

        A copy is called, whose attributes in Python change.
        """
        found = self._gradients(deep_copy(self.model.module))
        return [f"model.{name}" for name, gradient in found.items() if gradient is not None]

    def _gradients(self, module: torch.nn.Module) -> dict[str, torch.Tensor | None]:
        """Return the gradients of the first input set's loss, by parameter."""
        trained = {name: one for name, one in module.named_parameters() if one.requires_grad}
        inputs = self.model.fresh(self.model.sets[0])
        self.model.seed(0)
        try:
            with self.model.refusing():
                loss = self.objective(module)(*inputs)
            if loss.requires_grad:
                loss.backward()
            return {name: one.grad for name, one in trained.items()}
        finally:
            for one in trained.values():
                one.grad = None
            self.model.restore()

    def trainer(self, model: torch.nn.Module, dtype: str) -> training.Trainer:
        objective = self.objective(model)
        return training.Trainer(objective, objective, 1, keep_gradients=False)

    def computes_in(self) -> Sequence[str]:
        """Return the dtypes of the loss's products; those of its gradients are the same."""
        try:
            return product_dtypes(executed(self.objective(self.model.module), self.model.fresh(self.model.sets[0])))
        finally:
            self.model.restore()

    def cost(self) -> Counted:
        """Return FLOPs and bytes of one eager iteration; the update reads and writes every weight, fused or not."""
        module = deep_copy(self.model.module)
        with NoControlFlow():
            cost = counted(self.trainer(module, "float32"), module, lambda: self.model.fresh(self.model.sets[0]))
        weights = sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
        return replace(cost, bytes=cost.bytes + 4 * UPDATED * weights)


def prepare(model: Model, cell: Cell) -> Step:
    """Return an iteration in the cell's mode, on a copy of the model: parameters change, and stay in float32."""

    def compiled(function: Callable) -> tuple[Callable, Callable[[], Capture], Callable]:
        graph, backend = graph_breaks.compiled(function, cell, model.device, model.source)

        def call(*arguments: Any) -> Any:
            backend.begin()
            return graph(*arguments)

        return call, backend.capture, backend.listed

    subject = Training(model, cell)
    names = subject.with_gradients() if cell.mode == whole_iteration.MODE else None  # its copy is freed before another
    trained, replayed = deep_copy(model.module), partial(Replayed, model)
    objective = subject.objective(trained)
    step = training.step(objective, cell, model.sets, model.device, compiled, subject, replayed, names)
    if cell.mode != "eager":
        step.capture = subject.refusing_untrained(step.capture, trained, step.call)
    return step


class Fingerprint(NamedTuple):
    """Values that stand for a gradient: the largest, and others at equal distances."""

    places: torch.Tensor
    values: torch.Tensor

    @classmethod
    def taken_from(cls, gradient: torch.Tensor) -> Fingerprint:
        """Return the values of a gradient; those that are not finite are 0."""
        values = _flat(gradient)
        size = len(values)
        largest = values.abs().topk(min(LARGEST, size)).indices
        spread = torch.arange(0, size, max(1, size // SPREAD), device=values.device)
        places = torch.cat([largest, spread]).unique()
        return cls(places, values[places].to(torch.complex128))

    def off(self, gradient: torch.Tensor) -> float:
        """Return the distance of another gradient of the parameter, relative to these values."""
        values = _flat(gradient)[self.places].to(torch.complex128)
        return float((values - self.values).norm() / self.values.norm())


def alike(one: torch.Tensor | None, other: torch.Tensor | None, floor: float) -> bool:
    """Return whether gradients are equal up to rounding; both may be missing. `floor` is rounding's size in any."""
    if one is None or other is None:
        return one is other
    one, other = _dense(one), _dense(other)
    return torch.allclose(one, other, rtol=0.01, atol=0.01 * _largest(one) + floor, equal_nan=True)


def _largest(gradient: torch.Tensor) -> float:
    """Return the largest finite magnitude; 0 without any."""
    values = _dense(gradient)
    finite = values[values.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _flat(gradient: torch.Tensor) -> torch.Tensor:
    return _dense(gradient).detach().flatten().nan_to_num(0.0, 0.0, 0.0)


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    return gradient if gradient.layout is torch.strided else gradient.to_dense()


def _named(parameters: Sequence[str]) -> str:
    return ", ".join(parameters[:MOST_NAMES]) + (", …" if len(parameters) > MOST_NAMES else "")


def _is_scalar(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() == 1
