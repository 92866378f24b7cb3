"""Messages between a worker and its parent: one job to the worker, messages from it, each a line of JSON.

A field of a job or message names its kind. A framework may have broken anything in the sending process, so each message
is checked when read. An invalid one raises ProtocolError.
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

# Kinds of a job: a priming job only fills compile caches, a checking job calls user models once, a profiling job
# profiles eager mode alone. For a start see `measurement/starts.py`.
MEASURE, PRIME, EXPLAIN, CHECK, PROFILE = "measure", "prime", "explain", "check", "profile"
START = "start"
STREAM = "stream"  # calls of different lengths, see `measurement/streams.py`
# Files and folders in the folder of a job.
MARKER, OUTPUTS, DUMPS, TRACES, COMPLETE = "marker", "outputs", "dumps", "traces", "complete.json"
REASON_CHARACTERS = 2000
# As workers report them: `crash` of another rank only; the parent detects a worker's own crash and its `timeout`.
FAILURES = ("unsupported", "oom", "error", "crash")

Reason = Annotated[str, shorter_than(REASON_CHARACTERS + 1)]
Status = Annotated[str, lambda status: None if status in FAILURES else f"{status[:40]!r} is not known"]
Samples = Annotated[tuple[Positive, ...], lambda samples: None if samples else "holds none"]


class ProtocolError(Exception):
    """An invalid message; `cell` is the cell that it names, if any."""

    def __init__(self, reason: str, cell: str | None = None):
        super().__init__(reason)
        self.cell = cell


@dataclass(frozen=True)
class Control:
    """A second variant of a cell's own step, for self-checks: the same, slower, or with another timer."""

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

    `settled`: an earlier process saved the outputs, listed the programs and took the device's time.
    """

    cells: tuple[Cell, ...]
    weights: str
    inputs: str
    controls: tuple[Control, ...] = ()
    unseen: OtherShape | None = None
    settled: bool = False


@dataclass(frozen=True)
class Job:
    """All work of a worker. `folder` holds its files."""

    kind: str
    framework: str
    groups: tuple[GroupJob, ...]
    profile: Profile
    folder: str
    seed: int
    process: int = 0
    peak_benchmarks: tuple[GroupJob, ...] = ()
    peaks_known_of: dict[str, str] = field(default_factory=dict)  # versions for which peaks are already known
    force: bool = False
    own_cpus: tuple[int, ...] | None = None
    full_speed_s: Positive | None = None  # of the host's loop at full speed, from earlier processes
    user_models: dict[str, str] = field(default_factory=dict)  # users' files or libraries' names, by workload
    start: StartJob | None = None
    stream: StreamJob | None = None
    energy: bool = False  # whether to measure the energy of each mode
    elsewhere: tuple[tuple[str, ...], ...] = ()  # commands that start ranks from 1 up on other nodes
    bytecode: str = ""  # folder of compiled Python modules, for a worker that finds none and may not store them
    waits: bool = False  # once its compilers have started, for the whole job in the file `COMPLETE`

    @property
    def cells(self) -> list[Cell]:
        """Cells except peak benchmarks, in measuring order."""
        return [cell for group in self.groups for cell in group.cells]


@dataclass(frozen=True)
class Message:
    """One message of a worker. `TYPE` identifies it, with the status if it ends a cell."""

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


WAITS = Phase(None, "wait")  # for the whole job


@dataclass(frozen=True)
class Progress(Message):
    """Rounds taken so far, and the last sample of each mode, in seconds by cell."""

    TYPE = "progress"
    rounds: Count
    seconds: dict[str, Positive]


@dataclass(frozen=True)
class Provisional(Message):
    """Figures of a mode before its cell is sampled: seconds per call, and the speedup if eager mode is measured.

    `slowed` if the host was slow in all rounds, and limits one of the modes.
    """

    TYPE = "provisional"
    cell: str
    seconds: Positive
    speedup: Positive | None = None
    slowed: bool = False


@dataclass(frozen=True)
class Where(Message):
    """The cluster node, job and step in which the worker starts; `launchers/step.py` sends it.

    `served_by` names its GPU and CPUs on a node that slots share.
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
    """The system refused to write a file of the suite, so the cells are not measured; the process ends."""

    TYPE = "refused"
    path: str
    number: int  # of the error

    @classmethod
    def error_of(cls, data: Mapping[str, Any]) -> OSError:
        """Return the reported error as the parent's own OSError."""
        try:
            refused = read(cls, data)
        except Misfit:
            refused = cls("A worker's file", errno.EIO)
        return OSError(refused.number, os.strerror(refused.number), refused.path)


@dataclass(frozen=True)
class Hello(Message):
    """The framework is loaded and configured. `smoke_test` names its wrong result, if FORCE allows one."""

    TYPE = "hello"
    versions: dict[str, str]
    effective: Effective
    installed: dict[str, str] = field(default_factory=dict)
    smoke_test: str | None = None


@dataclass(frozen=True)
class Ended(Message):
    """The worker finished a cell, with this `status`."""

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

    `exposed_s` is the communication without simultaneous computation. `spread` is the ranks' longest such time less the
    shortest, as a share of the call. `problem` explains missing values.
    """

    seconds: Duration | None = None
    exposed_s: Duration | None = None
    spread: Duration | None = None
    problem: str = ""


@dataclass(frozen=True)
class Unseen:
    """A warm mode's result at another sequence length; `problem` explains missing figures."""

    seq_len: int
    problem: str | None = None
    first_call_s: Duration | None = None
    latency_s: Positive | None = None
    compilations: int | None = None
    outputs: str | None = None


@dataclass(frozen=True)
class UserModelReport:
    """Report of a user model: outputs to compare with (files, and the model that computed them), and its cost.

    `eager` has eager mode's outputs before any sample, `not_compared` the outputs without a rule, and `computes_in` the
    dtypes of its products. `shapes` are those of outputs, by their key in the files. `inside_s` and
    `whole_s` are seconds of calls within graphs and in total, if the model leaves its graphs.
    """

    reference: str
    reference_name: str
    flops: Count | None = None
    bytes: Count | None = None
    unfused_bytes: Count | None = None
    transcendentals: Count | None = None
    counted_by: str = ""
    inside_s: Duration | None = None
    whole_s: Positive | None = None
    eager: str = ""
    not_compared: tuple[str, ...] = ()
    computes_in: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)


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
    parts_s: tuple[tuple[Positive, ...], ...] = ()  # of calls that give several outputs in turn: tokens
    cpu_per_wall: Duration | None = None
    recompilations: int | None = None
    compiles: bool | None = None  # of eager mode: whether it compiles or traces in every call
    compiler: dict[str, Any] = field(default_factory=dict)
    compiler_start_s: Duration | None = None
    peak_memory_bytes: int | None = None
    latency_sync_s: Positive | None = None
    host_s: Duration | None = None
    device_s: Duration | None = None
    outputs: str | None = None  # file with the outputs of the first calls
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
    process: int = 0  # the parent sets this and the next
    worker: str = ""
    node: str = ""  # of a cluster, and the step of the job there
    step: str = ""


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
    """Seconds of an eager call without the profiler, and the part in which the device is busy."""

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
    """An uncounted process made an artefact or the reference; `seconds` counts from exec."""

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
    """Return the message in a worker's line. Raises ProtocolError."""
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
