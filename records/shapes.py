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


class NodeLine(TypedDict, total=False):
    """A line of `nodes.jsonl`: the time of the control cell on a cluster's node."""

    node: str
    latency_ms: Seconds


class MachineFacts(TypedDict, total=False):
    """`machine.json`; `controls` are the lines of its nodes."""

    machine_id: str
    cpu: str
    cpus_usable: int
    memory_bytes: int
    virtualised: bool
    gpus: list[dict[str, str]]
    left_out: dict[str, str]
    python: str
    controls: list[NodeLine]


class Call(TypedDict):
    """A call of torch's attention operator."""

    call: Required[str]
    mask: Required[str]
    count: Required[Count]
    chosen: Required[str]
    refused: Required[dict[str, str]]


class Profile(TypedDict, total=False):
    """A line of `explained.jsonl`: a profiled cell, or one that could not be profiled."""

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
    flops: dict[str, Count]
    latency_s: Seconds
    samples_s: Annotated[list[float], Series]
    launch: str
    classes: dict[str, Part]
    kernels: list[Annotated[list[Any], Kernel]]
    trace: str
    attention: list[Call]
    program: str
    program_difference: str


def _complete(profile: Profile) -> None:
    """Raise Misfit unless a profiled cell has its times."""
    if profile["status"] != "explained":
        return
    if any(profile.get(name) is None for name in ("latency_s", "classes", "kernels")):
        raise Misfit("a profiled cell has no latency_s, classes or kernels")
    if missing := [name for name in CLASSES if name not in profile["classes"]]:
        raise Misfit(f"classes.{missing[0]} is missing")
    if not sum(profile["classes"].values()):
        raise Misfit("classes hold no time")


class SampleLine(TypedDict, total=False):
    """A line of `samples.jsonl`: one process's samples of one cell."""

    cell: Required[str]
    seconds_per_call: Required[Annotated[list[float], Series]]
    launch: int
    worker: str
    host_loop_s: Annotated[list[float], Series]
    full_speed_s: float
    host_s: float | None
    device_s: float | None
    energy: Annotated[dict[str, Any], Energy]
    run_id: str  # if samples of several runs are together


# By file name.
KINDS: dict[str, Any] = {
    **dict.fromkeys(("plan.json", "explanation.json", "reproduction.json", "ab.json"), Plan),
    "machine.json": MachineFacts,
    "explained.jsonl": Annotated[Profile, _complete],
    "samples.jsonl": SampleLine,
    "samples.jsonl.gz": SampleLine,
    "nodes.jsonl": NodeLine,
}


def of_baseline(profile: Profile) -> bool:
    """Return whether graphs are compared with the mode of a profiled cell."""
    return is_baseline(profile["mode"], profile.get("baseline"))
