"""Eager's own kernels captured once in a `torch.cuda.CUDAGraph` and replayed, as a user does by hand."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from frameworks.adapter import Capture, Unsupported

MODE = "cuda-graph"
# As torch's notes on CUDA graphs have it: in these, libraries load kernels, choose among them and take workspaces.
WARM_UP_CALLS = 3
_KERNEL_NODE = 0  # CU_GRAPH_NODE_TYPE_KERNEL


def settings(pass_name: str) -> dict[str, str]:
    """Return how a recording is made, for the record."""
    recipe = f"torch.cuda.CUDAGraph after {WARM_UP_CALLS} calls on a side stream; inputs copied into static buffers"
    optimizer = "torch.optim.AdamW(fused=True, capturable=True), inside the graph"
    return {"cuda_graph": recipe} | ({"optimizer": optimizer} if pass_name == "training" else {})


@dataclass(frozen=True)
class Recording:
    """A captured call: `replay` computes `output`, in place, from the buffers. `kernels` None: unreadable."""

    replay: Callable[[], None]
    output: Any
    kernels: int | None
    inputs: tuple[torch.Tensor, ...] = ()
    copy: Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor]], None] = lambda buffers, inputs: None


class Recorder:
    """Recorder of a call on a GPU: `warm_up`, then `capture`. A double replaces it where there is no GPU."""

    def __init__(self, device: torch.device):
        self._device = device

    def warm_up(self, call: Callable[[], Any]) -> None:
        """Call a few times on a second stream, as capture will, so that capture initialises nothing."""
        current, beside = torch.cuda.current_stream(self._device), torch.cuda.Stream(self._device)
        beside.wait_stream(current)
        with torch.cuda.stream(beside):
            for _ in range(WARM_UP_CALLS):
                call()
        current.wait_stream(beside)

    def capture(self, call: Callable[[], Any]) -> Recording:
        """Return the call's kernels as one graph; none has run.

        Raises `Unsupported` for a call that cannot be captured.
        """
        graph = _new_graph()
        # cuBLAS keeps a workspace per stream, which others (CUDA graph trees) may return to the allocator while this
        # graph still writes to it; one that is taken during the capture lies in the graph's own pool.
        getattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None)()
        try:
            with torch.cuda.graph(graph, stream=torch.cuda.Stream(self._device)):
                output = call()
        except RuntimeError as error:
            cause = error.__context__ or error  # the call's error, not the subsequent one of the capture
            if "captur" not in f"{cause} {error}":
                raise
            raise Unsupported(f"a CUDA graph cannot hold this call: {str(cause).strip().splitlines()[0]}.") from error
        return Recording(graph.replay, output, _kernel_nodes(graph))

    def listed(self, listing: Callable[[], Any]) -> Any:
        """Return the result of `listing` during a capture whose graph is discarded: libraries branch on a capture."""
        with torch.cuda.graph(_new_graph(), stream=torch.cuda.Stream(self._device)):
            return listing()


class Replayed:
    """`call`, recorded at its first call at each shape; from then on inputs are copied into the recording's buffers.

    Weights are used in place. An output is the graph's memory, valid until the next call. `after_warm_up` undoes
    changes by the calls before the capture.
    """

    def __init__(self, call: Callable[..., Any], recorder: Recorder, after_warm_up: Callable[[], None] = lambda: None):
        self._call, self._recorder, self._after_warm_up = call, recorder, after_warm_up
        self._recordings: list[Recording] = []
        self._latest: Recording | None = None

    def __call__(self, *inputs: torch.Tensor) -> Any:
        recording = self._latest
        if recording is None or not _fits(recording, inputs):
            recording = self._latest = self._recording_for(inputs)
        recording.copy(recording.inputs, inputs)
        recording.replay()
        return recording.output

    def capture(self) -> Capture:
        """Return every recording moves `compilations`; one holds the whole call, or there would be none."""
        recordings, latest = self._recordings, self._latest
        empty = any(recording.kernels == 0 for recording in recordings)
        if latest is None:
            detail = "nothing is captured yet"
        elif empty:
            detail = "the CUDA graph holds no kernel"
        else:
            number = "an unknown number of" if latest.kernels is None else latest.kernels
            detail = (
                f"{number} kernels in the CUDA graph; {len(latest.inputs)} inputs, but no weights, are copied per call"
            )
        return Capture(
            whole=bool(recordings) and not empty,
            graphs=1 if recordings else 0,
            graph_breaks=0,
            compilations=len(recordings),
            backend="eager kernels + CUDA graph" if recordings else None,
            detail=detail,
        )

    def operations(self, lister: Callable[..., Any], call: Callable | None = None, inputs: Any = None) -> Any:
        """Return operators that `lister` sees of the recorded call (or of `call` on `inputs`) while it is captured."""
        given = self._latest.inputs if inputs is None else inputs
        return self._recorder.listed(lambda: lister(call or self._call, given))

    def _recording_for(self, inputs: tuple[torch.Tensor, ...]) -> Recording:
        for recording in self._recordings:
            if _fits(recording, inputs):
                return recording
        buffers = tuple(given.detach().clone().requires_grad_(given.requires_grad) for given in inputs)

        def call() -> Any:
            return self._call(*buffers)

        self._recorder.warm_up(call)
        self._after_warm_up()
        captured = self._recorder.capture(call)
        # Decided once: entering `no_grad` takes the host as long as a small copy.
        copy = torch.no_grad()(_copy) if any(buffer.requires_grad for buffer in buffers) else _copy
        self._recordings.append(replace(captured, inputs=buffers, copy=copy))
        return self._recordings[-1]


def _copy(buffers: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> None:
    for buffer, given in zip(buffers, inputs, strict=True):
        buffer.copy_(given)


def _fits(recording: Recording, inputs: tuple[torch.Tensor, ...]) -> bool:
    return all(buffer.shape == given.shape for buffer, given in zip(recording.inputs, inputs, strict=True))


def _new_graph() -> torch.cuda.CUDAGraph:
    try:
        return torch.cuda.CUDAGraph(keep_graph=True)  # else its nodes cannot be read; the first replay instantiates it
    except TypeError:  # before torch 2.8
        return torch.cuda.CUDAGraph()


def _kernel_nodes(graph: torch.cuda.CUDAGraph) -> int | None:
    """Count the graph's kernels by the driver (CUDA Driver API, "Graph Management"); None if unreadable."""
    try:
        driver, handle = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(graph.raw_cuda_graph())
        count, kind = ctypes.c_size_t(), ctypes.c_int()
        if driver.cuGraphGetNodes(handle, None, ctypes.byref(count)):
            return None
        nodes = (ctypes.c_void_p * count.value)()
        if driver.cuGraphGetNodes(handle, nodes, ctypes.byref(count)):
            return None
        kinds = []
        for node in nodes:
            if driver.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind)):
                return None
            kinds.append(kind.value)
    except (OSError, AttributeError, RuntimeError):  # no such library (ROCm), or a torch that keeps no graph
        return None
    return kinds.count(_KERNEL_NODE)
