"""Torch's mode `cuda-graph` through its adapter: on a GPU as it is, on the CPU with a double of the recorder.

    python tests/checks/torch_cuda_graph.py --device gpu:0

needs torch and NumPy alone, prints a line for each check and ends with exit code 0 if all hold.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import workloads  # noqa: E402
from frameworks.adapter import Unsupported  # noqa: E402
from frameworks.torch import cuda_graph  # noqa: E402
from frameworks.torch.adapter import Adapter  # noqa: E402
from measurement.cells import Cell  # noqa: E402

BERT = {"batch_size": 2, "seq_len": 16, "mask": "full", "attention": "explicit"}
TRAINED = {
    "mlp": {"batch_size": 3, "width": 16, "depth": 2},
    "bert-tiny": BERT,
    "gpt-tiny": {"batch_size": 2, "seq_len": 16, "attention": "explicit"},
}


class Prepared:
    """A step of one cell on `device`, with what it was made of."""

    def __init__(self, device: str, workload: str, parameters: dict, pass_name: str = "inference", dtype: str = "fp32"):
        self.workload, self.parameters = workloads.get(workload, pass_name), parameters
        self.adapter, self.pass_name, self.dtype, self.device = Adapter(), pass_name, dtype, device
        self.weights = self.workload.seeded_weights(parameters, 0)
        self.sets = [self.workload.inputs(parameters, seed) for seed in (1, 2, 3)]
        self.adapter.configure(self.cell("cuda-graph"))
        self.step = self.of("cuda-graph")

    def cell(self, mode: str) -> Cell:
        parameters = tuple(self.parameters.items())
        name = self.workload.name
        return Cell("torch", name, "plain", self.pass_name, self.device, self.dtype, 1, parameters, mode)

    def of(self, mode: str):
        """The cell's step in another mode, on the same weights."""
        return self.adapter.prepare(self.workload, self.cell(mode), self.weights, self.sets)

    def outputs(self, step, calls: int) -> list[dict[str, np.ndarray]]:
        """What so many calls from the first one on give, each read before the next call."""
        step.rewind()
        return [self.read(step()) for _ in range(calls)]

    def read(self, output) -> dict[str, np.ndarray]:
        """The output's values, copied: on the CPU an array may be the tensor's own memory."""
        return {name: value.copy() for name, value in self.adapter.to_numpy(output).items()}


def largest_difference(ours, theirs) -> float:
    return max(float(np.abs(a[name] - b[name]).max()) for a, b in zip(ours, theirs, strict=True) for name in b)


def check_outputs_are_those_of_eager(device: str) -> str:
    bert = Prepared(device, "bert-tiny", BERT)
    difference = largest_difference(bert.outputs(bert.step, 5), bert.outputs(bert.of("eager"), 5))
    assert difference <= 1e-5, difference
    captured = bert.step.capture()
    assert captured.whole and captured.graphs == captured.compilations == 1, captured
    if device != "cpu":
        assert int(captured.detail.split()[0]) > 20, captured.detail
    return f"{difference:.1e} apart; {captured.detail}"


def check_an_output_is_the_graph_s_memory(device: str) -> str:
    bert = Prepared(device, "bert-tiny", BERT)
    first, second = bert.step(), bert.step()
    assert [t.data_ptr() for t in first.values()] == [t.data_ptr() for t in second.values()]
    return "each call writes where the one before wrote"


def check_weights_are_used_where_they_lie(device: str) -> str:
    mlp = Prepared(device, "mlp", TRAINED["mlp"])
    before = mlp.outputs(mlp.step, 1)
    (model,) = mlp.adapter._models.values()
    with torch.no_grad():
        model.layers[0].linear.weight.zero_()
    difference = largest_difference(mlp.outputs(mlp.step, 1), before)
    assert difference > 1e-3, "the graph computed with weights of its own"
    return "a weight that is changed in place changes the next replay's output"


def check_another_shape_is_recorded_once(device: str) -> str:
    bert = Prepared(device, "bert-tiny", BERT)
    bert.step()
    longer = {**BERT, "seq_len": 24}
    inputs = bert.workload.inputs(longer, 1)
    rebound = bert.step.rebound([bert.adapter.place(bert.cell("cuda-graph"), inputs)])
    output = bert.read(rebound())
    reference = bert.workload.reference(longer, bert.weights, inputs)
    assert largest_difference([output], [reference]) <= 1e-4
    bert.step()
    rebound()
    assert bert.step.capture().compilations == 2
    return "two shapes, two recordings"


def check_losses_are_the_oracle_s(device: str) -> str:
    worst = 0.0
    for name, parameters in TRAINED.items():
        for accumulate in (1, 2):
            for dtype in ("fp32",) if device == "cpu" else ("fp32", "bf16"):
                trained = Prepared(device, name, {**parameters, "accumulate": accumulate}, "training", dtype)
                losses = trained.workload.references(trained.parameters, trained.weights, trained.sets)
                first = trained.read(trained.step())  # the calls before the capture must have left nothing
                tolerance = trained.workload.tolerance[dtype]
                assert largest_difference([first], losses[:1]) <= tolerance, (name, accumulate, dtype)
                for _ in range(5):
                    trained.step()
                for _ in range(2):  # restored in place, the same graph begins anew
                    difference = largest_difference(trained.outputs(trained.step, 3), losses)
                    assert difference <= tolerance, (name, accumulate, dtype, difference)
                    worst = max(worst, difference if dtype == "fp32" else 0.0)
                assert trained.step.capture().compilations == 1
    return f"within {worst:.1e} in fp32, from the first call and after two restores"


def check_what_cannot_be_captured_is_refused(device: str) -> str:
    if device == "cpu":
        return "left out: needs a GPU"
    recorder = cuda_graph.Recorder(torch.device("cuda", int(device.partition(":")[2])))
    ones = torch.ones(4, device="cuda")
    try:
        cuda_graph.Replayed(lambda x: x * x.sum().item(), recorder)(ones)
    except Unsupported as refusal:
        assert (ones + ones).sum().item() == 8  # the device is as before
        return str(refusal)
    raise AssertionError("a call that waits for the device was captured")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--double", default="Recorder", help="on the CPU: which of doubles/recorder.py")
    asked = arguments.parse_args()
    if asked.device == "cpu":
        from doubles import recorder

        cuda_graph.Recorder = getattr(recorder, asked.double)
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            print(f"{name.removeprefix('check_').replace('_', ' ')}: {check(asked.device)}")


if __name__ == "__main__":
    main()
