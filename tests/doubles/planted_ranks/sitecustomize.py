"""A fault planted into every worker that finds this folder on its path: FAULT names it."""

from __future__ import annotations

import gc
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


def skip_update(module) -> None:
    """Make the optimizer's step do nothing, in `frameworks.torch.modes.training`."""
    module.torch.optim.AdamW.step = lambda optimizer: None


def skip_all_reduce(module) -> None:
    """Leave each rank its own gradients, in `frameworks.torch.modes.parallel`."""
    module.DistributedDataParallel = lambda objective, **_: objective


class Finder(importlib.abc.MetaPathFinder):
    """Loads the module `name` as ever, and plants the fault."""

    def __init__(self, name, plant):
        self.name, self.plant = name, plant

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        load = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (load(module), self.plant(module))
        return spec


gc.set_threshold(100_000, 50, 50)
OF_ALL_RANKS = {
    "no update": ("frameworks.torch.modes.training", skip_update),
    "no all-reduce": ("frameworks.torch.modes.parallel", skip_all_reduce),
}
if os.environ["FAULT"] in OF_ALL_RANKS:
    sys.meta_path.insert(0, Finder(*OF_ALL_RANKS[os.environ["FAULT"]]))
elif os.environ.get("EAGER_VS_GRAPH_RANK") == "1":
    sys.meta_path.insert(0, Finder("worker.ranked_adapter", plant))
