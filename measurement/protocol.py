"""Messages between a worker and its parent: one job to the worker, messages from it, each a line of JSON.

A field of a job or message names its kind. Messages come from processes in which a framework may have broken anything,
so each is checked when it is read. An invalid one raises ProtocolError.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from measurement.cells import Capture, Cell, Effective
from measurement.checked import Count, Duration, Misfit, Positive, data_of, read, shorter_than
from measurement.energy import Energy
from measurement.noise import Noise
from measurement.profiles import Profile
from measurement.starts import Start, StartJob
from measurement.streams import Stream, StreamJob
from measurement.user_model_report import UserModelReport

# Kinds of a job; a priming one only fills compile caches, a checking one calls users' models once, a profiling one
# profiles eager mode alone.
# Of one start `measurement/starts.py` has what is asked for.
MEASURE, PRIME, EXPLAIN, CHECK, PROFILE = "measure", "prime", "explain", "check", "profile"
START = "start"
STREAM = "stream"  # calls of different lengths, see `measurement/streams.py`
# Files and folders in the folder of a job.
MARKER, OUTPUTS, DUMPS, TRACES = "marker", "outputs", "dumps", "traces"
REASON_CHARACTERS = 2000
# As workers report them: `crash` of another rank only; the parent detects a worker's own crash and its `timeout`.
FAILURES = ("unsupported", "oom", "error", "crash")

Reason = Annotated[str, shorter_than(REASON_CHARACTERS + 1)]
Status = Annotated[str, lambda status: None if status in FAILURES else f"{status[:40]!r} is not known"]
Samples = Annotated[tuple[Positive, ...], lambda samples: None if samples else "holds none"]


class ProtocolError(Exception):
    """A message that does not fit; `cell` is the one that it is about, None where it names none."""

    def __init__(self, reason: str, cell: str | None = None):
        super().__init__(reason)
        self.cell = cell


@dataclass(frozen=True)
class Control:
    """A second variant for a cell's own step, for self-checks: the same again, slower, or under another timer."""

    id: str
    of: str  # a cell's id
    delay: float = 0.0  # share of the call's time
    own_timer: bool = False


@dataclass(frozen=True)
class OtherShape:
    """Inputs at a sequence length that a warm mode has not seen, as a file."""

    inputs: str
    seq_len: int


@dataclass(frozen=True)
class GroupJob:
    """Cells that are measured alternately, with the folder of their weights and the file of their inputs.

    `settled` says that an earlier process saved the outputs, listed the programs and took the device's time.
    """

    cells: tuple[Cell, ...]
    weights: str
    inputs: str
    controls: tuple[Control, ...] = ()
    unseen: OtherShape | None = None
    settled: bool = False


