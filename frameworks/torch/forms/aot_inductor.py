"""AOTInductor: the package that Inductor makes of an exported program, loaded as users load it in Python."""

from __future__ import annotations

import os
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
HEADERS = ("cuda.h", "cuda_runtime.h")


class Form(forms.Form):
    """A shared library with Inductor's kernels, on torch's own threads or the GPU."""

    def __init__(self, device: torch.device, threads: int, dtype: str):
        super().__init__(device, threads, dtype)
        if device.type == "cuda":  # torch's model_container.h: reclaim_finished_models
            self.detail = "one runner, by default: each call waits until the device has finished the previous one"

    def start(self) -> Mapping[str, Any]:
        if problem := missing_toolchain(self.device):
            raise Unsupported(problem)
        return graphs.start("inductor", self.device) | {"compile": "torch.export, one shape"}

    def build(self, exported: torch.export.ExportedProgram, tensors: Tensors, folder: Path) -> None:
        graphs.use_own_caches("aot-inductor")
        compile_into(exported, folder / PACKAGE)

    def open(self, folder: Path) -> Callable[..., Tensors]:
        return opened(folder / PACKAGE)

    def engaged(self) -> str:
        return f"AOTInductor + {'Triton' if self.device.type == 'cuda' else 'C++'}"

    def program(self, exported: torch.export.ExportedProgram, tensors: Tensors) -> Program:
        return program.executed(exported.module(), tensors)


def missing_toolchain(device: torch.device) -> str | None:
    """Return a sentence on the tools that AOTInductor lacks on this machine; None if all are there.

    For a GPU it compiles C++ as well, with CUDA's headers.
    """
    problem = graphs.missing_toolchain("inductor", device)
    if problem or device.type == "cpu" or torch.version.hip:
        return problem
    return graphs.missing_cpp() or _missing_headers()


def _missing_headers() -> str | None:
    """Return a sentence if CUDA's headers are in no folder that Inductor names or a C++ compiler searches."""
    more = (os.environ.get(name, "") for name in ("CPATH", "CPLUS_INCLUDE_PATH"))
    try:
        named = graphs.internal("torch.utils.cpp_extension", "include_paths")("cuda")
    except OSError:  # without CUDA_HOME, which Inductor needs
        folders = []
    else:
        folders = [*named, "/usr/include", "/usr/local/include", *":".join(more).split(":")]
    if all(any(Path(folder, name).is_file() for folder in folders) for name in HEADERS):
        return None
    return f"AOTInductor found no cuda.h: install the CUDA {torch.version.cuda} toolkit, or set CUDA_HOME."


def compile_into(exported: torch.export.ExportedProgram, package: Path) -> None:
    """Write a program's package. Raises Unsupported for a model that AOTInductor cannot compile."""
    try:
        torch._inductor.aoti_compile_and_package(exported, package_path=str(package))
    except Exception as error:
        raise forms.refusal("AOTInductor cannot compile the model", error) from error


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
