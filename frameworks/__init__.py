"""The registry of frameworks. A description is importable without its framework; the adapter is not."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from pathlib import Path

from frameworks.description import Framework

NAMES = ("torch", "paddle", "tensorflow", "jax", "numpy", "python")


def describe(name: str) -> Framework:
    """The description of the framework `name`, which is one of `NAMES`; imports no framework."""
    return importlib.import_module(f"frameworks.{name}").FRAMEWORK


def load_adapter(name: str):
    """A new adapter; imports the framework, so only workers call this."""
    return importlib.import_module(f"frameworks.{name}.adapter").Adapter()


def load_profiler(name: str, dumps: Path):
    """The framework's profiler, which must be there before anything is compiled; None where it has none."""
    try:
        module = importlib.import_module(f"frameworks.{name}.profiler")
    except ModuleNotFoundError as error:
        if error.name != f"frameworks.{name}.profiler":
            raise
        return None
    return module.Profiler(dumps)


def versions(name: str) -> dict[str, str]:
    """Versions of Python and of the installed ones among the framework's distributions, in this interpreter."""
    found = {"python": sys.version.split()[0]}
    for distribution in describe(name).distributions:
        try:
            found[distribution] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
