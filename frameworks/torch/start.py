"""Ways of PyTorch from a fresh process to the first answer."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from frameworks.adapter import DTYPES, Capture, Step, Unsupported
from frameworks.start import Place, Strategy
from frameworks.torch import FRAMEWORK, forms
from frameworks.torch.forms import aot_inductor
from frameworks.torch.modes import flat, graphs
from frameworks.torch.modes.inference import inference
from frameworks.torch.user_model import graph_breaks
from frameworks.torch.user_model import model as user_model
from frameworks.values import held, walk

CACHE_FILE, CLASSES = "cache.bin", "classes.json"
LACKING = {
    "capture": "torch.compile compiles what it captures",
    "exported": "AOTInductor compiles what torch.export gives, ahead of time",
}
# What torch's events of a compilation mean; events that are not here belong to those around them.
PHASES = {
    "entire_frame_compile": "trace",
    "build_guards": "guards",
    "backend_compile": "lowering",
    "compile_file": "kernels",
    "async_compile.wait": "kernels",
    "PyCodeCache.load_by_key_path": "kernels",
    "AOTAutogradCache.inductor_load": "load",
    "inductor_codecache_torch_key": "load",
    "CachingAutotuner.benchmark_all_configs": "autotuning",
    "CachingAutotuner.coordinate_descent_tuning": "autotuning",
    "CUDAGraphTreeManager.record_function": "recording",
}
LOADING = ("async_compile.wait", "PyCodeCache.load_by_key_path")  # where they come within the phase `load`


class Fresh(user_model.Model):
    """A user model as its user builds it: no call before the first one."""

    known: Mapping[str, Any] = {}

    def settle(self) -> None:
        self.autograd = self.ways[self.known.get("autograd") or next(iter(self.ways))]
        self.writes = ("input",) if self.known.get("fresh") else ()


class InputsOnly(Fresh):
    """A user model's inputs alone, where another process built the program."""

    alone = True

    def made(self) -> Any:
        return None

    def built(self, made: Any) -> Any:
        self._state = None
        return None

    def restore(self) -> None:
        return None


@dataclass
class Built:
    """A model on its device with the inputs of its calls, and the context of a call."""

    module: Any
    sets: Sequence[tuple]
    own: user_model.Model | None

    def step(self, called: Callable) -> Step:
        """Return the step that calls `called` as this model is called."""
        if self.own is None:
            return Step(inference(called), self.sets, _capture)
        return Step(self.own.calling(called), self.sets, _capture, self.own.restore, user_model=self.own)

    @property
    def first(self) -> tuple[tuple, dict[str, Any]]:
        """Return the positional and keyword arguments of the first call."""
        return (self.sets[0], {}) if self.own is None else self.sets[0]


def _capture() -> Capture:
    """Return the compilations so far of the whole process."""
    counted = graphs.internal("torch._dynamo.utils", "counters")["stats"]["unique_graphs"]
    return Capture(whole=False, compilations=counted)


def built(place: Place, model: bool = True) -> Built:
    """Return the place's model, built; without `model` its inputs alone."""
    adapter, cell = place.adapter, place.cell
    with place.phase("build"), adapter.on_device():
        if cell.implementation != "own":
            module = adapter.model(place.workload, cell, place.weights) if model else None
            return Built(module, [adapter.place(cell, arrays) for arrays in place.inputs], None)
        kind = type("Known", (Fresh if model else InputsOnly,), {"known": place.settings})
        caches = {name: os.environ[name] for name in FRAMEWORK.cache_variables if name in os.environ}
        own = kind(adapter, place.workload, place.weights, place.inputs, DTYPES[cell.dtype])
        adapter.refuse(cell)  # the file may have set a switch
        os.environ.update(caches)  # which the file may have set, too: code of other processes would be in them
        return Built(own.module, own.sets, own)


class Eager(Strategy):
    """Operator by operator."""

    def step(self, place: Place) -> Step:
        model = built(place)
        return model.step(model.module)


