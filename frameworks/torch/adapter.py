"""PyTorch behind the boundary: eager, and torch.compile in its modes."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from frameworks import adapter, generating, smoke_test, values
from frameworks.adapter import Effective, Step, Unsupported
from frameworks.torch import FRAMEWORK
from frameworks.torch import device as gpu
from frameworks.torch.device import gpu_problem, settings
from frameworks.torch.models import build, plain
from frameworks.torch.modes import cuda_graph, generation, graphs, in_mode, iteration, training, whole_iteration
from frameworks.torch.user_model import model as user_model
from frameworks.torch.user_model import training as user_training
from measurement.cells import Cell
from workloads.passes import WITH_CACHE
from workloads.spec import Arrays, Workload
from workloads.user_model import UserModel

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Adapter(adapter.Adapter):
    """PyTorch on the CPU or on one GPU. Inference runs under `torch.inference_mode`, eager and graphs alike.

    In modes with CUDA graphs an output's memory is the graph's: it holds until the next call of any such mode.
    """

    def __init__(self) -> None:
        self._device = torch.device("cpu")
        self._models: dict[str, torch.nn.Module] = {}  # by group: its modes call one model, one copy of the weights
        self._own: dict[str, user_model.Model] = {}  # likewise, of users

    def obstacle(self, device: str, mode: str | None = None) -> str | None:
        return None if device == "cpu" else gpu_problem(_device(device).index)

    def smoke_test(self, device: str) -> dict[str, np.ndarray]:
        left, right = (torch.tensor(operand, device=_device(device)) for operand in (smoke_test.LEFT, smoke_test.RIGHT))
        ones = torch.ones(4, 4, device=left.device)
        results = {"ones": ones, "sum": left + right, "matmul": left @ right, "relu": torch.relu(left)}
        return {name: tensor.cpu().numpy() for name, tensor in results.items()}

    def configure(self, cell: Cell) -> Effective:
        self._device = _device(cell.device)
        torch.set_num_threads(cell.threads)
        if torch.get_num_interop_threads() != 1:
            torch.set_num_interop_threads(1)  # possible once; nothing here runs operators side by side
        torch.set_flush_denormal(True)  # before the first parallel region: its threads inherit it
        # One switch for cuBLAS, oneDNN and the code that Inductor generates; cuDNN has its own.
        torch.set_float32_matmul_precision("high" if cell.dtype == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = cell.dtype == "tf32"
        on_gpu = self._device.type == "cuda"
        if on_gpu:
            torch.cuda.set_device(self._device)
        return Effective(
            threads=torch.get_num_threads(),
            device_name=torch.cuda.get_device_name(self._device) if on_gpu else None,
            tf32=torch.backends.cuda.matmul.allow_tf32 if on_gpu else False,
            settings=settings(self._device) | (training.SETTINGS if cell.pass_name == "training" else {}),
            libraries=gpu.libraries() if on_gpu else {},
        )

    def start_compiler(self, cell: Cell) -> dict[str, Any]:
        _refuse(cell, self._device)
        if cell.mode in graphs.BACKENDS:
            extra = whole_iteration.SETTINGS if cell.mode == whole_iteration.MODE else {}
            extra = extra | ({"compile": "fullgraph=False"} if cell.implementation == "own" else {})
            return graphs.start(cell.mode, self._device) | extra
        return cuda_graph.settings(cell.pass_name) if cell.mode == cuda_graph.MODE else {}

    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        if cell.implementation == "own":
            return self._prepare_user_model(workload, cell, weights, inputs)
        if cell.pass_name == "training":
            return self._prepare_training(workload, cell, weights, inputs)
        if cell.group_id not in self._models:
            tensors = {name: self._tensor(array, cell.dtype) for name, array in weights.items()}
            self._models[cell.group_id] = build.build(workload, cell, tensors)
        model = self._models[cell.group_id]
        resident = [self.place(cell, arrays) for arrays in inputs]
        in_this_mode = partial(in_mode.in_mode, self._device, cell)
        if cell.pass_name not in WITH_CACHE:
            return in_this_mode(model, resident)
        places = [self.place(cell, {"place": place})[0] for place in workload.places_told(dict(cell.parameters))]
        return generation.step(workload, cell, model, in_this_mode, resident, places)

    def _prepare_user_model(self, workload: UserModel, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        trains = cell.pass_name == "training"
        if cell.group_id not in self._own:
            dtype = torch.float32 if trains else DTYPES[cell.dtype]
            self._own[cell.group_id] = user_model.Model(workload, weights, inputs, self._device, dtype, trains)
        model = self._own[cell.group_id]
        if trains:
            return user_training.prepare(model, cell, self._device, workload.source)
        self._models[cell.group_id] = model.module
        return user_model.prepare(model, cell, self._device, workload.source)

    def _prepare_training(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        """Give every mode parameters of its own, for each changes them; they stay in float32."""
        tensors = {name: self._tensor(array, "fp32") for name, array in weights.items()}
        model = plain.build(workload.model, dict(cell.parameters), tensors).train()
        loss = training.LOSSES[workload.family]
        objective = training.Objective(model, loss, self._device, cell.dtype == "bf16")
        compiled = partial(graphs.compile_model, mode=cell.mode, device=self._device, dynamic=cell.shapes == "dynamic")
        resident = [self.place(cell, arrays) for arrays in inputs]
        return iteration.step(objective, cell, resident, self._device, compiled)

    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        if cell.implementation == "own":
            return self._own[cell.group_id].place(arrays)
        dtype = "fp32" if cell.pass_name == "training" else cell.dtype  # autocast casts there
        return tuple(self._tensor(array, dtype) for array in arrays.values())

    def synchronize(self, output: Any) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def to_numpy(self, output: Any) -> Arrays:
        return values.read(generating.tensors(output), user_model.Model.rules).arrays

    def release(self) -> None:
        self._models.clear()
        self._own.clear()
        torch.compiler.reset()
        gc.collect()  # modules and their compiled code refer to each other
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def meter(self, cell: Cell) -> gpu.Meter | None:
        return gpu.Meter(self._device, self._models.get(cell.group_id)) if self._device.type == "cuda" else None

    def _tensor(self, array: np.ndarray, dtype: str) -> torch.Tensor:
        """Return a copy on the device, made outside inference mode as all tensors here; floats in the cell's dtype."""
        floating = np.issubdtype(array.dtype, np.floating)
        return torch.tensor(array, dtype=DTYPES[dtype] if floating else None, device=self._device)


