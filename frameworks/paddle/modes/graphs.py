"""Graphs of Paddle: captures of `to_static`, and the exported program under `paddle.inference`."""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import paddle
from paddle import inference, nn
from paddle.jit.dy2static.error import ERROR_DATA

from frameworks.adapter import Capture, Step, Unsupported
from frameworks.paddle.inspect import program as programs
from frameworks.paddle.models import calls, matrices
from frameworks.program import Program
from measurement.cells import Cell
from workloads.matrices import SUM
from workloads.spec import Workload

FRAMEWORKS = f"{Path(__file__).parents[1]}/"
SIDES = ("keys", "values")


def specification(workload: Workload, cell: Cell, inputs: tuple) -> list[paddle.static.InputSpec]:
    """Return the inputs' shapes and types; with dynamic shapes, sizes that follow batch or sequence length are open."""
    axes = workload.dynamic_axes(dict(cell.parameters)) if cell.shapes == "dynamic" else [()] * len(inputs)
    return [
        paddle.static.InputSpec([None if i in free else n for i, n in enumerate(x.shape)], x.dtype, f"input_{number}")
        for number, (x, free) in enumerate(zip(inputs, axes, strict=True))
    ]


def in_mode(
    workload: Workload,
    cell: Cell,
    model: nn.Layer,
    tensors: Sequence[tuple],
    names: tuple[str, ...],
    outer: Callable[[Callable], Callable] = lambda call: call,
    restore: Callable[[], None] = lambda: None,
    cache: Sequence[tuple] = (),
) -> Step:
    """Return the model as the cell's mode calls it, eager or a graph; its results come under `names`.

    `cache`, of a model that has one, is its keys and values by layer.
    """
    if cell.mode in PREDICTORS:
        signature = specification(workload, cell, tensors[0])
        exported = ExportedWithCache(model, cell, signature, cache) if cache else Exported(model, cell, signature)
        call = outer(calls.named(exported, names))
        return Step(call, tensors, lambda: exported.captured, restore, exported.operators, exported.load)
    if cell.mode == "eager":
        call = calls.without_gradients(model)
        listed = partial(programs.executed, call, tensors[0], cell)
        return Step(outer(calls.named(call, names)), tensors, restore=restore, program=listed)
    signature = specification(workload, cell, tensors[0]) if cell.shapes == "dynamic" else None
    static, capture, operators = to_static(model, cell, signature)
    call = outer(calls.named(calls.without_gradients(static), names))
    return Step(call, tensors, capture, restore, operators)


def to_static(
    model: nn.Layer, cell: Cell, signature: list | None
) -> tuple[nn.Layer, Callable[[], Capture], Callable[[], Program | None]]:
    """Return the model as `cell.mode` captures it, the report of its capture, and the list of its operators.

    Without `full_graph`, graphs of fewer than ten operators would silently run eagerly; without a signature, each shape
    is traced.
    """
    backend = "CINN" if cell.mode == "to_static-cinn" else None
    static = paddle.jit.to_static(model, signature, full_graph=True, backend=backend)
    return static, lambda: captured(static, backend or "executor"), lambda: programs.captured(traced(static), cell)


# Modes that run an exported program, and whether with IR passes, and with oneDNN where that is the default.
PREDICTORS = {
    "inference": (True, True),
    "inference-no-onednn": (True, False),
    "inference-no-passes": (False, False),
}


@dataclass(frozen=True)
class Output:
    """The place of an exported program's output in the model's output, by number."""

    number: int


class Predictor:
    """An exported program under `paddle.inference`, in Paddle's defaults: IR passes, and oneDNN on a CPU with AVX2.

    `PREDICTORS` has the modes that omit a part of it. `enable_memory_optim` is absent: 3.3.1 raises on it.
    """

    def __init__(self, cell: Cell) -> None:
        self._cell, self._predictor = cell, None

    def __call__(self, *inputs):
        for handle, tensor in zip(self._inputs, inputs):  # noqa: B905 - timed
            handle.share_external_data(tensor)
        self._predictor.run()
        # The predictor leaves OpenMP at one thread, and the modes called in between would keep that.
        paddle.base.core.set_num_threads(self._cell.threads)
        return self._outputs

    def wanted(self) -> tuple[bool, bool]:
        """Return whether to use IR passes, and oneDNN."""
        return PREDICTORS[self._cell.mode]

    def configured(self, folder: str | Path) -> inference.Config:
        """Return the configuration of a folder's program."""
        names = ("model.json", "model.pdmodel")  # Paddle 3's file, Paddle 2's
        program = next(name for name in names if os.path.exists(f"{folder}/{name}"))
        config = inference.Config(f"{folder}/{program}", f"{folder}/model.pdiparams")
        if self._cell.device_kind == "gpu":
            config.enable_use_gpu(100, int(self._cell.device.split(":")[1]))  # MB to begin with
        config.set_cpu_math_library_num_threads(self._cell.threads)
        config.disable_glog_info()
        _configure(config, *self.wanted())
        return config

    def open(self, config: inference.Config) -> None:
        """Make the predictor for calls."""
        if self._cell.device_kind == "gpu":
            # A kernel that the build lacks leaves an error behind (only --force gets here with such a build), which
            # the predictor would take for its own; asking for free memory raises it, once.
            with contextlib.suppress(OSError, AttributeError):
                paddle.base.core.gpu_memory_available()
        self._predictor = inference.create_predictor(config)
        self._inputs = [self._predictor.get_input_handle(name) for name in self._predictor.get_input_names()]
        self._outputs = tuple(map(self._predictor.get_output_handle, self._predictor.get_output_names()))

    def structured(self, form: Any) -> Any:
        """Return the output handles in the form of the model's output. Raises ValueError where there are fewer."""
        return filled(form, self._outputs)


