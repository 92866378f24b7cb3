"""What has to be asked of JAX's runtime by other ways than its API: devices, pool threads, what a module holds."""

from __future__ import annotations

import contextlib
import glob
import re

import jax


def find(device: str) -> jax.Device:
    """The device `cpu` or `gpu:<index>`; raises RuntimeError or IndexError with a sentence."""
    kind, _, index = device.partition(":")
    devices = jax.devices(kind)
    if int(index or 0) >= len(devices):
        raise IndexError(f"{device} is not there, JAX sees {len(devices)} of its kind")
    return devices[int(index or 0)]


def pool_threads() -> int | None:
    """The size of XLA's intra-op pool, counted among the process's threads by name: JAX itself does not tell."""
    names = []
    for path in glob.glob("/proc/self/task/*/comm"):
        with contextlib.suppress(OSError), open(path) as file:  # the thread may have ended
            names.append(file.read())
    return sum("XLAEigen" in name for name in names) or None


def is_whole(module: str) -> bool:
    """Whether StableHLO text is one module with one entry that never calls back into Python."""
    one_entry = module.count("func.func public") == 1 and module.count("module @") == 1
    return one_entry and not re.search(r"python_\w*callback", module)
