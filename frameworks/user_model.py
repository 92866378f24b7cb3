"""User models at the boundary: a framework's methods for a worker to call, compare and count one.

An input set is the result of the user's `inputs`, as `(args, kwargs)`: structure, scalars and objects included. A step
hands it to the model as its user would.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from frameworks.program import Program, product_dtypes
from frameworks.user_file import Fault, UserFile, arguments_of, as_call, inputs_alone, kind, naming_inputs
from frameworks.values import Rules, Values, read
from workloads.spec import SAMPLED_VALUES, VALUES_OF_ALL, Arrays, sampled
from workloads.user_model import UserModel as Workload

# Share of free memory that a copy in a wider dtype may take; a call needs the rest.
MOST_OF_MEMORY = 0.8
COPIES_TO_TRAIN = 4  # the weights, their gradients, and two moments
# Names of operators that draw random numbers.
DRAWING = re.compile(r"rand|normal(?!i)|gaussian|uniform|bernoulli|multinomial|threefry|exponential|poisson")
# Numbers of new input sets, in the order of calls that show what a model keeps. A cache of one or two results serves
# none of a cell's own sets in turn, nor every repetition here. Numbers of operators that alternate do not fall at each.
NEW_AND_KNOWN = (0, 0, 1, 0, 1, 2, 0, 1)
MOST_TRIED = 64  # such sets, until enough have one form
UNSEEN = 10_000  # from a cell's own seeds to those of such sets
LOSS = "loss()"  # the name of a file's loss among the outputs of its model
_NOTHING = object()
Inputs = tuple[tuple[Any, ...], dict[str, Any]]
Call = Callable[[tuple[Any, ...], dict[str, Any]], Any]


@dataclass(frozen=True)
class Counted:
    """Cost of one call, and its source. `unfused_bytes` are moved where each operator reads and writes memory."""

    flops: int
    bytes: int
    unfused_bytes: int
    by: str
    transcendentals: int = 0


class Uncounted(Exception):
    """The cost of a call is not known; the message gives the reason, such as operators without a rule."""

    @classmethod
    def naming(cls, operators: Iterable[str]) -> Uncounted:
        """Return the error of operators without a rule, by their names."""
        return cls(f"no rule for {', '.join(sorted(set(operators)))}")


class Subject(ABC):
    """A user model in one pass, as a worker sees it. Nothing here is timed."""

    rules: Rules
    # Dtypes in which eager mode may compute a reference, the best first; all above the cell's.
    precisions: Sequence[str] = ()
    # Decisions about the model, for the record: texts by name.
    settings: Mapping[str, Any] = {}

    def values(self, output: Any) -> Values:
        """Return the arrays of an output by name, on the host."""
        return read(output, self.rules)

    def compared(self, output: Any) -> Values:
        """Return the values that are compared: samples of large floating-point arrays, and copies of others.

        A framework may overwrite its tensors at the next call. A wrong value outside of a sample is not found, unless
        it is not finite or beyond all others.
        """
        return kept(self.values(output))

    @abstractmethod
    def repeated(self, seed: int) -> Values:
        """Return eager mode's outputs on the first input set after seeding; state is restored afterwards."""

    @abstractmethod
    def eager(self, calls: int) -> list[Values] | None:
        """Return eager mode's outputs of the first calls in the cell's dtype; None where they are not known."""

    @abstractmethod
    def precise(self, dtype: str, calls: int) -> list[Values]:
        """Return eager mode's outputs of the first calls on a copy of the model in `dtype`, which may raise."""

    def in_a_copy(self, calls: int) -> list[Values] | None:
        """Return eager mode's outputs of the first calls on a copy in the cell's dtype; None if nothing is copied."""
        return None

    def with_own_integers(self, calls: int) -> list[Values] | None:
        """Return eager mode's outputs of the first calls in float64 and in the cell's whole numbers.

        None where whole numbers are no wider in float64.
        """
        return None

    def successive(self) -> list[Values]:
        """Return the outputs of two equal calls in a row; empty where iterations keep the state that calls leave."""
        return []

    def cost(self) -> Counted | None:
        """Return the cost of a call; None where the framework has no counter. Raises Uncounted."""
        return None

    def computes_in(self) -> Sequence[str]:
        """Return the dtypes of the products that eager mode computes in a call, commonest first; empty if unknown."""
        return ()

    def draws(self) -> bool:
        """Return whether a call draws random numbers: one seed gives different ones in another dtype."""
        return False

    def remembers(self) -> bool:
        """Return whether calls on inputs that the model knows execute fewer operators than calls on new ones."""
        return False

    def drifts(self, calls: int) -> bool:
        """Return whether calls on the state that others left run operators or sizes that none of the first has."""
        return False

    def for_a_call(self) -> Callable[[Inputs], Inputs] | None:
        """Return a function that renews a step's inputs before each call; None where calls do not change them."""
        return None


