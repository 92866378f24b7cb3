"""PaddlePaddle behind the boundary: eager, to_static, to_static with CINN, and the exported program under inference."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle
from paddle import nn

from frameworks import adapter, ranks, smoke_test
from frameworks.adapter import DTYPES, Effective, Unsupported
from frameworks.paddle import device as gpu
from frameworks.paddle.modes import graphs, training
from frameworks.paddle.user_model import model as user_model
from measurement.cells import Cell

DEBUGGING = ["FLAGS_check_nan_inf", "FLAGS_benchmark"]
FLAGS = [
    "FLAGS_use_mkldnn",
    "FLAGS_new_executor_serial_run",
    "FLAGS_allocator_strategy",
    "FLAGS_use_stride_kernel",  # eager's transposes are views, which the next operator copies, slowly on a CPU
]


class Adapter(adapter.Adapter):
    """Paddle on the CPU or on one GPU, releases 2.6 and 3.x. Inference runs under `no_grad`, eager and graphs alike.

    Outputs of the mode `inference` are the predictor's own memory, valid until its next call.
    """

    rules = user_model.Model.rules

    def __init__(self) -> None:
        super().__init__()
        self._device = "cpu"

    def obstacle(self, device: str, mode: str | None = None) -> str | None:
        if mode is not None:
            return gpu.cinn_obstacle(device) if mode == "to_static-cinn" else None
        if device == "cpu":
            return None
        if not paddle.is_compiled_with_cuda():
            return f"Paddle {paddle.__version__} is a CPU build: use DEVICE=cpu, or a GPU build. {gpu.OTHER_BUILDS}."
        index, count = int(device.split(":")[1]), paddle.device.cuda.device_count()
        if index >= count:
            return f"There is no {device}: Paddle sees {count} GPU(s); check nvidia-smi and CUDA_VISIBLE_DEVICES."
        # Only 3.x reports what it was built for; an older build's kernels have to be tried, which the smoke test does.
        built = [int(architecture) for architecture in getattr(paddle.version, "compiled_cuda_archs", ())]
        major, minor = paddle.device.cuda.get_device_capability(index)
        if built and not any(architecture // 10 == major and architecture % 10 <= minor for architecture in built):
            reason = f"Paddle {paddle.__version__} was built for sm {built}; this GPU is sm {major}{minor}"
            return f"{reason}. {gpu.OTHER_BUILDS}."
        return None

    def smoke_test(self, device: str) -> dict[str, np.ndarray]:
        paddle.set_device(device)
        left, right = paddle.to_tensor(smoke_test.LEFT), paddle.to_tensor(smoke_test.RIGHT)
        results = {"ones": paddle.ones([4, 4], "float32"), "sum": left + right, "matmul": paddle.matmul(left, right)}
        results["relu"] = nn.functional.relu(left)
        arrays = {name: tensor.numpy() for name, tensor in results.items()}
        if device != "cpu" and (wrong := smoke_test.problem(arrays)):
            raise Unsupported(f"{wrong}: {gpu.kernels_held(device)}")
        return arrays

    def configure(self, cell: Cell) -> Effective:
        self._device, dtype, on_gpu = cell.device, DTYPES[cell.dtype], cell.device_kind == "gpu"
        paddle.set_device(cell.device)
        _require(cell)
        trains = cell.pass_name == "training"
        paddle.set_default_dtype("float32" if trains else dtype)  # PaddleNLP builds its mask in it
        paddle.base.core.set_num_threads(cell.threads)
        flags = list(FLAGS)
        if on_gpu:
            paddle.base.core.set_cublas_switch(cell.dtype == "tf32")
            paddle.base.core.set_cudnn_switch(cell.dtype == "tf32")
            flags += gpu.linear_flags(cell.dtype)
        settings = paddle.get_flags(flags) | {
            "place": paddle.get_device(),
            "parameters": f"{dtype}, cast, no autocast" if dtype != "float32" else dtype,
            "flush_denormals": "off (Paddle has no switch); on while paddle.inference runs",
            "affinity": sorted(os.sched_getaffinity(0)),
        }
        settings |= training.SETTINGS if trains else {}
        return Effective(
            threads=_openmp_threads(),
            device_name=paddle.device.cuda.get_device_name() if on_gpu else None,
            tf32=paddle.base.core.get_cublas_switch() if on_gpu else False,
            settings=settings,
            libraries={"CUDA": paddle.version.cuda(), "cuDNN": paddle.version.cudnn()} if on_gpu else {},
        )

    def refuse(self, cell: Cell) -> None:
        super().refuse(cell)
        if reason := self.obstacle(cell.device, cell.mode):
            raise Unsupported(reason)
        if slowing := [name for name, is_set in paddle.get_flags(DEBUGGING).items() if is_set]:
            raise Unsupported(f"{slowing[0]} is set, which slows down eager mode more than graphs: unset it")

    def processes(self, cell: Cell) -> int:
        return cell.ranks

    def start_others(self, commands: Sequence[Sequence[str]], elsewhere: bool) -> ranks.Others:
        from frameworks.paddle.ranks import Others

        return Others(commands)

    def join(self, count: int) -> ranks.Ranks:
        from frameworks.paddle.ranks import Ranks

        return Ranks()

    def tensor(self, array: np.ndarray, dtype: str) -> paddle.Tensor:
        return paddle.to_tensor(array, dtype if array.dtype.kind == "f" else None)

    def synchronize(self, output: Any) -> None:
        if self._device != "cpu":  # raises on a CPU, where calls return when their work is done
            paddle.device.cuda.synchronize()

    def release(self) -> None:
        super().release()
        gc.collect()
        with contextlib.suppress(OSError, AttributeError):  # glibc keeps freed models: 200 MB more a group of bert-base
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        if self._device != "cpu":
            paddle.device.cuda.empty_cache()

    def meter(self, cell: Cell) -> gpu.Meter | None:
        if cell.device == "cpu":
            return None
        own = self.user_models.get(cell.group_id) if cell.pass_name == "inference" else None
        layer = own.module if own else self.models.get(cell.group_id)
        has_its_own = layer is None or cell.mode in graphs.PREDICTORS
        return gpu.Meter(() if has_its_own else layer.state_dict().values())


def _require(cell: Cell) -> None:
    """Raise `Unsupported` where the device has no matrix products in the cell's type, or trains no ranks."""
    on_cpu = cell.device_kind == "cpu"
    if cell.dtype == "tf32" and (on_cpu or paddle.device.cuda.get_device_capability()[0] < 8):
        reason = f"TF32 needs an NVIDIA GPU of compute capability 8.0 or newer; this is {cell.device}"
        raise Unsupported(f"{reason}: DTYPE=fp32.")
    if cell.ranks > 1 and not on_cpu:
        raise Unsupported("Paddle trains several ranks on CPUs only: use DEVICE=cpu, or another framework.")
    try:
        operand = paddle.ones([8, 8], "float32").astype(DTYPES[cell.dtype])
        paddle.matmul(operand, operand)
    except RuntimeError as error:
        reason = f"Paddle {paddle.__version__} has no {DTYPES[cell.dtype]} matmul for {cell.device_kind}"
        raise Unsupported(f"{reason}, so a model with its parameters cast cannot run: use DTYPE=fp32.") from error


def _openmp_threads() -> int | None:
    """Return the threads OpenMP would start for this one; Paddle itself does not report it."""
    try:
        return ctypes.CDLL(os.path.join(paddle.sysconfig.get_lib(), "libiomp5.so")).omp_get_max_threads()
    except OSError:
        return None
