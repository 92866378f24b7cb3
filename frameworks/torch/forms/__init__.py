"""Forms in which models are deployed: a program of torch.export is built into a file, which is opened and called.

A form is a module of this folder, named like its mode, with a class `Form`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from frameworks.adapter import Artefact, Capture, Step, Unsupported
from frameworks.program import Program
from frameworks.torch.modes import flat
from frameworks.values import held, walk
from measurement.cells import Cell

Tensors = Sequence[torch.Tensor]
ARTEFACTS = "EAGER_VS_GRAPH_ARTEFACTS"  # the folder in which a run's processes share what the first one built


class Form(ABC):
    """A form on `device` with `threads`, of a cell's `dtype`.

    An opened artefact takes a call's tensors and returns those of the outputs.
    """

    detail = ""  # of the artefact, for the record
    own_memory = False  # on a GPU, where torch's allocator does not see it

    def __init__(self, device: torch.device, threads: int, dtype: str):
        self.device, self.threads, self.dtype = device, threads, dtype

    def start(self) -> Mapping[str, Any]:
        """Initialise the form once per process; return the settings. Raises Unsupported where tools are missing."""
        return {}

    @abstractmethod
    def build(self, exported: torch.export.ExportedProgram, tensors: Tensors, folder: Path) -> None:
        """Write the artefact of a program that takes `tensors` into an empty folder. Raises Unsupported."""

    def check(self, folder: Path) -> None:  # noqa: B027 - most forms need none
        """Raise Unsupported for an artefact that ends the process that opens it."""

    @abstractmethod
    def open(self, folder: Path) -> Callable[..., Tensors]:
        """Return the folder's artefact as a function. Raises Unsupported where another device would run it."""

    @abstractmethod
    def engaged(self) -> str:
        """Return the name of the backend that runs the opened artefact, as read back."""

    def program(self, exported: torch.export.ExportedProgram, tensors: Tensors) -> Program | str:
        """Return the operators of the program that was built, or why they cannot be compared with eager mode's."""
        return "the runtime executes operators of its own"


def load(mode: str) -> type[Form]:
    """Return the form of that name."""
    return importlib.import_module(f"frameworks.torch.forms.{mode.replace('-', '_')}").Form


