"""PyTorch behind the boundary: eager, and torch.compile in its modes."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from frameworks import adapter, ranks, smoke_test
from frameworks.adapter import DTYPES, Effective, Step, Unsupported
from frameworks.torch import FRAMEWORK, forms
from frameworks.torch import device as gpu
from frameworks.torch.device import gpu_problem, settings
from frameworks.torch.models import build
from frameworks.torch.modes import cuda_graph, generation, graphs, training, whole_iteration
from frameworks.torch.user_model import model as user_model
from measurement.cells import Cell
from workloads.spec import Arrays, Workload


class Adapter(adapter.Adapter):
    """PyTorch on the CPU or on one GPU. Inference runs under `torch.inference_mode`, eager and graphs alike.

    In modes with CUDA graphs an output's memory is the graph's, valid until the next call of any such mode.
    """

    rules = user_model.Model.rules

    def __init__(self) -> None:
        super().__init__()
        self.device = torch.device("cpu")
        self.sharded: dict[str, Any] = {}  # by group, whose modes train one set of shards
        self._switches: dict[str, Any] = {}  # that a user's file may not change

    def obstacle(self, device: str, mode: str | None = None) -> str | None:
        return None if device == "cpu" else gpu_problem(_device(device).index)

    def smoke_test(self, device: str) -> dict[str, np.ndarray]:
        left, right = (torch.tensor(operand, device=_device(device)) for operand in (smoke_test.LEFT, smoke_test.RIGHT))
        ones = torch.ones(4, 4, device=left.device)
        results = {"ones": ones, "sum": left + right, "matmul": left @ right, "relu": torch.relu(left)}
        return {name: tensor.cpu().numpy() for name, tensor in results.items()}

    def configure(self, cell: Cell) -> Effective:
        self.device = _device(cell.device)
        gpu.set_switches(cell)
        self._switches = gpu.switches()
        if torch.get_num_interop_threads() != 1:
            torch.set_num_interop_threads(1)  # possible once; nothing here runs operators in parallel
        torch.set_flush_denormal(True)  # before the first parallel region: its threads inherit it
        on_gpu = self.device.type == "cuda"
        if on_gpu:
            torch.cuda.set_device(self.device)
        return Effective(
            threads=torch.get_num_threads(),
            device_name=torch.cuda.get_device_name(self.device) if on_gpu else None,
            tf32=torch.backends.cuda.matmul.allow_tf32 if on_gpu else False,
            settings=settings(self.device) | (training.SETTINGS if cell.pass_name == "training" else {}),
            libraries=gpu.libraries() if on_gpu else {},
        )

    def refuse(self, cell: Cell) -> None:
        """Raise Unsupported where a user's file changed a switch that the cell sets, and set it again.

        Raise it, too, where a switch for debugging is on.
        """
        super().refuse(cell)
        if switch := gpu.debugging(self.device):
            raise Unsupported(f"{switch} is on, which slows down eager mode more than graphs: turn it off")
        now = gpu.switches()
        changed = [name for name, value in self._switches.items() if now.get(name) != value]
        if changed:
            gpu.set_switches_again(cell, self._switches)
            self._changed.setdefault(cell.workload, f"torch.{changed[0]}")
        self.refuse_changed(cell)

    def start_compiler(self, cell: Cell) -> dict[str, Any]:
        _refuse_device(cell, self.device)
        if cell.mode in graphs.BACKENDS:
            extra = whole_iteration.SETTINGS if cell.mode == whole_iteration.MODE else {}
            extra = extra | ({"compile": "fullgraph=False"} if cell.implementation == "own" else {})
            return graphs.start(cell.mode, self.device) | extra
        if FRAMEWORK.mode(cell.mode).artefact:
            return dict(forms.load(cell.mode)(self.device, cell.threads, cell.dtype).start())
        return cuda_graph.settings(cell.pass_name) if cell.mode == cuda_graph.MODE else {}

    def compiler(self, cell: Cell) -> str:
        backend, _ = graphs.BACKENDS.get(cell.mode, (cell.mode, None))
        return "inductor" if cell.mode == "aot-inductor" else backend

    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        graphs.set_directories(cell.mode)
        return super().prepare(workload, cell, weights, inputs)

    def model(self, workload: Workload, cell: Cell, weights: Arrays) -> torch.nn.Module:
        """Return the group's model, which its modes share."""

        def make() -> torch.nn.Module:
            tensors = {name: self.tensor(array, DTYPES[cell.dtype]) for name, array in weights.items()}
            return build.build(workload, cell, tensors)

        return self.shared(cell, make)

    def tensor(self, array: np.ndarray, dtype: str) -> torch.Tensor:
        # Made outside inference mode, like all tensors here.
        floating = np.issubdtype(array.dtype, np.floating)
        return torch.tensor(array, dtype=getattr(torch, dtype) if floating else None, device=self.device)

    def synchronize(self, output: Any) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def processes(self, cell: Cell) -> int:
        return cell.ranks

    def start_others(self, commands: Sequence[Sequence[str]], elsewhere: bool) -> ranks.Others:
        from frameworks.torch.ranks import others

        return others(commands, elsewhere)

    def join(self, count: int) -> ranks.Ranks:
        from frameworks.torch.ranks import Ranks

        return Ranks(count, self.device)

    def communication(self, step: Step) -> tuple[float, float, float] | None:
        from frameworks.torch.inspect.profiler import communication

        return communication(step, self.synchronize)

    def release(self) -> None:
        super().release()
        self.sharded.clear()
        torch.compiler.reset()
        gc.collect()  # modules and their compiled code refer to each other
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def meter(self, cell: Cell) -> gpu.Meter | None:
        if self.device.type != "cuda":
            return None
        if cell.pass_name == "training":
            sharded = self.sharded.get(cell.group_id)
            return gpu.Meter(self.device, sharded.tensors() if sharded else ())
        user_model, model = self.user_models.get(cell.group_id), self.models.get(cell.group_id)
        module = user_model.module if user_model else model
        kind = gpu.Timer if FRAMEWORK.mode(cell.mode).artefact and forms.load(cell.mode).own_memory else gpu.Meter
        return kind(self.device, module.state_dict().values() if module else ())


