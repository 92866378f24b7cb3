"""OpenVINO: openvino.convert_model of an exported program, saved as its own file, compiled for the CPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from frameworks.adapter import Unsupported
from frameworks.torch import forms
from frameworks.torch.forms import Tensors

sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type] # it would send telemetry

import openvino  # noqa: E402

MODEL = "model.xml"
PRECISION = "precision.txt"
TYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f64": torch.float64,
    "i64": torch.int64,
    "i32": torch.int32,
    "i8": torch.int8,
    "u8": torch.uint8,
    "boolean": torch.bool,
}
PRECISIONS = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}


class Form(forms.Form):
    """A request of one stream with the cell's threads, in the model's own precision."""

    def _settings(self) -> dict[str, Any]:
        return {
            "INFERENCE_NUM_THREADS": self.threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "ENABLE_CPU_PINNING": False,  # threads stay where the process may run
            "ENABLE_HYPER_THREADING": True,  # else it takes fewer threads than it is given
            "CPU_DENORMALS_OPTIMIZATION": True,  # as torch's threads do here
        }

    def start(self) -> Mapping[str, Any]:
        return {name.lower(): value for name, value in self._settings().items()}

    def build(self, exported: torch.export.ExportedProgram, tensors: Tensors, folder: Path) -> None:
        floating = [one.dtype for one in (*exported.state_dict.values(), *tensors) if one.is_floating_point()]
        precision = PRECISIONS.get(floating[0] if floating else torch.float32, "f32")
        (folder / PRECISION).write_text(precision)
        try:
            model = openvino.convert_model(exported, input=[tuple(tensor.shape) for tensor in tensors])
        except Exception as error:
            raise forms.refusal("openvino.convert_model cannot convert the model", error) from error
        openvino.save_model(model, folder / MODEL, compress_to_fp16=False)  # by default it halves fp32 weights

    def open(self, folder: Path) -> Callable[..., Tensors]:
        self._precision = (folder / PRECISION).read_text()
        settings = {**self._settings(), "INFERENCE_PRECISION_HINT": self._precision}
        try:
            compiled = openvino.Core().compile_model(folder / MODEL, "CPU", settings)
        except Exception as error:
            raise forms.refusal("OpenVINO cannot compile the model", error) from error
        self._compiled = compiled
        precision = compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
        threads = compiled.get_property("INFERENCE_NUM_THREADS")
        if precision != self._precision:
            raise Unsupported(f"OpenVINO computes in {precision} on this processor, not in {self._precision}.")
        if threads != self.threads:
            raise Unsupported(f"OpenVINO uses {threads} threads, and {self.threads} were requested.")
        request = compiled.create_infer_request()
        if free := [index for index, output in enumerate(compiled.outputs) if output.partial_shape.is_dynamic]:
            raise Unsupported(f"the shape of output {free[0]} depends on the inputs' values.")
        outputs = [(tuple(output.shape), TYPES.get(output.element_type.get_type_name())) for output in compiled.outputs]
        if None in [dtype for _, dtype in outputs]:
            kinds = {output.element_type.get_type_name() for output in compiled.outputs} - TYPES.keys()
            raise Unsupported(f"torch has no tensor for OpenVINO's {min(kinds)}.")

        def call(*tensors: torch.Tensor) -> list[torch.Tensor]:
            results = [torch.empty(shape, dtype=dtype) for shape, dtype in outputs]
            for index, result in enumerate(results):  # written in place: by default it copies them
                request.set_output_tensor(index, _shared(result))
            request.infer([_shared(tensor) for tensor in tensors], share_inputs=True, share_outputs=True)
            return results

        return call

    def engaged(self) -> str:
        return f"OpenVINO {', '.join(self._compiled.get_property('EXECUTION_DEVICES'))}, {self._precision}"


def _shared(tensor: torch.Tensor) -> openvino.Tensor:
    """Return the tensor's memory as OpenVINO takes it; NumPy has no bfloat16."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype is not torch.bfloat16:
        return openvino.Tensor(tensor.numpy(), shared_memory=True)
    return openvino.Tensor(tensor.view(torch.int16).numpy(), list(tensor.shape), openvino.Type.bf16)
