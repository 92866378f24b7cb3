"""The published tables, each in its own folder, found by its presence. `names` imports nothing."""

from __future__ import annotations

import importlib
from pathlib import Path

HERE = Path(__file__).resolve().parent


def names() -> tuple[str, ...]:
    """Return the tables: a folder `paddle_bert` with published figures is the table `paddle-bert`."""
    return tuple(sorted(path.parent.name.replace("_", "-") for path in HERE.glob("*/published.csv")))


def get(name: str):
    """Return the experiment `name`, which is one of `names()`."""
    folder = name.replace("-", "_")
    return importlib.import_module(f"experiments.{folder}").EXPERIMENT
