"""One record: a row of the results, typed; its fields declare the columns, from which CSV, readers and docs follow.

History of `SCHEMA_VERSION`: 1, the first; 2, shapes, unseen shapes, costs by class, datasheet peaks, doubled batches;
3, launches side by side; 4, whether eager and graph run the same program, first calls with compiled code loaded,
versions of all that decides, peaks of the machine beside the framework's, explained share, parity relative to the
reference's scale, intervals over launches and their scope, statuses of ratio and latency, the host's speed, single
calls; 5, loading apart from the first call, which mode is the baseline, tokens and FLOPs without padding; 6, bandwidth
as a share of the measured and of the vendor's, nodes of a cluster, users' own
models: status partial, graph breaks by place with their price, recompilations by place, who counted FLOPs;
7, products of one row among the framework's peaks; 8, which GPU it was; of user models the outputs that are not
compared and the dtypes of their products; 9, the status says whether a cell is valid and half-widths how precisely it
is known (`records/earlier.py` judges earlier records so), the host's full speed, bounds, break-even with an interval.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from measurement import flags
from measurement.statistics import Interval, half_width
from records import earlier, statuses
from records.statuses import MEASURED, STATUSES

Value = str | bool | int | float
Row = Mapping[str, Any]  # by the names of columns

SCHEMA_VERSION = 9


@dataclass(frozen=True)
class Column:
    """One column: `kind` is str, int, float or bool; an empty value means missing, never zero."""

    name: str
    kind: str
    unit: str
    meaning: str


def must(meaning: str, unit: str = "") -> Any:
    """Return the field of a column that no record lacks."""
    return field(metadata={"unit": unit, "meaning": meaning})


def col(meaning: str, unit: str = "", name: str = "") -> Any:
    """Return the field of a column that may be empty; `name` is the column's where the field's is another."""
    return field(default=None, metadata={"unit": unit, "meaning": meaning, "name": name})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """What is known of one cell, one field a column. Of columns that were not read the field is not set."""

    schema_version: int = must("version of this list of columns")
    run_id: str | None = col("folder of the run")
    started_at: str | None = col("when the cell's first launch began", "ISO 8601, UTC")
    machine_id: str | None = col("short hash of the hardware, on a cluster of the kind of node; more in machine.json")
    node: str | None = col("the cluster's node on which all launches of the cell ran; empty without a cluster")
    job_steps: str | None = col("these launches as the scheduler counts them, <job>.<step>, separated by ';'")
    cell: str = must("the cell's name: what --filter matches and --resume looks up")
    framework: str = must("name of the framework; numpy is the oracle")
    framework_version: str | None = col("version of the framework's package, local part (+cpu, +cu130) included")
    mode: str = must("eager, or a graph mode by its own name")
    baseline: bool | None = col("whether speedup_vs_eager is relative to this mode, the framework's eager one")
    effective_backend: str | None = col("what ran the cell, as reported by the framework after capture")
    workload: str = must("what is computed")
    implementation: str | None = col(
        "library (the model users deploy) or plain (the same operators in every framework)"
    )
    pass_name: str | None = col("inference, training, prefill, decode or generate", name="pass")
    batch_size: int | None = col("items per call", "items")
    seq_len: int | None = col("tokens per item; empty for workloads without tokens", "tokens")
    parameters: str | None = col("the workload's other parameters, name=value, separated by ';'")
    shapes: str | None = col("static (each shape is compiled for) or dynamic (graphs are asked to serve every shape)")
    weights: str | None = col("seed:<n>, or the checkpoint's folder or hub name and a hash of its tensors")
    dtype: str | None = col("fp32 (strict), tf32, bf16 or fp16")
    tf32: bool | None = col("whether the framework may use TF32, as read back; empty where the device has none")
    device: str | None = col("cpu or gpu:<index>; with DEVICE=gpu:all gpu:0 whichever GPU served it, named in settings")
    device_name: str | None = col("processor or GPU")
    side_by_side: int | None = col("launches that went on at the same time, each on a GPU and CPU cores of its own")
    threads: int | None = col("intra-op CPU threads asked for", "threads")
    threads_readback: int | None = col("the framework's own answer to how many it uses", "threads")
    threads_effective: int | None = col("cpu_per_wall rounded to whole threads, at least 1", "threads")
    cpu_per_wall: float | None = col("process CPU time over wall time in the timed region", "cores")
    status: str = must("how the cell ended")
    reason: str | None = col("why the cell has no figures or is not compared, or what of a model is in no graph")
    stderr_tail: str | None = col("end of the worker's output where the cell failed")
    profile: str | None = col("quick, standard or rigorous")
    first_call_s: float | None = col("first call including compilation, median over the launches that compiled", "s")
    first_call_loaded_s: float | None = col("first call of launches that loaded all compiled code from the cache", "s")
    compile_s: float | None = col("first call less a steady call", "s")
    compile_cache: str | None = col("cold (empty before the first launch; later ones load what it compiled) or warm")
    prepare_s: float | None = col("building the model and copying weights and inputs, not part of latency", "s")
    load_s: float | None = col("engines that compile ahead of time: from a model's file to the first call", "s")
    launch_position: int | None = col("place of the shape within its worker; later ones find the compiler started")
    unseen_seq_len: int | None = col(
        "a sequence length first met after warm-up, where --unseen-seq asked for it", "tokens"
    )
    unseen_first_call_s: float | None = col("the first call at that length", "s")
    unseen_latency_ms: float | None = col(
        "mean time per call at that length once captured, over a sample's calls", "ms"
    )
    unseen_compilations: int | None = col("compilations or traces that the first call at that length caused")
    unseen_problem: str | None = col("what the mode raised at that length instead")
    warmup_calls: int | None = col("calls before sampling, over all launches", "calls")
    launches: int | None = col("fresh worker processes that measured the cell")
    samples: int | None = col("samples over all launches")
    calls_per_sample: int | None = col("calls timed together in one sample (the largest over launches)", "calls")
    timed_s: float | None = col("time spent in timed calls, over all launches", "s")
    interval_scope: str | None = col(
        "what intervals hold for: within this process (to two launches) or across processes"
    )
    latency_ms_median: float | None = col(
        "median time per call; over launches the geometric mean of their medians", "ms"
    )
    latency_ms_ci_low: float | None = col("lower end of its 95 % interval", "ms")
    latency_ms_ci_high: float | None = col("upper end of its 95 % interval", "ms")
    latency_half_width: float | None = col("half of that interval's width over the median")
    latency_ms_mean: float | None = col("mean time per call", "ms")
    latency_ms_std: float | None = col("standard deviation between samples", "ms")
    latency_ms_p95: float | None = col("up to version 3: 95th percentile of samples, which are means over calls", "ms")
    latency_ms_min: float | None = col("fastest sample", "ms")
    single_calls: int | None = col("calls that were timed alone and each waited for, over all launches", "calls")
    latency_call_ms_p50: float | None = col("median of these calls", "ms")
    latency_call_ms_p95: float | None = col("their 95th percentile (nearest rank); empty below 20 calls", "ms")
    latency_call_ms_p99: float | None = col("their 99th percentile; empty below 100 calls", "ms")
    first_token_ms_median: float | None = col("pass generate: median time until the first token is there", "ms")
    inter_token_ms_p50: float | None = col("median time between tokens, each waited for before the next begins", "ms")
    inter_token_ms_p95: float | None = col("its 95th percentile (nearest rank); empty below 20 tokens", "ms")
    inter_token_ms_p99: float | None = col("its 99th percentile; empty below 100 tokens", "ms")
    latency_sync_ms_median: float | None = col("median time of single calls, each synchronized (GPU)", "ms")
    host_ms_median: float | None = col("median time in which a single call returns, its work going on (GPU)", "ms")
    device_ms_median: float | None = col(
        "time per call by the device's clock, gaps between kernels included (GPU)", "ms"
    )
    items_per_s: float | None = col("items per second at the median latency", "1/s")
    tokens_per_s: float | None = col("tokens per second at the median latency, padding included", "1/s")
    real_tokens_per_s: float | None = col("the same without padding", "1/s")
    tokens_per_call: int | None = col("tokens a call computes, padding included", "tokens")
    real_tokens_per_call: int | None = col("those of them that are no padding (MASK=padded)", "tokens")
    speedup_vs_eager: float | None = col(
        "eager time over this mode's time, from pairs measured alternately; eager is 1"
    )
    speedup_ci_low: float | None = col("lower end of its 95 % interval")
    speedup_ci_high: float | None = col("upper end of its 95 % interval")
    speedup_half_width: float | None = col("half of that interval's width over the speedup")
    sign: str | None = col("whether the interval shows the mode as faster or slower; empty for eager")
    target_half_width: float | None = col("the half-width that the profile asks for")
    bound_replay: float | None = col("bound on the speedup of any replay: eager's time over its time on the device")
    bound_roofline: float | None = col("bound on any mode's speedup: eager's time over the roofline's larger term")
    break_even_calls: float | None = col("calls after which loading and compiling have paid; empty if never", "calls")
    break_even_low: float | None = col("the same at the upper end of the speedup's interval", "calls")
    break_even_high: float | None = col("the same at its lower end; empty if never", "calls")
    break_even_tokens: float | None = col("passes decode and generate: tokens that these calls generate", "tokens")
    flops: int | None = col("floating-point operations per call, padding included, analytic", "FLOP")
    counted_by: str | None = col(
        "who counted flops and bytes of a user's own model, or why nobody did; empty: analytic"
    )
    computes_in: str | None = col("of user models: the dtypes of eager mode's products, most first; empty: not known")
    not_compared_outputs: str | None = col("of user models: outputs of a type without a rule for comparison")
    real_flops: int | None = col("what sequences at their own lengths would take, without padding, analytic", "FLOP")
    flops_by_class: str | None = col("the same by operator class, class=flops, separated by ';'", "FLOP")
    bytes: int | None = col("bytes that must move per call whatever is fused, analytic", "B")
    unfused_bytes: int | None = col("bytes per call when every operator reads and writes memory, analytic", "B")
    moved_bytes: int | None = col("what the mode moves: unfused_bytes; where it fuses, bytes and repeated reads", "B")
    transcendentals: int | None = col("exponentials, error functions, tangents and cosines among flops")
    bytes_by_class: str | None = col("the same by operator class, class=bytes, separated by ';'", "B")
    achieved_tflops: float | None = col("flops over the median latency", "TFLOP/s")
    mfu_pct: float | None = col("achieved_tflops over peak_tflops, the machine's", "%")
    peak_tflops: float | None = col(
        "the machine's: the best of any framework of the run, same dtype and threads", "TFLOP/s"
    )
    peak_gb_per_s: float | None = col(
        "the same of bandwidth: a large vector added to itself, or one row multiplied", "GB/s"
    )
    peak_cached_gb_per_s: float | None = col("the same with a vector that the caches hold", "GB/s")
    peak_gtranscendentals_per_s: float | None = col(
        "the same of cosines, where they take visibly longer than sums", "1e9/s"
    )
    peak_source: str | None = col("which framework reached each of the four, and with what")
    framework_peak_tflops: float | None = col("the framework's own, in eager mode", "TFLOP/s")
    framework_peak_gb_per_s: float | None = col("likewise", "GB/s")
    framework_peak_cached_gb_per_s: float | None = col("likewise", "GB/s")
    framework_peak_matvec_gb_per_s: float | None = col("its product of one row with weights in memory", "GB/s")
    framework_peak_gtranscendentals_per_s: float | None = col("likewise", "1e9/s")
    framework_peak_source: str | None = col("what the framework's own were measured with")
    datasheet_tflops: float | None = col(
        "the vendor's dense peak for this dtype; empty where the table has none", "TFLOP/s"
    )
    datasheet_source: str | None = col("where the vendor says so")
    achieved_gb_per_s: float | None = col("bytes over the median latency; empty where the caches may hold them", "GB/s")
    bandwidth_pct: float | None = col("achieved_gb_per_s over peak_gb_per_s, the machine's", "%")
    datasheet_bandwidth_pct: float | None = col(
        "achieved_gb_per_s over the vendor's; empty where the table has none", "%"
    )
    intensity: float | None = col("flops over moved_bytes", "FLOP/B")
    batch_doubling_growth: float | None = col(
        "time at twice the batch over this time, less 1, where the run holds both"
    )
    explained_share: float | None = col(
        "share of the time that the roofline's larger term takes at the machine's peaks"
    )
    bottleneck: str | None = col("compute, bandwidth, latency or overhead (before version 4 also mixed)", name="regime")
    peak_memory_mb: float | None = col("peak device memory (GPU); empty on the CPU", "MB")
    graphs: int | None = col("graphs the mode captured")
    graph_breaks: int | None = col("breaks between them")
    graph_break_places: str | None = col("of users' own models: place and the framework's reason of each break", "JSON")
    outside_share: float | None = col("share of a call's time outside of the graphs, each graph being waited for")
    gain_at_best: float | None = col("times as fast as now if what is outside of the graphs took no time")
    recompilations: int | None = col("compilations or traces in the timed region")
    recompiled_places: str | None = col(
        "of users' own models: where code was compiled again, and which guard failed", "JSON"
    )
    program: str | None = col("same, differs or unknown: do eager mode and this graph run the same operators")
    program_difference: str | None = col("the deciding difference between the two programs, or why it is not known")
    parity_max_abs_err: float | None = col("largest absolute difference from the reference, over all outputs")
    parity_rel_rms_err: float | None = col("root mean square of the differences over the reference's; worst output")
    parity_repeated_err: float | None = col("the part of it that two calls have in common, beyond chance: no rounding")
    parity_tolerance: float | None = col("what parity_rel_rms_err may be (before version 4: parity_max_abs_err)")
    first_differing_step: int | None = col("pass generate: first step, from 1, with another token than the reference's")
    parity_reference: str | None = col(
        "numpy (in float64), or the cell whose outputs stood in for it; empty if none did"
    )
    host_loop_ms_median: float | None = col("a fixed loop of Python timed around every turn: the host's speed", "ms")
    host_slowed_share: float | None = col(
        "share of turns, set aside or not, around which it took over 1.25 times its full speed"
    )
    host_loop_ms_full: float | None = col("what the loop takes on this core at its own full speed", "ms")
    host_ms_in_loops: float | None = col("a call of eager mode over that, where the host limits it (GPU)")
    rounds_set_aside: int | None = col("turns that count for nothing because of that")
    load_average: float | None = col("one-minute load average at the end of sampling")
    other_load_cores: float | None = col("cores kept busy by other processes during sampling", "cores")
    steal_share: float | None = col("time taken by the hypervisor during sampling", "cores")
    involuntary_switches_per_s: float | None = col("involuntary context switches during sampling", "1/s")
    gpu_sm_mhz: float | None = col(
        "clock of the GPU's multiprocessors during sampling, median of readings (NVML)", "MHz"
    )
    gpu_memory_mhz: float | None = col("clock of the GPU's memory likewise", "MHz")
    gpu_power_w: float | None = col("power drawn likewise", "W")
    gpu_temperature_c: float | None = col("the highest temperature during sampling", "°C")
    gpu_uuid: str | None = col("short hash of the GPU's UUID, the same for the same card; of several, separated by ';'")
    gpu_throttles: str | None = col("what held the GPU's clock back during sampling, separated by ';'")
    flags: str | None = col("warnings, separated by ';': docs/columns.md lists them with their remedies")
    settings: str | None = col("switches of the framework as read back", "JSON")
    versions: str | None = col("versions of the packages that decide, and of CUDA and cuDNN as reported", "JSON")
    git_revision: str | None = col("revision of the suite, with + where files were changed")

    @classmethod
    def from_row(cls, row: Row) -> Record:
        """Return the record of a row by the names of its columns. Raises ValueError for what is no column."""
        if unknown := row.keys() - FIELDS.keys():
            raise ValueError(f"unknown column {min(unknown)!r}")
        return cls(**{FIELDS[name]: value for name, value in row.items()})

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[Any]]) -> list[Record]:
        """Return a record for each place of columns of one length, several times as fast as from rows."""
        made = [cls.__new__(cls) for _ in next(iter(columns.values()), ())]
        for name, values in columns.items():
            deque(map(getattr(cls, FIELDS[name]).__set__, made, values), maxlen=0)
        return made

    def __or__(self, changes: Row) -> Record:
        """Return the record with other values in these columns, which go by name."""
        return Record.from_row({**self.to_row(), **changes})

    def to_row(self) -> dict[str, Value | None]:
        """Return all columns by name, in the schema's order."""
        return {name: getattr(self, field) for name, field in FIELDS.items()}

    @property
    def is_measured(self) -> bool:
        """Say whether the cell was measured and its outputs agree with the reference."""
        return self.status in MEASURED

    @property
    def excluded(self) -> str | None:
        """Return why the cell enters no mean, ranking, verdict or claim; None where it does."""
        return statuses.exclusion(self.status, self.program, self.flags)

    @property
    def headline(self) -> bool:
        """Say whether its speedup may stand in a headline: not excluded, and the host at full speed.

        Up to version 8 the flag meant a share of slow rounds, of which all or some counted.
        """
        slowed = flags.HOST_SLOWED in (self.flags or "").split(";") and self.schema_version >= earlier.PRECISION
        return self.excluded is None and not slowed

    @property
    def is_baseline(self) -> bool:
        """Say whether graphs are compared with this mode."""
        return statuses.is_baseline(self.mode, self.baseline)

    @property
    def latency(self) -> Interval | None:
        """Return the median time per call in ms; None without an interval."""
        return _interval(self.latency_ms_median, self.latency_ms_ci_low, self.latency_ms_ci_high)

    @property
    def speedup(self) -> Interval | None:
        """Return eager's time over this mode's; None of eager mode and without an interval."""
        return _interval(self.speedup_vs_eager, self.speedup_ci_low, self.speedup_ci_high)

    @property
    def median_ms(self) -> float:
        """Return the median time per call of a measured cell, which readers grant; ValueError of another."""
        if self.latency_ms_median is None:
            raise ValueError(f"{self.cell} has no latency")
        return self.latency_ms_median

    @property
    def machine(self) -> tuple[str | None, str | None]:
        """Return what distinguishes machines: the hash of the hardware and the device's name."""
        return self.machine_id, self.device_name

    @property
    def device_kind(self) -> str:
        """Return `cpu` or `gpu`; the first records name no device, and were of a CPU."""
        return (self.device or "cpu").partition(":")[0]

    @property
    def other_parameters(self) -> tuple[str, ...]:
        """Return the workload's parameters but batch and length, `name=value` each."""
        return tuple(part for part in (self.parameters or "").split(";") if part)

    def parameter(self, name: str) -> str | int | None:
        """Return one of these parameters; None where the workload has none of that name."""
        text = next((part.partition("=")[2] for part in self.other_parameters if part.startswith(f"{name}=")), None)
        return int(text) if text and text.isdigit() else text

    @property
    def figure(self) -> Interval | None:
        """Return the figure that the cell is read for: a graph's speedup, without eager beside it the latency in ms."""
        return self.latency if self.is_baseline or self.speedup_vs_eager is None else self.speedup

    @property
    def on_target(self) -> bool:
        """Say whether this figure is known as precisely as the profile asks, which early records do not say."""
        width, target = half_width(self.figure), self.target_half_width
        return target is None or (width is not None and width <= target)


