"""ONNX Runtime: torch.onnx.export(dynamo=True), opened with the device's provider, tensors bound by address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import torch

from frameworks.adapter import Unsupported
from frameworks.torch import forms
from frameworks.torch.forms import Tensors

MODEL = "model.onnx"
PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
TYPES = {  # by their names in a session: https://onnx.ai/onnx/api/classes.html
    "tensor(float)": (torch.float32, onnx.TensorProto.FLOAT),
    "tensor(float16)": (torch.float16, onnx.TensorProto.FLOAT16),
    "tensor(bfloat16)": (torch.bfloat16, onnx.TensorProto.BFLOAT16),
    "tensor(double)": (torch.float64, onnx.TensorProto.DOUBLE),
    "tensor(int64)": (torch.int64, onnx.TensorProto.INT64),
    "tensor(int32)": (torch.int32, onnx.TensorProto.INT32),
    "tensor(int8)": (torch.int8, onnx.TensorProto.INT8),
    "tensor(uint8)": (torch.uint8, onnx.TensorProto.UINT8),
    "tensor(bool)": (torch.bool, onnx.TensorProto.BOOL),
}
ENTRIES = {
    "session.set_denormal_as_zero": "1",  # as torch's threads do here
    "session.force_spinning_stop": "1",  # its threads end with the call, before another mode's
    "session.record_ep_graph_assignment_info": "1",
}


class Form(forms.Form):
    """A session with the cell's threads, and nodes that are all on the device's provider."""

    own_memory = True

    def start(self) -> Mapping[str, Any]:
        wanted = PROVIDERS[self.device.type]
        if wanted not in onnxruntime.get_available_providers():
            build = f"onnxruntime {onnxruntime.__version__}"
            raise Unsupported(f"{build} has no {wanted}: install onnxruntime-gpu in place of it.")
        return {}

    def build(self, exported: torch.export.ExportedProgram, tensors: Tensors, folder: Path) -> None:
        names = [f"input_{index}" for index in range(len(tensors))]
        try:
            written = torch.onnx.export(exported, dynamo=True, verbose=False, input_names=names)
        except Exception as error:
            raise forms.refusal("torch.onnx.export cannot write the model", error) from error
        written.save(folder / MODEL, external_data=True)

    def open(self, folder: Path) -> Callable[..., Tensors]:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 3
        for name, value in ENTRIES.items():
            options.add_session_config_entry(name, value)
        wanted, place = PROVIDERS[self.device.type], self._on_gpu() if self.device.type == "cuda" else {}
        try:
            session = onnxruntime.InferenceSession(folder / MODEL, options, providers=[(wanted, place)])
        except Exception as error:
            raise forms.refusal("ONNX Runtime cannot open the model", error) from error
        self._prove(session, wanted)
        return self._bound(session)

    def _on_gpu(self) -> dict[str, str]:
        """Return the provider's options: calls are queued on a stream of torch's, and products use TF32 on request."""
        self._stream = torch.cuda.Stream(self.device)
        return {
            "device_id": str(self.device.index or 0),
            "use_tf32": str(int(self.dtype == "tf32")),  # its default
            "user_compute_stream": str(self._stream.cuda_stream),
        }

    def _prove(self, session: onnxruntime.InferenceSession, wanted: str) -> None:
        """Raise Unsupported where the session has other nodes than the wanted provider's."""
        if wanted not in session.get_providers():
            raise Unsupported(f"ONNX Runtime {onnxruntime.__version__} has no {wanted} here: it would run on the CPU.")
        if not hasattr(session, "get_provider_graph_assignment_info"):
            raise Unsupported(
                f"ONNX Runtime {onnxruntime.__version__} does not report providers: install 1.24 or newer."
            )
        nodes = [
            (part.ep_name, node.op_type)
            for part in session.get_provider_graph_assignment_info()
            for node in part.get_nodes()
        ]
        others = Counter(f"{kind} on {provider}" for provider, kind in nodes if provider != wanted)
        if others or not nodes:
            listed = ", ".join(f"{count} {what}" for what, count in others.most_common(5)) or "no node"
            raise Unsupported(f"ONNX Runtime runs nodes elsewhere than on {wanted}: {listed}.")
        casts = sum(kind == "Cast" for _, kind in nodes)
        self._engaged, self.detail = wanted, f"{len(nodes)} nodes, of which {casts} cast"

    def engaged(self) -> str:
        return f"ONNX Runtime, {self._engaged}"

    def _bound(self, session: onnxruntime.InferenceSession) -> Callable[..., Tensors]:
        """Return a function that runs the session on tensors in place, and writes outputs into new ones."""
        device, index = self.device.type, self.device.index or 0
        if unknown := {one.type for one in (*session.get_inputs(), *session.get_outputs())} - TYPES.keys():
            raise Unsupported(f"torch has no tensor for ONNX Runtime's {min(unknown)}.")
        inputs = [(int(one.name.removeprefix("input_")), one.name, TYPES[one.type][1]) for one in session.get_inputs()]
        outputs = [(one.name, *TYPES[one.type], tuple(one.shape)) for one in session.get_outputs()]
        if free := [name for name, _, _, shape in outputs if not all(isinstance(size, int) for size in shape)]:
            raise Unsupported(f"the shape of output {free[0]} depends on the inputs' values.")
        binding = session.io_binding()

        def call(*tensors: torch.Tensor) -> list[torch.Tensor]:
            kept = []
            for number, name, kind in inputs:
                tensor = tensors[number].contiguous()
                kept.append(tensor)
                binding.bind_input(name, device, index, kind, tensor.shape, tensor.data_ptr())
            results = []
            for name, dtype, kind, shape in outputs:
                result = torch.empty(shape, dtype=dtype, device=self.device)
                results.append(result)
                binding.bind_output(name, device, index, kind, shape, result.data_ptr())
            run(binding)
            return results

        run = self._queued(session) if device == "cuda" else session.run_with_iobinding
        return call

    def _queued(self, session: onnxruntime.InferenceSession) -> Callable[[Any], None]:
        """Return a function that queues a run on the GPU after torch's work so far and before its next."""
        options = onnxruntime.RunOptions()
        options.add_run_config_entry("disable_synchronize_execution_providers", "1")

        def run(binding: Any) -> None:
            current = torch.cuda.current_stream(self.device)
            self._stream.wait_stream(current)
            session.run_with_iobinding(binding, options)
            current.wait_stream(self._stream)

        return run