def filled(form: Any, outputs: Sequence[Any]) -> Any:
    """Return outputs of a program in the form of the model's output. Raises ValueError where there are fewer."""
    leaves = paddle.utils.flatten(form)
    if (count := len({leaf for leaf in leaves if isinstance(leaf, Output)})) != len(outputs):
        raise ValueError(f"the predictor has {len(outputs)} outputs and the captured program {count}.")
    values = [outputs[leaf.number] if isinstance(leaf, Output) else leaf for leaf in leaves]
    return paddle.utils.pack_sequence_as(form, values)


class Exported(Predictor):
    """A model that loading exports (`paddle.jit.save`) and opens: that is this mode's compilation."""

    OF_SAVING: ClassVar[dict[str, bool]] = {}  # options of `paddle.jit.save`

    def __init__(self, model: nn.Layer, cell: Cell, specification: list) -> None:
        super().__init__(cell)
        self._model = paddle.jit.to_static(model, specification, full_graph=True, backend=None)
        self._program: Any = None
        self._results: Any = None  # of the captured program, nested as in the model's output
        self.captured = Capture(
            whole=False, graphs=0, compilations=0, detail="The program is not exported or loaded yet."
        )

    def operators(self) -> Program | None:
        """Return the operators of the exported program, before the passes, which are the mode's purpose.

        It lacks operators that no output needs, such as those of a moved buffer: saving prunes them.
        """
        return programs.captured(self._program, self._cell)

    def form(self) -> Any:
        """Return the model's output with an `Output` for each tensor, which `paddle.jit.save` saves once."""
        kept: list[Any] = []
        leaves = []
        for value in paddle.utils.flatten(self._results):
            if isinstance(value, paddle.pir.Value):
                number = next((number for number, one in enumerate(kept) if one.is_same(value)), len(kept))
                kept += [value] if number == len(kept) else []
                value = Output(number)
            leaves.append(value)
        return paddle.utils.pack_sequence_as(self._results, leaves)

    def unneeded(self) -> list[int]:
        """Return the numbers of the inputs that no output of the captured program needs."""
        from paddle.autograd.backward_utils import ValueSet, get_real_op_inputs, get_real_op_outputs, some_in_set

        if self._model is None or not (known := programs_of(self._model)):  # loaded, or without a program
            return []
        inputs, outputs = (_values(nested) for nested in (known[-1].inputs, known[-1].outputs))
        needed = ValueSet(outputs)
        for operator in reversed(known[-1].main_program.global_block().ops):
            if some_in_set(get_real_op_outputs(operator), needed):
                needed.update(get_real_op_inputs(operator))
        return [number for number, value in enumerate(inputs) if value not in needed]

    def save(self, folder: str | Path) -> None:
        """Export the model into a folder."""
        paddle.jit.save(self._model, f"{folder}/model", **self.OF_SAVING)
        self._results = programs_of(self._model)[-1].outputs

    def load(self) -> None:
        with tempfile.TemporaryDirectory(prefix="paddle-inference-") as folder:
            self.save(folder)
            config = self.configured(folder)
            backend = f"paddle.inference(ir_optim={config.ir_optim()}, onednn={config.mkldnn_enabled()}, "
            backend += f"gpu={config.use_gpu()}, threads={config.cpu_math_library_num_threads()})"
            capture, self._program = captured(self._model, backend), saved(folder)
            self._model = None  # the predictor loads its own weights
            gc.collect()
            self.open(config)
        self.captured = capture


