"""User models in torch: what each call is given, what a CUDA graph would replay, what is compared and counted.

Run in torch's environment: `python user_models_torch.py FOLDER` writes files there and prints what was found as JSON.
"""

import dataclasses
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

import workloads
from frameworks import program
from frameworks.adapter import Unsupported
from frameworks.torch.adapter import Adapter
from frameworks.torch.modes import cuda_graph, graphs
from frameworks.torch.user_model import model as user_model
from frameworks.values import Rules, Values, read
from measurement.cells import Cell
from worker import user_model as examining

HEAD = "import dataclasses, random, threading\nimport torch\nfrom torch import nn\nF = nn.functional\n"
MODELS = {
    "scalars": """
class Net(nn.Module):
    def forward(self, x, *, limit, names, options):
        assert names == ["a", "b"] and options["flag"] is True
        return x * limit
def inputs(batch_size=2):
    return {"x": torch.ones(batch_size), "limit": random.uniform(1, 2), "names": ["a", "b"], "options": {"flag": True}}
""",
    "keywords": """
class Net(nn.Module):
    def forward(self, x, y):
        return x - y
def inputs(batch_size=2):
    return {"y": torch.zeros(batch_size), "x": torch.rand(batch_size)}
""",
    "writes": """
class Net(nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2
def inputs(batch_size=2):
    return torch.zeros(batch_size)
""",
    "writes to an object": """
class Cache:
    def __init__(self, keys):
        self.keys = [keys]
class Net(nn.Module):
    def forward(self, x, cache):
        cache.keys.append(x)
        return torch.cat(cache.keys)
def inputs(batch_size=2):
    return torch.ones(batch_size), Cache(torch.zeros(3))
""",
    "complex": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("turn", torch.polar(torch.ones(4), torch.arange(4.0)))
    def forward(self, x):
        return torch.view_as_real(torch.view_as_complex(x.float()) * self.turn)
def inputs(batch_size=2):
    return torch.ones(batch_size, 4, 2)
""",
    "breaks with gradients": """
class Net(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            energy = x.square().sum()
            torch.save({}, "/dev/null")
            return torch.autograd.grad(energy * 2, x)[0]
def inputs(batch_size=4):
    return torch.randn(batch_size, 3)
""",
    "nothing": """
class Net(nn.Module):
    def forward(self, x, mask=None):
        return x * 2 if mask is None else x
def inputs(batch_size=2):
    return {"x": torch.ones(batch_size), "mask": None}
""",
    "twice": """
class Net(nn.Module):
    def forward(self, x, y):
        x.add_(1)
        return y * 2
def inputs(batch_size=2):
    x = torch.zeros(batch_size)
    return x, x
""",
    "nested lengths": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 3)
    def forward(self, x):
        return self.a(x["y"][0])
def inputs(batch_size=2):
    return {"x": {"y": [torch.randn(random.randint(2, 99), 4)]}}
""",
    "differentiates inputs": """
class Net(nn.Module):
    def forward(self, x):
        return torch.autograd.grad(x.square().sum(), x)[0]
def inputs(batch_size=2):
    return torch.ones(batch_size, requires_grad=True)
""",
    "branches": """
class Net(nn.Module):
    def forward(self, x, mask):
        if torch.compiler.is_compiling() or not mask.all():
            x = x + torch.where(mask, 0.0, -1e9)
        return x.cos()
def inputs(batch_size=4):
    return torch.randn(batch_size, 3), torch.ones(batch_size, 3, dtype=torch.bool)
""",
    "parametrized": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    def forward(self, x):
        return self.a(x)
def inputs(batch_size=2):
    return torch.randn(batch_size, 4)
""",
    "norm": """
class Net(nn.Module):
    def forward(self, x):
        return x / torch.linalg.norm(x, dim=-1, keepdim=True)
def inputs(batch_size=4):
    return torch.randn(batch_size, 3)
""",
    "own kernel": """
@torch.library.custom_op("check::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2
twice.register_fake(torch.empty_like)
class Net(nn.Module):
    def forward(self, x):
        return twice(x)
def inputs(batch_size=2):
    return torch.randn(batch_size, 4)
""",
    "another buffer": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
    def forward(self, x):
        self.count = self.count + 1
        return x * self.count
def inputs(batch_size=2):
    return torch.ones(batch_size)
""",
    "lock": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()
    def forward(self, x):
        return x + 1
def inputs(batch_size=2):
    return torch.ones(batch_size)
""",
    "sparse": """
class Net(nn.Module):
    def forward(self, x):
        return torch.sparse.mm(x, torch.ones(4, 2))
def inputs(batch_size=4):
    return torch.eye(batch_size).to_sparse()
""",
}  # fmt: skip


def prepared(adapter: Adapter, source: str, mode: str = "eager", dtype: str = "fp32"):
    name = Path(source).stem
    workloads.add({f"{name}.py": source})
    workload = workloads.get(f"{name}.py")
    parameters = tuple((parameter.name, parameter.default) for parameter in workload.parameters)
    cell = Cell("torch", f"{name}.py", "own", "inference", "cpu", dtype, 1, parameters, mode)
    adapter.configure(cell)
    sets = [workload.inputs(dict(parameters), seed) for seed in (1, 2, 3)]
    return adapter.prepare(workload, cell, workload.seeded_weights({}, 0), sets)


def outputs(step, calls: int = 3) -> list[dict[str, list]]:
    step.rewind()
    return [
        {name: array.tolist() for name, array in step.user_model.values(step()).arrays.items()} for _ in range(calls)
    ]


class Recorder:
    """Records a call as a CUDA graph does: what it wrote stays in the buffers, and a replay runs it on them again."""

    def warm_up(self, call) -> None:
        call()

    def capture(self, call):
        output = call()

        def replay() -> None:
            computed = call()
            with torch.inference_mode():
                output.copy_(computed)

        return cuda_graph.Recording(replay, output, 1)


def replayed(adapter: Adapter, sources: dict[str, str]) -> dict:
    """What a recorded call gives of inputs by keyword, by position, and with scalars that change."""
    found = {}
    for name in ("keywords", "writes", "scalars", "writes to an object", "differentiates inputs", "nothing", "twice"):
        model = prepared(adapter, sources[name]).user_model
        try:
            call = user_model.Replayed(model, model.call, Recorder(), model.restore)
            found[name] = [call(*inputs).tolist() for inputs in (*model.sets, *map(model.fresh, model.sets))]
        except Unsupported as error:
            found[name] = str(error)
    return found


class OnMeta(user_model.Model):
    """Stands in for a model on a GPU: tensors of device `meta` refuse those of the CPU, and have no values."""

    def values(self, output) -> Values:
        return Values({"": np.zeros(1)})


def frozen(adapter: Adapter, source: str) -> list[bool]:
    """Whether the weights are the graph's constants after each call, of which each has inputs of another length."""
    step = prepared(adapter, source, "inductor-freezing")
    return [(step(), step.capture().whole)[1] for _ in range(3)]


def without_room(adapter: Adapter, source: str) -> str:
    """What outputs are compared with where a copy of the model in float64 does not fit."""
    subject = prepared(adapter, source, dtype="bf16").user_model
    subject.memory = lambda dtype: (2_000_000_000 if dtype == "float64" else 1, 1_000_000_000)
    return examining.reference(subject, subject.eager(1), 1, 1e-4)[0]


def called_where_its_inputs_are(source: str) -> str:
    """The device of a model for training once it was called."""
    workload = workloads.get(f"{Path(source).stem}.py")
    sets = [workload.inputs({"batch_size": 2}, 1)]
    model = OnMeta(SimpleNamespace(device=torch.device("meta")), workload, {"seed": np.array(0)}, sets, "float32", True)
    model.repeated(1)
    return str(next(model.module.parameters()).device)


def kinds(rules: Rules) -> list:
    """The names and kinds of what an output of every kind is compared by, and what is not compared."""
    sparse = torch.sparse_coo_tensor([[1, 1, 0]], [1.0, 2.0, 3.0], (3,))
    output = {
        "ids": torch.tensor([2**60 + 1]), "flags": torch.tensor([True]), "turn": torch.tensor([1 + 2j]),
        "half": torch.tensor([1.5], dtype=torch.bfloat16), "sparse": sparse, "word": "yes", "number": 3,
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        "distribution": torch.distributions.Normal(torch.zeros(2), torch.ones(2), validate_args=False),
        "record": dataclasses.make_dataclass("Record", ["x"])(torch.ones(1)), "none": None, "generator": iter([1]),
        "empty": [], "model": torch.nn.Linear(1, 1),
    }  # fmt: skip
    found = read(output, rules)
    return [
        {name: [array.dtype.kind, array.reshape(-1).tolist()] for name, array in found.arrays.items()},
        found.not_compared,
    ]


def main() -> None:
    folder = Path(sys.argv[1])
    sources = {}
    for name, text in MODELS.items():
        path = folder / f"{name.replace(' ', '_')}.py"
        path.write_text(f"{HEAD}{text}\ndef model():\n    return Net()\n")
        sources[name] = str(path)
    for mode in ("inductor", "inductor-freezing"):  # what is captured does not depend on what compiles it
        graphs.BACKENDS[mode] = ("eager", None)
    adapter = Adapter()
    answers: dict = {}
    answers["scalars"] = {m: outputs(prepared(adapter, sources["scalars"], m)) for m in ("eager", "inductor")}
    for name in ("writes", "writes to an object", "another buffer"):
        step = prepared(adapter, sources[name])
        twice = [outputs(step, 4) for _ in range(2)]
        answers[name] = [step.user_model.writes, twice[0][0], twice[0] == twice[1], twice[0][0] == twice[0][3]]
    for dtype in ("fp32", "bf16"):
        step = prepared(adapter, sources["complex"], dtype=dtype)
        answers[f"complex {dtype}"] = np.array(outputs(step, 1)[0]["output"]).round(4).reshape(-1, 2)[:4].tolist()
        adapter.release()
    counted = ("own kernel", "sparse", "lock", "norm", "parametrized")
    answers["costs"] = {name: examining.cost_of(prepared(adapter, sources[name]).user_model) for name in counted}
    step = prepared(adapter, sources["breaks with gradients"], "inductor")
    step()
    steps = {mode: prepared(adapter, sources["branches"], mode) for mode in ("eager", "inductor")}
    steps["inductor"]()
    answers["branches"] = program.verdict([steps["eager"].program()], steps["inductor"].program())
    answers["breaks with gradients"] = [step.capture().breaks, step.watch is None]
    answers["replayed"] = replayed(adapter, sources)
    answers["frozen"] = frozen(adapter, sources["nested lengths"])
    answers["without room"] = without_room(adapter, sources["parametrized"])
    answers["trained on"] = called_where_its_inputs_are(sources["parametrized"])
    answers["kinds"] = kinds(step.user_model.rules)
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
