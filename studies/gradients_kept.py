"""Whether keeping gradients in memory of their own costs an iteration under `reduce-overhead`, and changes its loss.

What backward returns lies in a CUDA graph's memory, which the next replay overwrites. The suite once summed gradients
into memory of their own there; like most training scripts it sets them to None now, unless it accumulates. Both in
turn in one process, on a GPU, in bf16 by autocast; a line of JSON for each: microseconds of ten calls, and the losses
of the first three iterations.

python3 studies/gradients_kept.py --workload bert-base --batch-size 8
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE / "by_question")]

import turns  # noqa: E402

import workloads  # noqa: E402
from frameworks.torch.models import plain  # noqa: E402
from frameworks.torch.modes import training  # noqa: E402

STEPS = 3
WAYS = {"kept": True, "set to None": False}


def trainer_of(workload, parameters: dict, weights, device: torch.device, keep: bool) -> training.Trainer:
    """A trainer on parameters of its own, compiled."""
    tensors = {name: torch.tensor(array, device=device) for name, array in weights.items()}
    model = plain.build(workload.model, parameters, tensors).to(device).train()
    objective = training.Objective(model, training.LOSSES[workload.family], device, bf16=True)
    loss = torch.compile(objective, fullgraph=True, dynamic=False, mode="reduce-overhead")
    return training.Trainer(objective, loss, 1, keep_gradients=keep)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", default="bert-base")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=2.0, help="of samples for each way")
    options = parser.parse_args()
    device = torch.device("cuda")
    workload = workloads.get(options.workload, "training")
    given = {parameter.name: parameter.default for parameter in workload.parameters}
    parameters = given | {"batch_size": options.batch_size}
    if "attention" in given:
        parameters["attention"] = "fused"
    weights = workload.seeded_weights(parameters, 0)
    inputs = tuple(torch.tensor(array, device=device) for array in workload.inputs(parameters, 0).values())
    ways, losses = {}, {}
    for name, keep in WAYS.items():
        trainer = trainer_of(workload, parameters, weights, device, keep)
        for _ in range(STEPS):  # compiled, warmed up and recorded
            trainer(*inputs)
        trainer.restore()
        losses[name] = [float(trainer(*inputs)["loss"]) for _ in range(STEPS)]

        def call(trainer=trainer):
            trainer(*inputs)

        ways[name] = partial(synchronized, call)
    for name, taken in turns.in_turn(ways, options.seconds).items():
        line = {"trial": f"{options.workload}, batch {options.batch_size}", "way": name, "losses": losses[name]}
        print(json.dumps({**line, **taken}), flush=True)


def synchronized(call):
    for _ in range(10):
        call()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
