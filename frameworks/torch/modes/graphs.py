"""torch.compile, with separate captures, compilations and compile caches per mode."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import os
import re
import shutil
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from frameworks.adapter import Capture, Unsupported
from frameworks.program import Program
from frameworks.torch import FRAMEWORK
from frameworks.torch.inspect import program
from frameworks.values import held, walk

# Our graph modes: the backend of each, and torch.compile's name of the mode.
BACKENDS = {
    "inductor": ("inductor", "default"),
    "inductor-reduce-overhead": ("inductor", "reduce-overhead"),
    "inductor-max-autotune": ("inductor", "max-autotune"),
    "inductor-max-autotune-no-cudagraphs": ("inductor", "max-autotune-no-cudagraphs"),
    "inductor-freezing": ("inductor", "default"),
    "inductor-max-autotune-freezing": ("inductor", "max-autotune"),
    "inductor-whole-iteration": ("inductor", "default"),
    "cudagraphs": ("cudagraphs", None),
    "dynamo": ("eager", None),
    "aot-eager": ("aot_eager_decomp_partition", None),
}
# What runs a graph where no kernels are generated for it.
RUN_BY = {
    "cudagraphs": "functional operators' kernels",
    "eager": "eager's kernels",
    "aot_eager_decomp_partition": "decomposed operators' kernels",
}
_EXPLANATION = re.compile(r"^ *Explanation: (.+)", re.MULTILINE)
REASON_CHARACTERS = 400
_FORMED = (torch.Tensor, bool, int, float, str)
# `dynamic` of torch.compile, by the column `shapes`. False gives the same code for a single shape, but torch then sets
# and resets a switch in every call, which takes 20 us of 660 on a CPU.
DYNAMIC = {"static": None, "dynamic": True}
# Several modes compile one model in a process, and each alone would have Dynamo's limit of compilations to itself.
_ALONE = {"isolate_recompiles": True} if "isolate_recompiles" in inspect.signature(torch.compile).parameters else {}
COMPILE = functools.partial(torch.compile, **_ALONE)
# Inductor's switches of a mode in addition to those of torch.compile's mode.
OPTIONS: dict[str, dict[str, Any]] = {
    "inductor-freezing": {"freezing": True},
    "inductor-max-autotune-freezing": {"freezing": True},
}


def uses_cuda_graphs(mode: str, device: torch.device) -> bool:
    """Return whether the mode's kernels are in CUDA graphs on this device."""
    return device.type == "cuda" and FRAMEWORK.mode(mode).cuda_graphs