def _device(name: str) -> torch.device:
    return torch.device("cpu") if name == "cpu" else torch.device("cuda", int(name.removeprefix("gpu:")))


def _refuse(cell: Cell, device: torch.device) -> None:
    """Raise `Unsupported` where the cell cannot be what it says."""
    if device.type == "cpu":
        if "cpu" not in FRAMEWORK.mode(cell.mode).devices:
            raise Unsupported(f"{cell.mode} is made of CUDA graphs, which need a GPU.")
        if cell.dtype == "tf32":
            raise Unsupported("TF32 is a format of GPUs.")
    elif cell.dtype in ("tf32", "bf16") and torch.version.hip is None:
        major, minor = torch.cuda.get_device_capability(device)
        if major < 8:
            raise Unsupported(f"{cell.dtype} needs compute capability 8.0 or newer; this GPU has {major}.{minor}.")
    if generation.has_dynamic_cache(cell) and graphs.uses_cuda_graphs(cell.mode, device):
        raise Unsupported(
            "a CUDA graph holds the addresses and sizes of one length, and this cache grows: CACHE=static."
        )
    if FRAMEWORK.mode(cell.mode).cache == cell.parameter("cache"):
        raise Unsupported(f"{cell.mode} is eager mode here, which has a {cell.parameter('cache')} cache already.")
    problem = graphs.missing_toolchain(cell.mode, device) if cell.mode in graphs.BACKENDS else None
    if problem:
        raise Unsupported(problem)
