"""PaddlePaddle behind the boundary: eager, to_static, to_static with CINN, and the exported program under inference."""

from __future__ import annotations

import ctypes
import gc
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle
from paddle import inference, nn

import frameworks.adapter as boundary
from frameworks import canary
from frameworks.adapter import Capture, Effective, Step, Unsupported
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

_core = paddle.base.core
_DTYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_OUTPUTS = {1: ("output",), 2: ("last_hidden_state", "pooler_output")}
_MATMULS = ("pd_op.matmul", "pd_op.linear", "matmul_v2")  # 3.x's intermediate representation, then 2.x's


class Adapter(boundary.Adapter):
    """See `frameworks.adapter.Adapter`. Works with Paddle 2.6 and 3.x, whose graphs and file formats differ."""

    def __init__(self):
        self._device, self._peak_is_ours = "cpu", True

    def available(self, device: str) -> str | None:
        if device == "cpu":
            return None
        if not paddle.is_compiled_with_cuda():
            return f"Paddle {paddle.__version__} here is a CPU build; GPU builds are called paddlepaddle-gpu."
        index, count = int(device.split(":")[1]), paddle.device.cuda.device_count()
        if index >= count:
            return f"Paddle sees {count} GPUs, so there is no {device}."
        # Only 3.x tells what it was built for; for an older build the canary has to find out.
        built = [int(arch) for arch in getattr(paddle.version, "compiled_cuda_archs", [])]
        major, minor = paddle.device.cuda.get_device_capability(index)
        if built and not any(arch // 10 == major and arch % 10 <= minor for arch in built):
            return f"Paddle {paddle.__version__} was built for sm_{built}; this GPU is sm_{major}{minor}."
        return None

    def canary(self, device: str) -> dict[str, Any]:
        paddle.set_device(device)
        left, right = paddle.to_tensor(canary.LEFT), paddle.to_tensor(canary.RIGHT)
        results = {
            "ones": paddle.ones([4, 4], "float32"),
            "sum": left + right,
            "matmul": paddle.matmul(left, right),
            "relu": nn.functional.relu(left),
        }
        return {name: tensor.numpy() for name, tensor in results.items()}

    def configure(self, cell: Cell) -> Effective:
        paddle.set_device(cell.device)
        paddle.seed(0)
        self._device = cell.device
        settings: dict[str, Any] = {"place": str(paddle.framework._current_expected_place())}
        tf32 = self._set_tf32(cell) if cell.device_kind == "gpu" else None
        if cell.device_kind == "cpu" and cell.dtype == "tf32":
            raise Unsupported("TF32 is a format of NVIDIA's tensor cores; a CPU has none.")
        if _DTYPES[cell.dtype] != "float32":
            self._require(cell)
            settings["precision"] = f"parameters and floating-point inputs cast to {_DTYPES[cell.dtype]}; no autocast"
        # PaddleNLP builds its mask in the default type, which has to be the parameters'.
        paddle.set_default_dtype(_DTYPES[cell.dtype])
        _core.set_num_threads(cell.threads)
        flags = ["FLAGS_use_mkldnn", "FLAGS_new_executor_serial_run", "FLAGS_allocator_strategy"]
        settings |= paddle.get_flags(flags) | {
            "default_dtype": paddle.get_default_dtype(),
            "affinity": sorted(os.sched_getaffinity(0)),
            "flush_denormals": "no switch: off in eager and to_static, on while paddle.inference runs",
        }
        return Effective(_openmp_threads(), self._device_name(), tf32, settings)

    def _set_tf32(self, cell: Cell) -> bool:
        allowed = cell.dtype == "tf32"
        _core.set_cublas_switch(allowed)
        _core.set_cudnn_switch(allowed)
        if _core.get_cublas_switch() != allowed:
            raise Unsupported(f"Paddle {paddle.__version__} did not take the TF32 switch for {cell.dtype}.")
        return allowed

    def _require(self, cell: Cell) -> None:
        """Raise `Unsupported` where the device has no matrix product in the cell's type."""
        operand = paddle.ones([8, 8], "float32").astype(_DTYPES[cell.dtype])
        try:
            paddle.matmul(operand, operand)
        except RuntimeError as error:
            reason = f"Paddle {paddle.__version__} has no {_DTYPES[cell.dtype]} kernels for {cell.device_kind}"
            raise Unsupported(f"{reason} (its matmul is missing).") from error

    def _device_name(self) -> str | None:
        return paddle.device.cuda.get_device_name() if self._device != "cpu" else None

    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        if cell.mode == "to_static-cinn" and not paddle.is_compiled_with_cinn():
            raise Unsupported(f"Paddle {paddle.__version__} here was built without CINN; to_static would fall back.")
        dtype = _DTYPES[cell.dtype]
        model = self._model(workload, cell, weights)
        model.eval()
        if dtype != "float32":
            model.to(dtype=dtype)
        tensors = [tuple(_tensor(array, dtype) for array in arrays.values()) for arrays in inputs]
        if cell.mode == "inference":
            exported = _Exported(model, cell, tensors[0])
            return Step(exported, tensors, exported.capture)
        backend = "CINN" if cell.mode == "to_static-cinn" else None
        if cell.mode != "eager":
            model = paddle.jit.to_static(model, full_graph=True, backend=backend)

        def call(*arguments):
            with paddle.no_grad():
                return model(*arguments)

        return Step(call, tensors) if cell.mode == "eager" else Step(call, tensors, lambda: _capture(model, backend))

    def _model(self, workload: Workload, cell: Cell, weights: Arrays) -> nn.Layer:
        if cell.implementation == "library":
            from frameworks.paddle import library  # importing PaddleNLP takes seconds

            return library.bert(workload, weights)
        from frameworks.paddle import plain

        if workload.family == "mlp":
            return plain.mlp(weights)
        fused = cell.parameter("attention") == "fused"
        if fused and (cell.device_kind == "cpu" or _DTYPES[cell.dtype] == "float32"):
            # Elsewhere Paddle 3's operator is matmul, softmax and matmul again, and Paddle 2's fails.
            raise Unsupported("Paddle's fused attention needs a GPU and bf16 or fp16.")
        return plain.bert(workload, weights, fused)

    def synchronize(self, output: Any) -> None:
        if self._device != "cpu":  # raises on a CPU, where the work is done when the call returns
            paddle.device.cuda.synchronize()

    def to_numpy(self, output: Any) -> Arrays:
        tensors = output if isinstance(output, (tuple, list)) else (output,)
        return dict(zip(_OUTPUTS[len(tensors)], map(_array, tensors), strict=True))

    def release(self) -> None:
        gc.collect()
        if self._device == "cpu":
            return
        paddle.device.cuda.empty_cache()
        reset = getattr(paddle.device.cuda, "reset_max_memory_allocated", None)
        self._peak_is_ours = reset is not None  # 2.6 cannot reset it
        if reset:
            reset()

    def peak_memory_bytes(self) -> int | None:
        known = self._device != "cpu" and self._peak_is_ours
        return paddle.device.cuda.max_memory_allocated() if known else None


class _Exported:
    """The model saved by `paddle.jit.save` and run by `paddle.inference`; exported and optimised on the first call."""

    def __init__(self, model: nn.Layer, cell: Cell, inputs: tuple):
        self._model: nn.Layer | None = model
        self._cell, self._exports, self._backend = cell, 0, None
        self._specification = [paddle.static.InputSpec(t.shape, t.dtype, f"input_{i}") for i, t in enumerate(inputs)]

    def __call__(self, *arguments):
        if self._model is not None:
            self._export()
        for handle, tensor in zip(self._inputs, arguments, strict=True):
            handle.share_external_data(tensor)
        self._predictor.run()
        # The predictor sets its thread count when it starts and 1 when it ends; eager and to_static would keep the 1.
        _core.set_num_threads(self._cell.threads)
        return self._outputs

    def _export(self) -> None:
        with tempfile.TemporaryDirectory(prefix="paddle-inference-") as folder:
            static = paddle.jit.to_static(self._model, self._specification, full_graph=True, backend=None)
            paddle.jit.save(static, f"{folder}/model")
            self._graph = _capture(static, None)
            self._model = static = None  # the predictor holds its own weights
            program = f"{folder}/model.json"  # 3.x; 2.x writes .pdmodel
            program = program if os.path.exists(program) else f"{folder}/model.pdmodel"
            config = inference.Config(program, f"{folder}/model.pdiparams")
            self._configure(config)
            self._predictor = inference.create_predictor(config)
        self._inputs = [self._predictor.get_input_handle(name) for name in self._predictor.get_input_names()]
        self._outputs = tuple(self._predictor.get_output_handle(n) for n in self._predictor.get_output_names())
        self._exports += 1

    def _configure(self, config: inference.Config) -> None:
        """Paddle's defaults (IR passes, oneDNN where the CPU has AVX2) but for device and threads; read back."""
        if self._cell.device_kind == "gpu":
            config.enable_use_gpu(100, int(self._cell.device.split(":")[1]))
        config.set_cpu_math_library_num_threads(self._cell.threads)
        config.disable_glog_info()
        self._backend = (
            f"paddle.inference gpu={config.use_gpu()} ir_optim={config.ir_optim()} onednn={config.mkldnn_enabled()} "
            f"threads={config.cpu_math_library_num_threads()} memory_optim=False"
        )
        if not config.ir_optim():
            raise Unsupported("paddle.inference turned its IR passes off.")

    def capture(self) -> Capture:
        if not self._exports:
            return Capture(whole=False, graphs=0, compilations=0, detail="Not exported before its first call.")
        graph = self._graph
        return Capture(graph.whole, graph.graphs, graph.graph_breaks, self._exports, self._backend, graph.detail)


def _capture(model: nn.Layer, backend: str | None) -> Capture:
    """What `to_static` traced: programs, operators, and whether every linear layer of the model is in the last one."""
    static = model.forward
    traces = len(static.program_cache)
    if not traces:
        return Capture(whole=False, graphs=0, compilations=0, detail="No program: not called yet, or to_static is off.")
    program = static.program_cache.last()[-1][0].main_program
    operators = [op.name() if callable(getattr(op, "name", None)) else op.type for op in program.global_block().ops]
    matmuls = sum(name in _MATMULS for name in operators)
    linears = sum(isinstance(layer, nn.Linear) for layer in model.sublayers())
    whole = program.num_blocks == 1 and matmuls >= linears > 0
    detail = f"{len(operators)} operators in {program.num_blocks} block, {matmuls} matmuls for {linears} linear layers"
    return Capture(whole, traces, 0, traces, backend or "executor", detail)


def _tensor(array: np.ndarray, dtype: str) -> paddle.Tensor:
    tensor = paddle.to_tensor(np.array(array))
    return tensor.astype(dtype) if tensor.is_floating_point() else tensor


def _array(tensor: Any) -> np.ndarray:
    """A tensor's or an output handle's values on the host, floating point as float32."""
    if isinstance(tensor, paddle.Tensor):
        return tensor.astype("float32").numpy()
    values = tensor.copy_to_cpu()
    if values.dtype == np.uint16:  # bfloat16's bits
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32)


def _openmp_threads() -> int | None:
    """The size of OpenMP's next team on this thread: the only read-back, since Paddle offers none."""
    try:
        return ctypes.CDLL(os.path.join(paddle.sysconfig.get_lib(), "libiomp5.so")).omp_get_max_threads()
    except OSError:
        return None
