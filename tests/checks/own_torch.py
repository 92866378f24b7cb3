"""Users' own torch models through the adapter, without a compiler: breaks, parity, state, inputs and outputs.

Run in torch's environment: `python own_torch.py FOLDER` writes files there and prints what was found as JSON.
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import torch

import workloads
from commands import new_workload
from frameworks.torch.adapter import Adapter
from frameworks.torch.inspect import counting
from frameworks.torch.modes import graphs
from frameworks.torch.user_model import hubs
from measurement.cells import Cell
from measurement.parity import difference
from measurement.sampling import Clocks
from worker import user_model as examining
from worker.channel import classify
from workloads.user_model import UserModel

MODELS = {
    "broken": """
import os
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x):
        x = torch.relu(self.a(x))
        print("seen", x.shape)
        x = torch.relu(self.b(x))
        if x.sum() > 0:
            x = x * 2
        x = x * self.a(x).mean().item()
        x = x + torch.nonzero(x).shape[0]
        x = torch.relu(self.b(x))
        os.environ["SEEN"] = "1"
        return {"x": x.tanh(), "both": (x, x + 1)}


def model():
    return Net()


def inputs(batch_size=4):
    return {"x": torch.randn(batch_size, 64)}
""",
    "norm": """
import torch


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(()))

    def forward(self, x, scale, y=None):
        self.total += 1
        return x * scale * self.total + y["y"]


def model():
    return Norm()


def inputs(batch_size=2, width=3):
    return {"x": torch.randn(batch_size, width), "scale": 2.0, "y": {"y": torch.ones(width)}}
""",
    "trained": """
import torch
from torch import nn


class Counted(nn.Sequential):
    def __init__(self, *layers):
        super().__init__(*layers)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64), persistent=False)

    def get_extra_state(self):
        return {"version": 1}

    def forward(self, input):
        self.calls += 1
        return super().forward(input) / self.calls


def model():
    net = Counted(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))
    net[0].bias.requires_grad = False
    return net


def inputs(batch_size=8):
    return {"input": torch.randn(batch_size, 16)}


def loss(output):
    print("loss of", output.shape)
    return output.square().mean()
""",
    "unsettled": """
import torch
from torch import nn


def model():
    return nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))


def inputs(batch_size=8):
    return 0.01 * torch.randn(batch_size, 16)


def loss(output):
    return output.square().mean()
""",
    "dropped": """
import torch


def model():
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.1))


def inputs(batch_size=2):
    return torch.ones(batch_size, 8)


def loss(output):
    return output.mean()
""",
    "lstm": """
import torch


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 4)

    def forward(self, x):
        return self.lstm(x)[0]


def model():
    return Tagger()


def inputs(batch_size=2):
    return torch.ones(3, batch_size, 4)
""",
    "random_": """
import torch

model = lambda: Noise()