@dataclass(frozen=True)
class Job:
    """All that a worker is to do. `folder` is where its files go."""

    kind: str
    framework: str
    groups: tuple[GroupJob, ...]
    profile: Profile
    folder: str
    seed: int
    process: int = 0
    peak_benchmarks: tuple[GroupJob, ...] = ()
    peaks_known_of: dict[str, str] = field(default_factory=dict)  # the versions with which they need not be measured
    force: bool = False
    own_cpus: tuple[int, ...] | None = None
    full_speed_s: Positive | None = None  # of the host's loop at full speed, as earlier processes know it
    user_models: dict[str, str] = field(default_factory=dict)  # users' files or libraries' names, by workload
    start: StartJob | None = None
    stream: StreamJob | None = None
    energy: bool = False  # whether windows of each mode are taken for their energy
    elsewhere: tuple[tuple[str, ...], ...] = ()  # commands that start ranks from 1 up on other nodes

    @property
    def cells(self) -> list[Cell]:
        """Every cell, peak benchmarks apart, in the order of measuring."""
        return [cell for group in self.groups for cell in group.cells]

    def to_json(self) -> dict[str, Any]:
        """Return the job as JSON-ready data; `from_json` reads it back."""
        return data_of(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """Return the job from `to_json`'s data. Raises Misfit."""
        return read(cls, data)


@dataclass(frozen=True)
class Message:
    """One message of a worker. `TYPE` says which, and of those that end a cell also the status."""

    TYPE: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """Return the message as JSON-ready data; `message` reads it back."""
        return {"type": self.TYPE, **data_of(self)}


@dataclass(frozen=True)
class Phase(Message):
    """The worker begins something, for a cell or for all."""

    TYPE = "phase"
    cell: str | None
    phase: str


@dataclass(frozen=True)
class Progress(Message):
    """Rounds taken so far, and the last sample of each mode, in seconds by cell."""

    TYPE = "progress"
    rounds: Count
    seconds: dict[str, Positive]


@dataclass(frozen=True)
class Provisional(Message):
    """Figures of a mode before its cell is sampled: seconds per call, and eager's time over it where eager is there."""

    TYPE = "provisional"
    cell: str
    seconds: Positive
    speedup: Positive | None = None


@dataclass(frozen=True)
class Where(Message):
    """On which node of a cluster the worker is started, and in which step of which job; `launchers/step.py` sends it.

    `served_by` names the GPU and the CPUs that it has of a node that slots share.
    """

    TYPE = "where"
    node: str
    job: str
    step: str
    served_by: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Done(Message):
    """The worker did all of its job."""

    TYPE = "done"


@dataclass(frozen=True)
class Refused(Message):
    """The system refused the worker a file of the suite's, so its cells are not measured; the process ends."""

    TYPE = "refused"
    path: str
    number: int  # of the error

    @classmethod
    def error_of(cls, data: Mapping[str, Any]) -> OSError:
        """Return the error that such a message reports, as the parent's own."""
        try:
            refused = read(cls, data)
        except Misfit:
            refused = cls("A worker's file", errno.EIO)
        return OSError(refused.number, os.strerror(refused.number), refused.path)


@dataclass(frozen=True)
class Hello(Message):
    """The framework is there and configured. `smoke_test` names its wrong result, where FORCE allows one."""

    TYPE = "hello"
    versions: dict[str, str]
    effective: Effective
    installed: dict[str, str] = field(default_factory=dict)
    smoke_test: str | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Hello:
        """Return the message from `to_json`'s data. Raises Misfit."""
        return read(cls, data)


@dataclass(frozen=True)
class Ended(Message):
    """The worker is done with a cell; `status` says how."""

    TYPE = "cell"
    cell: str


@dataclass(frozen=True)
class Failed(Ended):
    """A cell that has no figures."""

    status: Status
    reason: Reason


@dataclass(frozen=True)
class Primed(Ended):
    """A cell whose code is compiled, in a job that measures nothing."""

    status: str = "primed"


@dataclass(frozen=True)
class Communication:
    """Communication between ranks in a call, from a profile: means over ranks, and their differences.

    `exposed_s` is the communication without simultaneous computation. `spread` is the longest such time of a rank less
    the shortest, as a share of the call. `problem` says why it is not known.
    """

    seconds: Duration | None = None
    exposed_s: Duration | None = None
    spread: Duration | None = None
    problem: str = ""


@dataclass(frozen=True)
class Unseen:
    """A warm mode's answer to another sequence length; `problem` says why it has no figures there."""

    seq_len: int
    problem: str | None = None
    first_call_s: Duration | None = None
    latency_s: Positive | None = None
    compilations: int | None = None
    outputs: str | None = None


@dataclass(frozen=True)
class Report(Ended):
    """Measurement of one cell in one process. `samples` are seconds per call, one value per round."""

    samples: Samples
    prepare_s: Duration
    first_call_s: Duration
    timed_s: Duration
    warmup_calls: Count
    calls_per_sample: Annotated[int, lambda calls: None if calls > 0 else "is below 1"]
    steady: bool | None
    capture: Capture
    noise: Noise
    position: Count  # among the groups of its worker, from 1; 0 is a peak benchmark
    host_loop_s: tuple[Positive, ...] = ()  # around each of the samples
    full_speed_s: Positive | None = None
    single_calls_s: tuple[Positive, ...] = ()
    parts_s: tuple[tuple[Positive, ...], ...] = ()  # of calls whose outputs come one after the other: tokens
    cpu_per_wall: Duration | None = None
    recompilations: int | None = None
    compiler: dict[str, Any] = field(default_factory=dict)
    peak_memory_bytes: int | None = None
    latency_sync_s: Positive | None = None
    host_s: Duration | None = None
    device_s: Duration | None = None
    outputs: str | None = None  # the file that holds those of the first calls
    unseen: Unseen | None = None
    program: str | None = None
    program_difference: str | None = None
    build_s: Duration | None = None
    load_s: Duration | None = None
    artefact_bytes: Count | None = None
    user_model: UserModelReport | None = None
    energy: Energy | None = None
    communication: Communication | None = None
    status: str = "measured"
    process: int = 0  # this and the next are the parent's to say
    worker: str = ""
    node: str = ""  # of a cluster, and the step of the job there
    step: str = ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """Return the report from `to_json`'s data. Raises Misfit."""
        return read(cls, data)


@dataclass(frozen=True)
class Explained(Ended):
    """A profile of a cell: for every kernel its name, seconds and times a call, and operator."""

    latency_s: Positive
    samples_s: Samples
    calls: Annotated[int, lambda calls: None if calls > 0 else "is below 1"]
    kernels: tuple[tuple[str, Duration, Duration, str], ...]
    wall_s: Positive
    busy_s: Duration
    trace: str | None = None
    backend: str | None = None
    detail: str = ""
    attention: tuple[dict[str, Any], ...] = ()
    program: dict[str, str | None] = field(default_factory=dict)  # a report's two fields of that name, for a graph
    status: str = "explained"


@dataclass(frozen=True)
class Profiled(Ended):
    """Seconds of a call of eager mode without the profiler, and of them those in which the device is busy."""

    latency_s: Positive
    busy_s: Positive
    status: str = "profiled"


@dataclass(frozen=True)
class Started(Ended):
    """A start, from exec to the first output compared."""

    start: Start
    status: str = "started"


@dataclass(frozen=True)
class Filled(Ended):
    """An uncounted process made an artefact, or the reference, in so many seconds from exec."""

    seconds: Positive
    reference: str = ""  # files of outputs
    eager: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    status: str = "filled"


@dataclass(frozen=True)
class Streamed(Ended):
    """A stream of calls, from its first to its last."""

    stream: Stream
    status: str = "streamed"


_ENDED: dict[str, type[Ended]] = {
    "measured": Report,
    "primed": Primed,
    "explained": Explained,
    "profiled": Profiled,
    "started": Started,
    "filled": Filled,
    "streamed": Streamed,
}
_KINDS: dict[str, type[Message]] = {
    kind.TYPE: kind for kind in (Where, Phase, Progress, Provisional, Hello, Done, Ended)
}


def message(data: Mapping[str, Any]) -> Message:
    """Return the message that a line of a worker holds. Raises ProtocolError."""
    cell = data.get("cell") if isinstance(data.get("cell"), str) else None
    kind = _KINDS.get(str(data.get("type")))
    if kind is Ended:
        kind = _ENDED.get(str(data.get("status")), Failed)
    if kind is None:
        raise ProtocolError(f"The worker sent a message of an unknown kind, {str(data.get('type'))[:40]!r}.", cell)
    try:
        return read(kind, data)
    except Misfit as misfit:
        reason = f"The worker sent a {kind.__name__.lower()} message with wrong content: {misfit}."
        raise ProtocolError(reason, cell) from None
