"""One record: a typed row of the results; its fields declare the columns of the CSV, the readers and the docs.

History of `SCHEMA_VERSION`:

- 1: the first.
- 2: shapes, unseen shapes, costs by class, datasheet peaks, doubled batches.
- 3: processes side by side.
- 4: whether eager and graph run the same program; first calls with loaded compiled code; all deciding versions. Peaks
  of the machine and of the framework; explained share; parity relative to the reference's scale. Intervals over
  processes and their scope; statuses of ratio and latency; the host's speed; single calls.
- 5: loading apart from the first call, the baseline mode, tokens and FLOPs without padding.
- 6: bandwidth as a share of the measured and of the vendor's; nodes of a cluster. Users' own models: status partial,
  graph breaks by place with their price, recompilations by place, source of FLOPs.
- 7: products of one row among the framework's peaks.
- 8: the GPU's UUID; of user models the outputs that are not compared and the dtypes of their products.
- 9: the status says whether a cell is valid, and half-widths how precisely it is known. `records/earlier.py` judges
  earlier records so. The host's full speed, bounds, break-even with an interval.
- 10: the start of the compiler, which break-evens count.
- 11: `host_ms_in_loops` divides by the loop of the fastest process, to which times are scaled; before by
  `host_loop_ms_full`, which scatters over hosts by 5 to 11 % more.
- 12: energy and power on a core at full speed; before as measured. Samples hold windows of energy.
- 13: the interval of break-evens includes the scatter of first calls, where three processes or more compiled.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from measurement import flags
from measurement.statistics import Interval, half_width
from records import earlier, statuses
from records.figures import Figure
from records.statuses import MEASURED, STATUSES
from workloads.spec import MERGED_CHAINS

Value = str | bool | int | float
Row = Mapping[str, Any]  # by the names of columns

SCHEMA_VERSION = 13


@dataclass(frozen=True)
class Column:
    """One column: `kind` is str, int, float or bool; an empty value means missing, never zero."""

    name: str
    kind: str
    unit: str
    meaning: str


def must(meaning: str, unit: str = "") -> Any:
    """Return the field of a column that every record has."""
    return field(metadata={"unit": unit, "meaning": meaning})


def col(meaning: str, unit: str = "", name: str = "") -> Any:
    """Return the field of a column that may be empty; `name` is the column's name if it differs from the field's."""
    return field(default=None, metadata={"unit": unit, "meaning": meaning, "name": name})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """All values of one cell, one field per column. A field is not set if its column was not read."""

    schema_version: int = must("version of this list of columns")
    run_id: str | None = col("folder of the run")
    started_at: str | None = col("when the cell's first process began", "ISO 8601, UTC")
    machine_id: str | None = col("short hash of the hardware; on a cluster, of the type of node")
    node: str | None = col("node of the cluster that measured the cell")
    job_steps: str | None = col("the scheduler's steps of its processes, <job>.<step>, separated by ';'")
    cell: str = must("the cell's name, which FILTER matches")
    framework: str = must("name of the framework; numpy computes references")
    framework_version: str | None = col("version of the framework's package, with the local part (+cpu)")
    mode: str = must("name of the mode")
    baseline: bool | None = col("whether speedup_vs_eager is relative to this mode")
    effective_backend: str | None = col("backend that ran the cell, as the framework reports")
    workload: str = must("name of the workload")
    implementation: str | None = col("library, plain (the same operators in every framework), or own (user models)")
    pass_name: str | None = col("inference, training, prefill, decode or generate", name="pass")
    batch_size: int | None = col("batch size: items per call", "items")
    seq_len: int | None = col("sequence length: tokens per item", "tokens")
    parameters: str | None = col("other parameters, name=value, separated by ';'")
    shapes: str | None = col("static, or dynamic (graphs serve every shape)")
    weights: str | None = col("seed:<n>, or a checkpoint and a hash of its tensors")
    dtype: str | None = col("fp32 (strict), tf32, bf16 or fp16")
    tf32: bool | None = col("whether the framework may use TF32, as read back")
    device: str | None = col("cpu or gpu:<index>; with DEVICE=gpu:all always gpu:0")
    device_name: str | None = col("processor or GPU")
    side_by_side: int | None = col("processes that ran at once, each on one GPU and separate cores")
    threads: int | None = col("requested intra-op CPU threads", "threads")
    threads_readback: int | None = col("intra-op threads that the framework reports", "threads")
    threads_effective: int | None = col("cpu_per_wall, rounded to whole threads", "threads")
    cpu_per_wall: float | None = col("CPU time over wall time during sampling", "cores")
    status: str = must("outcome of the cell; see below")
    reason: str | None = col("why the cell has no figures or is not compared")
    stderr_tail: str | None = col("last lines of output from a failed cell's worker")
    profile: str | None = col("the profile: quick, standard or rigorous")
    first_call_s: float | None = col("first call, with compilation; median over processes that compiled", "s")
    compiler_start_s: float | None = col("starting the compiler", "s")
    first_call_loaded_s: float | None = col("first call of processes that load compiled code", "s")
    compile_s: float | None = col("first call less a steady call", "s")
    compile_cache: str | None = col("cold (the first process compiles, later ones load) or warm")
    prepare_s: float | None = col("building the model, copying its data", "s")
    build_s: float | None = col("exporting the model and building its file", "s")
    artefact_bytes: int | None = col("size of that file on disk", "bytes")
    load_s: float | None = col("time from reading a model's file to the first call", "s")
    process_position: int | None = col("shapes that the process measured before", name="launch_position")
    unseen_seq_len: int | None = col("a length new to warm modes (UNSEEN_SEQ)", "tokens")
    unseen_first_call_s: float | None = col("first call at unseen_seq_len", "s")
    unseen_latency_ms: float | None = col("mean time of later calls at unseen_seq_len", "ms")
    unseen_compilations: int | None = col("compilations in the first call at unseen_seq_len")
    unseen_problem: str | None = col("exception at unseen_seq_len")
    warmup_calls: int | None = col("calls before sampling, over all processes", "calls")
    processes: int | None = col("fresh worker processes that measured the cell", name="launches")
    samples: int | None = col("samples over all processes")
    calls_per_sample: int | None = col("calls per timed sample (largest value of all processes)", "calls")
    timed_s: float | None = col("time spent in timed calls, over all processes", "s")
    interval_scope: str | None = col("within this process (one or two processes) or across processes")
    latency_ms_median: float | None = col("median time per call (geometric mean over processes)", "ms")
    latency_ms_ci_low: float | None = col("95 % interval, lower end", "ms")
    latency_ms_ci_high: float | None = col("95 % interval, upper end", "ms")
    latency_half_width: float | None = col("half the width of the latency's interval, relative to the median")
    latency_ms_mean: float | None = col("mean time per call", "ms")
    latency_ms_std: float | None = col("standard deviation between samples", "ms")
    latency_ms_p95: float | None = col("95th percentile of samples", "ms")
    latency_ms_min: float | None = col("fastest sample", "ms")
    single_calls: int | None = col("calls timed alone, over all processes", "calls")
    latency_call_ms_p50: float | None = col("median time of single calls", "ms")
    latency_call_ms_p95: float | None = col("95th percentile of single calls; needs 20 calls", "ms")
    latency_call_ms_p99: float | None = col("99th percentile of single calls; needs 100 calls", "ms")
    first_token_ms_median: float | None = col("generate: median time to the first token", "ms")
    inter_token_ms_p50: float | None = col("median time between tokens", "ms")
    inter_token_ms_p95: float | None = col("95th percentile of the time between tokens; needs 20 tokens", "ms")
    inter_token_ms_p99: float | None = col("99th percentile of the time between tokens; needs 100 tokens", "ms")
    latency_sync_ms_median: float | None = col("median time of single synchronized calls (GPU)", "ms")
    host_ms_median: float | None = col("median time until a single call returns (GPU)", "ms")
    device_ms_median: float | None = col("time per call by the device's clock, gaps included (GPU)", "ms")
    items_per_s: float | None = col("items per second at the median latency", "1/s")
    tokens_per_s: float | None = col("tokens per second with padding", "1/s")
    real_tokens_per_s: float | None = col("tokens per second without padding", "1/s")
    tokens_per_call: int | None = col("tokens per call with padding", "tokens")
    real_tokens_per_call: int | None = col("tokens per call without padding", "tokens")
    speedup_vs_eager: float | None = col("eager time over this mode's time, from interleaved pairs")
    speedup_ci_low: float | None = col("95 % interval, lower end")
    speedup_ci_high: float | None = col("95 % interval, upper end")
    speedup_half_width: float | None = col("half the width of the speedup's interval, relative to the speedup")
    sign: str | None = col("faster or slower if the interval excludes 1, else inconclusive; empty for eager")
    scaling_efficiency: float | None = col("time of the mode on one rank, unsharded, over its time on several")
    scaling_efficiency_low: float | None = col("95 % interval, lower end")
    scaling_efficiency_high: float | None = col("95 % interval, upper end")
    communication_ms: float | None = col("profiled communication per call (RANKS)", "ms")
    exposed_communication_ms: float | None = col("of it without computation", "ms")
    rank_imbalance: float | None = col("its spread between ranks, relative to a call")
    communication_problem: str | None = col("why it is unknown")
    target_half_width: float | None = col("the half-width that the profile asks for")
    bound_replay: float | None = col("limit of a replay's speedup: eager time over the device's busy time")
    bound_roofline: float | None = col("limit of any mode's speedup: eager time over the larger roofline term")
    break_even_calls: float | None = col(
        "calls after which compiling pays for itself; empty if never, or if it costs no time",
        "calls",
    )
    break_even_low: float | None = col("95 % interval, lower end", "calls")
    break_even_high: float | None = col("95 % interval, upper end; empty if never", "calls")
    break_even_tokens: float | None = col("decode and generate: tokens in break_even_calls", "tokens")
    flops: int | None = col("floating-point operations per call, with padding, from formulas", "FLOP")
    counted_by: str | None = col("user models: tool that counted flops and bytes, or why there are none")
    computes_in: str | None = col("user models: dtypes of eager mode's matrix products")
    not_compared_outputs: str | None = col("user models: outputs of types that cannot be compared")
    real_flops: int | None = col("flops without padding", "FLOP")
    flops_by_class: str | None = col("FLOPs by operator class, class=flops", "FLOP")
    bytes: int | None = col("bytes that must move per call even with perfect fusion, from formulas", "B")
    unfused_bytes: int | None = col("bytes per call if nothing is fused", "B")
    moved_bytes: int | None = col("bytes or unfused_bytes, whichever fits the mode", "B")
    transcendentals: int | None = col("exponentials, error functions, tangents and cosines in flops")
    bytes_by_class: str | None = col("bytes by operator class, class=bytes", "B")
    achieved_tflops: float | None = col("flops over the median latency", "TFLOP/s")
    mfu_pct: float | None = col("achieved_tflops relative to peak_tflops", "%")
    peak_tflops: float | None = col("the machine's peak: best of all frameworks in the run", "TFLOP/s")
    peak_gb_per_s: float | None = col("the machine's peak bandwidth", "GB/s")
    peak_cached_gb_per_s: float | None = col("the machine's peak bandwidth within caches", "GB/s")
    peak_gtranscendentals_per_s: float | None = col("the machine's peak rate of cosines", "1e9/s")
    peak_source: str | None = col("framework and operation that reached each peak")
    framework_peak_tflops: float | None = col("the framework's peak in eager mode", "TFLOP/s")
    framework_peak_gb_per_s: float | None = col("the framework's peak bandwidth in eager mode", "GB/s")
    framework_peak_cached_gb_per_s: float | None = col("the framework's peak bandwidth within caches", "GB/s")
    framework_peak_matvec_gb_per_s: float | None = col("the framework's bandwidth in a matrix-vector product", "GB/s")
    framework_peak_gtranscendentals_per_s: float | None = col("the framework's peak rate of cosines", "1e9/s")
    framework_peak_source: str | None = col("operations that measured the framework's peaks")
    datasheet_tflops: float | None = col("the vendor's peak for this dtype, without sparsity", "TFLOP/s")
    datasheet_source: str | None = col("source of the vendor's peak")
    achieved_gb_per_s: float | None = col("bytes over the median latency; empty if caches may hold them", "GB/s")
    bandwidth_pct: float | None = col("achieved_gb_per_s relative to peak_gb_per_s", "%")
    datasheet_bandwidth_pct: float | None = col("achieved_gb_per_s relative to the vendor's bandwidth", "%")
    intensity: float | None = col("flops over moved_bytes", "FLOP/B")
    batch_doubling_growth: float | None = col("relative increase of the time when the batch doubles")
    explained_share: float | None = col("larger roofline term over the measured time")
    bottleneck: str | None = col("compute, bandwidth, latency or overhead", name="regime")
    peak_memory_mb: float | None = col("peak device memory (GPU); empty for `onnx-runtime`", "MB")
    graphs: int | None = col("graphs that the mode captured")
    graph_breaks: int | None = col("breaks between these graphs")
    graph_break_places: str | None = col("user models: place and reason of each break", "JSON")
    outside_share: float | None = col("share of a call's time spent outside of graphs")
    gain_at_best: float | None = col("highest possible speedup from removing graph breaks")
    recompilations: int | None = col("compilations or traces during sampling; of user models since the first call")
    recompiled_places: str | None = col("user models: recompiled code and the guard that failed", "JSON")
    program: str | None = col("same, differs or unknown: operators of eager mode and graph")
    program_difference: str | None = col("the most important difference, or why the program is unknown")
    parity_max_abs_err: float | None = col("largest absolute difference from the reference")
    parity_rel_rms_err: float | None = col("root mean square of the differences, relative to the reference's")
    parity_repeated_err: float | None = col("part of parity_rel_rms_err that repeats from call to call")
    parity_tolerance: float | None = col("largest parity_rel_rms_err that is accepted")
    first_differing_step: int | None = col("generate: first step whose token differs from the reference's")
    parity_reference: str | None = col("origin of the reference outputs: numpy, or a cell's name")
    host_loop_ms_median: float | None = col("median time of the control loop", "ms")
    host_slowed_share: float | None = col("share of samples whose control loop took over 1.25 times host_loop_ms_full")
    host_loop_ms_full: float | None = col("time of the control loop at full speed", "ms")
    host_ms_in_loops: float | None = col("an eager call's time over the fastest process's loop, if the host limits it")
    latency_slowed: bool | None = col("whether too many processes had a slow host that limits the mode")
    rounds_set_aside: int | None = col("samples set aside: the host is slow and limits the mode")
    load_average: float | None = col("one-minute load average at the end of sampling")
    other_load_cores: float | None = col("cores kept busy by other processes", "cores")
    steal_share: float | None = col("cores that the hypervisor took", "cores")
    involuntary_switches_per_s: float | None = col("involuntary context switches", "1/s")
    gpu_sm_mhz: float | None = col("median clock of the GPU's multiprocessors, from NVML", "MHz")
    gpu_memory_mhz: float | None = col("median clock of the GPU's memory", "MHz")
    gpu_power_w: float | None = col("median power draw of the GPU", "W")
    gpu_temperature_c: float | None = col("highest temperature of the GPU", "°C")
    gpu_uuid: str | None = col("short hash of the GPU's UUID")
    gpu_throttles: str | None = col("reasons for a reduced GPU clock, separated by ';'")
    energy_j_per_call: float | None = col("energy of a call, from a counter over windows (ENERGY=1)", "J")
    energy_ci_low: float | None = col("95 % interval, lower end", "J")
    energy_ci_high: float | None = col("95 % interval, upper end", "J")
    energy_j_per_token: float | None = col("energy_j_per_call over tokens_per_call", "J")
    power_w: float | None = col("power of calls at full speed", "W")
    idle_power_w: float | None = col("power while no call runs", "W")
    energy_saving_vs_eager: float | None = col("eager mode's energy per call over this mode's")
    energy_saving_ci_low: float | None = col("95 % interval, lower end")
    energy_saving_ci_high: float | None = col("95 % interval, upper end")
    power_ratio_vs_eager: float | None = col("this mode's power over eager mode's: speedup over saving")
    power_ratio_ci_low: float | None = col("95 % interval, lower end")
    power_ratio_ci_high: float | None = col("95 % interval, upper end")
    energy_integrated_ratio: float | None = col("integrated instant power over the counter's energy (GPU)")
    energy_source: str | None = col("the counter, or why there is none")
    flags: str | None = col("warnings, separated by ';'")
    settings: str | None = col("the framework's switches, as read back", "JSON")
    versions: str | None = col("versions of the main packages, CUDA and cuDNN", "JSON")
    git_revision: str | None = col("the suite's revision, + if tracked files changed")

    latency = Figure()  # median time per call in ms
    speedup = Figure()  # eager's time over this mode's
    energy = Figure()  # of a call in J
    energy_saving = Figure()  # eager's energy of a call over this mode's
    power_ratio = Figure()  # this mode's power over eager's
    efficiency = Figure()  # time on one rank over that on several

    @classmethod
    def from_row(cls, row: Row) -> Record:
        """Return the record of a row by the names of its columns. Raises ValueError for an unknown name."""
        if unknown := row.keys() - FIELDS.keys():
            raise ValueError(f"unknown column {min(unknown)!r}")
        return cls(**{FIELDS[name]: value for name, value in row.items()})

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[Any]]) -> list[Record]:
        """Return one record per position of equally long columns, several times as fast as from rows."""
        made = [cls.__new__(cls) for _ in next(iter(columns.values()), ())]
        for name, values in columns.items():
            deque(map(getattr(cls, FIELDS[name]).__set__, made, values), maxlen=0)
        return made

    def __or__(self, changes: Row) -> Record:
        """Return the record with the values of `changes`, given by column name."""
        return Record.from_row({**self.to_row(), **changes})

    def to_row(self) -> dict[str, Value | None]:
        """Return all columns by name, in the schema's order."""
        return {name: getattr(self, field) for name, field in FIELDS.items()}

    @property
    def group(self) -> str:
        """Return the name of the cell without its mode."""
        return self.cell.rpartition("/")[0]

    @property
    def is_measured(self) -> bool:
        """Return whether the cell was measured and its outputs agree with the reference."""
        return self.status in MEASURED

    @property
    def excluded(self) -> str | None:
        """Return why means, rankings, verdicts and claims exclude the cell; None if they include it."""
        return statuses.exclusion(self.status, self.program, self.flags)

    @property
    def raised(self) -> tuple[str, ...]:
        """Return the names of its flags."""
        return tuple(self.flags.split(";")) if self.flags else ()

    @property
    def merged(self) -> bool:
        """Return whether its compiler merges operators, so that it computes less than is counted.

        Up to version 9 such modes were measured.
        """
        return (self.framework, self.mode) == ("tensorflow", "function") and self.workload in MERGED_CHAINS

    @property
    def headline(self) -> bool:
        """Return whether a headline may use its speedup: not excluded, and the host at full speed.

        Up to version 8 the flag has another meaning, a share of slow rounds, and is ignored.
        """
        slowed = flags.HOST_SLOWED in self.raised and self.schema_version >= earlier.PRECISION
        return self.excluded is None and not slowed

    @property
    def slowed(self) -> bool:
        """Return whether a slow host limits its latency; in earlier records, whether it limits the speedup."""
        return (self.excluded is None and not self.headline) if self.latency_slowed is None else self.latency_slowed

    @property
    def energy_unchecked(self) -> bool:
        """Return whether integrated power contradicts its energy."""
        return flags.ENERGY_UNCHECKED in self.raised

    @property
    def is_baseline(self) -> bool:
        """Return whether graphs are compared with this mode."""
        return statuses.is_baseline(self.mode, self.baseline)

    @property
    def median_ms(self) -> float:
        """Return the median ms per call, which every measured cell has. Raises ValueError for other cells."""
        if self.latency_ms_median is None:
            raise ValueError(f"{self.cell} has no latency")
        return self.latency_ms_median

    @property
    def machine(self) -> tuple[str | None, str | None]:
        """Return the properties that distinguish machines: the hash of the hardware and the device's name."""
        return self.machine_id, self.device_name

    @property
    def device_kind(self) -> str:
        """Return `cpu` or `gpu`; the first records name no device, and all used a CPU."""
        return (self.device or "cpu").partition(":")[0]

    @property
    def other_parameters(self) -> tuple[str, ...]:
        """Return the workload's parameters except batch and length, each as `name=value`."""
        return tuple(part for part in (self.parameters or "").split(";") if part)

    def parameter(self, name: str) -> str | int | None:
        """Return one of these parameters; None if the workload has none of that name."""
        text = next((part.partition("=")[2] for part in self.other_parameters if part.startswith(f"{name}=")), None)
        return int(text) if text and text.isdigit() else text

    @property
    def figure(self) -> Interval | None:
        """Return the cell's main figure: a graph's speedup, or the latency in ms of eager mode or without a speedup."""
        return self.latency if self.is_baseline or self.speedup_vs_eager is None else self.speedup

    @property
    def on_target(self) -> bool:
        """Return whether this figure is as precise as the profile requires; True if the record has no requirement.

        Half-widths are rounded to whole percent, as reports show them.
        """
        width, target = half_width(self.figure), self.target_half_width
        return target is None or (width is not None and round(width, 2) <= target)