class UserModel(Subject):
    """A user model on its device in the cell's dtype, which the modes of a group share.

    It makes the input sets and the model, calls the model once, and finds the inputs that a call changes.
    """

    # How eager mode may call the model, the cheapest first: a model that differentiates needs a later one.
    ways: Mapping[str, Callable[[], contextlib.AbstractContextManager]] = {"": contextlib.nullcontext}
    compiler = ""  # the compiler that is removed from a compiled model
    wanted = ""  # what `model` must return
    arrays_change = True  # whether a call may write to an array of its inputs, as graphs do as well
    alone = False  # whether input sets are made without a model

    def __init__(
        self,
        adapter: Any,
        workload: Workload,
        weights: Arrays,
        inputs: Sequence[Arrays],
        dtype: str,
        trains: bool = False,
    ):
        self.dtype, self.trains, self.seed_of_weights = dtype, trains, int(weights["seed"])
        self.seed(self.seed_of_weights)  # before the file runs, which may make weights by itself
        self.adapter, self.file, self.source = adapter, self.opened(workload), workload.source
        self.restart = workload.restart  # the iteration that begins from the first weights again
        self.precisions = {"float64": (), "float32": ("float64",)}.get(dtype, ("float64", "float32"))
        self.settings: dict[str, Any] = {}
        self.removed: list[str] = []  # the places from which the compiler was removed
        self.writes: tuple[str, ...] = ()  # the inputs that a call changes, by name
        self.keeps: tuple[str, ...] = ()  # those that get other arrays, with new values that a call does not return
        self._were_arrays = False  # whether `inputs` gave arrays of NumPy
        self._first: Values | None = None  # the first call's outputs, with seed 0, until they are read
        self._work: list[int | None] = []  # of the first calls in turn, once they are listed
        self.autograd = next(iter(self.ways.values()))
        self.seed(self.seed_of_weights)
        made = self.made()
        self.sets = [self.place(arrays) for arrays in inputs]
        self._first_given = inputs[0]  # what the first set was made from
        self.module = self.built(made)
        self.settle()
        if self.removed:
            self.settings[f"{self.compiler} removed from"] = ", ".join(dict.fromkeys(self.removed))

    # What each framework provides.

    @abstractmethod
    def opened(self, workload: Workload) -> UserFile:
        """Return the user's file, or an object in its place."""

    def made(self) -> Any:
        """Return the result of the user's `model`. Raises Fault where it is no model."""
        try:
            made = self.file.call("model")
        except TypeError as error:
            if not isinstance(self.file, UserFile):
                raise
            given = self.file.function("model")
            if not self.fits(given) or inspect.isroutine(given) or isinstance(given, type):
                raise
            raise Fault(f"model in {self.file.name} is {kind(given)}: make it a function that returns this.") from error
        if not self.fits(made):
            raise Fault(f"model() of {self.file.name} returned {kind(made)}: return {self.wanted}.")
        return made

    @staticmethod
    @abstractmethod
    def fits(made: Any) -> bool:
        """Return whether the result of the user's `model` has the type of a model."""

    @abstractmethod
    def built(self, made: Any) -> Any:
        """Return the callable from the result of the user's `model`, in the cell's dtype and on its device."""

    @abstractmethod
    def seed(self, seed: int) -> None:
        """Seed Python, NumPy and the framework."""

    @abstractmethod
    def cast(self, inputs: Inputs, dtype: str) -> Inputs:
        """Return inputs on the device, their floating-point values in `dtype`."""

    @abstractmethod
    def copied(self, dtype: str) -> Any:
        """Return a copy of the model in `dtype`."""

    def as_trained(self) -> Any:
        """Return a copy of the model as modes train it."""
        return self.copied("float32")

    @abstractmethod
    def restore(self) -> None:
        """Restore the model's state from before the first call."""

    @abstractmethod
    def operators(self, inputs: Inputs) -> Program | None:
        """Return the operators of a call in eager mode."""

    def operators_after_others(self, inputs: Inputs) -> Program | None:
        """Return the operators of a call in eager mode that finds what the user's code keeps from earlier calls."""
        self.restore()
        return self.operators_in_turn(inputs)

    def operators_in_turn(self, inputs: Inputs) -> Program | None:
        """Return the operators of a call in eager mode on the state that earlier calls left."""
        return self.operators(inputs)

    def fresh(self, inputs: Inputs) -> Inputs:
        """Return a copy of an input set that shares no memory with it."""
        return copy.deepcopy(inputs)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the model in eager mode, as its user does."""
        with self.autograd():
            return self.module(*args, **kwargs)

    def calling(self, model: Any) -> Call:
        """Return a function that calls a copy of the model in eager mode."""
        autograd = self.autograd

        def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            with autograd():
                return model(*args, **kwargs)

        return call

    def by_default(self, dtype: str) -> contextlib.AbstractContextManager:
        """Enter a block in which the user's code makes floating-point values in `dtype`."""
        return contextlib.nullcontext()

    def refusing(self) -> contextlib.AbstractContextManager:
        """Enter a block that raises Unsupported where the model runs a graph."""
        return contextlib.nullcontext()

    def confirmed(self) -> bool:
        """Return whether the first call's outputs are right in the chosen way of calling."""
        return True

    def memory(self, dtype: str) -> tuple[int, int] | None:
        """Return the bytes of a copy of the model in `dtype`, and those that are free for it; None if unknown."""
        return None

    # What follows from that.

    def place(self, arrays: Arrays) -> Inputs:
        """Return one input set on the device. Raises Fault where it holds nothing that a model could compute with."""
        self.seed(int(arrays["seed"]))
        with inputs_alone() if self.alone else contextlib.nullcontext():
            given = as_call(self.file.call("inputs", **arguments_of(arrays)))
        self._were_arrays = any(isinstance(one, np.ndarray) for _, one in named_entries(given))
        inputs = self.cast(given, self.dtype)
        if not self.values(inputs).arrays:
            raise Fault("inputs() returned no tensor or array: return one, a tuple, or a dict by keyword.")
        return inputs

    def settle(self) -> None:
        """Call the model on a copy of each input set, in the first way that works."""
        ways = list(self.ways)[-1:] if self.trains else list(self.ways)
        for way in ways:
            self.autograd = self.ways[way]
            try:
                with self.refusing(), self.naming_inputs():
                    self._call_first()
                if way == ways[-1] or self.confirmed():
                    break
            except (RuntimeError, ValueError, OSError) as error:
                if way == ways[-1] or not _wants_gradients(error):
                    raise
        if way:
            self.settings["autograd"] = way

    def naming_inputs(self) -> contextlib.AbstractContextManager:
        """Enter a block that calls the model on its input sets, whose errors then hold the first one's shapes."""

        def shown() -> str:
            arrays = self.values(self.sets[0]).arrays
            return ", ".join(f"{_shown(name)} of shape {array.shape}" for name, array in arrays.items())

        return naming_inputs(shown, self._were_arrays)

    def _call_first(self) -> None:
        """Call the model on a copy of each input set; note the first outputs, and the inputs that any call changes.

        A process whose start is measured calls it on the first set alone, as its user does.
        """
        writes: list[str] = []
        for place, given in enumerate(self.sets[: 1 if self.adapter.starts else None]):
            inputs = self.fresh(given)
            before = {name: array.copy() for name, array in self.values(inputs).arrays.items()}
            entries = dict(named_entries(inputs))
            self.seed(0)
            try:
                output = self.call(*inputs)
                if place == 0:
                    self._first = self._checked(output)
                after, left = self.values(inputs).arrays, dict(named_entries(inputs))
                new = {name: one for name, one in after.items() if name not in before or not _same(before[name], one)}
                known = [*before.values(), *self.values(output).arrays.values()] if new else []
            finally:
                self.restore()
            changed = [name for name in (*before, *after) if name in new or name not in after]
            # A dict with another object of equal values, too: a later call would find what the first one left.
            others = [name for name in (*entries, *left) if entries.get(name, _NOTHING) is not left.get(name, _NOTHING)]
            writes += map(_shown, [*changed, *others])
            if place == 0:
                put = [name for name in new if name in others or not self.arrays_change]
                kept = [name for name in put if not any(_same(new[name], one) for one in known)]
                self.keeps = tuple(dict.fromkeys(map(_shown, kept)))
            del output, inputs, entries, left  # before the next call: of training they hold all activations
        self.writes = tuple(dict.fromkeys(writes))

    def _checked(self, output: Any) -> Values:
        """Return the values of the first output. Raises Fault where it has none."""
        if isinstance(output, Iterator):
            raise Fault("the model returned a generator, which computes nothing in the call: return its values.")
        found = self.compared(output)
        if not self.trains and not found.arrays:
            raise Fault(
                f"the model returned {kind(output)}, which holds no tensor or array: return one, a tuple or a dict."
            )
        return found

    def not_written(self, graph: str) -> str:
        """Return the reason why a graph that leaves containers of its inputs as they are cannot run the model."""
        return (
            f"a call puts new values into {', '.join(self.keeps)}, which {graph} does not write to: return the values, "
            "or write to a copy."
        )

    def keep_what_is_made_once(self, parts: Iterable[Any]) -> bool:
        """Fill empty buffers of modules with values that one call stores and later calls keep, such as a mask.

        Return whether there are such buffers. State that calls change is no such buffer.
        """
        empty = [(part._buffers, name) for part in parts for name, held in part._buffers.items() if held is None]
        if not empty:
            return False

        def called() -> list[Any]:
            self.call(*self.fresh(self.sets[0]))
            return [buffers[name] for buffers, name in empty]

        self.seed(0)
        try:
            made = called()
            copies = [None if one is None else one.clone() for one in made]
            left = [one is other for one, other in zip(made, called(), strict=True)]
            values = [[_copied(self.values(one)) for one in each] for each in (made, copies)]
        finally:
            self.restore()
        for (buffers, name), one, first, same in zip(empty, copies, zip(*values, strict=True), left, strict=True):
            if one is not None and same and all(map(_same, *(each.values() for each in first))):
                buffers[name] = one
        return True

    @contextlib.contextmanager
    def in_precision(self, dtype: str) -> Iterator[tuple[Any, Callable[[Inputs], Inputs]]]:
        """Yield a copy of the model in `dtype`, and the function that casts an input set to it."""
        with self.by_default(dtype):
            yield self.copied(dtype), partial(self.cast, dtype=dtype)

    @functools.cached_property
    def listed(self) -> Program | None:
        """The operators of a call in eager mode."""
        try:
            return self.operators(self.fresh(self.sets[0]))
        finally:
            self.restore()

    def computes_in(self) -> Sequence[str]:
        return product_dtypes(self.listed or ())

    def draws(self) -> bool:
        return any(DRAWING.search(operation.name) for operation in self.listed or ())

    def remembers(self) -> bool:
        with contextlib.suppress(Exception):  # such as of a call on the state that another one left
            if sets := self._unseen():
                return self._remembers_values(sets)
        return self._remembers_objects()

    def _remembers_objects(self) -> bool:
        """Compare a call on the objects of an earlier one with a call on copies of them."""
        if self.writes or self.listed is None:
            return False
        try:
            self.call(*self.sets[0])
            self.restore()
            again = self.operators(self.sets[0])
        finally:
            self.restore()
        return again is not None and len(again) < len(self.listed)

    def _remembers_values(self, sets: Sequence[Inputs]) -> bool:
        """Compare calls on values that the model has never seen with later calls on the same."""
        prepared = self.fresh if self.writes else lambda inputs: inputs
        first: dict[int, int] = {}  # operators by input set
        try:
            self.restore()
            self.call(*prepared(self.sets[0]))  # it may make in its first call what others only read
            for place in NEW_AND_KNOWN:
                self.seed(0)  # of branches that random numbers choose
                program = self.operators_after_others(prepared(sets[place]))
                if program is None:
                    return False
                if place in first and len(program) >= first[place]:
                    return False
                first.setdefault(place, len(program))
        finally:
            self.restore()
        return True

    def _unseen(self) -> list[Inputs]:
        """Return new input sets of one form with values of no other, or none where `inputs` gives too few.

        Of one form, since a model may keep what depends on shapes alone. It need not be that of the cell's own sets,
        whose lengths may vary.
        """
        known = [self.values(inputs).arrays for inputs in self.sets]
        by_form: dict[frozenset, list[Inputs]] = {}
        first = int(self._first_given["seed"]) + UNSEEN
        for seed in range(first, first + MOST_TRIED):
            try:
                made = self.place({**self._first_given, "seed": np.array(seed)})
            except Exception:  # the user's own code may give its values once
                return []
            arrays = self.values(made).arrays
            if any(_all_same(arrays, others) for others in known):
                return []
            known.append(arrays)
            alike = by_form.setdefault(_form(arrays), [])
            alike.append(made)
            if len(alike) > max(NEW_AND_KNOWN):
                return alike
        return []

    def drifts(self, calls: int) -> bool:
        try:
            self._work = self._work or self._first_work(calls)
            # Several calls, for a model that keeps what it knows of its last input.
            if any(self._work_in_turn() in self._work for _ in range(calls)):
                return False
            return self._first_work(calls) == self._work  # else chance decides
        finally:
            self.restore()

    def _first_work(self, calls: int) -> list[int | None]:
        self.restore()
        return [self._work_in_turn() for _ in range(calls)]

    def _work_in_turn(self) -> int | None:
        """Return a number for a call's operators, their dtypes and all values that they take; None if unknown.

        State may divide the same values among the same operators in another way, as it does among experts.
        """
        self.seed(0)  # of branches that random numbers choose
        program = self.operators_in_turn(self.fresh(self.sets[0]))
        if program is None:
            return None
        values = sum(math.prod(shape) for one in program for shape in one.sizes)
        return hash((values, *((one.name, one.dtypes) if one.sizes else one.key for one in program)))

    def for_a_call(self) -> Callable[[Inputs], Inputs] | None:
        return self.fresh if self.writes else None

    def repeated(self, seed: int) -> Values:
        if seed == 0 and self._first is not None:
            first, self._first = self._first, None
            return first
        self.restore()  # after changes by earlier calls
        self.seed(seed)
        return self._one(self.call, self.fresh(self.sets[0]))

    def eager(self, calls: int) -> list[Values] | None:
        return self._in_turn(self.call, calls, self.fresh)

    def precise(self, dtype: str, calls: int) -> list[Values]:
        self.refuse_without_memory(dtype, copies=1)
        with self.in_precision(dtype) as (model, cast):
            return self._in_turn(self.calling(model), calls, lambda inputs: cast(self.fresh(inputs)))

    def refuse_without_memory(self, dtype: str, copies: int) -> None:
        """Raise MemoryError where copies of the model in `dtype` would take more than most of the memory left."""
        needed, free = self.memory(dtype) or (0, 1)
        if copies * needed > MOST_OF_MEMORY * free:
            raise MemoryError(f"a copy takes {copies * needed / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free")

    def _in_turn(self, call: Call, calls: int, prepare: Callable[[Inputs], Inputs]) -> list[Values]:
        self.restore()  # after changes by earlier calls
        self.seed(0)
        try:
            return [self.compared(call(*prepare(inputs))) for inputs in self.sets[:calls]]
        finally:
            self.restore()

    def _one(self, call: Call, inputs: Inputs) -> Values:
        try:
            return self.compared(call(*inputs))
        finally:
            self.restore()