class ExportedWithCache(Exported):
    """Such a model whose cache is an input, which calls write to in place, as PaddleNLP's predictors have it.

    Neither the cache nor a result is copied: a token can go into the next call without reaching the host. The whole
    program is saved, since pruning removes writes to the cache that are not read again, as in a prompt. It runs without
    oneDNN, as in those predictors: with it, Paddle 3.3's passes let operators overwrite values that are read later.
    """

    OF_SAVING: ClassVar = {"skip_prune_program": True}

    def __init__(self, model: nn.Layer, cell: Cell, specification: list, cache: Sequence[tuple]) -> None:
        """Take a `model` of ids, a place unless it reads a prompt, and the cache: keys and values by layer."""
        pairs = [
            [
                paddle.static.InputSpec(tensor.shape, tensor.dtype, f"{name}_{layer}")
                for tensor, name in zip(pair, SIDES, strict=True)
            ]
            for layer, pair in enumerate(cache)
        ]
        place = specification[1:] or [None]
        super().__init__(model, cell, [specification[0], *place, pairs])
        self._cache = [tensor for pair in cache for tensor in pair]

    def __call__(self, *inputs):
        outputs = self._predictor.run([*inputs, *self._cache])
        paddle.base.core.set_num_threads(self._cell.threads)  # as above
        return outputs

    def wanted(self) -> tuple[bool, bool]:
        return PREDICTORS[self._cell.mode][0], False


def _values(nested: Any) -> list[Any]:
    """Return the values of a captured program in its inputs or outputs."""
    return [value for value in paddle.utils.flatten(nested) if isinstance(value, paddle.pir.Value)]


def _configure(config: inference.Config, passes: bool, onednn: bool) -> None:
    """Disable the passes and oneDNN where the mode has none. Raises Unsupported where Paddle does not disable them."""
    if not passes:
        config.switch_ir_optim(False)
    if not onednn:
        off = getattr(config, "disable_onednn", None) or getattr(config, "disable_mkldnn", None)  # its name in Paddle 2
        off and off()
    if config.ir_optim() != passes or (config.mkldnn_enabled() and not onednn):
        raise Unsupported(
            f"Paddle {paddle.__version__} cannot disable IR passes and oneDNN: choose MODE=inference or another "
            f"release of Paddle."
        )


def captured(static: nn.Layer, backend: str) -> Capture:
    """Read the programs that `to_static` traced. The last one is whole if it holds every linear layer's product."""
    known, program = static.forward.program_cache, traced(static)
    if program is None:
        return Capture(
            whole=False,
            graphs=0,
            compilations=0,
            detail="There is no program: the mode was not called yet, or to_static is disabled.",
        )
    names = [op.name() if callable(getattr(op, "name", None)) else op.type for op in program.global_block().ops]
    held = [layer for layer in static.sublayers() if isinstance(layer, matrices.Linear)]
    linears = len(held) + sum(isinstance(layer, nn.Linear) for layer in static.sublayers())
    sums = any(layer.form == SUM for layer in held)
    products = sum(programs.is_product(name) or (sums and name == "pd_op.sum") for name in names)
    detail = f"{len(names)} operators in {program.num_blocks} block(s); {products} products, {linears} linear layers"
    return Capture(program.num_blocks == 1 and products >= linears, len(known), 0, len(known), backend, detail)


def traced(static: nn.Layer, first: bool = False) -> paddle.static.Program | None:
    """Return the program that `to_static` traced last, or first, as its passes found it; None before the first call."""
    known = programs_of(static)
    return known[0 if first else -1].main_program if known else None


def saved(folder: str | Path) -> paddle.static.Program | None:
    """Return the program that `paddle.jit.save` wrote into a folder; None where it is none of Paddle 3's."""
    if not os.path.exists(f"{folder}/model.json"):
        return None
    program = paddle.static.Program()
    paddle.base.core.deserialize_pir_program(f"{folder}/model.json", program)
    return program


def traces_pir() -> bool:
    """Return whether `to_static` captures Paddle 3's kind of program."""
    return getattr(paddle.framework, "use_pir_api", bool)()


def programs_of(static: nn.Layer) -> list[Any]:
    """Return the programs that `to_static` traced, in their order."""
    return static.forward.program_cache.concrete_programs()


def reason_of(error: BaseException) -> tuple[str, str, int] | None:
    """Return Paddle's error that prevents a graph, and the file and line of the user's code in it.

    None for an error of another kind; the file is empty where Paddle names none.
    """
    data = getattr(error, ERROR_DATA, None)
    if data is None:
        return None
    places = [place for file, line, *_ in data.origin_traceback if (place := _origin(data.origin_info_map, file, line))]
    users = [place for place in places if not place[0].startswith(FRAMEWORKS)] or [("", 0)]
    return f"{data.error_type.__name__}: {' '.join(str(data.error_value).split())}", *users[-1]


def _origin(origins: Mapping[tuple[str, int], Any], file: str, line: int) -> tuple[str, int] | None:
    """Return the place from which Paddle made a line of code, or the last one before it that was made from any."""
    before = [number for name, number in origins if name == file and number <= line]
    if not before:
        return None
    place = origins[file, max(before)].location
    return place.filepath, place.lineno