class Compile(Strategy):
    """torch.compile of the whole model; its first call compiles, with whatever caches there are."""

    def imports(self) -> None:
        import torch._dynamo
        import torch._inductor.compile_fx  # noqa: F401 - else the first call imports it

        self.events, self.limits = Events(), graph_breaks.Limits.followed()

    def step(self, place: Place) -> Step:
        return self.compiled(place, built(place))

    def compiled(self, place: Place, model: Built) -> Step:
        """Return the step of the compiled model; nothing is compiled yet."""
        if problem := graphs.missing_toolchain("inductor", place.adapter.device):
            raise Unsupported(problem)
        self.backend, self.outside = graphs.OnlyBackend("inductor", place.adapter.device), 0
        options = {
            "backend": self.backend,
            "fullgraph": model.own is None,
            "dynamic": graphs.DYNAMIC[place.cell.shapes],
        }
        step = model.step(self.compiles(model.module, options))
        called, step.capture = step.call, self.capture

        def call(*inputs: Any) -> Any:
            self.backend.ran = False
            output = called(*inputs)
            self.outside += not self.backend.ran
            return output

        step.call = call
        return step

    def compiles(self, module: torch.nn.Module, options: Mapping[str, Any]) -> Callable:
        """Return the module, compiled with these options of torch.compile."""
        return torch.compile(module, **options)

    def capture(self) -> Capture:
        """Return the compilations so far, and what runs in eager mode."""
        breaks, gave_up = graphs.count_breaks(), self.limits.gave_up
        return replace(_capture(), graph_breaks=breaks, calls_outside=self.outside, gave_up=gave_up)

    def fill(self, place: Place) -> None:
        self.call(place, self.step(place))

    def call(self, place: Place, step: Step) -> None:
        """Call a step once in the process that makes the artefact."""
        step.get_ready()
        place.adapter.synchronize(step())
        graphs.refuse_without_graph(self.backend.compiled)

    def within_first_call(self) -> Mapping[str, float]:
        graphs.refuse_without_graph(self.backend.compiled)
        return self.events.seconds


class Cached(Compile):
    """The same with caches that an earlier process filled; what they lack is compiled."""

    def imports(self) -> None:
        super().imports()
        self.built = built_targets()

    def within_first_call(self) -> Mapping[str, float]:
        counters = graphs.internal("torch._dynamo.utils", "counters")
        counted = counters["inductor"]
        hit = counted["fxgraph_cache_hit"] or counters["aot_autograd"]["autograd_cache_hit"]  # neither without caches
        self.loaded = bool(hit) and not (counted["fxgraph_cache_miss"] or counted["fxgraph_cache_bypass"] or self.built)
        return super().within_first_call()

    def capture(self) -> Capture:
        return replace(super().capture(), loaded=self.loaded)


def built_targets() -> list[str]:
    """Return a list to which every target of C++ is appended that Inductor builds from now on."""
    built: list[str] = []
    with contextlib.suppress(Unsupported):  # another version: such targets are not noted
        build = graphs.internal("torch._inductor.codecache", "_worker_compile_cpp")

        def noted(*given: Any, **named: Any) -> None:  # by torch's version: one builder, or several
            builders = [one for one in pytree.tree_leaves((given, named)) if hasattr(one, "get_target_file_path")]
            targets = [builder.get_target_file_path() for builder in builders]
            built.extend(target for target in targets if not os.path.exists(target))
            build(*given, **named)

        torch._inductor.codecache._worker_compile_cpp = noted
    return built


class Regional(Compile):
    """torch.compile of each repeated block: the first compiles, and the others run its code."""

    def compiles(self, module: torch.nn.Module, options: Mapping[str, Any]) -> Callable:
        for block in repeated(module):
            block.compile(**options)
        return module


def repeated(module: torch.nn.Module) -> list[torch.nn.Module]:
    """Return the blocks of the largest container whose children have one class. Raises Unsupported without one.

    Classes of torch itself come last: Dynamo skips their code, and tables of embeddings are large.
    """
    containers = [
        list(part.children())
        for part in module.modules()
        if isinstance(part, torch.nn.ModuleList | torch.nn.Sequential) and len(list(part.children())) > 1
    ]
    alike = [blocks for blocks in containers if len({type(block) for block in blocks}) == 1]
    if not alike:
        raise Unsupported("the model has no nn.ModuleList or nn.Sequential with blocks of one class.")
    own = [blocks for blocks in alike if not type(blocks[0]).__module__.startswith("torch.nn.")]
    return max(
        own or alike, key=lambda blocks: sum(weight.numel() for block in blocks for weight in block.parameters())
    )