class Training(Subject):
    """A user model under training: its outputs are the losses of its first iterations."""

    def __init__(self, model: UserModel):
        self.model, self.rules = model, model.rules
        self.precisions, self.settings = model.precisions, model.settings

    def repeated(self, seed: int) -> Values:
        """Return the model's outputs and, as `LOSS`, the file's loss of them: it may draw numbers too."""
        model = self.model
        model.restore()
        model.seed(seed)
        try:
            with model.refusing():
                output = model.call(*model.fresh(model.sets[0]))
                loss = model.compared({LOSS: model.file.function("loss")(output)})
            return replace(loss, arrays={**model.compared(output).arrays, **loss.arrays})
        finally:
            model.restore()

    def eager(self, calls: int) -> list[Values] | None:
        """Return the losses of a copy in float32, as modes train it: AdamW turns rounding errors into whole steps.

        A bias before a batch norm has only those errors as gradient, and moves the running mean.
        """
        return self._runs("float32", calls, self.model.as_trained)

    def draws(self) -> bool:
        return self.model.draws()

    def remembers(self) -> bool:
        return self.model.remembers()

    def for_a_call(self) -> Callable[[Inputs], Inputs] | None:
        return self.model.for_a_call()

    def precise(self, dtype: str, calls: int) -> list[Values]:
        """Return outputs of iterations; rounding grows with them, so that later input sets begin another copy."""
        return self._runs(dtype, calls, partial(self.model.copied, dtype))

    def _runs(self, dtype: str, calls: int, copied: Callable[[], Any]) -> list[Values]:
        self.model.refuse_without_memory(dtype, COPIES_TO_TRAIN)
        restart = self.model.restart or calls
        runs = self.model.sets[:restart], self.model.sets[restart:calls]
        return [values for sets in runs if sets for values in self._iterations(dtype, sets, copied)]

    def _iterations(self, dtype: str, given: Sequence[Inputs], copied: Callable[[], Any]) -> list[Values]:
        with self.model.by_default(dtype):
            model = copied()
            sets = [self.model.cast(self.model.fresh(inputs), dtype) for inputs in given]
            trainer = self.trainer(model, dtype)
            return [self.compared(trainer(*inputs)) for inputs in sets]

    @abstractmethod
    def trainer(self, model: Any, dtype: str) -> Callable[..., Any]:
        """Return one optimizer iteration in eager mode on a copy of the model in `dtype`; its outputs are compared.

        In float32 it computes in the cell's dtype, as the modes do.
        """


