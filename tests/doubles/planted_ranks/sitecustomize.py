"""A fault in rank 1, planted into every worker that finds this folder on its path: FAULT says which, in its samples."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import signal
import sys


def plant(module) -> None:
    """Replace what a rank does in a sample, in `worker.ranked_adapter`."""
    faults = {
        "killed": lambda *_: os.kill(os.getpid(), signal.SIGKILL),
        "stopped": lambda *_: os.kill(os.getpid(), signal.SIGSTOP),
        "out of memory": lambda *_: bytearray(1 << 62),
    }
    module.Rank.time = faults[os.environ["FAULT"]]


class Finder(importlib.abc.MetaPathFinder):
    """Loads `worker.ranked_adapter` as ever, and plants the fault."""

    def find_spec(self, name, path, target=None):
        if name != "worker.ranked_adapter":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        load = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (load(module), plant(module))
        return spec


if os.environ.get("EAGER_VS_GRAPH_RANK") == "1":
    sys.meta_path.insert(0, Finder())