class Shipped(Cached):
    """torch.compile after torch.compiler.load_cache_artifacts, from a file that another process saved."""

    def step(self, place: Place) -> Step:
        model = built(place)
        with place.phase("load"):
            torch.compiler.load_cache_artifacts((place.artefact / CACHE_FILE).read_bytes())
        return self.compiled(place, model)

    def fill(self, place: Place) -> None:
        self.call(place, self.compiled(place, built(place)))
        saved = torch.compiler.save_cache_artifacts()
        if saved is None:
            raise Unsupported("torch.compiler.save_cache_artifacts has nothing to save.")
        (place.artefact / CACHE_FILE).write_bytes(saved[0])


class AheadOfTime(Strategy):
    """The package that AOTInductor makes of torch.export's program; weights are in it, and no model is built."""

    def imports(self) -> None:
        import torch._inductor  # noqa: F401

    def step(self, place: Place) -> Step:
        model = built(place, model=False)
        with place.phase("load"):
            for module in json.loads((place.artefact / CLASSES).read_text()):
                importlib.import_module(module)
            called = aot_inductor.opened(place.artefact / aot_inductor.PACKAGE)
        return model.step(called)

    def fill(self, place: Place) -> None:
        if problem := aot_inductor.missing_toolchain(place.adapter.device):
            raise Unsupported(problem)
        model = built(place)
        args, kwargs = model.first
        with torch.no_grad():
            try:
                output = model.module(*args, **kwargs)
            except Exception as error:
                raise forms.refusal("the model does not run under torch.no_grad, as packages do", error) from error
            model.step(model.module).rewind()  # the call may have changed buffers, which the package holds
            forms.refuse_hidden_tensors(flat.apart(output)[1])
            program = forms.exported_of(model.module, args, kwargs)
        (place.artefact / CLASSES).write_text(json.dumps(classes_of(output)))
        aot_inductor.compile_into(program, place.artefact / aot_inductor.PACKAGE)
        aot_inductor.check(place.artefact / aot_inductor.PACKAGE)


def classes_of(output: Any) -> list[str]:
    """Return the modules that register the classes of an output with torch's pytrees: a package holds only names."""
    parts = walk(output, lambda one: [] if isinstance(one, torch.Tensor) else held(one))
    return sorted({type(one).__module__ for one in parts if type(one) in pytree.SUPPORTED_NODES})


class Events:
    """Seconds of the main thread by phase from now on: each moment belongs to the innermost event with a phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[tuple[str, str]] = []  # events, each with its phase
        self._since = 0
        with contextlib.suppress(Unsupported):  # another version: all is the first call's
            logger = graphs.internal("torch._dynamo.utils", "ChromiumEventLogger")
            self._observe(logger, "log_event_start", self._start)
            self._observe(logger, "log_event_end", self._end)

    def _observe(self, logger: type, name: str, note: Callable[[str, int], None]) -> None:
        before = getattr(logger, name)

        def noted(its: Any, event_name: str, time_ns: int, *words: Any, **how: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                note(event_name, time_ns)
            return before(its, event_name, time_ns, *words, **how)

        setattr(logger, name, noted)

    def _book(self, now: int) -> None:
        if self._open:
            phase = self._open[-1][1]
            self.seconds[phase] = self.seconds.get(phase, 0.0) + max(0, now - self._since) / 1e9
        self._since = now

    def _start(self, event: str, now: int) -> None:
        around = self._open[-1][1] if self._open else ""
        phase = around if around == "load" and event in LOADING else PHASES.get(event, around)
        if not phase:
            return
        self._book(now)
        self._open.append((event, phase))

    def _end(self, event: str, now: int) -> None:
        if not self._open or event not in [name for name, _ in self._open]:
            return
        self._book(now)
        while self._open.pop()[0] != event:
            pass


STRATEGIES: dict[str, type[Strategy]] = {
    "eager": Eager,
    "compile": Compile,
    "regional": Regional,
    "warm-cache": Cached,
    "shipped-cache": Shipped,
    "ahead-of-time": AheadOfTime,
    "ahead-of-time-no-compiler": AheadOfTime,
}
