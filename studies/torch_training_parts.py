"""Forward, backward and optimizer apart, eager and compiled, in turn: what each of them gains in a training iteration.

Ways, each of which holds the one before it: the loss alone; the loss and its gradients; a whole iteration. What
backward and the optimizer take is the difference of neighbours, paired in each round. torch lets them be apart:
`jax.jit` and a TensorFlow function hold all three in one program here, and so does `inductor-whole-iteration`, of which
only the whole is timed.

.venvs/torch-cpu/bin/python studies/torch_training_parts.py --workload gpt-tiny
"""

import argparse
import itertools
import json
import sys
from functools import partial
from pathlib import Path
from statistics import median

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE / "by_question")]

import turns  # noqa: E402

import workloads  # noqa: E402
from frameworks.torch.models import plain  # noqa: E402
from frameworks.torch.modes import training, whole_iteration  # noqa: E402

PARTS = ("forward", "forward and backward", "iteration")
SIZES = {"batch_size": 4, "seq_len": 64, "mask": "none", "attention": "fused", "width": 512, "depth": 4}


def objective_of(workload, parameters: dict, weights) -> training.Objective:
    """The model with its loss, on parameters of its own."""
    tensors = {name: torch.tensor(array) for name, array in weights.items()}
    model = plain.build(workload.model, parameters, tensors).train()
    return training.Objective(model, training.LOSSES[workload.family], torch.device("cpu"), bf16=False)


def ways(workload, parameters: dict) -> dict:
    weights = workload.seeded_weights(parameters, 0)
    inputs = tuple(map(torch.tensor, workload.inputs(parameters, 0).values()))
    parts = {}
    for mode in ("eager", "inductor"):
        objective = objective_of(workload, parameters, weights)
        loss = objective if mode == "eager" else torch.compile(objective, fullgraph=True, dynamic=False)
        trainer = training.Trainer(objective, loss, 1, keep_gradients=False)

        def with_gradients(objective=objective, loss=loss):
            loss(*inputs).backward()
            for parameter in objective.parameters():
                parameter.grad = None

        calls = (partial(loss, *inputs), with_gradients, partial(trainer, *inputs))
        parts |= {f"{mode}: {part}": call for part, call in zip(PARTS, calls, strict=True)}
    compiled = lambda function: (torch.compile(function, fullgraph=True, dynamic=False), None, None)  # noqa: E731
    whole = whole_iteration.Trainer(objective_of(workload, parameters, weights), 1, compiled)
    parts["inductor-whole-iteration: iteration"] = partial(whole, *inputs)
    return parts


def told(taken: dict, mode: str) -> str:
    """Milliseconds of each part of a mode: the first as it is, the others by what they add in each round."""
    series = [taken[f"{mode}: {part}"]["us"] for part in PARTS]
    added = [
        series[0],
        *([b - a for a, b in zip(*pair, strict=True)] for pair in itertools.pairwise(series)),
    ]
    names = ("forward", "backward", "optimizer")
    return ", ".join(f"{name} {median(values) / 1e3:.3g}" for name, values in zip(names, added, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", default="gpt-tiny", choices=[n for n in workloads.names() if _trains(n)])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="of samples for each way")
    for name, default in SIZES.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    workload = workloads.get(options.workload, "training")
    given = {parameter.name: parameter.default for parameter in workload.parameters}
    parameters = given | {name: getattr(options, name) for name in SIZES if name in given}
    taken = turns.in_turn(ways(workload, parameters), options.seconds)
    for way, series in taken.items():
        print(json.dumps({"trial": options.workload, "way": way, **series}), flush=True)
    for mode in ("eager", "inductor"):
        print(f"{options.workload}, {mode}, ms: {told(taken, mode)}", file=sys.stderr)


def _trains(name: str) -> bool:
    return "training" in workloads.get(name, "training").passes


if __name__ == "__main__":
    main()
