"""Types and bounds of the files in a run's folder other than records, as readers check them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Required, TypedDict

from measurement import checked
from measurement.checked import Count, Misfit
from measurement.energy import Energy
from measurement.kernels import CLASSES
from records.statuses import is_baseline

LEAST_SECONDS, MOST_SECONDS = 1e-12, 1e9


def _of_a_call(seconds: float) -> str | None:
    return None if LEAST_SECONDS <= seconds <= MOST_SECONDS else f"is not from {LEAST_SECONDS:g} to {MOST_SECONDS:g}"


def _of_a_part(seconds: float) -> str | None:
    return None if 0 <= seconds <= MOST_SECONDS else f"is not from 0 to {MOST_SECONDS:g}"


Seconds = Annotated[float, _of_a_call]
Part = Annotated[float, _of_a_part]  # of a call; 0 if it has no such part


class Series:
    """A long list of seconds per call."""

    @staticmethod
    def from_json(data: Any) -> Any:
        """Return the list. Raises Misfit."""
        if not isinstance(data, list) or not set(map(type, data)) <= {float, int}:
            raise Misfit("a series of times is not a list of numbers")
        # min and max may miss a NaN; the sum does not.
        wrong = bool(data) and (_of_a_call(min(data)) or _of_a_call(max(data)))
        if wrong or not math.isfinite(math.fsum(data)):
            raise Misfit(f"a time {wrong or 'is no number'}")
        return data


class Kernel:
    """A kernel of a profile: its name, seconds and occurrences per call, and in later profiles its operator."""

    @staticmethod
    def from_json(data: Any) -> Any:
        """Return the row. Raises Misfit."""
        if not isinstance(data, list) or len(data) not in (3, 4):
            raise Misfit("a kernel is not a list of name, seconds and occurrences")
        kinds = (str, Part, Part, str)
        return [checked.value(kind, entry, "a kernel's entry") for kind, entry in zip(kinds, data, strict=False)]


@dataclass(frozen=True)
class Plan:
    """`plan.json`, `explanation.json`, `reproduction.json` and `ab.json`: the options of a run."""

    given: dict[str, Any] = field(default_factory=dict)
    flags: dict[str, Any] = field(default_factory=dict)
    own: dict[str, Any] = field(default_factory=dict)
    cells: tuple[str, ...] = ()
    sides: tuple[Any, ...] = ()
    python: str | None = None
    number: int = 0
    started_at: Any = None


@dataclass(frozen=True)
class Machine:
    """`machine.json`."""

    machine_id: str | None = None
    cpu: str | None = None
    cpus_usable: int | None = None
    memory_bytes: int | None = None
    virtualised: bool | None = None
    gpus: tuple[dict[str, str], ...] | None = None
    left_out: dict[str, str] | None = None
    python: str | None = None


@dataclass(frozen=True)
class Call:
    """A call of torch's attention operator."""

    call: str
    mask: str
    count: Count
    chosen: str
    refused: dict[str, str]


@dataclass(frozen=True)
class Profiled:
    """A line of `explained.jsonl`: a profiled cell, or one that could not be profiled."""

    cell: str
    status: str
    framework: str
    workload: str
    implementation: str
    pass_name: str
    device: str
    dtype: str
    mode: str
    parameters: dict[str, Any]
    threads: int | None = None
    shapes: str | None = None
    baseline: bool | None = None
    control: bool | None = None
    reason: str | None = None
    flops: dict[str, Count] = field(default_factory=dict)
    latency_s: Seconds | None = None
    samples_s: Series | None = None
    launch: str | None = None
    classes: dict[str, Part] | None = None
    kernels: tuple[Kernel, ...] | None = None
    trace: str | None = None
    attention: tuple[Call, ...] = ()
    program: str | None = None
    program_difference: str | None = None

    def __post_init__(self) -> None:
        if self.status != "explained":
            return
        if self.latency_s is None or self.classes is None or self.kernels is None:
            raise Misfit("a profiled cell has no latency_s, classes or kernels")
        if missing := [name for name in CLASSES if name not in self.classes]:
            raise Misfit(f"classes.{missing[0]} is missing")
        if not sum(self.classes.values()):
            raise Misfit("classes hold no time")


@dataclass(frozen=True)
class Sample:
    """A line of `samples.jsonl`: one process's samples of one cell."""

    cell: str
    seconds_per_call: Series
    launch: int | None = None
    worker: str | None = None
    host_loop_s: Series | None = None
    full_speed_s: float | None = None
    host_s: float | None = None
    device_s: float | None = None
    energy: Energy | None = None


@dataclass(frozen=True)
class Node:
    """A line of `nodes.jsonl`: the time of the control cell on a cluster's node."""

    node: str | None = None
    latency_ms: Annotated[float, _of_a_call] | None = None


class Profile(TypedDict, total=False):
    """A line of `explained.jsonl` as readers get it, checked as `Profiled`."""

    cell: Required[str]
    status: Required[str]
    framework: Required[str]
    workload: Required[str]
    implementation: Required[str]
    pass_name: Required[str]
    device: Required[str]
    dtype: Required[str]
    mode: Required[str]
    parameters: Required[dict[str, Any]]
    threads: int
    shapes: str
    baseline: bool
    control: bool
    reason: str
    flops: dict[str, float]
    latency_s: float
    samples_s: list[float]
    launch: str
    classes: dict[str, float]
    kernels: list[list[Any]]
    trace: str
    attention: list[dict[str, Any]]
    program: str
    program_difference: str


class SampleLine(TypedDict, total=False):
    """A line of `samples.jsonl` as readers get it, checked as `Sample`."""

    cell: Required[str]
    seconds_per_call: Required[list[float]]
    launch: int
    worker: str
    host_loop_s: list[float]
    full_speed_s: float
    host_s: float | None
    device_s: float | None
    energy: dict[str, Any]
    run_id: str  # if samples of several runs are together


class NodeLine(TypedDict, total=False):
    """A line of `nodes.jsonl` as readers get it, checked as `Node`."""

    node: str
    latency_ms: float


class MachineFacts(TypedDict, total=False):
    """`machine.json` as readers get it, checked as `Machine`; `controls` are the lines of its nodes."""

    machine_id: str
    cpu: str
    cpus_usable: int
    memory_bytes: int
    virtualised: bool
    gpus: list[dict[str, str]]
    left_out: dict[str, str]
    python: str
    controls: list[NodeLine]


# By file name.
KINDS: dict[str, type] = {
    **dict.fromkeys(("plan.json", "explanation.json", "reproduction.json", "ab.json"), Plan),
    "machine.json": Machine,
    "explained.jsonl": Profiled,
    "samples.jsonl": Sample,
    "samples.jsonl.gz": Sample,
    "nodes.jsonl": Node,
}


def of_baseline(profile: Profile) -> bool:
    """Return whether graphs are compared with the mode of a profiled cell."""
    return is_baseline(profile["mode"], profile.get("baseline"))
