"""The boundary between the suite and a framework. NumPy goes in, NumPy comes out; no clocks."""

from __future__ import annotations

import contextlib
import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from frameworks.program import Program
from frameworks.ranks import Others, Ranks, own
from frameworks.user_model import Subject
from frameworks.values import Rules, read
from measurement.cells import Capture, Cell, Effective
from workloads.passes import WITH_CACHE
from workloads.spec import Arrays, Workload

DTYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class Unsupported(Exception):
    """This machine or build cannot run the cell as described; the message is the reason, one sentence."""


def part(cell: Cell, arrays: Arrays, rank: int) -> Arrays:
    """Return a rank's part of a global batch."""
    size = int(cell.parameter("batch_size") or 1)
    return {name: array[rank * size : (rank + 1) * size] for name, array in arrays.items()}


class Artefact(NamedTuple):
    """A model's file: its size in bytes, whether this process built it, and a check of it that is not timed."""

    size: int
    built: bool
    check: Callable[[], None] = lambda: None


class Step:
    """One mode of one cell, ready to be called: `step()` runs the model on the next of its device-resident inputs.

    `call` takes one input set's tensors and returns the framework's own output. `capture` reports on graph capture; the
    default is that of an eager mode, which captures nothing. `restore` undoes changes of calls, if they make any: it
    puts a model under training back to its first weights. `program` lists the operators that the mode executes or that
    its graph holds, for which it may run the model. It returns None where the framework does not expose them, or the
    reason why they cannot be compared.

    `load`, of engines that compile ahead of time, opens a model's file: it runs once before the first call, and is
    timed separately. `build` writes that file earlier, where the mode does, unless an earlier process has written it.
    `native` is the framework's own object behind the step, for its profiler. `user_model` is the user model it runs.
    `parts` takes the arguments of `call` and yields a call's outputs one by one, where it has several: tokens. `watch`
    runs every graph within later calls as `around(graph, arguments)`; None makes them run directly again.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        inputs: Sequence[tuple],
        capture: Callable[[], Capture] = lambda: Capture(whole=False, graphs=0),
        restore: Callable[[], None] = lambda: None,
        program: Callable[[], Program | str | None] = lambda: None,
        load: Callable[[], None] | None = None,
        native: Any = None,
        user_model: Subject | None = None,
        parts: Callable[..., Iterator[Any]] | None = None,
        watch: Callable[[Callable | None], None] | None = None,
        build: Callable[[], Artefact] | None = None,
    ):
        self.call, self._inputs, self.capture, self._restore = call, tuple(inputs), capture, restore
        self.program, self.load, self.native, self.user_model, self.parts = program, load, native, user_model, parts
        self.watch, self.build = watch, build
        self.fresh = user_model.for_a_call() if user_model else None
        self._next = 0
        self._ready: tuple | None = None  # the next call's inputs, where `get_ready` made them

    def rebound(self, inputs: Sequence[tuple]) -> Step:
        """Return the same mode, compiled code included, on other inputs."""
        rest = self.capture, self._restore, self.program, self.load, self.native, self.user_model, self.parts
        return Step(self.call, inputs, *rest, self.watch, self.build)

    def get_ready(self) -> None:
        """Make the next call's inputs, where each call needs new ones: slow preparation comes before the timing."""
        if self.fresh:
            self._ready = self.fresh(self._inputs[self._next])

    def __call__(self) -> Any:
        inputs = self._inputs[self._next] if self.fresh is None else self._new_inputs()
        self._next = (self._next + 1) % len(self._inputs)
        return self.call(*inputs)

    def _new_inputs(self) -> tuple:
        if self._ready is None:
            self.get_ready()
        ready, self._ready = self._ready, None
        return ready or ()

    def called_in_parts(self) -> Iterator[Any]:
        """Call once and return an iterator over the outputs; without `parts` it yields the only one."""
        if self.parts is None:
            return iter([self()])
        inputs = self._inputs[self._next]
        self._next = (self._next + 1) % len(self._inputs)
        return self.parts(*inputs)

    def rewind(self, place: int = 0) -> None:
        """Restart the sequence of calls: on the input set at `place`, from the first weights."""
        self._next, self._ready = place, None
        self._restore()