def internal(module: str, name: str) -> Any:
    """Return an object outside torch's API, which may have moved. Raises Unsupported with a sentence."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise Unsupported(
            f"torch {torch.__version__} has no {module}.{name}, which the suite needs to prove a capture: "
            f"`make setup FRAMEWORK=torch` installs a version that has it."
        ) from None


def why_nothing_is_compiled(before: Mapping[str, int] = MappingProxyType({})) -> Iterator[str]:
    """Yield the reasons for which torch.compile ran eager mode's code: a stance, and what Dynamo could not capture.

    `before` are earlier counts of `torch._dynamo.utils.counters["unimplemented"]` by their texts: those are omitted.
    """
    with contextlib.suppress(Unsupported):  # torch before 2.6 has no stances
        stance = internal("torch._dynamo.eval_frame", "_stance").stance
        if stance != "default":
            yield f'torch.compiler.set_stance("{stance}") is on, so no graph runs: remove it'
    counted = internal("torch._dynamo.utils", "counters")["unimplemented"]
    for text in (text for text, count in counted.items() if count > before.get(text, 0)):
        explained = _EXPLANATION.search(text)
        words = [text.partition("\n")[0], *([explained[1]] if explained else [])]
        yield ": ".join(words)[:REASON_CHARACTERS]
    if torch._dynamo.config.suppress_errors:
        yield "torch._dynamo.config.suppress_errors is on: turn it off to get torch's exception"


def compile_model(
    model: Callable, mode: str, device: torch.device, shapes: str
) -> tuple[Callable, Callable[[], Capture], Callable[..., Program | str]]:
    """Return the compiled module or function, the report of its capture, and the list of the graph's operators.

    Nothing is compiled yet.

    With dynamic `shapes`, one compilation serves all sizes; else torch detects which sizes change. A graph break is an
    error of the first call (`fullgraph`), not a slower mode under the same name.
    """
    backend = CountingBackend(mode, device)
    compiled = COMPILE(model, backend=backend, fullgraph=True, dynamic=DYNAMIC[shapes])
    return under_options(compiled, mode), backend.capture, partial(program.captured, backend.captured)


def under_options(compiled: Callable, mode: str) -> Callable:
    """Return `compiled`, with the mode's options set while it is called with shapes for the first time.

    Dynamo reads some as well, while it traces: whether weights are the graph's constants or its inputs. Other modes
    compile in this process without them.
    """
    options = OPTIONS.get(mode)
    if not options:
        return compiled
    import torch._inductor.config as inductor

    known = set()

    def call(*inputs: Any, **named: Any) -> Any:
        form = tuple(map(_form, inputs)), *((name, _form(given)) for name, given in named.items())
        if form in known:
            return compiled(*inputs, **named)
        known.add(form)
        with inductor.patch(options):
            return compiled(*inputs, **named)

    return call


def _form(given: Any) -> Any:
    """Return the properties of an input for which Dynamo may trace again: shapes and types of tensors, or its value."""
    if isinstance(given, torch.Tensor):
        return given.shape, given.dtype, given.requires_grad
    if isinstance(given, bool | int | float | str | None):
        return given
    inside = (one for one in walk(given, lambda one: () if isinstance(one, torch.Tensor) else held(one)))
    return type(given), *(_form(one) for one in inside if one is not given and isinstance(one, _FORMED))


def refuse_without_graph(compilations: int) -> None:
    """Raise Unsupported if torch.compile has compiled nothing in this process, so that eager mode's code ran."""
    if not compilations:
        reasons = "; ".join(why_nothing_is_compiled()) or "Dynamo skips code of torch.nn's classes"
        raise Unsupported(f"torch.compile has compiled no part of the model: {reasons}.")


def count_breaks() -> int:
    """Return Dynamo's count of the process's graph breaks."""
    return sum(internal("torch._dynamo.utils", "counters")["graph_break"].values())


def start(mode: str, device: torch.device) -> dict[str, Any]:
    """Start the mode's compiler; returns its settings."""
    return _start(BACKENDS[mode][0], device) | OPTIONS.get(mode, {})


@functools.cache
def _start(backend: str, device: torch.device) -> dict[str, Any]:
    """Initialise torch's compiler, once per process, by a graph of one operator; return the compiler's settings.

    Imports, instruction set checks and precompiled headers take longer than a small model's own compilation. The first
    mode to be called would pay for all of them.
    """
    import torch._inductor.config as inductor

    if inductor.cpp.vec_isa_ok is None and _has_own_kernels():  # loading an AOTInductor package for a GPU asks as well
        inductor.cpp.vec_isa_ok = True
    use_own_caches("start")
    with torch.inference_mode():
        torch.compile(lambda x: x + 1, backend=backend)(torch.ones(16, device=device))
    return {
        "compile_threads": getattr(inductor, "compile_threads", None),
        "freezing": getattr(inductor, "freezing", None),
        "compile": "fullgraph=True; dynamic as the column shapes says",
    }


def _has_own_kernels() -> bool:
    """Return whether torch's own kernels use the widest vectors of this CPU.

    Else Inductor builds and loads a library per instruction set, 5 to 20 s, since torch may lack functions of one.
    """
    capability = torch.backends.cpu.get_cpu_capability()
    return capability == "AVX512" or (
        capability == "AVX2" and not getattr(torch.cpu, "_is_avx512_supported", lambda: True)()
    )


