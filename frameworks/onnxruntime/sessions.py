"""Sessions of ONNX Runtime: a model's file, opened for a mode, and the graph of its optimizer."""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

from frameworks.adapter import Capture
from frameworks.onnxruntime.inspect import program
from frameworks.onnxruntime.writer import Writer
from frameworks.program import Program

PROVIDER = "CPUExecutionProvider"
BASELINE = "eager"
LEVELS = {
    BASELINE: onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "optimized": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
# Of a written model: with separate weights, since only its graph is read.
APART = {
    "session.optimized_model_external_initializers_file_name": "executed.weights",
    "session.optimized_model_external_initializers_min_size_in_bytes": "1024",
}
Value = onnxruntime.OrtValue
Shapes = tuple[tuple[int, ...], ...]


class Model:
    """A written graph with its inputs: name, type, and which axes a call may change."""

    def __init__(self, graph: Writer, outputs: dict[str, str], inputs: dict[str, np.ndarray], free: Sequence[tuple]):
        self._graph, self._outputs = graph, outputs
        self._types = {name: array.dtype for name, array in inputs.items()}
        self._free = tuple(free)
        self.names = tuple(outputs)
        self.inputs = tuple(inputs)

    def file(self, shapes: Shapes, fixed: bool) -> bytes:
        """Return the model for inputs of `shapes`, of which the free axes are open unless `fixed`."""
        # Axes of one length that change together have one name: the length is open, not the axis.
        axes = [
            [f"axis_{axis}" if axis in free and not fixed else n for axis, n in enumerate(shape)]
            for shape, free in zip(shapes, self._free, strict=True)
        ]
        types = zip(self._types.items(), axes, strict=True)
        return self._graph.model({name: (kind, dimensions) for (name, kind), dimensions in types}, self._outputs)

    def open(
        self,
        mode: str,
        shapes: Shapes,
        fixed: bool,
        entries: Mapping[str, str] = MappingProxyType({}),
        **settings: str | bool,
    ) -> onnxruntime.InferenceSession:
        """Return a session of this model, optimized as `mode` says; `settings` and `entries` are further options."""
        options = options_of(mode, entries, **settings)
        self._graph.weights.give(options)
        return onnxruntime.InferenceSession(self.file(shapes, fixed), options, providers=[PROVIDER])

    def save(self, path: Path, mode: str, values: Sequence[Value]) -> None:
        """Write the model for inputs like `values` as `mode` optimises it, with its weights next to it."""
        self.open(mode, _shapes(values), True, APART, optimized_model_filepath=str(path))


def options_of(
    mode: str, entries: Mapping[str, str] = MappingProxyType({}), **settings: str | bool
) -> onnxruntime.SessionOptions:
    """Return the options of a session that optimises as `mode` says, with further ones."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[mode]
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.use_per_session_threads = False  # the process's pool, whose size `configure` sets
    options.log_severity_level = 3  # errors; warnings come for every session whose optimized model is written
    for name, value in settings.items():
        setattr(options, name, value)
    for name, value in entries.items():
        options.add_session_config_entry(name, value)
    return options


class Runner:
    """A model in one mode: calling it takes an input set and returns its outputs by name.

    For shapes other than a session's fixed ones, a call opens a new session, as a graph recompiles.
    """

    def __init__(self, model: Model, mode: str, fixed: bool, first: Sequence[Value]):
        self._model, self._mode, self._fixed = model, mode, fixed
        self._first = _shapes(first)
        self._sessions: dict[Shapes, onnxruntime.InferenceSession] = {}

    def load(self) -> None:
        """Open the session of the first input set's shapes."""
        self._use(self._first)

    def __call__(self, *values: Value) -> dict[str, Value]:
        feeds = dict(zip(self._model.inputs, values))  # noqa: B905 - timed
        try:
            outputs = self._session.run_with_ort_values(self._model.names, feeds)
        except InvalidArgument:  # other shapes than the session's
            self._use(_shapes(values))
            outputs = self._session.run_with_ort_values(self._model.names, feeds)
        return dict(zip(self._model.names, outputs))  # noqa: B905

    def _use(self, shapes: Shapes) -> None:
        if shapes not in self._sessions:
            self._sessions[shapes] = self._model.open(self._mode, shapes, self._fixed)
        self._session = self._sessions[shapes]

    def profiled(self, prefix: Path) -> onnxruntime.InferenceSession:
        """Return a session like the first one that profiles from its opening on, the only way."""
        settings = {"enable_profiling": True, "profile_file_prefix": str(prefix)}
        return self._model.open(self._mode, self._first, self._fixed, **settings)

    def called_in(self, session: onnxruntime.InferenceSession, values: Sequence[Value]) -> None:
        """Call `session` instead of the mode's own."""
        session.run_with_ort_values(self._model.names, dict(zip(self._model.inputs, values, strict=True)))

    @functools.cached_property
    def executed(self) -> onnx.ModelProto:
        """The model as this mode's sessions execute it, written by a session opened for that alone."""
        with tempfile.TemporaryDirectory(prefix="onnxruntime-") as folder:
            path = Path(folder) / "executed.onnx"
            self._model.open(self._mode, self._first, self._fixed, APART, optimized_model_filepath=str(path))
            return onnx.load(path, load_external_data=False)

    def operations(self) -> Program:
        """Return the operators that the mode executes."""
        return program.captured(self.executed.graph)

    def capture(self) -> Capture:
        """Return an optimized mode's one graph, which is the model, and its changes by the optimizer."""
        backend = f"{PROVIDER}, {LEVELS[self._mode].name}"
        if self._mode == BASELINE:
            return Capture(whole=False, graphs=0, backend=backend)
        opened = len(self._sessions)
        return Capture(opened > 0, min(opened, 1), 0, opened, backend, self._detail if opened else "")

    @functools.cached_property
    def _detail(self) -> str:
        """The operators that the optimizer removed from the model and added to it."""
        written = Counter(
            node.op_type for node in onnx.load_from_string(self._model.file(self._first, True)).graph.node
        )
        executed = Counter(node.op_type for node in self.executed.graph.node)
        parts = [f"{-n} {name}" for name, n in _changes(written, executed) if n < 0]
        made = [f"{n} {name}" for name, n in _changes(written, executed) if n > 0]
        if not parts and not made:
            return "the optimizer changed nothing"
        return f"the optimizer removed {', '.join(parts) or 'nothing'} and added {', '.join(made) or 'nothing'}"


def _changes(written: Counter, executed: Counter) -> list[tuple[str, int]]:
    return [(name, executed[name] - written[name]) for name in sorted({*written, *executed})]


def _shapes(values: Sequence[Value]) -> Shapes:
    return tuple(tuple(value.shape()) for value in values)
