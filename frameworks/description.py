"""Description of a framework without importing it: its modes, models and thread settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mode:
    """A way to execute a model: a graph, or the one baseline that graphs are compared with.

    A graph mode that does not fuse runs eager's kernels and moves as many bytes as they do. `call` is the text that a
    user types for it. Nobody deploys a mode that is not `deployed`: it is a rung of a ladder, or an arm of an
    experiment on the cost of one part. It is measured only where it is named, and no verdict includes it. `cache`
    replaces the cell's KV cache; such a mode without a graph is a rung before eager mode, and no baseline. `one_shape`
    is the reason why a mode cannot serve every shape; empty where it can. `packages` are the modules that it alone
    needs: `requirements-<device>-<mode>.in` installs them, and the word `all` excludes such a mode.
    """

    name: str
    graph: bool
    summary: str
    devices: tuple[str, ...] = ("cpu", "gpu")
    passes: tuple[str, ...] = ("inference", "training", "prefill", "decode", "generate")
    fuses: bool = False  # pointwise operators into others; their results never reach memory
    tunes: bool = False  # tries kernels while it compiles, which takes longer than in other modes
    cuda_graphs: bool = False  # on a GPU a call replays kernels that were recorded once
    call: str = ""
    deployed: bool = True
    cache: str = ""
    one_shape: str = ""
    artefact: bool = False  # a deployed form of models: built into a file, which is loaded
    packages: tuple[str, ...] = ()

    @property
    def replays(self) -> bool:
        """Whether a call replays eager's own kernels, so that it cannot be faster than they are."""
        return self.cuda_graphs and not self.fuses

    @property
    def compile_rank(self) -> tuple[bool, bool, bool]:
        """Return the mode's rank by the expected cost of its first call, the cheapest first."""
        return self.graph, self.tunes, self.fuses

    @property
    def is_rung(self) -> bool:
        """Whether it is a mode that nobody deploys, other than the baseline."""
        return not self.deployed and (self.graph or bool(self.cache))


@dataclass(frozen=True)
class Rung:
    """A mode on the way from eager mode to a framework's last graph, and its addition to the rung before it.

    If it is `kept`, the rungs after it include the addition, even where this one could not be measured. A mode with
    different additions per pass has several rungs, each with its `passes`; empty: all passes of the mode.
    """

    mode: str
    adds: str
    kept: bool = True
    passes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Crossing:
    """Two effects of a graph, `names`, in every combination: modes with neither, the first, the second, both."""

    names: tuple[str, str]
    neither: str
    first: str
    second: str
    both: str

    @property
    def modes(self) -> tuple[str, ...]:
        """The four modes."""
        return self.neither, self.first, self.second, self.both