COLUMNS = tuple(
    Column(f.metadata.get("name") or f.name, str(f.type).partition(" ")[0], f.metadata["unit"], f.metadata["meaning"])
    for f in fields(Record)
)
NAMES = tuple(column.name for column in COLUMNS)
FIELDS = dict(zip(NAMES, (f.name for f in fields(Record)), strict=True))  # by column name
BY_NAME = {column.name: column for column in COLUMNS}
# A row without these does not identify its measurement.
REQUIRED = tuple(name for name, field in zip(NAMES, fields(Record), strict=True) if field.default is MISSING)
# Every record of the suite also has these, however its cell ended; other tables may lack them.
_ALWAYS = (*REQUIRED, "implementation", "pass", "device", "dtype")
_TABLE_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def table_schema() -> dict[str, Any]:
    """Return the columns as a Table Schema (Frictionless Data, specs.frictionlessdata.io/table-schema)."""
    fields = []
    for column in COLUMNS:
        field: dict[str, Any] = {"name": column.name, "type": _TABLE_TYPES[column.kind], "description": column.meaning}
        if column.unit:
            field["unit"] = column.unit
        if column.kind == "bool":
            field |= {"trueValues": ["true"], "falseValues": ["false"]}
        if column.name == "status":
            field["constraints"] = {"required": True, "enum": [*STATUSES, *earlier.STATUSES]}
        elif column.name in _ALWAYS:
            field["constraints"] = {"required": True}
        fields.append(field)
    return {"fields": fields, "missingValues": [""], "schema_version": SCHEMA_VERSION}


def table_schema_text() -> str:
    """Return the Table Schema as JSON text."""
    return json.dumps(table_schema(), indent=1, ensure_ascii=False) + "\n"