class CountingBackend:
    """The backend that torch.compile would have chosen, behind a count of the graphs it was given.

    Dynamo's own counters belong to the process, which several modes share, so each mode counts itself.
    """

    def __init__(self, mode: str, device: torch.device):
        # torch recognises its own backends by name and treats others differently.
        self.__name__, torch_mode = BACKENDS[mode]
        if self.__name__ == "inductor":
            self._compile = internal("torch", "_TorchCompileInductorWrapper")(torch_mode, OPTIONS.get(mode), False)
        else:
            self._compile = internal("torch._dynamo.backends.registry", "lookup_backend")(self.__name__)
        # Here, since errors raised while Dynamo compiles become Dynamo's errors.
        self._compile_context = internal("torch._guards", "CompileContext")
        # Not its item "inductor": a copy takes that one's place when Inductor builds its patterns, once a process.
        self._counters = internal("torch._dynamo.utils", "counters")
        self._unimplemented = dict(self._counters["unimplemented"])  # the process's before this mode
        self._mode, self._device = mode, device
        self._cuda_graphs = uses_cuda_graphs(mode, device)
        self._frames: set[int] = set()  # the Python frames captured: more than one is a broken graph
        self._failed: set[int] = set()  # those that were not compiled, which runs them in eager mode (suppress_errors)
        self._compile_ids: list = []
        self._constants = 0  # weights that the latest graph contains
        self.captured = program.CapturedGraph()
        self._notes: dict[str, int] = {}  # Inductor's counts while it compiled for this mode

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable:
        compile_id = self._compile_context.current_compile_id()
        self._failed.add(compile_id.frame_id)
        self._constants = len(list(graph.parameters()))
        self.captured.keep(graph, inputs)
        before = dict(self._counters["inductor"])
        use_own_caches(self._mode)
        compiled = self._compile(graph, inputs)
        self._compile_ids.append(compile_id)  # not earlier: Inductor may ask Dynamo to trace once more, and raises
        self._failed.discard(compile_id.frame_id)
        self._frames.add(compile_id.frame_id)
        for name, count in self._counters["inductor"].items():
            self._notes[name] = self._notes.get(name, 0) + count - before.get(name, 0)
        return compiled

    def reset(self) -> None:
        """Forget the compilations; torch._dynamo.reset calls this."""
        getattr(self._compile, "reset", lambda: None)()  # a backend that is a function has nothing to forget

    def capture(self) -> Capture:
        """Return the capture so far; every compilation and every recording of a CUDA graph increases `compilations`."""
        graphs, recordings = len(self._frames), self._recordings()
        recorded = not self._cuda_graphs or (recordings and not self._notes.get("cudagraph_skips"))
        complete = graphs == 1 and not self._failed and recorded
        return Capture(
            whole=bool(complete and (self._constants or "freezing" not in OPTIONS.get(self._mode, {}))),
            graphs=graphs,
            graph_breaks=max(graphs - 1, 0),
            compilations=len(self._compile_ids) + len(recordings),
            backend=self._effective_backend(recordings) if graphs else None,
            detail="; ".join(self._details(recordings)),
            loaded=self._loaded(),
        )

    def _loaded(self) -> bool | None:
        """Return whether Inductor found every graph in its cache on disk; other backends have none."""
        if self.__name__ != "inductor" or not self._frames:
            return None
        missed = self._notes.get("fxgraph_cache_miss", 0) + self._notes.get("fxgraph_cache_bypass", 0)
        return not missed and self._notes.get("fxgraph_cache_hit", 0) > 0

    def _effective_backend(self, recordings: list) -> str:
        kernels = "Triton" if self._device.type == "cuda" else "C++"
        parts = [self.__name__, RUN_BY.get(self.__name__, kernels)]
        return " + ".join(parts + ["CUDA graphs"] * bool(recordings))

    def _details(self, recordings: list) -> Iterator[str]:
        if not self._frames:
            reasons = "; ".join(why_nothing_is_compiled(self._unimplemented))
            yield f"torch.compile has compiled nothing{reasons and f': {reasons}'}"
        if len(self._frames) > 1:
            yield f"the model was broken into {len(self._frames)} graphs"
        if self._cuda_graphs and self._notes.get("cudagraph_skips"):
            yield "torch did not use CUDA graphs (TORCH_LOGS=cudagraphs shows the reason)"
        elif self._cuda_graphs and not recordings:
            yield "no CUDA graph is recorded yet (torch records on the second call)"
        if recordings:
            yield f"{len(recordings[-1].non_static_input_idx)} tensors are copied into the CUDA graph at every call"
        if self._notes.get("fuse_attention"):
            yield f"{self._notes['fuse_attention']} attentions were replaced by the fused operator"
        if self._frames and "freezing" in OPTIONS.get(self._mode, {}):
            yield f"{self._constants} weights are constants of the graph"
        if self._frames and "max-autotune" in (BACKENDS[self._mode][1] or ""):
            tuned = self._notes.get("select_algorithm_autotune", 0)
            # On the CPU Inductor tunes products with a constant weight, if frozen, and of two activations.
            yield f"kinds of matrix product autotuned: {tuned}" if tuned else "no matrix product was autotuned"

    def _recordings(self) -> list:
        """Return the CUDA graphs recorded so far for this mode; all modes share the device's one tree of them."""
        if not self._cuda_graphs:
            return []
        get_manager = internal("torch._inductor.cudagraph_trees", "get_manager")
        manager = get_manager(self._device.index, create_if_none_exists=False)
        nodes = [node for roots in manager.roots.values() for node in roots] if manager else []
        for node in nodes:  # grows during the loop
            nodes.extend(child for children in node.children.values() for child in children)
        # Only Inductor notes in the tree which compilation a function came from.
        compile_ids = self._compile_ids if self.__name__ == "inductor" else [None]
        return [node for node in nodes if manager.id_to_compile_id.get(node.wrapped_function.id) in compile_ids]


