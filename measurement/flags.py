"""The closed list of warnings a record can carry, each with its threshold, its meaning and its remedy."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from measurement.host import FASTEST_SHARE, HOST_SHARE, SLOW
from measurement.noise import Noise
from measurement.statistics import ENOUGH_PROCESSES, FEWEST_VALUES

PROGRAM_DIFFERS, ZERO, CONSTANT = "program_differs", "zero_outputs", "constant_outputs"
HOST_SLOWED = "host_slowed"
ENERGY_UNCHECKED = "energy_unchecked"
EAGER_COMPILES = "eager_compiles"
OTHER_LOAD, STEAL = "other_load", "steal"
DRIFT_ROUNDS = 10  # fewer give too few batches to test for drift
CHANGE_CHANCE = 0.05  # that scatter alone passes for a change after a warm-up that did not settle
THREADS_MARGIN = 0.1
THREADS_UNUSED_SHARE = 0.6
OTHER_LOAD_CORES = 0.1
STEAL_SHARE = 0.01
FREQUENCY_CHANGE = 0.05
DRIFT = 0.02
QUEUE_SHARE = 0.02
THROTTLED_SHARE = 0.05
ROUNDING = 1e-9  # a cell that sets the peak explains all of its time
EAGER_ERROR = 10.0  # tolerances


@dataclass(frozen=True)
class Observation:
    """Observations that decide the flags of one cell. None means unknown, and raises no flag."""

    threads: int
    cpu_per_wall: float | None = None
    steady: bool | None = None
    queue_share: float | None = None  # of a sample, spent filling and emptying the queue
    recompilations: int | None = None
    change: float | None = None  # as `drift`, by a test that a chance of 5 % passes
    drift: float | None = None  # relative change of the median, second half of ten or more rounds against the first
    host_slowed: bool = False  # too few processes have turns on a core at full speed
    noise: Noise | None = None
    partial: bool = False  # a part of a user model is in no graph
    program_differs: bool = False
    eager_compiles: bool = False  # in every call
    explained_share: float | None = None  # of the time, by the roofline
    above_datasheet: bool = False  # a measured peak
    compared: bool = True  # with outputs other than its own
    eager_error: float | None = None  # of a user model, in tolerances of the dtype
    empty: str | None = None  # the flag of outputs that are zero or constant throughout
    not_numbers: bool = False  # eager outputs of a user model are NaN, or infinite where the reference is finite
    outputs_left: bool = False  # outputs without a rule, which are not compared
    other_dtype: bool = False  # products of a user model run in another dtype than the cell's
    energy_unchecked: bool = False  # the counter disagrees with the integrated power


LATENCY, RATIO = "latency", "ratio"
BOTH = (LATENCY, RATIO)


@dataclass(frozen=True)
class Flag:
    """A warning: when it is raised, its meaning for the figure, and its remedy."""

    name: str
    threshold: str
    meaning: str
    remedy: str
    raised: Callable[[Observation], bool]
    disturbs: tuple[str, ...] = ()  # the figures that it disturbs
    host_bound_only: bool = False  # only if the host decides these figures


def _above(value: float | None, limit: float) -> bool:
    return value is not None and value > limit


def _noise(field: str, limit: float) -> Callable[[Observation], bool]:
    return lambda o: o.noise is not None and _above(getattr(o.noise, field), limit)


def disturbances(noise: Noise) -> dict[str, bool]:
    """Return, by flag, whether other programs and the hypervisor took more than their limits."""
    return {
        OTHER_LOAD: _above(noise.other_load_cores, OTHER_LOAD_CORES),
        STEAL: _above(noise.steal_share, STEAL_SHARE),
    }


def _gpu(field: str) -> Callable[[Observation], bool]:
    return lambda o: (
        o.noise is not None and o.noise.gpu is not None and _above(getattr(o.noise.gpu, field), THROTTLED_SHARE)
    )


FLAGS = (
    Flag(
        "threads_exceeded",
        f"CPU time over wall time exceeds the requested threads by over {THREADS_MARGIN}",
        "The framework used more threads than `threads` says.",
        "Compare it with cells of as many threads.",
        lambda o: _above(o.cpu_per_wall, o.threads + THREADS_MARGIN),
        BOTH,
    ),
    Flag(
        "threads_unused",
        f"CPU time over wall time is below {100 * THREADS_UNUSED_SHARE:.0f} % of at least two requested threads",
        "The shape is too small, or its operators use one thread only.",
        "Use fewer THREADS, or a larger shape.",
        lambda o: o.threads > 1 and o.cpu_per_wall is not None and o.cpu_per_wall < THREADS_UNUSED_SHARE * o.threads,
    ),
    Flag(
        "no_steady_state",
        "warm-up reached its time limit before latencies agreed, or while the mode compiled; from ten rounds on, if "
        f"their halves differ by over {100 * DRIFT:.0f} %, tested at {100 * CHANGE_CHANCE:.0f} %",
        "Latency was still changing when sampling began.",
        "Use a longer profile, or a quieter machine.",
        lambda o: o.steady is False and (o.change is None or o.change > DRIFT),
        BOTH,
    ),
    Flag(
        "queue",
        f"filling and emptying the GPU's queue took over {100 * QUEUE_SHARE:.0f} % of a sample",
        f"The latency is over {100 * QUEUE_SHARE:.0f} % too high.",
        "Use a larger BUDGET.",
        lambda o: _above(o.queue_share, QUEUE_SHARE),
        BOTH,
    ),
    Flag(
        "recompiled",
        "the mode compiled or traced again during sampling",
        "Compilation time is among the samples.",
        "See the guard in `recompiled_places`.",
        lambda o: _above(o.recompilations, 0),
        BOTH,
    ),
    Flag(
        "partial",
        "a user model breaks into several graphs",
        "Only part of the model runs in graphs.",
        "Remove the breaks that `graph_break_places` names.",
        lambda o: o.partial,
    ),
    Flag(
        PROGRAM_DIFFERS,
        "the graph holds other operators than eager mode executes",
        "The ratio compares two programs (`program_difference`), so the cell is excluded.",
        "Check whether the model branches on being traced.",
        lambda o: o.program_differs,
    ),
    Flag(
        EAGER_COMPILES,
        "eager mode compiles or traces in every call; raised for every mode",
        "Speedups measure compilation, so the cell is excluded.",
        "Make functions that `lax.scan` takes outside of calls; replace `batch_jacobian`.",
        lambda o: o.eager_compiles,
    ),
    Flag(
        "drift",
        f"latency changed between the halves of at least ten rounds by over {100 * DRIFT:.0f} % and its scatter",
        "The machine's speed changed.",
        "Wait for a steady temperature and load.",
        lambda o: _above(o.drift, DRIFT),
        (LATENCY,),
    ),
    Flag(
        HOST_SLOWED,
        f"fewer than {ENOUGH_PROCESSES} processes have {FEWEST_VALUES} samples whose control loop takes at most {SLOW} "
        f"times that of the fastest {100 * FASTEST_SHARE:.0f} %",
        "The host core was slow. All samples count; published summaries omit the speedup.",
        "Measure on your own host, or with a larger BUDGET.",
        lambda o: o.host_slowed,
        BOTH,
        host_bound_only=True,
    ),
    Flag(
        OTHER_LOAD,
        f"other processes kept over {OTHER_LOAD_CORES} cores busy",
        "Other processes competed for cores, caches and memory.",
        "Stop other work on the machine.",
        _noise("other_load_cores", OTHER_LOAD_CORES),
        (LATENCY,),
    ),
    Flag(
        STEAL,
        f"the hypervisor took over {100 * STEAL_SHARE:.0f} % of a core",
        "Another virtual machine used the core.",
        "Measure on a dedicated host.",
        _noise("steal_share", STEAL_SHARE),
        (LATENCY,),
    ),
    Flag(
        "frequency",
        f"the mean CPU frequency changed by over {100 * FREQUENCY_CHANGE:.0f} %",
        "The processor's clock rate changed.",
        "Fix the governor to `performance`; check the cooling.",
        _noise("frequency_change", FREQUENCY_CHANGE),
        (LATENCY,),
    ),
    Flag(
        "power_capped",
        f"the power cap held the clock back in over {100 * THROTTLED_SHARE:.0f} % of readings",
        "Normal in long compute-bound cells.",
        "Check the power limit.",
        _gpu("power_capped_share"),
    ),
    Flag(
        "throttled",
        f"heat, hardware or the power brake held the clock back in over {100 * THROTTLED_SHARE:.0f} % of readings",
        "The GPU ran below its normal clock rate (`gpu_throttles`).",
        "Check cooling and power supply.",
        _gpu("throttled_share"),
        (LATENCY,),
    ),
    Flag(
        "roofline_exceeded",
        "a roofline term exceeds the measured time: `explained_share` above 1, or `mfu_pct` above 100",
        "The counted cost is too high, or the measured peak too low.",
        "Ignore `mfu_pct`, `explained_share` and `regime`; measure peaks again.",
        lambda o: exceeds_roofline(o.explained_share),
    ),
    Flag(
        "peak_above_datasheet",
        "a measured peak is above the vendor's data sheet",
        "`mfu_pct`, `bandwidth_pct`, `explained_share` and `regime` use an impossible peak.",
        "Measure peaks again.",
        lambda o: o.above_datasheet,
    ),
    Flag(
        "not_compared",
        "the NumPy reference would take above 2 TFLOP, and no other cell was measured",
        "The outputs are unverified; other cells are compared with them.",
        "Also measure a smaller shape.",
        lambda o: not o.compared,
    ),
    Flag(
        "eager_error",
        f"a user model's eager outputs differ from the reference by over {EAGER_ERROR:g} tolerances",
        "The model amplifies rounding, so small errors of a graph stay undetected (`parity_tolerance`).",
        "Measure in a wider dtype.",
        lambda o: _above(o.eager_error, EAGER_ERROR),
    ),
    Flag(
        "nan_outputs",
        "a user model's eager outputs are NaN, or infinite where the reference is finite",
        "These values verify nothing.",
        "Correct the inputs, or measure in a wider dtype.",
        lambda o: o.not_numbers,
    ),
    Flag(
        ZERO,
        "every compared output is zero or empty",
        "The outputs are unverified; the cell is excluded.",
        "Give the last layer other weights.",
        lambda o: o.empty == ZERO,
    ),
    Flag(
        CONSTANT,
        "every compared array holds one repeated value",
        "The outputs are unverified; the cell is excluded.",
        "Give the last layer weights that differ.",
        lambda o: o.empty == CONSTANT,
    ),
    Flag(
        "outputs_not_compared",
        "a user model's output has a type without comparison (`not_compared_outputs`)",
        "This output is unverified.",
        "Return tensors, numbers, containers or dataclasses of these.",
        lambda o: o.outputs_left,
    ),
    Flag(
        "other_dtype",
        "matrix products of a user model run in another dtype than the cell's (`computes_in`)",
        "Autocast, a policy or the model selects this dtype.",
        "Read figures as those of `computes_in`, or remove autocast.",
        lambda o: o.other_dtype,
    ),
    Flag(
        ENERGY_UNCHECKED,
        "`energy_integrated_ratio` differs from 1 by over 5 %",
        "The counter or the power readings miss energy.",
        "Measure on an idle machine.",
        lambda o: o.energy_unchecked,
    ),
)


def exceeds_roofline(explained_share: float | None) -> bool:
    """Return whether a roofline term exceeds the measured time, which is physically impossible."""
    return _above(explained_share, 1.0 + ROUNDING)


def with_flag(text: str | None, name: str, is_raised: bool) -> str | None:
    """Return a record's flags with the flag `name` added or removed, in the order of `FLAGS`."""
    others = {flag for flag in (text or "").split(";") if flag and flag != name}
    return ";".join(flag.name for flag in FLAGS if flag.name in others | ({name} if is_raised else set())) or None


def raised(observation: Observation) -> list[str]:
    """Return the names of the flags that this observation raises, in list order."""
    return [flag.name for flag in FLAGS if flag.raised(observation)]


def host_bound(host_share: float | None) -> bool:
    """Return whether the host limits a call's time; true on a CPU, and if unknown (None)."""
    return host_share is None or host_share >= HOST_SHARE


def disturbed(names: Collection[str], figure: str, host_decides: bool = True) -> bool:
    """Return whether one of these flags disturbs the figure, `latency` or `ratio`.

    `host_decides` is true if the host decides the figure: for a ratio, in either of its modes.
    """
    raised_flags = [flag for flag in FLAGS if flag.name in names and (host_decides or not flag.host_bound_only)]
    return any(figure in flag.disturbs for flag in raised_flags)


def mark_exceeded(columns: dict[str, list]) -> None:
    """Raise `roofline_exceeded` in records by column where MFU is above 100 %: early schemas did not raise it."""
    if columns.keys() >= {"flags", "mfu_pct"}:
        for place, mfu_pct in enumerate(columns["mfu_pct"]):
            if _above(mfu_pct, 100.0 * (1.0 + ROUNDING)):
                columns["flags"][place] = with_flag(columns["flags"][place], "roofline_exceeded", True)
