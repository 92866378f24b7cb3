"""What this build of Paddle holds for a GPU, and the GPU's memory."""

from __future__ import annotations

import paddle

from frameworks import adapter
from frameworks.paddle import fatbin

OTHER_BUILDS = (
    "paddlepaddle-gpu on PyPI ends at 2.6.2; 3.x, with kernels for Hopper and newer, is on Paddle's own package index: "
    "make bench FRAMEWORK=paddle DEVICE=gpu PADDLE_INDEX=https://www.paddlepaddle.org.cn/packages/stable/cu126/ "
    "(cu129 for CUDA 12.9), in every command"
)


class Meter(adapter.Meter):
    """Memory of the GPU that Paddle's allocator has in use."""

    def __init__(self) -> None:
        self._reset = getattr(paddle.device.cuda, "reset_max_memory_allocated", None)  # which 2.6 lacks

    def allocated_bytes(self) -> int:
        return paddle.device.cuda.memory_allocated()

    def reset_peak(self) -> None:
        if self._reset:
            self._reset()

    def peak_bytes(self) -> int | None:
        return paddle.device.cuda.max_memory_allocated() if self._reset else None


def kernels_held(device: str) -> str:
    """Return what GPUs this build has kernels for, what `device` is, and where other builds are."""
    index, version = int(device.split(":")[1]), f"Paddle {paddle.__version__} (CUDA {paddle.version.cuda()})"
    # The library of Paddle's own kernels; the one beside it, libphi, holds those of NVIDIA's libraries as well.
    held = ", ".join(fatbin.architectures(paddle.base.libpaddle.__file__)) or "no GPU"
    name = paddle.device.cuda.get_device_name(index)
    major, minor = paddle.device.cuda.get_device_capability(index)
    return f"{version} has kernels for {held}, and {device}, an {name}, is sm_{major}{minor}. {OTHER_BUILDS}"
