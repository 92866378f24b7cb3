"""Whether Paddle would compile with CINN where `to_static` is asked to: it says nothing where it does not."""

from __future__ import annotations

import paddle
from paddle.jit.dy2static import utils

LEFT_OUT = "would silently run plain to_static"


def obstacle(device: str) -> str | None:
    """Return why `to_static` would leave CINN out on `device`, with the way out; None where Paddle would use it."""
    if _used(device):
        return None
    version, switch = f"Paddle {paddle.__version__}", getattr(utils, "ENV_ENABLE_CINN_IN_DY2ST", None)
    if device == "cpu" and hasattr(utils, "infer_use_cinn_backend"):
        return (
            f"{version} compiles with CINN for NVIDIA GPUs alone and {LEFT_OUT} on a CPU, whatever the build: "
            "MODE=to_static, or DEVICE=gpu with a build that has CINN."
        )
    if not paddle.is_compiled_with_cinn():
        return (
            f"{version} here was built without CINN and {LEFT_OUT}: MODE=to_static, or PYTHON=/path/to/python of a "
            "build where paddle.is_compiled_with_cinn() is True."
        )
    if switch is not None and not switch.get():
        return f"The variable {switch.name} switches CINN off, and {version} {LEFT_OUT}: unset it, or MODE=to_static."
    return (
        f"{version} does not take CINN on {device} and {LEFT_OUT}: it wants a CUDA build on Linux and "
        "FLAGS_enable_pir_api=1, or MODE=to_static."
    )


def _used(device: str) -> bool:
    """Return Paddle's own decision, of which its device is a part; Paddle 2 has none but the build's."""
    decide = getattr(utils, "infer_use_cinn_backend", None)
    if decide is None or not paddle.is_compiled_with_cinn():
        return paddle.is_compiled_with_cinn()
    before = paddle.get_device()
    paddle.set_device(device)
    try:
        return decide(utils.Backend.CINN, paddle.static.BuildStrategy())
    finally:
        paddle.set_device(before)
