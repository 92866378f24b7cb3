"""AOTInductor: the package that Inductor makes of an exported program, loaded as users load it in Python."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import zipfile
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
from measurement import programs

PACKAGE = "model.pt2"
WITHIN = "/data/aotinductor/"  # a package
DEVICE = "AOTI_DEVICE_KEY"  # in its metadata
HEADERS = ("cuda.h", "cuda_runtime.h")
LOADS = "import sys, torch; torch._inductor.aoti_load_package(sys.argv[1])"
LOAD_SECONDS = 300  # until a process that loads a package counts as hanging


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

    def check(self, folder: Path) -> None:
        check(folder / PACKAGE)

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


def check(package: Path) -> None:
    """Raise Unsupported for a library that cannot be loaded because it holds a libstdc++ of its own.

    Its `std::regex`, which reads the device's name, needs the one of torch.
    """
    if _holds_own_runtime(package) and (failure := _failure_of_loading(package)):
        raise Unsupported(
            f"AOTInductor's library holds its own libstdc++ and does not load ({failure}): set LD_PRELOAD to the "
            "shared libstdc++.so.6, or CXX to a compiler that links it."
        )


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


def _holds_own_runtime(package: Path) -> bool:
    """Return whether a package's library holds libstdc++ itself instead of naming the shared one."""
    with zipfile.ZipFile(package) as files:
        libraries = [files.read(name) for name in files.namelist() if name.endswith(".wrapper.so")]
    return any(b"libstdc++.so" not in library and b"libc++.so" not in library for library in libraries)


def _failure_of_loading(package: Path) -> str | None:
    """Return how another process fails to load a package; None if it loads it."""
    ended = programs.run([sys.executable, "-P", "-c", LOADS, str(package)], LOAD_SECONDS)
    if ended.code is None:
        return ended.problem
    if ended.code < 0:
        return signal.Signals(-ended.code).name
    return (ended.errors.strip().splitlines() or ["it failed without a message"])[-1] if ended.code else None


def _unpacked() -> set[Path]:
    """Return the temporary folders of packages whose libraries this process has loaded."""
    root, lines = Path(tempfile.gettempdir()), Path("/proc/self/maps").read_text().splitlines()
    libraries = {Path(line.split(maxsplit=5)[-1]) for line in lines if WITHIN in line}
    return {root / one.relative_to(root).parts[0] for one in libraries if one.is_relative_to(root)}