@dataclass(frozen=True)
class Framework:
    """A framework as the command line, the planner and the reports see it.

    `distributions` are the framework's packages, its own first: their versions are recorded. `default_graph` are the
    graph modes that users of the framework start with, the plainest first. On a GPU, `graph_on_gpu` adds those that its
    documentation recommends there. `models` maps an implementation to its model families, and `trained` are those that
    the plain one also trains.
    `environment(threads, device_kind)` returns the variables that must be set before the worker process starts.

    `cache_variables` name the directories of compiled code and built artefacts; the launcher points them at a private,
    empty one. By kind of device, `ladders` have the rungs from eager mode on, and `crossings` the effect of two rungs
    in either order.
    """

    name: str
    title: str
    distributions: tuple[str, ...]
    modes: tuple[Mode, ...]
    default_graph: tuple[str, ...]
    models: dict[str, tuple[str, ...]]
    graph_on_gpu: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()
    other_architectures: dict[str, str] = field(default_factory=dict)  # by family: how the library's model differs
    # The modes that train on several ranks, by strategy, and the families whose blocks can be checkpointed.
    strategies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    checkpointed: tuple[str, ...] = ()
    unrolled: tuple[str, ...] = ()  # families whose loop over positions its compiler unrolls on a GPU
    across_nodes: bool = False  # whether its ranks may be on several nodes
    # devices(ranks, threads of each, device kind): variables that give one process a device per rank.
    devices: Callable[[int, int, str], dict[str, str]] = field(default=lambda ranks, threads, device_kind: {})
    user_model_passes: tuple[str, ...] = ()  # the passes in which users' models run; empty: none
    user_model_dynamic: bool = False  # whether its graphs of users' models can serve every shape
    environment: Callable[[int, str], dict[str, str]] = field(default=lambda threads, device_kind: {})
    cache_variables: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()  # ways to the first answer with graphs, of `measurement/starts.py`
    streams: tuple[str, ...] = ()  # ways to serve calls of different lengths with graphs, of `measurement/streams.py`
    stores_streams: bool = False  # whether a process can load the code that an earlier one compiled for a stream
    # Added to the environment when profiling, with `{folder}` filled in: dumps of kernels' contents.
    dumps: dict[str, str] = field(default_factory=dict)
    # Whether the fused attention of (implementation, kind of device, dtype) is one kernel, which writes no scores.
    attention_kernel: Callable[[str, str, str], bool] = field(default=lambda implementation, device_kind, dtype: False)
    # fused_attention(device kind, dtype): whether plain models can use the framework's own operator.
    fused_attention: Callable[[str, str], bool] = field(default=lambda device_kind, dtype: False)
    # Users' default values of parameters, where they differ from the workload's.
    defaults: dict[str, str] = field(default_factory=dict)
    # conventions(device kind): formulas in which its operators differ from the others', by `Workload.conventions`.
    conventions: Callable[[str], dict[str, str]] = field(default=lambda device_kind: {})
    aliases: tuple[str, ...] = ()  # other names that its users type
    switches: tuple[str, ...] = ()  # prefixes of variables that configure it: a run keeps those that are set
    no_switches: tuple[str, ...] = ()  # prefixes of other programs' variables among these
    swept: bool = True  # whether FRAMEWORK=all includes it; else it must be named
    colour: str = ""  # of its marks in charts, #rrggbb, visible on white and on black
    ladders: Mapping[str, tuple[Rung, ...]] = field(default_factory=dict)
    crossings: Mapping[str, Crossing] = field(default_factory=dict)
    is_reference: bool = False  # a reference, which runs in the runner's environment and is never swept unless named

    @property
    def baseline(self) -> Mode:
        """The baseline of speedups: the mode without a graph and with the cell's cache."""
        (baseline,) = (mode for mode in self.modes if not mode.graph and not mode.cache)
        return baseline

    def recommended(self, device_kind: str) -> tuple[str, ...]:
        """Return the graph modes to start with on a kind of device."""
        return (*self.default_graph, *(self.graph_on_gpu if device_kind == "gpu" else ()))

    def is_switch(self, variable: str) -> bool:
        """Return whether an environment variable of that name configures the framework."""
        return variable.startswith(self.switches) and not variable.startswith(self.no_switches)

    def has(self, implementation: str, family: str, pass_name: str = "inference") -> bool:
        """Return whether such a model exists for this pass."""
        if implementation == "own":
            return pass_name in self.user_model_passes
        return family in self.models.get(implementation, ()) and (pass_name != "training" or family in self.trained)

    def one_shape(self, mode: Mode, implementation: str) -> str:
        """Return why a mode cannot serve every shape of such models; empty where it can."""
        if implementation == "own" and mode.graph and not self.user_model_dynamic:
            return mode.one_shape or "the axes of user inputs that may change are unknown"
        return mode.one_shape

    def ladder(self, device_kind: str, pass_name: str) -> tuple[Rung, ...]:
        """Return the rungs of a device for a pass, eager mode first; none where no ladder is declared."""
        rungs = (rung for rung in self.ladders.get(device_kind, ()) if pass_name in self.mode(rung.mode).passes)
        return tuple(rung for rung in rungs if not rung.passes or pass_name in rung.passes)

    def ladder_modes(self, device_kind: str, pass_name: str) -> tuple[str, ...]:
        """Return the modes of the ladder and of its crossing."""
        beside = self.crossing(device_kind, pass_name)
        return (*(rung.mode for rung in self.ladder(device_kind, pass_name)), *(beside.modes if beside else ()))

    def crossing(self, device_kind: str, pass_name: str) -> Crossing | None:
        """Return a device's crossing for a pass, if all its modes run that pass."""
        crossing = self.crossings.get(device_kind)
        return crossing if crossing and all(pass_name in self.mode(name).passes for name in crossing.modes) else None

    def mode(self, name: str) -> Mode:
        """Return the mode of that name; raises KeyError where there is none."""
        return {mode.name: mode for mode in self.modes}[name]


def openmp_environment(threads: int) -> dict[str, str]:
    """Return variables that frameworks on OpenMP or MKL read at start; `policies` decides how idle threads wait."""
    count = str(threads)
    return {
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
    }
