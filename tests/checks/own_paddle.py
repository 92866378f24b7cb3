"""Every mode of one user's layer in one process, in several orders: `own_paddle.py FOLDER`, in Paddle's environment.

Prints as JSON what ran in eager mode's calls once all modes are prepared and have run, and what each graph captured.
"""

import json
import sys
from pathlib import Path

import numpy as np
from paddle.jit.dy2static.program_translator import StaticFunction

import frameworks
import workloads
from frameworks.adapter import Unsupported
from measurement.cells import Cell

NET = """
import paddle
from paddle import nn

class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.dense, self.norm = nn.Linear(8, 8), nn.BatchNorm1D(8)
    def forward(self, x):
        return nn.functional.relu(self.norm(self.dense(x)))

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
    def forward(self, x, scale=1.0):
        if scale > 1.0:
            x = x * scale
        return {"y": self.blocks(x)}

def model():
    return Net()

def inputs(batch_size=2):
    return {"x": paddle.randn([batch_size, 8]), "scale": 2.0}

def loss(output):
    return output["y"].mean()
"""
CAPTURED = NET.replace("return Net()", "net = Net()\n    paddle.jit.to_static(net.blocks)\n    return net")
UNNEEDED = NET.replace("scale=1.0)", "scale=1.0, mask=None)").replace(
    '"scale": 2.0', '"scale": 2.0, "mask": paddle.ones([3])'
)
ORDERS = (
    ("eager", "to_static", "inference", "inference-no-passes"),
    ("inference", "to_static", "eager", "inference-no-passes"),
    ("inference-no-passes", "inference", "to_static", "eager"),
)
TRAINED = ("eager", "to_static")
calls = 0


def counting() -> None:
    """Count calls of what `to_static` makes."""
    for kind in (StaticFunction, *StaticFunction.__subclasses__()):
        if "__call__" in vars(kind):
            kind.__call__ = _counted(kind.__call__)


def _counted(call):
    def counted(self, *args, **kwargs):
        global calls
        calls += 1
        return call(self, *args, **kwargs)

    return counted


def prepared(adapter, name: str, pass_name: str, order: tuple[str, ...]) -> dict:
    """A step for each mode, in that order."""
    workload = workloads.get(name, pass_name)
    sets = [workload.inputs({"batch_size": 2}, seed) for seed in (1, 2)]
    steps = {}
    for mode in order:
        cell = Cell("paddle", name, "own", pass_name, "cpu", "fp32", 1, (("batch_size", 2),), mode)
        steps[mode] = adapter.prepare(workload, cell, workload.seeded_weights({}, 0), sets)
    return steps


def found(adapter, name: str, pass_name: str, order: tuple[str, ...]) -> dict:
    """What ran once all modes were prepared and each was called."""
    steps = prepared(adapter, name, pass_name, order)
    outputs, ran = {}, {}
    for step in steps.values():
        if step.load:
            step.load()
    for _ in range(2):  # the second time every mode has captured what it captures
        for mode, step in steps.items():
            step.rewind()
            before = calls
            outputs[mode] = {key: np.array(value) for key, value in step.user_model.values(step()).arrays.items()}
            ran[mode] = calls - before
    right = outputs["eager"]
    answer = {
        "ran": ran,
        "worst": max(float(abs(out[key] - right[key]).max()) for out in outputs.values() for key in right),
        "listed": len(steps["eager"].program()),
        "graphs": {mode: step.capture().graphs for mode, step in steps.items()},
        "backends": {mode: step.capture().backend for mode, step in steps.items()},
    }
    if pass_name == "inference":
        (model,) = adapter.user_models.values()
        parts = model.module.sublayers(include_self=True)
        answer["replaced"] = [type(part).__name__ for part in parts if "forward" in vars(part)]
        tensors = [*model.module.parameters(), *model.module.buffers()]
        copied = model.shared()
        theirs = [*copied.parameters(), *copied.buffers()]
        answer["shared"] = all(one is other for one, other in zip(tensors, theirs, strict=True))
    adapter.release()
    return answer


def unwrapped(adapter, name: str) -> list:
    """From where `to_static` was removed of a model, and how many calls of what it makes eager mode then makes."""
    step = prepared(adapter, name, "inference", ("eager",))["eager"]
    before = calls
    step()
    adapter.release()
    return [step.user_model.settings["to_static removed from"], calls - before]


def refused(adapter, name: str, folder: Path) -> list[str]:
    """Why the predictor and the artefact of `start` are refused."""
    reasons = []
    step = prepared(adapter, name, "inference", ("inference",))["inference"]
    for call in (step.load, lambda: step.call.save(folder)):
        try:
            call()
        except Unsupported as error:
            reasons.append(str(error))
    adapter.release()
    return reasons


def main() -> None:
    folder, adapter, names = Path(sys.argv[1]), frameworks.load_adapter("paddle"), {}
    for name, text in {"net": NET, "captured": CAPTURED, "unneeded": UNNEEDED}.items():
        names[name] = f"paddle_{name}.py"
        (folder / names[name]).write_text(text)
        workloads.add({names[name]: str(folder / names[name])})
    counting()
    adapter.configure(Cell("paddle", "x", "own", "inference", "cpu", "fp32", 1, (), "eager"))
    answers = {
        "inference": [found(adapter, names["net"], "inference", order) for order in ORDERS],
        "training": [found(adapter, names["net"], "training", order) for order in (TRAINED, TRAINED[::-1])],
        "captured": unwrapped(adapter, names["captured"]),
        "unneeded": refused(adapter, names["unneeded"], folder),
    }
    print("\n" + json.dumps(answers))


if __name__ == "__main__":
    main()
