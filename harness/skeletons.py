"""`make new-workload`: the file of an own model to begin with, ready to be measured. Standard library only."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from harness.refusals import UsageError, naming

_HEAD = '"""Measured by `make bench WORKLOAD={file}`; docs/own-models.md says what may stand here."""\n\n'
SKELETONS = {
    "torch": """import torch
from torch import nn


def model():
    return nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))


def inputs(batch_size):
    return torch.randn(batch_size, 256)
""",
    "jax": """import jax
import numpy as np


def model():
    weights = {"up": np.random.randn(256, 512) / 16, "down": np.random.randn(512, 256) / 23}
    return lambda params, x: jax.nn.gelu(x @ params["up"]) @ params["down"], weights


def inputs(batch_size):
    return np.random.randn(batch_size, 256)
""",
    "tensorflow": """import keras
import numpy as np


def model():
    return keras.Sequential([keras.Input((256,)), keras.layers.Dense(512, "gelu"), keras.layers.Dense(256)])


def inputs(batch_size):
    return np.random.randn(batch_size, 256).astype("float32")
""",
    "paddle": """import paddle
from paddle import nn


def model():
    return nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))


def inputs(batch_size):
    return paddle.randn([batch_size, 256])
""",
}


def text(framework: str, file: str) -> str:
    """The file's text."""
    return _HEAD.format(file=file) + SKELETONS[framework]


def add_command(commands) -> None:
    """The command that writes a file to begin with."""
    command = commands.add_parser("new-workload", help="an own model's file", description=new_workload.__doc__)
    command.add_argument("--name", help="what the file is called, without .py")
    command.add_argument("--framework", help="torch (default), jax, tensorflow or paddle")
    command.set_defaults(run=new_workload)


def new_workload(arguments: argparse.Namespace) -> int:
    """Write NAME.py here, and overwrite nothing. Raises UsageError."""
    name, framework = arguments.name or "", arguments.framework or "torch"
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise UsageError(f"NAME is letters, digits and underscores, such as NAME=my_model, not {name!r}.")
    if framework not in SKELETONS:
        raise UsageError(f"There is a skeleton for {', '.join(SKELETONS)}, none for {framework!r}.")
    path = Path(f"{name}.py")
    try:
        with naming(path), open(path, "x") as file:
            file.write(text(framework, path.name))
    except FileExistsError:
        raise UsageError(f"{path} exists already; choose another NAME.") from None
    print(f"{path} is there: put your model in, then make bench WORKLOAD={path}")
    return 0