class Meter(ABC):
    """Memory of the device, and time by its clock, for one cell. Every value is None where the framework has none.

    `shared` are bytes in use that the cell will use once it is prepared: weights that modes share.
    """

    def __init__(self, shared: int = 0):
        self._shared = shared

    @abstractmethod
    def allocated_bytes(self) -> tuple[int, ...] | None:
        """Return the bytes in use now by each count that the framework has; a mode needs the largest growth."""

    def shared_bytes(self) -> int:
        """Return bytes already in use that the cell will use."""
        return self._shared

    @abstractmethod
    def reset_peak(self) -> None:
        """Start a new peak of memory in use."""

    @abstractmethod
    def peak_bytes(self) -> tuple[int, ...] | None:
        """Return peak bytes in use since `reset_peak`, by the same counts."""

    def device_seconds(self, step: Step, calls: int) -> float | None:
        """Return seconds from a call's first kernel to its last, gaps included, where the device never waits for
        the host.
        """
        return None


class Adapter(ABC):
    """A framework behind the boundary. Methods that are not abstract have a default for most frameworks.

    One instance lives as long as its worker process. Two ways report an unmeasurable cell: `obstacle` before anything
    is made, and `Unsupported` from any method.
    """

    device: Any = None  # the framework's object, once it is configured
    starts = False  # whether the process's start is measured
    rules: Rules = Rules()  # how its outputs become arrays

    def __init__(self) -> None:
        self.user_models: dict[str, Any] = {}  # by group, whose modes share one
        self.models: dict[str, Any] = {}  # the same of the suite's models, where modes can share them
        self._changed: dict[str, str] = {}  # by model, the first switch that its file changed

    @abstractmethod
    def obstacle(self, device: str, mode: str | None = None) -> str | None:
        """Return why `device` (`cpu`, `gpu:0`) cannot be used with this build here, in a sentence; None if it can.

        With `mode`, return why a device without an obstacle cannot run that mode.
        """

    @abstractmethod
    def smoke_test(self, device: str) -> dict[str, Any]:
        """Run a few operators on `device` and return their results as NumPy arrays.

        Keys and operands as in `frameworks.smoke_test`, which compares the results on the host. If the framework
        reports why a device computes wrongly, raises `Unsupported` with the sentence of `smoke_test.problem` and the
        reason.
        """

    @abstractmethod
    def configure(self, cell: Cell) -> Effective:
        """Set threads, device and precision for `cell`, once per process, and read them back."""

    def start_compiler(self, cell: Cell) -> dict[str, Any]:
        """Initialise the compiler of this mode, once per process: imports, tool checks.

        Runs before any `prepare` of the group. Returns the compiler's settings, read back, for the record. Raises
        `Unsupported` where the tools are missing.
        """
        return {}

    def compiler(self, cell: Cell) -> str:
        """Return the name of the compiler that `start_compiler` starts, which other modes may share."""
        return cell.mode

    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        """Build the model with `weights` in `cell.mode`, put weights and inputs on the device.

        Compiles nothing that `Step.load` or the first call could compile. Raises `Unsupported` where the mode cannot
        run as described, and KeyError of the family where there is no such model.
        """
        self.refuse(cell)
        trains = cell.pass_name == "training"
        with self.on_device():
            if cell.implementation == "own":
                if cell.group_id not in self.user_models:
                    dtype = "float32" if trains else DTYPES[cell.dtype]
                    make = self._room("user_model.model").Model
                    self.user_models[cell.group_id] = make(self, workload, weights, inputs, dtype, trains)
                    self.refuse(cell)  # the file may have set a switch
                room = self._room("user_model.training" if trains else "user_model.model")
                return room.prepare(self.user_models[cell.group_id], cell)
            name = "training" if trains else "generation" if cell.pass_name in WITH_CACHE else "inference"
            return self._room(f"modes.{name}").prepare(self, workload, cell, weights, inputs)

    def _room(self, name: str) -> Any:
        """Return a module of the framework's folder, imported where it is needed: a library may take seconds."""
        return importlib.import_module(f"{type(self).__module__.rpartition('.')[0]}.{name}")

    def shared(self, cell: Cell, make: Callable[[], Any]) -> Any:
        """Return the model that the modes of the cell's group share; the first makes it."""
        if cell.group_id not in self.models:
            self.models[cell.group_id] = make()
        return self.models[cell.group_id]

    def refuse(self, cell: Cell) -> None:
        """Raise `Unsupported` where the cell cannot run as described; here where Python calls a tracer.

        Python calls it at each call and return, of which eager mode makes most.
        """
        if sys.getprofile() or sys.gettrace():
            raise Unsupported(
                "sys.setprofile or sys.settrace is on, which slows down eager mode more than graphs: turn it off, and "
                "use no debugger, profiler or coverage tool"
            )

    def refuse_changed(self, cell: Cell) -> None:
        """Raise `Unsupported` where the model's file changed a switch, in this shape or an earlier one."""
        if switch := self._changed.get(cell.workload):
            raise Unsupported(
                f"the model's file changes {switch}: remove that line, and choose with THREADS, DTYPE (tf32 allows "
                "TF32) and MODE"
            )

    def on_device(self) -> contextlib.AbstractContextManager:
        """Enter a block in which tensors and models are made on the device."""
        return contextlib.nullcontext()

    def tensor(self, array: Any, dtype: str) -> Any:
        """Return a copy on the device, floating point in `dtype`."""
        raise NotImplementedError

    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        """Return one input set on the cell's device, in its dtype, as a `Step` of this cell takes it.

        Of several processes, this one's part.
        """
        if self.processes(cell) > 1:
            arrays = part(cell, arrays, own())
        with self.on_device():
            if cell.implementation == "own":
                return self.user_models[cell.group_id].place(arrays)
            dtype = "float32" if cell.pass_name == "training" else DTYPES[cell.dtype]  # autocast casts there
            return tuple(self.tensor(array, dtype) for array in arrays.values())

    @abstractmethod
    def synchronize(self, output: Any) -> None:
        """Wait until the work behind `output` is done."""

    def to_numpy(self, output: Any) -> Arrays:
        """Return the output's tensors under the workload's output names, on the host, floating point as float32.

        Those of a cache are its contents by now, where the model has one.
        """
        cache = output.get("cache") if isinstance(output, dict) else None
        if callable(cache):
            output = {name: tensor for name, tensor in output.items() if name != "cache"} | cache()
        return read(output, self.rules).arrays

    def processes(self, cell: Cell) -> int:
        """Return how many processes train a cell: one per rank, or one with several devices."""
        return 1

    def start_others(self, commands: Sequence[Sequence[str]], elsewhere: bool) -> Others:
        """Start ranks 1 and up, each by its command; `elsewhere`: whether they are on other nodes."""
        raise NotImplementedError

    def join(self, count: int) -> Ranks:
        """Wait for the other ranks; return this process's place among `count`."""
        raise NotImplementedError

    def communication(self, step: Step) -> tuple[float, float, float] | None:
        """Return seconds of a call: with communication, with communication but no computation, and in total.

        From a profile. All ranks call it together. None where it shows no collectives.
        """
        return None

    def release(self) -> None:
        """Forget compiled code and free the memory of the group's models, so that the next shape starts clean."""
        self.user_models.clear()
        self.models.clear()

    def meter(self, cell: Cell) -> Meter | None:
        """Return a meter of the cell's memory and time; None on a CPU, or if the framework has none."""
        return None

    def compiled_so_far(self) -> int | None:
        """Return a number that grows whenever this process compiles or traces anything; None if there is none."""
        return None