def _interval(value: float | None, low: float | None, high: float | None) -> Interval | None:
    return None if value is None or low is None or high is None else Interval(value, low, high)


COLUMNS = tuple(
    Column(f.metadata.get("name") or f.name, str(f.type).partition(" ")[0], f.metadata["unit"], f.metadata["meaning"])
    for f in fields(Record)
)
NAMES = tuple(column.name for column in COLUMNS)
FIELDS = dict(zip(NAMES, (f.name for f in fields(Record)), strict=True))  # by the column's name
BY_NAME = {column.name: column for column in COLUMNS}
# What every record has, however its cell ended.
_REQUIRED = ("schema_version", "cell", "framework", "mode", "workload", "implementation", "pass", "device", "dtype")
_TABLE_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def table_schema() -> dict[str, Any]:
    """The columns as a Table Schema (Frictionless Data, specs.frictionlessdata.io/table-schema)."""
    fields = []
    for column in COLUMNS:
        field: dict[str, Any] = {"name": column.name, "type": _TABLE_TYPES[column.kind], "description": column.meaning}
        if column.unit:
            field["unit"] = column.unit
        if column.kind == "bool":
            field |= {"trueValues": ["true"], "falseValues": ["false"]}
        if column.name == "status":
            field["constraints"] = {"required": True, "enum": [*STATUSES, *earlier.STATUSES]}
        elif column.name in _REQUIRED:
            field["constraints"] = {"required": True}
        fields.append(field)
    return {"fields": fields, "missingValues": [""], "schema_version": SCHEMA_VERSION}


def table_schema_text() -> str:
    """The same as it stands in a file."""
    return json.dumps(table_schema(), indent=1, ensure_ascii=False) + "\n"
