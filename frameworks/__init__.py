"""The registry of frameworks. A description is importable without its framework; the adapter is not."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from frameworks.description import Framework
from measurement.cells import Cell

# In addition to the framework's own distributions, those that decide what runs: models, compilers, arithmetic.
DECIDING = re.compile(
    r"transformers|tokenizers|safetensors|huggingface-hub|flax|optax|equinox|keras|tf-keras|paddlenlp|triton|"
    r"onnx.*|openvino|pytorch-triton|numpy|scipy|ml-dtypes|opt-einsum|mkl|onednn|intel-.+|nvidia-.+|jax-cuda.+|cuda-.+|torch.+|libtpu"
)
NAMES = ("torch", "paddle", "tensorflow", "jax", "onnxruntime", "numpy", "python")


def describe(name: str) -> Framework:
    """Return the description of the framework `name`, which is one of `NAMES`; imports no framework."""
    return importlib.import_module(f"frameworks.{name}").FRAMEWORK


def is_baseline(cell: Cell) -> bool:
    """Return whether the cell's mode is the baseline of its framework's graphs."""
    return cell.mode == describe(cell.framework).baseline.name


def lacking(name: str, mode: str, device_kind: str) -> str | None:
    """Return a sentence on a mode's missing packages, with the command that installs them; None if all are there."""
    packages = describe(name).mode(mode).packages
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if not missing:
        return None
    listed = Path(__file__).with_name(name) / f"requirements-{device_kind}-{mode}.in"
    requirements = re.findall(r"(?m)^\w\S*", listed.read_text())
    return (
        f"{mode} needs {' and '.join(missing)}: pip install {' '.join(requirements)}, or make setup FRAMEWORK={name} "
        f"DEVICE={device_kind} MODE={mode}."
    )


def swept() -> tuple[str, ...]:
    """Return the frameworks of FRAMEWORK=all, which are measured where none is named."""
    described = map(describe, NAMES)
    return tuple(framework.name for framework in described if framework.swept and not framework.is_reference)


def load_adapter(name: str):
    """Return a new adapter; imports the framework, so only workers call this."""
    return importlib.import_module(f"frameworks.{name}.adapter").Adapter()


def load_profiler(name: str, dumps: Path):
    """Return the framework's profiler, which must exist before anything is compiled; None where it has none."""
    module = part(name, "inspect.profiler")
    return module and module.Profiler(dumps)


def load_timer(name: str):
    """Return the framework's own benchmark tool; None where it has none.

    It maps a call that returns when its work is done to a function from a number of calls to seconds per call.
    """
    module = part(name, "inspect.timer")
    return module and module.timer


def part(name: str, module: str):
    """Return an optional module of a framework's folder; None if it is missing."""
    path = f"frameworks.{name}.{module}"
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if not error.name or error.name == "frameworks" or not f"{path}.".startswith(f"{error.name}."):
            raise
        return None


def installed() -> dict[str, str]:
    """Return versions of Python and of every distribution in this interpreter, by normalized name (PEP 503)."""
    by_distribution = {"python": sys.version.split()[0]}
    for distribution in importlib.metadata.distributions():
        metadata = distribution.metadata  # parsed at each access
        if name := metadata["Name"]:  # a folder that a broken installation left has none
            by_distribution.setdefault(re.sub(r"[-_.]+", "-", name).lower(), metadata["Version"])
    return dict(sorted(by_distribution.items()))


def versions(name: str) -> dict[str, str]:
    """Return versions by name: Python, the framework's packages, and the libraries that they compute with."""
    return deciding(name, installed())


def own_version(distributions: Sequence[str], versions: Mapping[str, str]) -> str | None:
    """Return the version of a framework's first installed distribution (Paddle has one per device), or None."""
    return next((versions[name] for name in distributions if name in versions), None)


def deciding(name: str, packages: object) -> dict[str, str]:
    """Return the same from an environment's packages, as `installed` returns them; empty for anything else."""
    distributions = ("python", *describe(name).distributions)
    by_package = packages if isinstance(packages, dict) else {}
    return {key: version for key, version in by_package.items() if key in distributions or DECIDING.fullmatch(key)}
