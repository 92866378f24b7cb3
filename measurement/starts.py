"""Strategies of `make start`, the phases of a start, and the job and report of a started process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from measurement.checked import Count, Duration, Positive
from measurement.noise import Noise


@dataclass(frozen=True)
class Way:
    """Description of a strategy that needs no framework.

    With `fills` an uncounted process makes its artefact first. `warm` replaces the empty compile cache with a copy of
    that process's cache. `hides_compilers` takes compilers off the PATH. `beside` names a variant's strategy; a variant
    is never recommended.
    """

    name: str
    summary: str
    fills: bool = False
    warm: bool = False
    hides_compilers: bool = False
    beside: str = ""


EAGER, CAPTURE, COMPILE, REGIONAL = "eager", "capture", "compile", "regional"
WARM, SHIPPED, EXPORTED = "warm-cache", "shipped-cache", "exported"
AHEAD, WITHOUT_COMPILER = "ahead-of-time", "ahead-of-time-no-compiler"
WAYS = {
    way.name: way
    for way in (
        Way(EAGER, "no graph"),
        Way(CAPTURE, "a graph captured in the process, which the framework's executor runs"),
        Way(COMPILE, "compiled in the process, caches empty"),
        Way(REGIONAL, "each repeated block compiled once, caches empty"),
        Way(WARM, "compiled with the local cache of an earlier process", fills=True, warm=True),
        Way(SHIPPED, "compiled with a shipped cache file, other caches empty", fills=True),
        Way(
            EXPORTED,
            "loads an exported graph; the process compiles it if the framework has a compiler",
            fills=True,
        ),
        Way(AHEAD, "loads code compiled ahead of time", fills=True),
        Way(
            WITHOUT_COMPILER,
            "loads code compiled ahead of time, with no compiler on PATH",
            hides_compilers=True,
            beside=AHEAD,
        ),
    )
}


# The phases of a start, in order; `first_run` is the rest of the first call.
PHASES = {
    "interpreter": "from exec to the first line of Python",
    "suite": "the suite's modules; weights and inputs from files",
    "imports": "imports of the framework, its compiler and model libraries",
    "build": "building the model and moving it to the device",
    "load": "loading artefacts and cached code",
    "trace": "capture or trace of the graph",
    "guards": "guards of the captured graph",
    "lowering": "lowering the graph to kernel source",
    "kernels": "compilation of kernels",
    "autotuning": "kernels chosen by trial",
    "recording": "CUDA graphs recorded",
    "first_run": "the rest of the first call",
    "compare": "comparing the first output with the reference",
}
MOST_UNACCOUNTED = 0.03  # of the wall time


@dataclass(frozen=True)
class StartJob:
    """Job of a process whose start is measured.

    It compares its first output with the file `reference`, and with `eager` if that has errors of its own. With
    `fills` it makes the strategy's artefact in the folder instead; with `refers` it makes the reference.
    """

    strategy: str
    artefact: str
    reference: str = ""
    eager: str = ""
    fills: bool = False
    refers: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Start:
    """Report of one start: seconds from exec to the compared first output, by phase, and the steady state after it."""

    wall_s: Positive
    phases: dict[str, Duration]
    parity: Duration | None  # the smallest tolerance that the first output meets; None if nothing is comparable
    tolerance: Duration
    right: bool
    memory_bytes: Count
    children_bytes: Count
    programs: str = ""
    programs_s: Duration = 0.0
    compiler: str = ""  # on the PATH
    samples: tuple[Positive, ...] = ()  # of the steady state, seconds per call
    host_loop_s: tuple[Positive, ...] = ()
    compilations: int | None = None  # after the first answer
    noise: Noise | None = None  # until the last sample
    eager_error: bool = False  # eager mode itself is far off the reference
    partial: bool = False  # a part of a user model is in no graph
    compiled_again: bool = False  # before the first answer, what its cache should hold