class OnlyBackend(CountingBackend):
    """The backend of a process's only mode, whose caches are torch's own, with a note of each graph that runs."""

    ran = False

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable:
        compiled = self._compile(graph, inputs)
        self._compile_ids.append(self._compile_context.current_compile_id())

        def run(*arguments: Any) -> Any:
            self.ran = True
            return compiled(*arguments)

        return run

    @property
    def compiled(self) -> int:
        """The graphs compiled so far."""
        return len(self._compile_ids)

    @property
    def recorded(self) -> int:
        """The CUDA graphs recorded so far."""
        return len(self._recordings())


def _without_triton() -> str:
    """Return why there is no Triton, in a sentence."""
    if importlib.util.find_spec("triton") is not None:
        try:
            importlib.import_module("triton")
        except Exception as error:  # a file that is gone, a library of another version
            why = _first_line(error)
            return f"Inductor needs Triton, and the one installed does not load ({why}): reinstall it."
    return "Inductor needs Triton on a GPU of compute capability 7.0 or newer: install the `triton` package."


def missing_toolchain(mode: str, device: torch.device) -> str | None:
    """Return a sentence on the tools that this mode's compiler lacks on this machine; None if all are there."""
    if BACKENDS[mode][0] != "inductor":
        return None
    if device.type == "cuda":
        if not internal("torch.utils._triton", "has_triton")():
            return _without_triton()
        if not (os.environ.get("CC") or any(map(shutil.which, ("gcc", "clang", "cc")))):
            return "Triton found no C compiler to build its launchers: install gcc or set CC."
        return None
    return missing_cpp()


def missing_cpp() -> str | None:
    """Return a sentence on the tools for C++ that Inductor lacks on this machine; None if all are there."""
    get_cpp_compiler = internal("torch._inductor.cpp_builder", "get_cpp_compiler")
    try:
        get_cpp_compiler()
    except Exception as error:  # its class has moved between versions
        return f"Inductor found no C++ compiler ({_first_line(error)}): install g++ or set CXX."
    header = Path(sysconfig.get_path("include"), "Python.h")
    return None if header.exists() else f"Inductor's C++ needs {header}: install the headers of this Python."


def use_own_caches(mode: str) -> None:
    """Compile from here on in the mode's own cache directories, with nothing kept in memory.

    Modes share kernels, and a later mode would find those of an earlier one: its first call took 4 s instead of 29. The
    directories stay set until another mode compiles, because a backward graph is compiled in its first call.
    """
    set_directories(mode)
    internal("torch._inductor.utils", "clear_caches")()


def set_directories(mode: str) -> None:
    """Set the mode's own cache directories, also for a model that compiles itself in eager mode."""
    inductor, triton = _directories()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(inductor, mode)
    os.environ["TRITON_CACHE_DIR"] = os.path.join(triton, mode)


@functools.cache
def _directories() -> tuple[str, str]:
    """Return the directories in which the process keeps compiled code at first: Inductor's and Triton's."""
    inductor = os.environ.get("TORCHINDUCTOR_CACHE_DIR")  # of every worker: the import below takes 2 s
    inductor = inductor or internal("torch._inductor.runtime.cache_dir_utils", "cache_dir")()
    return inductor, os.environ.get("TRITON_CACHE_DIR") or os.path.join(inductor, "triton")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