def _device(name: str) -> torch.device:
    if name == "cpu":
        return torch.device("cpu")
    return torch.device("cuda", int(name.removeprefix("gpu:")) + ranks.place())


def _refuse_device(cell: Cell, device: torch.device) -> None:
    """Raise `Unsupported` where the device cannot run the cell as described."""
    if device.type == "cpu":
        if "cpu" not in FRAMEWORK.mode(cell.mode).devices:
            raise Unsupported(
                f"{cell.mode} consists of CUDA graphs, which need a GPU: choose DEVICE=gpu, or another MODE."
            )
        if cell.dtype == "tf32":
            raise Unsupported("TF32 exists on GPUs only: choose DTYPE=fp32, or DEVICE=gpu.")
    elif cell.dtype in ("tf32", "bf16") and torch.version.hip is None:
        major, minor = torch.cuda.get_device_capability(device)
        if major < 8:
            raise Unsupported(f"{cell.dtype} needs compute capability 8.0 or newer; this GPU has {major}.{minor}.")
    if generation.has_dynamic_cache(cell) and graphs.uses_cuda_graphs(cell.mode, device):
        raise Unsupported("a CUDA graph has a fixed length, and this cache grows: choose KV_CACHE=static.")
    if FRAMEWORK.mode(cell.mode).cache == cell.parameter("cache"):
        raise Unsupported(f"{cell.mode} equals eager mode here, whose cache is already {cell.parameter('cache')}.")
    problem = graphs.missing_toolchain(cell.mode, device) if cell.mode in graphs.BACKENDS else None
    if problem:
        raise Unsupported(problem)