class Noise(torch.nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


def inputs(batch_size=2):
    return torch.ones(batch_size, 8)
""",
    "counting": """
import torch


class Counting(torch.nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def model():
    return Counting()


def inputs(batch_size=2):
    return [torch.ones(batch_size, 8)]
""",
    "exits": "import sys, torch\ndef model():\n    sys.exit(3)\ndef inputs(batch_size=1):\n    pass\n",
    "none": "import torch\nmodel = 1\ndef inputs(batch_size=1):\n    return torch.ones(1)\n",
    "wrong": "import torch\ndef model():\n    return 3\ndef inputs(batch_size=1):\n    return torch.ones(1)\n",
    "shapes": "import torch\ndef model():\n    return torch.nn.Linear(4, 4)\n"
    "def inputs(batch_size=1):\n    return torch.ones(2, 3)\n",
    "raises": "import torch\ndef model():\n    return {}['layers']\ndef inputs(batch_size=1):\n    return 1\n",
    "empty": "import torch\ndef model():\n    return torch.nn.Identity()\ndef inputs(batch_size=1):\n    return {}\n",
}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 64}
LLAMA |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100}


def cell_of(workload: UserModel, mode: str, dtype: str, pass_name: str) -> Cell:
    shape = tuple((parameter.name, parameter.default) for parameter in workload.parameters)
    return Cell("torch", workload.name, "own", pass_name, "cpu", dtype, 1, shape, mode)


def prepared(adapter: Adapter, source: str, mode: str = "eager", dtype: str = "fp32", pass_name: str = "inference"):
    name = Path(source).name
    workloads.add({name: source})
    workload = workloads.get(name, pass_name)
    cell = cell_of(workload, mode, dtype, pass_name)
    adapter.configure(cell)
    parameters = dict(cell.parameters)
    sets = [workload.inputs(parameters, seed) for seed in (1, 2, 3)]
    return adapter.prepare(workload, cell, workload.seeded_weights(parameters, 0), sets)


def reference(step, calls: int) -> tuple[str, list]:
    """The name and the outputs of what a step's outputs are compared with."""
    examining.refuse_what_changes(step.user_model, 1e-4)
    name, outputs = examining.reference(step.user_model, step.user_model.eager(calls), calls, 1e-4)
    return name, [found.arrays for found in outputs]


def ended(adapter: Adapter, source: str) -> list[str]:
    """The status and the reason of a file that cannot be measured."""
    try:
        step = prepared(adapter, source)
        step()
        reference(step, 2)
    except Exception as error:
        return list(classify(error))
    return ["ok", ""]


def breaks(adapter: Adapter, source: str) -> dict:
    """What the compiled mode says of its breaks, and their price; its outputs beside eager mode's."""
    step, eager = prepared(adapter, source, "inductor"), prepared(adapter, source)
    differences = []
    for _ in range(4):  # every input set, since each may have guards of its own
        graph, plain = adapter.to_numpy(step()), adapter.to_numpy(eager())
        differences += [float(abs(graph[name] - plain[name]).max()) for name in plain]
    captured = step.capture()
    inside, whole = examining.priced(step, adapter.synchronize, Clocks())
    again = step.capture()
    return {
        "breaks": captured.breaks, "graphs": captured.graphs, "whole": captured.whole, "count": captured.graph_breaks,
        "inside": 0 < inside < whole, "settled": again == captured, "difference": max(differences),
        "outputs": sorted(plain), "program": step.program(),
    }  # fmt: skip


def trained(adapter: Adapter, source: str, mode: str) -> dict:
    """How far three iterations, begun again after one, are from the reference's; breaks; what is counted."""
    step = prepared(adapter, source, mode, pass_name="training")
    step()
    step.rewind()
    taken = [{name: value.copy() for name, value in adapter.to_numpy(step()).items()} for _ in range(3)]
    told, outputs = reference(step, 3)
    pairs = [(took[name], right[name]) for took, right in zip(taken, outputs, strict=True) for name in right]
    return {
        "worst": max(float(abs(one - other).max()) for one, other in pairs), "outputs": sorted(taken[0]),
        "moves": float(taken[0]["loss"][0] - taken[2]["loss"][0]), "reference": told,
        "breaks": [place for place, _ in step.capture().breaks], "flops": step.user_model.cost().flops,
    }  # fmt: skip


def unsettled(adapter: Adapter, source: str) -> list[float]:
    """Errors of eager mode and of a graph where AdamW makes whole steps of rounding errors, which no loss notices."""
    step = prepared(adapter, source, "inductor", pass_name="training")
    taken = [{name: value.copy() for name, value in adapter.to_numpy(step()).items()} for _ in range(3)]
    eager = [found.arrays for found in step.user_model.eager(3)]
    _, right = reference(step, 3)
    return [difference(joined(one), joined(right)).needed for one in (eager, taken)]


def joined(outputs: list[dict]) -> dict:
    """The outputs of several calls by call and name."""
    return {f"{index}.{name}": array for index, found in enumerate(outputs) for name, array in found.items()}


def fused_path_flops() -> list[int]:
    """FLOPs counted of torch's own attention, which takes a fused path here, and of the products that it is."""
    attention, x = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(2, 4, 8)
    with torch.inference_mode():
        counted = counting.count(lambda x: attention(x, x, x, need_weights=False), attention, lambda: [x])
    return [counted.flops, 2 * 2 * (4 * 8 * 4 * 8 + 2 * 4 * 4 * 8)]  # four projections, scores and their sums


def zero_classifier() -> list[bool]:
    """For each parameter of a library's model that begins with zeros, whether the suite's has any other number."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    sys.modules["torchvision"] = SimpleNamespace(models=SimpleNamespace(get_model=lambda name, weights: model))
    made = hubs.Library("torchvision:vit").call("model")
    return [bool(parameter.any()) for parameter in made.parameters()]


def main() -> None:
    folder = Path(sys.argv[1])
    MODELS["skeleton"] = new_workload.text("torch", "skeleton.py")
    for name, text in MODELS.items():
        (folder / f"{name}.py").write_text(text)
    for mode in ("inductor", "inductor-whole-iteration"):  # what is captured does not depend on what compiles it
        graphs.BACKENDS[mode] = ("eager", None)
    adapter = Adapter()
    answers = {"broken": breaks(adapter, str(folder / "broken.py"))}
    adapter.release()
    (folder / "again.py").write_text(MODELS["broken"])
    step = prepared(adapter, str(folder / "again.py"), "inductor")
    step()
    answers["again"] = [place for place, _ in step.capture().breaks]
    step = prepared(adapter, str(folder / "norm.py"))
    first = [adapter.to_numpy(step())["output"].tolist() for _ in range(2)]
    step.rewind()
    name, outputs = reference(step, 2)
    cost = step.user_model.cost()
    answers["norm"] = {
        "again": [adapter.to_numpy(step())["output"].tolist() for _ in range(2)] == first,
        "reference": name, "dtype": str(outputs[0]["output"].dtype), "bytes": cost.bytes, "unfused": cost.unfused_bytes,
    }  # fmt: skip
    answers["bf16"] = reference(prepared(adapter, str(folder / "norm.py"), dtype="bf16"), 1)[0]
    (folder / "llama").mkdir(exist_ok=True)
    (folder / "llama" / "config.json").write_text(json.dumps(LLAMA))
    step = prepared(adapter, f"transformers:{folder / 'llama'}")
    answers["transformers"] = [sorted(adapter.to_numpy(step())), reference(step, 1)[0], step.user_model.cost().flops]
    modes = ("eager", "inductor", "inductor-whole-iteration")
    answers["trained"] = {mode: trained(adapter, str(folder / "trained.py"), mode) for mode in modes}
    try:
        trained(adapter, str(folder / "dropped.py"), "eager")
    except Exception as error:
        answers["dropped"] = classify(error)
    answers["unsettled"] = unsettled(adapter, str(folder / "unsettled.py"))
    answers["lstm"] = [prepared(adapter, str(folder / "lstm.py")).user_model.cost().flops]
    for mode in ("inductor", "dynamo"):  # of the second mode torch says nothing
        step = prepared(adapter, str(folder / "lstm.py"), mode)
        step()
        answers["lstm"].append(step.capture().detail)
    others = [name for name in MODELS if name not in ("broken", "norm", "trained", "unsettled", "dropped", "lstm")]
    answers["ended"] = {name: ended(adapter, str(folder / f"{name}.py")) for name in others}
    answers["library"] = ended(adapter, "torchvision:resnet18")
    answers["zeros"] = zero_classifier()
    answers["fused path"] = fused_path_flops()
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