def scalar_loss(
    file: UserFile, is_scalar: Callable[[Any], bool], example: str, plain: Callable[[Callable], Callable] | None = None
) -> Callable[[Any], Any]:
    """Return the file's `loss`, which raises Fault where it gives anything but a scalar, or takes more than the output.

    `plain` removes the compiler from it.
    """
    function = plain(file.function("loss")) if plain else file.function("loss")
    with contextlib.suppress(ValueError):  # of a function without a signature
        try:
            inspect.signature(function).bind(None)
        except TypeError as error:
            raise Fault(
                f"loss() of {file.name} takes the output alone ({error}): let the model take and return targets."
            ) from error

    def loss(output: Any) -> Any:
        value = function(output)
        if not is_scalar(value):
            raise Fault(f"loss(output) must return a scalar, such as {example}.")
        return value

    return loss


def free_host_memory() -> int:
    """Return the bytes that this process may still allocate, also within its control group."""
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) * 1024
    with contextlib.suppress(OSError, ValueError):  # no such group, or no limit
        group = Path("/sys/fs/cgroup")
        free = min(free, int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return free


def _wants_gradients(error: Exception) -> bool:
    """Return whether an error is about gradients that were not recorded.

    Where none are, torch hands a subclass of tensors whole operators, such as linear, which it may not implement.
    """
    text = str(error).lower()
    return "grad" in text or "inference" in text or isinstance(error, NotImplementedError)


def kept(found: Values) -> Values:
    """Return samples of large floating-point arrays, and copies of others."""
    shapes = {name: array.shape for name, array in found.arrays.items()}
    return Values({name: _sample(array) for name, array in found.arrays.items()}, found.not_compared, shapes)


def _sample(array: np.ndarray) -> np.ndarray:
    """Return `SAMPLED_VALUES` values of a larger floating-point array, 1-D: a sample, and five values of the whole.

    The five are the lowest and the highest finite value, NaN, and both infinities. The highest value stands for any of
    the last three that the array lacks.
    """
    if array.dtype.kind != "f" or array.size <= SAMPLED_VALUES:
        return np.array(array)
    lowest, highest = array.min(), array.max()
    special = [highest] * 3
    if not np.isfinite(lowest) or not np.isfinite(highest):
        finite = array[np.isfinite(array)]
        lowest, highest = (finite.min(), finite.max()) if finite.size else (np.nan, np.nan)
        there = (np.isnan(array).any(), np.isposinf(array).any(), np.isneginf(array).any())
        special = np.where(there, [np.nan, np.inf, -np.inf], highest).tolist()
    of_all = np.array([lowest, highest, *special], array.dtype)
    return np.concatenate([sampled(array, None, SAMPLED_VALUES - VALUES_OF_ALL), of_all])


def named_entries(value: Any, name: str = "", within: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the values in nested lists, tuples, dicts and dataclasses by name; `within` has ids of those around."""
    if id(value) in within:
        return
    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list | tuple):
        parts = enumerate(value)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [(each.name, getattr(value, each.name, None)) for each in fields(value)]
    for key, part in parts:
        path = f"{name}.{key}" if name else str(key)
        yield path, part
        yield from named_entries(part, path, (*within, id(value)))


def named_arguments(inputs: Inputs) -> dict[str, Any]:
    """Return the arguments of a call by the names that reasons give them."""
    args, kwargs = inputs
    return {f"argument {number}": value for number, value in enumerate(args, 1)} | kwargs


def other_forms(forms: Iterable[Mapping[str, tuple[str, Any]]]) -> list[str]:
    """Return how later forms of the inputs differ from the first; each is text by name, with what is compared."""
    first, *rest = forms
    reasons = []
    for given in rest:
        if other := {name: text for name, (text, key) in given.items() if first.get(name, ("", None))[1] != key}:
            kind = "shape" if any("[" in text for text in other.values()) else "value"
            reasons.append(f"inputs of another {kind}: {', '.join(f'{name} {text}' for name, text in other.items())}")
    return list(dict.fromkeys(reasons))


def _copied(found: Values) -> dict[str, np.ndarray]:
    return {name: np.array(array) for name, array in found.arrays.items()}


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _form(arrays: Mapping[str, np.ndarray]) -> frozenset:
    """Return the shapes and types of arrays by name; texts of other lengths are alike."""
    return frozenset(
        (name, array.shape, array.dtype.kind if array.dtype.kind in "US" else array.dtype)
        for name, array in arrays.items()
    )


def _all_same(arrays: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray]) -> bool:
    return arrays.keys() == others.keys() and all(_same(array, others[name]) for name, array in arrays.items())


def _shown(name: str) -> str:
    """Return an input's name as the user sees it: its keyword, or its number from 1."""
    place, _, rest = name.partition(".")
    first = rest.partition(".")[0] if place in "01" else name
    return f"argument {int(first) + 1}" if first.isdigit() else first