class Deployed:
    """A call in the cell's form: `call`, which computes with `module`, exported with `tensors` as its arguments.

    The artefact is built once where `ARTEFACTS` names a folder: a later process opens the file of an earlier one.
    `autograd` is the context of eager mode's calls; torch.export takes no_grad in place of inference mode.
    """

    def __init__(
        self,
        cell: Cell,
        device: torch.device,
        module: torch.nn.Module,
        call: Callable[..., Any],
        tensors: Tensors,
        autograd: Callable[[], contextlib.AbstractContextManager] = torch.inference_mode,
    ):
        self._form, self._module = load(cell.mode)(device, cell.threads, cell.dtype), _Flat(module, call)
        self._tensors, self._autograd = tuple(tensors), autograd
        shared = os.environ.get(ARTEFACTS)
        if shared:
            Path(shared).mkdir(parents=True, exist_ok=True)
        self._made = tempfile.TemporaryDirectory(prefix=f"{cell.mode}-", dir=shared, ignore_cleanup_errors=True)
        self._shared, self._cell = shared, cell.id
        self._folder = Path(self._made.name, "artefact")
        self._opened: Callable[..., Tensors] | None = None
        self._exported: torch.export.ExportedProgram | None = None  # shares the module's weights

    def step(self, call: Callable[..., Any], inputs: Sequence[tuple], **fields: Any) -> Step:
        """Return the step of `call`, which calls this object."""
        return Step(call, inputs, self.capture, program=self._program, load=self._load, build=self._build, **fields)

    def __call__(self, *tensors: torch.Tensor) -> Any:
        return self._module.joined(self._opened(*tensors))

    def capture(self) -> Capture:
        """Return the capture: one graph, the whole model, in the artefact."""
        if self._opened is None:
            return Capture(whole=False, detail="the artefact is not open")
        detail = "; ".join(filter(None, ("weights are constants of the artefact", self._form.detail)))
        return Capture(True, 1, 0, 1, self._form.engaged(), detail)

    def _build(self) -> Artefact:
        try:
            exported = self._export()  # in every process: it finds the structure of the outputs
            there = self._place(exported)
            if there.exists():
                self._folder = there
                return Artefact(_size(there), built=False, check=partial(self._form.check, there))
            new = Path(self._made.name, "new")
            new.mkdir()
            self._form.build(exported, self._tensors, new)
        except BaseException:
            self._made.cleanup()
            raise
        return Artefact(_size(new), built=True, check=partial(self._publish, new, there))

    def _publish(self, new: Path, there: Path) -> None:
        """Check what was built and put it where later processes find it. Raises Unsupported."""
        try:
            self._form.check(new)
            try:
                new.rename(there)
            except OSError:
                if not there.exists():  # else another process has built the same meanwhile
                    raise
        except BaseException:
            self._made.cleanup()
            raise
        self._folder = there

    def _place(self, exported: torch.export.ExportedProgram) -> Path:
        """Return the folder in which processes share this cell's artefact with these weights, its constants."""
        if not self._shared:
            return self._folder
        tensors = {**exported.state_dict, **exported.constants}
        sums = [(name, _sum(value)) for name, value in sorted(tensors.items()) if isinstance(value, torch.Tensor)]
        return Path(self._shared, hashlib.sha256(repr((self._cell, sums)).encode()).hexdigest()[:16])

    def _export(self) -> torch.export.ExportedProgram:
        if self._exported is None:
            with torch.no_grad() if self._autograd is torch.inference_mode else self._autograd():
                self._exported = exported_of(self._module, self._tensors)
        return self._exported

    def _load(self) -> None:
        try:
            self._opened = self._form.open(self._folder)
        finally:
            self._made.cleanup()  # open files stay readable

    def _program(self) -> Program | str:
        exported = self._export()
        with self._autograd():
            return self._form.program(exported, self._tensors)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _sum(tensor: torch.Tensor) -> float:
    """Return the sum of a tensor's values, which differs between random weights."""
    values = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return float(values.detach().to(torch.float64).sum())


class _Flat(torch.nn.Module):
    """A call of a module that takes and returns tensors."""

    def __init__(self, module: torch.nn.Module, call: Callable[..., Any]):
        super().__init__()
        self.module = module
        rest: flat.Rest = ([], None)

        def called(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            nonlocal rest  # no attribute: export restores the old values of those
            outputs, rest = flat.apart(call(*tensors))
            refuse_hidden_tensors(rest)
            return tuple(outputs)

        self._called, self._rest = called, lambda: rest

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self._called(*tensors)

    def joined(self, outputs: Tensors) -> Any:
        """Return outputs as the call returns them."""
        return flat.joined(outputs, self._rest())


def refuse_hidden_tensors(rest: flat.Rest) -> None:
    """Raise Unsupported for an output that holds tensors which torch's pytrees do not see."""
    for leaf in rest[0]:
        if any(isinstance(one, torch.Tensor) for one in walk(leaf, held)):
            raise Unsupported(
                f"the model returns a {type(leaf).__name__}, in which torch.export sees no tensors: return a tuple or "
                "a dict, or register the class with torch.utils._pytree.register_pytree_node."
            )


def exported_of(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> torch.export.ExportedProgram:
    """Return torch.export's program. Raises Unsupported for a model that it cannot export."""
    try:
        return torch.export.export(module, tuple(args), dict(kwargs or {}))
    except Unsupported:
        raise
    except Exception as error:
        raise refusal("torch.export cannot export the model", error) from error


def refusal(what: str, error: Exception) -> Unsupported:
    """Return Unsupported for a model that a form cannot take, with the error's class and text.

    Raises the error itself if it is a lack of memory.
    """
    if isinstance(error, MemoryError) or "out of memory" in str(error).lower():
        raise error
    words = " ".join(str(error).split())[:300]
    return Unsupported(f"{what} ({type(error).__name__}: {words}).")
