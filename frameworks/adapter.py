"""The boundary between the suite and a framework: about a dozen methods. NumPy goes in, NumPy comes out; no clocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from frameworks.program import Program
from measurement.cells import Cell
from workloads.spec import Arrays, Workload


class Unsupported(Exception):
    """This cell cannot be what it says on this machine or build; the message is the reason, one sentence."""


@dataclass(frozen=True)
class Effective:
    """What took effect, read back from the framework after it was set. None where the framework does not tell."""

    threads: int | None
    device_name: str | None = None
    tf32: bool | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)  # versions of CUDA and cuDNN as the framework tells them


@dataclass(frozen=True)
class Capture:
    """What graph capture did so far.

    `whole` says whether one graph holds the entire model. `compilations` is a counter that moves whenever the
    framework compiles or traces; warm-up waits for it to rest and a change in the timed region is flagged. `loaded`
    says whether all compiled code came from the compile cache, and so is what an earlier process compiled; None where
    the framework keeps no such cache or does not report it.
    """

    whole: bool
    graphs: int | None = None
    graph_breaks: int | None = None
    compilations: int | None = None
    backend: str | None = None
    detail: str = ""
    loaded: bool | None = None


class Step:
    """One mode of one cell, ready to be called: `step()` runs the model on the next of its device-resident inputs.

    `call` takes one input set's tensors and returns the framework's own output. `capture` reports on graph capture;
    the default is that of an eager mode, which captures nothing. `restore` undoes what calls left behind, where they
    leave anything: it puts a model under training back to its first weights.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        inputs: Sequence[tuple],
        capture: Callable[[], Capture] = lambda: Capture(whole=False, graphs=0),
        restore: Callable[[], None] = lambda: None,
        program: Callable[[], Program | None] = lambda: None,
    ):
        self._call, self._inputs, self.capture, self._restore = call, tuple(inputs), capture, restore
        self.program = program
        self._next = 0

    def rebound(self, inputs: Sequence[tuple]) -> Step:
        """The same mode, compiled code included, on other inputs."""
        return Step(self._call, inputs, self.capture, self._restore, self.program)

    def __call__(self) -> Any:
        inputs = self._inputs[self._next]
        self._next = (self._next + 1) % len(self._inputs)
        return self._call(*inputs)

    def rewind(self) -> None:
        """Make the next call what the first one was: on the first input set, from the first weights."""
        self._next = 0
        self._restore()


class Adapter(ABC):
    """A framework behind the boundary. One instance lives as long as its worker process."""

    @abstractmethod
    def available(self, device: str) -> str | None:
        """Why `device` (`cpu`, `gpu:0`) cannot be used with this build here, in a sentence; None if it can."""

    def mode_obstacle(self, mode: str, device: str) -> str | None:
        """Why an available `device` cannot run `mode` with this build or machine, in a sentence; None if it can."""
        return None

    @abstractmethod
    def canary(self, device: str) -> dict[str, Any]:
        """Run a few operators on `device` and return their results as NumPy arrays.

        Keys and operands as in `frameworks.canary`; the worker compares the results on the host.
        """

    def misfit(self, device: str) -> str | None:
        """Asked after a canary that failed: what the build has kernels for, what `device` is, which build would fit.

        One or two sentences without the last full stop; None where the framework does not tell.
        """
        return None

    @abstractmethod
    def configure(self, cell: Cell) -> Effective:
        """Set threads, device and precision for `cell`, once per process, and read them back."""

    def start_compiler(self, cell: Cell) -> dict[str, Any]:
        """What the framework does once per process before it compiles anything in this mode: imports, tool checks.

        Comes before any `prepare` of the group. Returns the compiler's settings, read back, for the record. Raises
        `Unsupported` where the tools are missing.
        """
        return {}

    @abstractmethod
    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        """Build the model with `weights` in `cell.mode`, put weights and inputs on the device.

        Compiles nothing that the first call could compile. Raises `Unsupported` where the mode cannot be what it says.
        """

    @abstractmethod
    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        """One input set on the cell's device, in the cell's dtype: what a `Step` of this cell takes as its inputs."""

    @abstractmethod
    def synchronize(self, output: Any) -> None:
        """Return when the work behind `output` is done."""

    @abstractmethod
    def to_numpy(self, output: Any) -> Arrays:
        """The output's tensors under the workload's output names, on the host, floating point as float32."""

    def own_timer(self, call: Callable[[], object]) -> Callable[[int], float] | None:
        """The framework's own benchmark tool on `call`, which returns when its work is done; None if it has none.

        What it returns takes a number of calls and gives seconds per call.
        """
        return None

    def release(self) -> None:
        """Forget compiled code and free what the group's models held, so that the next shape starts afresh."""
        return None

    def allocated_bytes(self) -> int | None:
        """Memory of the device that is in use now; None where the framework does not tell."""
        return None

    def shared_bytes(self, cell: Cell) -> int:
        """Bytes already on the device that `cell` will use when it is prepared: weights that modes have in common."""
        return 0

    def reset_peak(self) -> None:
        """Let the peak of memory begin anew."""
        return None

    def peak_memory_bytes(self) -> int | None:
        """Peak of memory in use since `reset_peak`; None where the framework does not tell."""
        return None

    def device_seconds(self, step: Step, calls: int) -> float | None:
        """Seconds a call keeps the device busy, by the device's clock; None where the framework cannot tell."""
        return None
