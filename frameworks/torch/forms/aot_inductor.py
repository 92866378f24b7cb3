"""AOTInductor: the package that Inductor makes of an exported program, loaded as users load it in Python."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from frameworks.adapter import Unsupported
from frameworks.program import Program
from frameworks.torch import forms
from frameworks.torch.forms import Tensors
from frameworks.torch.inspect import program
from frameworks.torch.modes import graphs

PACKAGE = "model.pt2"
WITHIN = "/data/aotinductor/"  # a package
DEVICE = "AOTI_DEVICE_KEY"  # in its metadata


class Form(forms.Form):
    """A shared library with Inductor's kernels, on torch's own threads or the GPU."""

    def start(self) -> Mapping[str, Any]:
        if problem := graphs.missing_toolchain("inductor", self.device):
            raise Unsupported(problem)
        return graphs.start("inductor", self.device) | {"compile": "torch.export, one shape"}

    def build(self, exported: torch.export.ExportedProgram, tensors: Tensors, folder: Path) -> None:
        with graphs.own_caches("aot-inductor"):
            torch._inductor.aoti_compile_and_package(exported, package_path=str(folder / PACKAGE))

    def open(self, folder: Path) -> Callable[..., Tensors]:
        return opened(folder / PACKAGE)

    def engaged(self) -> str:
        return f"AOTInductor + {'Triton' if self.device.type == 'cuda' else 'C++'}"

    def program(self, exported: torch.export.ExportedProgram, tensors: Tensors) -> Program:
        return program.executed(exported.module(), tensors)


def opened(package: Path) -> Callable[..., Any]:
    """Return a package as a function.

    On a CPU the library is mapped, so its unpacked folder is removed at once. A GPU's kernels are read from that folder
    at their first call; the loader removes it at its own end.
    """
    before = _unpacked()
    called = torch._inductor.aoti_load_package(str(package))
    if called.loader.get_metadata().get(DEVICE) == "cpu":
        for folder in _unpacked() - before:
            shutil.rmtree(folder, ignore_errors=True)
    return called


def _unpacked() -> set[Path]:
    """Return the temporary folders of packages whose libraries this process has loaded."""
    root, lines = Path(tempfile.gettempdir()), Path("/proc/self/maps").read_text().splitlines()
    libraries = {Path(line.split(maxsplit=5)[-1]) for line in lines if WITHIN in line}
    return {root / one.relative_to(root).parts[0] for one in libraries if one.is_relative_to(root)}
