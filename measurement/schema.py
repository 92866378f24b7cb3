"""The columns of a record, in one place: the CSV's header, the documentation and the tests come from here.

History of `SCHEMA_VERSION`: 1, the first; 2, shapes, unseen shapes, costs by class, datasheet peaks, doubled batches;
3, launches side by side; 4, whether eager and graph run the same program, first calls with compiled code loaded,
versions of all that decides, peaks of the machine beside the framework's, explained share, parity relative to the
reference's scale, intervals over launches and their scope, statuses of ratio and latency, the host's speed, single
calls; 5, loading apart from the first call, which mode is the baseline, tokens and FLOPs without padding; 6, bandwidth
as a share of the measured and of the vendor's, nodes of a cluster, users' own
models: status partial, graph breaks by place with their price, recompilations by place, who counted FLOPs;
7, products of one row among the framework's peaks; 8, which GPU it was; of user models the outputs that are not
compared and the dtypes of their products.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]  # by the names of its columns; of a profiled cell, its profile

SCHEMA_VERSION = 8

STATUSES = {
    "ok": "measured, outputs agree with the reference, ratio or latency known as well as the profile says, undisturbed",
    "noisy": "measured and correct, but neither latency nor speedup is known so well, or beside eager there is none",
    "disturbed": "measured and correct, but flags say that the machine or the framework was not steady",
    "partial": "measured and correct, but only a part of a user's own model is in graphs; the reason says what is not",
    "mismatch": "the outputs differ from the reference by more than the tolerance; no report compares the cell",
    "unsupported": "this build, machine or framework cannot run the cell as what it says; the reason tells why",
    "oom": "the device or the machine ran out of memory",
    "timeout": "a step of the cell lasted longer than --timeout and its worker was stopped",
    "crash": "the worker died, or wrote what is no message",
    "error": "the framework raised an exception, or its worker reported what cannot be",
}
MEASURED = ("ok", "noisy", "disturbed", "partial")
# What `ratio_status` and `latency_status` say of one figure; empty where the cell has no such figure.
FIGURE_STATUSES = {
    "ok": "its interval is within the profile's target, and no flag speaks against it",
    "noisy": "its interval is wider, or there is none",
    "disturbed": "its interval is within the target, but a flag that concerns it is raised",
}


@dataclass(frozen=True)
class Column:
    """One column: `kind` is str, int, float or bool; an empty value means missing, never zero."""

    name: str
    kind: str
    unit: str
    meaning: str


def _columns(*rows: tuple[str, str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


COLUMNS = _columns(
    ("schema_version", "int", "", "version of this list of columns"),
    ("run_id", "str", "", "folder of the run"),
    ("started_at", "str", "ISO 8601, UTC", "when the cell's first launch began"),
    ("machine_id", "str", "", "short hash of the hardware, on a cluster of the kind of node; more in machine.json"),
    ("node", "str", "", "the cluster's node on which all launches of the cell ran; empty without a cluster"),
    ("job_steps", "str", "", "these launches as the scheduler counts them, <job>.<step>, separated by ';'"),
    ("cell", "str", "", "the cell's name: what --filter matches and --resume looks up"),
    ("framework", "str", "", "name of the framework; numpy is the oracle"),
    ("framework_version", "str", "", "version of the framework's package, local part (+cpu, +cu130) included"),
    ("mode", "str", "", "eager, or a graph mode by its own name"),
    ("baseline", "bool", "", "whether speedup_vs_eager is relative to this mode, the framework's eager one"),
    ("effective_backend", "str", "", "what ran the cell, as reported by the framework after capture"),
    ("workload", "str", "", "what is computed"),
    ("implementation", "str", "", "library (the model users deploy) or plain (the same operators in every framework)"),
    ("pass", "str", "", "inference, training, prefill, decode or generate"),
    ("batch_size", "int", "items", "items per call"),
    ("seq_len", "int", "tokens", "tokens per item; empty for workloads without tokens"),
    ("parameters", "str", "", "the workload's other parameters, name=value, separated by ';'"),
    ("shapes", "str", "", "static (each shape is compiled for) or dynamic (graphs are asked to serve every shape)"),
    ("weights", "str", "", "seed:<n>, or the checkpoint's folder or hub name and a hash of its tensors"),
    ("dtype", "str", "", "fp32 (strict), tf32, bf16 or fp16"),
    ("tf32", "bool", "", "whether the framework may use TF32, as read back; empty where the device has none"),
    ("device", "str", "", "cpu or gpu:<index>; with DEVICE=gpu:all gpu:0 whichever GPU served it, named in settings"),
    ("device_name", "str", "", "processor or GPU"),
    ("side_by_side", "int", "", "launches that went on at the same time, each on a GPU and CPU cores of its own"),
    ("threads", "int", "threads", "intra-op CPU threads asked for"),
    ("threads_readback", "int", "threads", "the framework's own answer to how many it uses"),
    ("threads_effective", "int", "threads", "cpu_per_wall rounded to whole threads, at least 1"),
    ("cpu_per_wall", "float", "cores", "process CPU time over wall time in the timed region"),
    ("status", "str", "", "how the cell ended"),
    ("latency_status", "str", "", "the latency alone: ok, noisy or disturbed"),
    ("ratio_status", "str", "", "the speedup alone likewise; empty for eager, and without eager beside it"),
    ("reason", "str", "", "one sentence on why the cell has no figures, or why they are not to be compared"),
    ("stderr_tail", "str", "", "end of the worker's output where the cell failed"),
    ("profile", "str", "", "quick, standard or rigorous"),
    ("first_call_s", "float", "s", "first call including compilation, median over the launches that compiled"),
    ("first_call_loaded_s", "float", "s", "first call of launches that loaded all compiled code from the cache"),
    ("compile_s", "float", "s", "first call less a steady call"),
    ("compile_cache", "str", "", "cold (empty before the first launch; later ones load what it compiled) or warm"),
    ("prepare_s", "float", "s", "building the model and copying weights and inputs, not part of latency"),
    ("load_s", "float", "s", "engines that compile ahead of time: from a model's file to the first call"),
    ("launch_position", "int", "", "place of the shape within its worker; later ones find the compiler started"),
    ("unseen_seq_len", "int", "tokens", "a sequence length first met after warm-up, where --unseen-seq asked for it"),
    ("unseen_first_call_s", "float", "s", "the first call at that length"),
    ("unseen_latency_ms", "float", "ms", "mean time per call at that length once captured, over a sample's calls"),
    ("unseen_compilations", "int", "", "compilations or traces that the first call at that length caused"),
    ("unseen_problem", "str", "", "what the mode raised at that length instead"),
    ("warmup_calls", "int", "calls", "calls before sampling, over all launches"),
    ("launches", "int", "", "fresh worker processes that measured the cell"),
    ("samples", "int", "", "samples over all launches"),
    ("calls_per_sample", "int", "calls", "calls timed together in one sample (the largest over launches)"),
    ("timed_s", "float", "s", "time spent in timed calls, over all launches"),
    ("interval_scope", "str", "", "what intervals hold for: within this process (to two launches) or across processes"),
    ("latency_ms_median", "float", "ms", "median time per call; over launches the geometric mean of their medians"),
    ("latency_ms_ci_low", "float", "ms", "lower end of its 95 % interval"),
    ("latency_ms_ci_high", "float", "ms", "upper end of its 95 % interval"),
    ("latency_ms_mean", "float", "ms", "mean time per call"),
    ("latency_ms_std", "float", "ms", "standard deviation between samples"),
    ("latency_ms_p95", "float", "ms", "up to version 3: 95th percentile of samples, which are means over calls"),
    ("latency_ms_min", "float", "ms", "fastest sample"),
    ("single_calls", "int", "calls", "calls that were timed alone and each waited for, over all launches"),
    ("latency_call_ms_p50", "float", "ms", "median of these calls"),
    ("latency_call_ms_p95", "float", "ms", "their 95th percentile (nearest rank); empty below 20 calls"),
    ("latency_call_ms_p99", "float", "ms", "their 99th percentile; empty below 100 calls"),
    ("first_token_ms_median", "float", "ms", "pass generate: median time until the first token is there"),
    ("inter_token_ms_p50", "float", "ms", "median time between tokens, each waited for before the next begins"),
    ("inter_token_ms_p95", "float", "ms", "its 95th percentile (nearest rank); empty below 20 tokens"),
    ("inter_token_ms_p99", "float", "ms", "its 99th percentile; empty below 100 tokens"),
    ("latency_sync_ms_median", "float", "ms", "median time of single calls, each synchronized (GPU)"),
    ("host_ms_median", "float", "ms", "median time in which a single call returns, its work going on (GPU)"),
    ("device_ms_median", "float", "ms", "time per call by the device's clock, gaps between kernels included (GPU)"),
    ("items_per_s", "float", "1/s", "items per second at the median latency"),
    ("tokens_per_s", "float", "1/s", "tokens per second at the median latency, padding included"),
    ("real_tokens_per_s", "float", "1/s", "the same without padding"),
    ("tokens_per_call", "int", "tokens", "tokens a call computes, padding included"),
    ("real_tokens_per_call", "int", "tokens", "those of them that are no padding (MASK=padded)"),
    ("speedup_vs_eager", "float", "", "eager time over this mode's time, from pairs measured alternately; eager is 1"),
    ("speedup_ci_low", "float", "", "lower end of its 95 % interval"),
    ("speedup_ci_high", "float", "", "upper end of its 95 % interval"),
    ("break_even_calls", "float", "calls", "calls after which loading and compiling have paid; empty if never"),
    ("break_even_tokens", "float", "tokens", "passes decode and generate: tokens that these calls generate"),
    ("flops", "int", "FLOP", "floating-point operations per call, padding included, analytic"),
    ("counted_by", "str", "", "who counted flops and bytes of a user's own model, or why nobody did; empty: analytic"),
    ("computes_in", "str", "", "of user models: the dtypes of eager mode's products, most first; empty: not known"),
    ("not_compared_outputs", "str", "", "of user models: outputs of a type without a rule for comparison"),
    ("real_flops", "int", "FLOP", "what sequences at their own lengths would take, without padding, analytic"),
    ("flops_by_class", "str", "FLOP", "the same by operator class, class=flops, separated by ';'"),
    ("bytes", "int", "B", "bytes that must move per call whatever is fused, analytic"),
    ("unfused_bytes", "int", "B", "bytes per call when every operator reads and writes memory, analytic"),
    ("moved_bytes", "int", "B", "what the mode moves: unfused_bytes; where it fuses, bytes and repeated reads"),
    ("transcendentals", "int", "", "exponentials, error functions, tangents and cosines among flops"),
    ("bytes_by_class", "str", "B", "the same by operator class, class=bytes, separated by ';'"),
    ("achieved_tflops", "float", "TFLOP/s", "flops over the median latency"),
    ("mfu_pct", "float", "%", "achieved_tflops over peak_tflops, the machine's"),
    ("peak_tflops", "float", "TFLOP/s", "the machine's: the best of any framework of the run, same dtype and threads"),
    ("peak_gb_per_s", "float", "GB/s", "the same of bandwidth: a large vector added to itself, or one row multiplied"),
    ("peak_cached_gb_per_s", "float", "GB/s", "the same with a vector that the caches hold"),
    ("peak_gtranscendentals_per_s", "float", "1e9/s", "the same of cosines, where they take visibly longer than sums"),
    ("peak_source", "str", "", "which framework reached each of the four, and with what"),
    ("framework_peak_tflops", "float", "TFLOP/s", "the framework's own, in eager mode"),
    ("framework_peak_gb_per_s", "float", "GB/s", "likewise"),
    ("framework_peak_cached_gb_per_s", "float", "GB/s", "likewise"),
    ("framework_peak_matvec_gb_per_s", "float", "GB/s", "its product of one row with weights in memory"),
    ("framework_peak_gtranscendentals_per_s", "float", "1e9/s", "likewise"),
    ("framework_peak_source", "str", "", "what the framework's own were measured with"),
    ("datasheet_tflops", "float", "TFLOP/s", "the vendor's dense peak for this dtype; empty where the table has none"),
    ("datasheet_source", "str", "", "where the vendor says so"),
    ("achieved_gb_per_s", "float", "GB/s", "bytes over the median latency; empty where the caches may hold them"),
    ("bandwidth_pct", "float", "%", "achieved_gb_per_s over peak_gb_per_s, the machine's"),
    ("datasheet_bandwidth_pct", "float", "%", "achieved_gb_per_s over the vendor's; empty where the table has none"),
    ("intensity", "float", "FLOP/B", "flops over moved_bytes"),
    ("batch_doubling_growth", "float", "", "time at twice the batch over this time, less 1, where the run holds both"),
    ("explained_share", "float", "", "share of the time that the roofline's larger term takes at the machine's peaks"),
    ("regime", "str", "", "compute, bandwidth, latency or overhead (before version 4 also mixed)"),
    ("peak_memory_mb", "float", "MB", "peak device memory (GPU); empty on the CPU"),
    ("graphs", "int", "", "graphs the mode captured"),
    ("graph_breaks", "int", "", "breaks between them"),
    ("graph_break_places", "str", "JSON", "of users' own models: place and the framework's reason of each break"),
    ("outside_share", "float", "", "share of a call's time outside of the graphs, each graph being waited for"),
    ("gain_at_best", "float", "", "times as fast as now if what is outside of the graphs took no time"),
    ("recompilations", "int", "", "compilations or traces in the timed region"),
    ("recompiled_places", "str", "JSON", "of users' own models: where code was compiled again, and which guard failed"),
    ("program", "str", "", "same, differs or unknown: do eager mode and this graph run the same operators"),
    ("program_difference", "str", "", "the deciding difference between the two programs, or why it is not known"),
    ("parity_max_abs_err", "float", "", "largest absolute difference from the reference, over all outputs"),
    ("parity_rel_rms_err", "float", "", "root mean square of the differences over the reference's; worst output"),
    ("parity_repeated_err", "float", "", "the part of it that two calls have in common, beyond chance: no rounding"),
    ("parity_tolerance", "float", "", "what parity_rel_rms_err may be (before version 4: parity_max_abs_err)"),
    ("first_differing_step", "int", "", "pass generate: first step, from 1, with another token than the reference's"),
    ("parity_reference", "str", "", "numpy (in float64), or the cell whose outputs stood in for it; empty if none did"),
    ("host_loop_ms_median", "float", "ms", "a fixed loop of Python timed in every round: how fast the host ran"),
    ("host_slowed_share", "float", "", "share of rounds, set aside or not, in which it took over 1.25 times its usual"),
    ("rounds_set_aside", "int", "", "rounds that count for nothing because of that; at most a quarter of a launch's"),
    ("load_average", "float", "", "one-minute load average at the end of sampling"),
    ("other_load_cores", "float", "cores", "cores kept busy by other processes during sampling"),
    ("steal_share", "float", "cores", "time taken by the hypervisor during sampling"),
    ("involuntary_switches_per_s", "float", "1/s", "involuntary context switches during sampling"),
    ("gpu_sm_mhz", "float", "MHz", "clock of the GPU's multiprocessors during sampling, median of readings (NVML)"),
    ("gpu_memory_mhz", "float", "MHz", "clock of the GPU's memory likewise"),
    ("gpu_power_w", "float", "W", "power drawn likewise"),
    ("gpu_temperature_c", "float", "°C", "the highest temperature during sampling"),
    ("gpu_uuid", "str", "", "short hash of the GPU's UUID, the same for the same card; of several, separated by ';'"),
    ("gpu_throttles", "str", "", "what held the GPU's clock back during sampling, separated by ';'"),
    ("flags", "str", "", "warnings, separated by ';': docs/methodology.md lists them with their remedies"),
    ("settings", "str", "JSON", "switches of the framework as read back"),
    ("versions", "str", "JSON", "versions of the installed packages that decide, and of CUDA and cuDNN as told"),
    ("git_revision", "str", "", "revision of the suite, with + where files were changed"),
)  # fmt: skip

NAMES = tuple(column.name for column in COLUMNS)
BY_NAME = {column.name: column for column in COLUMNS}
# What every record has, however its cell ended.
_REQUIRED = ("schema_version", "cell", "framework", "mode", "workload", "implementation", "pass", "device", "dtype")
_TABLE_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def is_baseline(record: Record) -> bool:
    """Return whether the mode of a record is the one that graphs are compared with; up to version 4 by its name."""
    known = record.get("baseline")
    return record["mode"] == "eager" if known is None else known


def figure_status(record: Record, figure: str) -> str | None:
    """Return the status of `latency` or `ratio` alone; up to version 3 the status said it of one of them."""
    spoken_for = "latency" if is_baseline(record) else "ratio"
    return record.get(f"{figure}_status") or (record["status"] if figure == spoken_for else None)


def is_noisy(record: Record, figure: str) -> bool:
    """Return whether `latency` or `ratio` is less certain than promised."""
    return figure_status(record, figure) == "noisy"


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
            field["constraints"] = {"required": True, "enum": list(STATUSES)}
        elif column.name in _REQUIRED:
            field["constraints"] = {"required": True}
        fields.append(field)
    return {"fields": fields, "missingValues": [""], "schema_version": SCHEMA_VERSION}


def table_schema_text() -> str:
    """The same as it stands in a file."""
    return json.dumps(table_schema(), indent=1, ensure_ascii=False) + "\n"
