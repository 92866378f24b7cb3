"""Facts of JAX's runtime that its API does not report: devices, pool threads, contents of a module."""

from __future__ import annotations

import contextlib
import gc
import glob
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.experimental.compilation_cache import compilation_cache

from frameworks import adapter, obstacles
from frameworks.adapter import Unsupported

PLUGINS = (12, 13)  # the CUDA versions for which JAX has had plug-ins


def find(device: str) -> jax.Device:
    """Return the device `cpu` or `gpu:<index>`; raises RuntimeError, or IndexError with a sentence."""
    kind, _, index = device.partition(":")
    devices = jax.devices(kind)
    if int(index or 0) >= len(devices):
        raise IndexError(obstacles.no_such(device, len(devices), "JAX"))
    return devices[int(index or 0)]


def problem(device: str) -> str | None:
    """Return why JAX cannot use the device, in a sentence, or None."""
    try:
        find(device)
    except IndexError as error:
        return str(error)
    except RuntimeError as error:
        if "cuda" not in (chosen := os.environ.get("JAX_PLATFORMS") or "cuda") and "gpu" not in chosen:
            return f"JAX_PLATFORMS={chosen} hides the GPU from JAX: unset it."
        versions = [n for n in PLUGINS if importlib.util.find_spec(f"jax_cuda{n}_plugin")]
        if not versions:
            return f"this JAX supports the CPU only, without a CUDA plug-in: install jax[cuda{max(PLUGINS)}]."
        words = f"{error}\n{_plugin_words(versions[-1])}"
        driver = obstacles.driver_cuda()
        known = obstacles.from_words(words) if driver and driver[0] >= versions[-1] else None
        return known or obstacles.no_gpu(versions[-1], driver)
    return None


def _plugin_words(version: int) -> str:
    """Return the error of JAX's CUDA plug-in on this machine: JAX logs it and then has no GPU."""
    try:
        sys.modules[f"jax_plugins.xla_cuda{version}"]._check_cuda_versions(raise_on_first_error=True)
    except Exception as error:  # also where a version has no such check
        return str(error)
    return ""


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Raise Unsupported for a model that jax.export does not take."""
    try:
        yield
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        raise Unsupported(f"jax.export cannot export the model ({type(error).__name__}: {words}).") from error


CACHE_SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_enable_compilation_cache",
    "jax_persistent_cache_min_compile_time_secs",
)


@contextlib.contextmanager
def keeping_cache() -> Iterator[None]:
    """Run a user's file, which may choose where and whether compiled code is kept; keep the process's choice."""
    before = {name: getattr(jax.config, name) for name in CACHE_SETTINGS}
    try:
        yield
    finally:
        if changed := {name: value for name, value in before.items() if getattr(jax.config, name) != value}:
            for name, value in changed.items():
                jax.config.update(name, value)
            compilation_cache.reset_cache()


def pool_threads() -> int | None:
    """Return the size of XLA's intra-op pool, counted among the process's threads by name: JAX does not report it."""
    names = []
    for path in glob.glob("/proc/self/task/*/comm"):
        with contextlib.suppress(OSError), open(path) as file:  # the thread may have ended
            names.append(file.read())
    return sum("XLAEigen" in name for name in names) or None


def shapes(arguments: Any) -> Any:
    """Return a tree with shapes and dtypes for its arrays, and shardings where on several devices; numbers stay."""

    def shape(x: Any) -> Any:
        several = isinstance(x, jax.Array) and len(x.sharding.device_set) > 1
        weak = getattr(x, "weak_type", False)  # which decides the dtype of a product with another dtype
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding if several else None, weak_type=weak)

    return jax.tree.map(lambda x: shape(x) if hasattr(x, "shape") else x, arguments)


CALLS_PYTHON = "the module calls back into Python: remove the callback from the model."


def is_whole(module: str) -> bool:
    """Return whether StableHLO text is one module with one entry that never calls back into Python."""
    one_entry = module.count("func.func public") == 1 and module.count("module @") == 1
    return one_entry and not re.search(r"python_\w*callback", module)


def memory(device: jax.Device | None) -> dict[str, int] | None:
    """Return the allocator's statistics, in bytes; None where it keeps none, as on the CPU."""
    gc.collect()
    return (device.memory_stats() or None) if device is not None else None


@dataclass(frozen=True)
class Ballast:
    """An unused array, and how much of the device's memory it takes."""

    array: jax.Array
    bytes: int


def ballast(device: jax.Device | None) -> Ballast | None:
    """Fill memory in use up to the previous peak; None without statistics or without room."""
    before = memory(device)
    if before is None:
        return None
    missing = max(1, before["peak_bytes_in_use"] - before["bytes_in_use"])
    try:
        array = jax.device_put(np.empty(missing, np.uint8), device).block_until_ready()
    except jax.errors.JaxRuntimeError:
        return None
    return Ballast(array, memory(device)["bytes_in_use"] - before["bytes_in_use"])  # the allocator rounds up


def libraries() -> dict[str, str]:
    """Return the versions of the GPU's libraries by JAX's own check; empty where this release has none."""
    try:
        from jax._src.lib import cuda_versions  # no part of JAX's API, and found nowhere else

        versions = {"CUDA": cuda_versions.cuda_runtime_get_version(), "cuDNN": cuda_versions.cudnn_get_version()}
    except (ImportError, AttributeError, RuntimeError):
        return {}
    return {name: str(version) for name, version in versions.items()}


class Meter(adapter.Meter):
    """Memory of a GPU as its allocator counts it."""

    def __init__(self, device: jax.Device, shared: int):
        super().__init__(shared)
        self._device, self._ballast = device, None

    def allocated_bytes(self) -> tuple[int, ...] | None:
        statistics = memory(self._device)
        return (statistics["bytes_in_use"],) if statistics else None

    def reset_peak(self) -> None:
        # JAX cannot. Memory is filled up to the old peak instead, so that any memory of a call raises the peak.
        self._ballast = ballast(self._device)

    def peak_bytes(self) -> tuple[int, ...] | None:
        ballast, self._ballast = self._ballast, None
        return (memory(self._device)["peak_bytes_in_use"] - ballast.bytes,) if ballast else None
