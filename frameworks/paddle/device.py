"""Abilities of this build of Paddle on a device, and a GPU's memory.

Where `to_static` should use CINN and cannot, Paddle reports nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import paddle
from paddle.jit.dy2static import utils

from frameworks import adapter
from frameworks.adapter import Unsupported
from frameworks.paddle import fatbin

OTHER_BUILDS = (
    "paddlepaddle-gpu on PyPI ends at 2.6.2, for GPUs up to compute capability 8.9, and needs the system's CUDA and "
    "cuDNN; 3.x includes them and is on Paddle's own package index: set "
    "PADDLE_INDEX=https://www.paddlepaddle.org.cn/packages/stable/cu126/, or cu129/ for Blackwell (10.x and 12.x), in "
    "the environment of every command"
)

LEGACY_LINEAR = "FLAGS_use_legacy_linear"
LEFT_OUT = "would silently run plain to_static"


class Meter(adapter.Meter):
    """Memory of the GPU that Paddle's allocator has in use; modes share the tensors `shared`."""

    def __init__(self, shared: Iterable[paddle.Tensor]) -> None:
        super().__init__(int(sum(tensor.size * tensor.element_size() for tensor in shared)))
        self._reset = getattr(paddle.device.cuda, "reset_max_memory_allocated", None)  # absent in 2.6

    def allocated_bytes(self) -> tuple[int, ...]:
        return (paddle.device.cuda.memory_allocated(),)

    def reset_peak(self) -> None:
        if self._reset:
            self._reset()

    def peak_bytes(self) -> tuple[int, ...] | None:
        return (paddle.device.cuda.max_memory_allocated(),) if self._reset else None


def linear_flags(dtype: str) -> list[str]:
    """Return the flags that choose the kernel of linear layers; for TF32, have them follow Paddle's switch for it.

    `linear_v2`, of 3.3 and newer, computes in strict float32 whatever the switch. The flag replaces it by a product
    and an addition, in eager mode and in captured programs. Raises `Unsupported` where Paddle lacks the flag.
    """
    try:
        paddle.get_flags(LEGACY_LINEAR)
    except ValueError:
        if dtype == "tf32" and hasattr(paddle._C_ops, "linear_v2"):
            reason = f"linear layers of Paddle {paddle.__version__} compute in strict float32"
            raise Unsupported(f"{reason}: choose DTYPE=fp32, or Paddle 3.3.1 or newer.") from None
        return []
    if dtype == "tf32":
        paddle.set_flags({LEGACY_LINEAR: True})
    return [LEGACY_LINEAR]


def kernels_held(device: str) -> str:
    """Return a sentence on the GPUs that this build has kernels for, the GPU `device`, and where other builds are."""
    index, version = int(device.split(":")[1]), f"Paddle {paddle.__version__} (CUDA {paddle.version.cuda()})"
    # The library of Paddle's own kernels; libphi, in the same folder, holds those of NVIDIA's libraries as well.
    held = ", ".join(fatbin.architectures(paddle.base.libpaddle.__file__)) or "no GPU"
    name = paddle.device.cuda.get_device_name(index)
    major, minor = paddle.device.cuda.get_device_capability(index)
    return f"{version} has kernels for {held}, but {device} ({name}) is sm_{major}{minor}. {OTHER_BUILDS}"


def cinn_obstacle(device: str) -> str | None:
    """Return why `to_static` would leave CINN out on `device`, with the way out; None where Paddle would use it."""
    if _uses_cinn(device):
        return None
    version, switch = f"Paddle {paddle.__version__}", getattr(utils, "ENV_ENABLE_CINN_IN_DY2ST", None)
    if device == "cpu" and hasattr(utils, "infer_use_cinn_backend"):
        return (
            f"{version} compiles with CINN for NVIDIA GPUs only and {LEFT_OUT} on a CPU, whatever the build: "
            "choose MODE=to_static, or DEVICE=gpu with a build that has CINN."
        )
    if not paddle.is_compiled_with_cinn():
        return (
            f"{version} here was built without CINN and {LEFT_OUT}: choose MODE=to_static, or PYTHON= of a "
            "build where paddle.is_compiled_with_cinn() is True."
        )
    if switch is not None and not switch.get():
        return f"The variable {switch.name} switches off CINN: {version} {LEFT_OUT}; unset it or use MODE=to_static."
    return (
        f"{version} does not use CINN on {device} and {LEFT_OUT}: choose MODE=to_static, or a CUDA build on Linux "
        f"with FLAGS_enable_pir_api=1."
    )


def _uses_cinn(device: str) -> bool:
    """Return Paddle's own decision, which depends on its device; Paddle 2 has only the build's."""
    decide = getattr(utils, "infer_use_cinn_backend", None)
    if decide is None or not paddle.is_compiled_with_cinn():
        return paddle.is_compiled_with_cinn()
    before = paddle.get_device()
    paddle.set_device(device)
    try:
        return decide(utils.Backend.CINN, paddle.static.BuildStrategy())
    finally:
        paddle.set_device(before)
