"""What Paddle's modes refuse and what they call, as JSON: `python paddle_refusals.py`, in Paddle's environment."""

import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import paddle
from paddle.jit.dy2static import utils

import frameworks
import workloads
from frameworks.adapter import Unsupported
from frameworks.paddle import FRAMEWORK, start
from frameworks.paddle import adapter as paddle_adapter
from frameworks.paddle import device as gpu
from frameworks.paddle.models import build
from frameworks.paddle.modes import graphs
from frameworks.paddle.user_model import model as user_model
from measurement.cells import Cell

CELL = Cell(
    "paddle", "mlp", "plain", "inference", "cpu", "fp32", 1, (("batch_size", 2), ("attention", "fused")), "eager"
)


def cinn(device: str, built: bool, available: bool = True, switch: str | None = None) -> str | None:
    """Why the mode is refused on a build and a device of that kind; `None` where Paddle itself would use CINN."""
    variables = {} if switch is None else {"ENABLE_CINN_IN_DY2ST": switch}
    with (
        mock.patch.object(paddle, "is_compiled_with_cinn", lambda: built),
        mock.patch.object(paddle, "set_device", lambda device: None),
        mock.patch.object(utils, "cinn_is_available", lambda: available and device != "cpu"),
        mock.patch.dict(os.environ, variables),
    ):
        return frameworks.load_adapter("paddle").obstacle(device, "to_static-cinn")


def given(call) -> dict:
    """What `paddle.jit.to_static` is told in `call(its stand-in)`, besides a model and a signature."""
    told = {}
    call(lambda model, *signature, **options: told.update(options) or model)
    return told


def called(mode: str, advertised: str) -> list[dict]:
    """What the mode passes to `to_static`, and what the description says that it does."""

    def run(stand_in):
        with mock.patch.object(paddle.jit, "to_static", stand_in):
            graphs.to_static(None, dataclasses.replace(CELL, mode=mode), None)

    def read(stand_in):
        eval(advertised, {"paddle": SimpleNamespace(jit=SimpleNamespace(to_static=stand_in)), "model": None})

    return [given(run), given(read)]


def refused(call) -> str:
    try:
        call()
    except Unsupported as error:
        return str(error)
    return ""


def no_library() -> None:
    with mock.patch.dict(sys.modules, {"frameworks.paddle.models.library": None}):
        build.build(workloads.get("bert-tiny"), dataclasses.replace(CELL, implementation="library"), {})


def old_programs() -> None:
    with mock.patch.object(paddle.framework, "use_pir_api", lambda: False):
        user_model.Predicted(None, CELL)


def no_flag() -> None:
    with mock.patch.object(paddle, "get_flags", mock.Mock(side_effect=ValueError)):
        gpu.linear_flags("tf32")


def filled(step) -> None:
    """Fill a warm cache by `step(folder)`."""
    place = SimpleNamespace(adapter=SimpleNamespace(synchronize=lambda output: None))
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(start.Compile, "step", lambda self, place: lambda: step(Path(folder, "device"))),
        mock.patch.dict(os.environ, {FRAMEWORK.cache_variables[0]: folder}),
    ):
        start.Warm().fill(place)


def refusals() -> dict[str, str]:
    """Every refusal that is no matter of a user's file, and can be brought about on a CPU."""
    workloads.add({"timm:vit": "timm:vit"})
    bert, changed = workloads.get("bert-tiny"), lambda **changes: dataclasses.replace(CELL, **changes)
    config = SimpleNamespace(switch_ir_optim=lambda on: None, ir_optim=lambda: True, mkldnn_enabled=lambda: True)
    return {
        "tf32": refused(lambda: paddle_adapter._require(changed(dtype="tf32"))),
        "bf16": refused(lambda: paddle_adapter._require(changed(dtype="bf16"))),
        "fused": refused(lambda: build.build(bert, CELL, {})),
        "library": refused(no_library),
        "passes": refused(lambda: graphs._configure(config, passes=False, onednn=False)),
        "old programs": refused(old_programs),
        "no flag": refused(no_flag),
        "empty cache": refused(lambda: filled(Path.mkdir)),
        "hub": refused(lambda: user_model.Model(None, workloads.get("timm:vit"), {"seed": 0}, [], "float32")),
        "gpu": frameworks.load_adapter("paddle").obstacle("gpu:0") or "",
    }


def main() -> None:
    advertised = {mode.name: mode.call for mode in frameworks.describe("paddle").modes}
    answers = {
        "cinn": {
            "cpu": cinn("cpu", built=True),
            "not built": cinn("gpu:0", built=False),
            "switched off": cinn("gpu:0", built=True, switch="0"),
            "not available": cinn("gpu:0", built=True, available=False),
            "used": cinn("gpu:0", built=True),
        },
        "calls": {mode: called(mode, advertised[mode]) for mode in ("to_static", "to_static-cinn")},
        "refusals": refusals(),
        "cache": [refused(lambda: filled(Path.touch)), paddle.get_flags(start.CACHE)[start.CACHE]],
    }
    print("\n" + json.dumps(answers))


if __name__ == "__main__":
    main()
