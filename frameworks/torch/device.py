"""Abilities of this build of torch on this machine, and its settings."""

from __future__ import annotations

import contextlib
import gc
import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from frameworks import adapter, obstacles
from measurement.cells import Cell

# Torch's newer words for the precision of float32, since version 2.9.
FREEZING = "_inductor.config.freezing"
_NEWER = tuple(
    f"backends.{part}fp32_precision"
    for part in (
        "",
        "cudnn.",
        "cudnn.conv.",
        "cudnn.rnn.",
        "cuda.matmul.",
        "mkldnn.matmul.",
        "mkldnn.conv.",
        "mkldnn.rnn.",
    )
)


def gpu_problem(index: int) -> str | None:
    """Return why this build of torch cannot use GPU `index`, in a sentence, or None."""
    build = f"torch {torch.__version__}"
    if torch.version.cuda is None and torch.version.hip is None:
        return f"{build} supports the CPU only: install a build for CUDA."
    if not torch.cuda.is_available():
        return f"{build}: {_no_gpu()}"
    if index >= torch.cuda.device_count():
        return obstacles.no_such(f"gpu:{index}", torch.cuda.device_count(), build)
    capability, architectures = torch.cuda.get_device_capability(index), torch.cuda.get_arch_list()
    if torch.version.hip is None and not any(obstacles.runs(name, capability) for name in architectures):
        return (
            f"{build} has kernels for {', '.join(architectures)}, but {torch.cuda.get_device_name(index)} is "
            f"sm_{capability[0]}{capability[1]}: install a build for a newer or older CUDA that includes it."
        )
    return None


def _no_gpu() -> str:
    """Return why there is no GPU, from the error of torch, else from the driver."""
    try:
        torch.cuda.init()
    except Exception as error:  # its class depends on the cause
        if reason := obstacles.from_words(str(error)):
            return reason
    built_for = torch.version.cuda
    return obstacles.no_gpu(int(built_for.split(".")[0]) if built_for else None, obstacles.driver_cuda())


class Meter(adapter.Meter):
    """Memory and time of a cell on `device`, a GPU; `shared` are the tensors that its modes share, if they exist yet.

    Memory is counted twice, after unused blocks were returned. Only what is reserved includes a CUDA graph's own pool,
    and only what is allocated includes blocks that an earlier mode left in part unused.
    """

    def __init__(self, device: torch.device, shared: Iterable[torch.Tensor]):
        super().__init__(sum(tensor.nbytes for tensor in shared))
        self._device = device

    def allocated_bytes(self) -> tuple[int, ...] | None:
        torch.cuda.synchronize(self._device)
        gc.collect()
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved(self._device), torch.cuda.memory_allocated(self._device)

    def reset_peak(self) -> None:
        self.allocated_bytes()  # the new peak starts at the present need
        torch.cuda.reset_peak_memory_stats(self._device)

    def peak_bytes(self) -> tuple[int, ...]:
        return torch.cuda.max_memory_reserved(self._device), torch.cuda.max_memory_allocated(self._device)

    def device_seconds(self, step: Callable[[], Any], calls: int) -> float | None:
        return busy_seconds(step, calls, self._device)


class Timer(Meter):
    """Time of a cell whose memory is not in torch's allocator."""

    def allocated_bytes(self) -> None:
        return None


