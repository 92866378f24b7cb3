"""Cells of torch behind its adapter, for checks that run in torch's own interpreter: torch and NumPy alone."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import workloads  # noqa: E402
from frameworks.torch.adapter import Adapter  # noqa: E402
from measurement.cells import Cell  # noqa: E402

BERT = {"batch_size": 2, "seq_len": 16, "mask": "full", "attention": "explicit"}
TRAINED = {
    "mlp": {"batch_size": 3, "width": 16, "depth": 2},
    "bert-tiny": BERT,
    "gpt-tiny": {"batch_size": 2, "seq_len": 16, "attention": "explicit"},
}


class Prepared:
    """The steps of one cell of torch on `device`, with what they were made of."""

    def __init__(self, device: str, workload, parameters: dict, pass_name: str = "inference", dtype: str = "fp32"):
        """`workload` is a name or a workload of this pass."""
        self.workload = workloads.get(workload, pass_name) if isinstance(workload, str) else workload
        self.parameters = parameters
        self.adapter, self.pass_name, self.dtype, self.device = Adapter(), pass_name, dtype, device
        self.weights = self.workload.seeded_weights(parameters, 0)
        self.sets = [self.workload.inputs(parameters, seed) for seed in (1, 2, 3)]
        self.adapter.configure(self.cell("eager"))

    def cell(self, mode: str) -> Cell:
        parameters = tuple(self.parameters.items())
        name = self.workload.name
        return Cell("torch", name, "plain", self.pass_name, self.device, self.dtype, 1, parameters, mode)

    def of(self, mode: str):
        """The cell's step in a mode, on the same weights; its compiler is started."""
        if self.device != "cpu" or mode != "cuda-graph":  # of which the CPU has a double alone
            self.adapter.start_compiler(self.cell(mode))
        return self.adapter.prepare(self.workload, self.cell(mode), self.weights, self.sets)

    def outputs(self, step, calls: int) -> list[dict[str, np.ndarray]]:
        """What so many calls from the first one on give, each read before the next call."""
        step.rewind()
        return [self.read(step()) for _ in range(calls)]

    def read(self, output) -> dict[str, np.ndarray]:
        """The output's values, copied: on the CPU an array may be the tensor's own memory."""
        return {name: value.copy() for name, value in self.adapter.to_numpy(output).items()}


def largest_difference(ours, theirs) -> float:
    """Between values of the same names, call by call."""
    return max(float(np.abs(a[name] - b[name]).max()) for a, b in zip(ours, theirs, strict=True) for name in b)


def arguments(description: str) -> argparse.ArgumentParser:
    """The options that every check has."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    return parser


def run_checks(checks: dict, device: str) -> None:
    """Call every `check_...` with the device and print a line for each; a failure is an AssertionError."""
    for name, check in list(checks.items()):
        if name.startswith("check_"):
            with contextlib.redirect_stdout(sys.stderr):
                answer = check(device)
            print(f"{name.removeprefix('check_').replace('_', ' ')}: {answer}")