def busy_seconds(step: Callable[[], Any], calls: int, device: torch.device) -> float | None:
    """Return seconds per call between events on the GPU's stream: kernels and gaps between them, the host kept ahead.

    A kernel that only waits goes first and lasts longer than the host needs to submit the calls. So the device never
    waits for the host. None on a CPU, or if the host could not be kept ahead: the stream's queue is bounded, and a
    single call may exceed it.
    """
    if device.type != "cuda":
        return None
    torch.cuda.synchronize(device)
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    cycles = 50_000_000  # some 30 ms
    for _ in range(2 if calls == 1 else 6):  # a call too long to queue several is tried twice
        torch.cuda._sleep(cycles)
        start.record()
        outputs = [step() for _ in range(calls)]
        end.record()
        ahead = not start.query()  # still waiting: the host was faster
        torch.cuda.synchronize(device)
        del outputs
        if ahead:
            return start.elapsed_time(end) / 1e3 / calls
        cycles, calls = cycles * 2, max(1, calls // 2)
    return None


def set_switches(cell: Cell) -> None:
    """Set the threads and the precision of float32 for `cell`."""
    torch.set_num_threads(cell.threads)
    # One switch for cuBLAS, oneDNN and the code that Inductor generates; cuDNN has its own.
    torch.set_float32_matmul_precision("high" if cell.dtype == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = cell.dtype == "tf32"


def switches() -> dict[str, Any]:
    """Return by name what `set_switches` sets, in torch's older and newer words.

    Torch returns no older word after a newer one was set: it is absent then.
    """
    found: dict[str, Any] = {"set_num_threads": torch.get_num_threads()}
    with contextlib.suppress(RuntimeError):
        found["set_float32_matmul_precision"] = torch.get_float32_matmul_precision()
    for name in ("backends.cudnn.allow_tf32", *_NEWER):
        with contextlib.suppress(RuntimeError, AttributeError):
            found[name] = operator.attrgetter(name)(torch)
    # Imported where a mode needs it: Inductor takes seconds.
    inductor = sys.modules.get("torch._inductor.config")
    found[FREEZING] = inductor.freezing if inductor else os.environ.get("TORCHINDUCTOR_FREEZING") == "1"
    return found


def set_switches_again(cell: Cell, kept: Mapping[str, Any]) -> None:
    """Set the switches of `kept`, which `switches` returned for `cell`."""
    for name in kept.keys() & set(_NEWER):
        part, _, attribute = name.rpartition(".")
        setattr(operator.attrgetter(part)(torch), attribute, kept[name])
    if inductor := sys.modules.get("torch._inductor.config"):
        inductor.freezing = kept[FREEZING]
    set_switches(cell)


def debugging(device: torch.device) -> str | None:
    """Return the name of a switch for debugging that is on and slows down eager mode more than graphs; None without."""
    blocking = "CUDA_LAUNCH_BLOCKING"
    switches = {
        "torch.autograd.set_detect_anomaly": torch.is_anomaly_enabled(),
        "a profiler of torch": torch.autograd._profiler_enabled(),
        "a TorchDispatchMode": torch._C._len_torch_dispatch_stack(),
        blocking: device.type == "cuda" and os.environ.get(blocking) == "1",
    }
    return next((name for name, on in switches.items() if on), None)


def settings(device: torch.device) -> dict[str, Any]:
    """Return every switch that affects measurements on `device`, read back from torch."""
    return _common_settings() | (_gpu_settings() if device.type == "cuda" else _cpu_settings())


def _common_settings() -> dict[str, Any]:
    tiny = torch.full((1,), 1e-39)  # a denormal
    return {
        "inference": "torch.inference_mode",
        "dtype": "parameters and floating-point inputs cast; no autocast",
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "flush_denormals": not bool((tiny * 0.5).view(torch.int32).any()),
        "interop_threads": torch.get_num_interop_threads(),
        "affinity": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
    }


def _cpu_settings() -> dict[str, Any]:
    return {
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "mkl": torch.backends.mkl.is_available(),
        "onednn": torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled,
        "onednn_bf16": _onednn_has("bf16"),
        "onednn_fp16": _onednn_has("fp16"),
    }


def _onednn_has(dtype: str) -> bool | None:
    """Return whether oneDNN has the type on this processor; None where this torch does not report it."""
    try:
        return getattr(torch.ops.mkldnn, f"_is_mkldnn_{dtype}_supported")()
    except AttributeError:
        return None


def libraries() -> dict[str, str]:
    """Return the versions of the GPU's libraries that this build has or finds; empty for a build without any."""
    versions = {"CUDA": torch.version.cuda, "HIP": torch.version.hip, "cuDNN": torch.backends.cudnn.version()}
    return {name: str(version) for name, version in versions.items() if version}


def _gpu_settings() -> dict[str, Any]:
    cuda, matmul = torch.backends.cuda, torch.backends.cuda.matmul
    return {
        "cudnn_tf32": torch.backends.cudnn.allow_tf32,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "nvidia_tf32_override": os.environ.get("NVIDIA_TF32_OVERRIDE"),
        "fp16_reduced_precision_reduction": matmul.allow_fp16_reduced_precision_reduction,
        "bf16_reduced_precision_reduction": matmul.allow_bf16_reduced_precision_reduction,
        "attention_flash": cuda.flash_sdp_enabled(),
        "attention_memory_efficient": cuda.mem_efficient_sdp_enabled(),
        "attention_cudnn": cuda.cudnn_sdp_enabled(),
        "nccl_nvls_enable": os.environ.get("NCCL_NVLS_ENABLE"),
        "attention_math": cuda.math_sdp_enabled(),
    }
