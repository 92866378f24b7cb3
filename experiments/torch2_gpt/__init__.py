"""Training two GPTs: the compiler's savings of an iteration, the effect of CUDA graphs alone, and MFU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from experiments import tables
from experiments.evidence import Evidence, Records, gain_of, published, speedup_of
from experiments.judge import between, greater_of, inconclusive
from experiments.spec import PUBLISHED, Answer, Claim, Experiment, Published, Table, Verdict, all_of
from records.record import Record
from reports.numbers import estimate, text_of

# The published models and their names here.
MODELS = {"gpt2": "gpt2-124m", "shakespeare": "gpt-10m"}
MEDIUM, SMALL = MODELS["gpt2"], MODELS["shakespeare"]
# "About" a percentage: within so many points of it.
POINTS = 5.0
# "Steady" and "noisy": the standard deviation of iterations over their mean, in percent.
STEADY, NOISY = 1.0, 5.0
A100_TFLOPS = 312.0


@dataclass(frozen=True)
class Gpt:
    """N parameters without the position embedding, L layers, H heads of width Q, sequences of T tokens."""

    parameters: float
    layers: int
    heads: int
    head_width: int
    length: int
    sequences: int  # per iteration, accumulation steps included

    @property
    def flops_per_token(self) -> float:
        """Return the operations of forward and backward (Chowdhery et al. 2022, appendix B)."""
        return 6 * self.parameters + 12 * self.layers * self.heads * self.head_width * self.length


# As published: 12 x 40 sequences of 1024 tokens, and 64 of 256.
GPTS = {
    "gpt2-124m": Gpt(123.6e6, 12, 12, 64, 1024, 12 * 40),
    "gpt-10m": Gpt(10.65e6, 6, 6, 64, 256, 64),
}


def tokens_of(model: str) -> int:
    """Return the tokens of a published iteration."""
    return GPTS[model].sequences * GPTS[model].length


def mfu_pct(record: Record) -> float | None:
    """Return percent of the datasheet's dense peak, or of the measured one where there is none; by the mean iteration.

    The model's sequence length is taken as published; shorter sequences make the attention's share a little too large.
    """
    peak = record.datasheet_tflops or record.peak_tflops
    mean, median, rate = record.latency_ms_mean, record.latency_ms_median, record.tokens_per_s
    if not (peak and mean and median and rate):
        return None
    tokens_per_s = rate * median / mean  # the record's rate is that of the median
    return 100 * GPTS[record.workload].flops_per_token * tokens_per_s / (peak * 1e12)


def published_records(rows: Published) -> list[Record]:
    """Return the published rows as records; speedups are ratios of means, for which the source gives no interval."""
    eager = {row["model"]: float(row["iteration_ms_mean"]) for row in rows if row["mode"] == "eager"}
    records = []
    for row in rows:
        mean = float(row["iteration_ms_mean"])
        record = {
            "workload": MODELS[row["model"]],
            "mode": row["mode"],
            "pass": "training",
            "latency_ms_median": mean,
            "latency_ms_mean": mean,
            "latency_ms_std": float(row["iteration_ms_std"]),
            "calls_per_sample": 1,
            "datasheet_tflops": A100_TFLOPS,
            "tokens_per_s": tokens_of(MODELS[row["model"]]) / mean * 1e3,
        }
        records.append(published(record, None if row["mode"] == "eager" else eager[row["model"]] / mean))
    return records


def saves_about(model: str, percent: float) -> Callable[[Evidence], Answer]:
    """Return a check that a compiled mode cuts the iteration time by about so much."""

    def check(evidence: Evidence) -> Answer:
        record = compiled(evidence).find_one(workload=model)
        if record is None:
            return inconclusive(f"no compiled {model} was measured")
        return between(f"{model} saves", gain_of(record), percent - POINTS, percent + POINTS, " % of the time")

    return check


def compiled(evidence: Evidence) -> Records:
    """Return the graph modes that compile, which replaying eager's kernels from a CUDA graph does not."""
    return Records(record for record in evidence.records.graph if record.mode not in ("cuda-graph", "cudagraphs"))


def more_on_the_small_one(evidence: Evidence) -> Answer:
    """Check that the small model gains more."""
    small, medium = (compiled(evidence).find_one(workload=model) for model in (SMALL, MEDIUM))
    if small is None or medium is None:
        return inconclusive("both models, compiled, were not measured")
    return greater_of(gain_of, SMALL, small, MEDIUM, medium, " %")


def cuda_graphs_bring_nothing(evidence: Evidence) -> Answer:
    """Check that replaying eager's kernels from a CUDA graph changes the time by less than 5 %."""
    replayed = evidence.records.where(mode="cudagraphs").included
    return all_of(between(f"{r.workload} saves", gain_of(r), -POINTS, POINTS, " % of the time") for r in replayed)


def steady_when_large(evidence: Evidence) -> Answer:
    """Check that iterations vary little on the medium model and much on the small one."""
    spreads = {
        model: [spread_pct(record) for record in evidence.records.where(workload=model).included]
        for model in (MEDIUM, SMALL)
    }
    known = {model: [one for one in of_model if one is not None] for model, of_model in spreads.items()}
    if known != spreads or not all(known.values()):
        return inconclusive("not every mode of both models was timed one iteration at a time")
    medium, small = max(known[MEDIUM]), min(known[SMALL])
    numbers = f"{MEDIUM} varies by up to {medium:.2g} %, {SMALL} by {small:.2g} % and more"
    accepted = f"below {STEADY:g} % and above {NOISY:g} %"
    if medium < STEADY and small > NOISY:
        return Answer(Verdict.HOLDS, numbers, accepted=accepted)
    fails = medium > NOISY or small < STEADY
    return Answer(Verdict.FAILS if fails else Verdict.OPEN, numbers, accepted=accepted)


def spread_pct(record: Record) -> float | None:
    """Return the standard deviation between iterations over their mean, in percent."""
    mean, deviation = record.latency_ms_mean, deviation_ms(record)
    return 100 * deviation / mean if mean and deviation is not None else None


def deviation_ms(record: Record) -> float | None:
    """Return the standard deviation between iterations; None where a sample is the mean of several, which vary less."""
    return record.latency_ms_std if record.calls_per_sample == 1 else None


CLAIMS = (
    Claim(
        "The compiler saves about 15 % of the medium model's iteration (the source's table; its text says 16.25 %).",
        saves_about(MEDIUM, 15),
    ),
    Claim(
        "It saves about 24 % of the small model's iteration (the source's text says 27.2 %).", saves_about(SMALL, 24)
    ),
    Claim("It saves more on the small model.", more_on_the_small_one),
    Claim("CUDA graphs alone bring no speedup.", cuda_graphs_bring_nothing, of="all", devices=("gpu",)),
    Claim("Iterations are steady on the medium model and noisy on the small one.", steady_when_large),
)


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return tables of iteration times and their spread, the graph's savings in both conventions, and MFU."""
    groups = {PUBLISHED: Records(published_records(published)), **tables.by_framework(evidence)}
    graphs = {name: records.graph for name, records in groups.items()}
    axes = ("workload",)
    return [
        tables.by_shape("Iteration in ms, mean ± standard deviation", axes, groups, _iteration),
        tables.by_shape("Less time in %, (eager - graph) / eager", axes, graphs, tables.gain),
        tables.by_shape("More speed in %, eager / graph - 1", axes, graphs, _speed),
        tables.by_shape(
            "MFU in %, of the datasheet's dense peak (measured peak on a CPU)",
            axes,
            groups,
            lambda record: record.excluded or text_of(mfu_pct(record)),
        ),
    ]


def _iteration(record: Record) -> str:
    if record.excluded:
        return record.excluded
    deviation = deviation_ms(record)
    spread = "" if deviation is None else f" ± {text_of(deviation)}"
    return text_of(record.latency_ms_mean) + spread


def _speed(record: Record) -> str:
    speedup = speedup_of(record)
    return record.excluded or estimate(speedup and speedup.map(lambda ratio: 100 * (ratio - 1)))


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="Training GPT-2 (124M) and a 10.65M GPT: eager, CUDA graphs, compiled",
    source="PyTorch 2.0 slides, 2024; an A100, bf16, 1000 iterations",
    claims=CLAIMS,
    tables=make_tables,
    published_records=published_records,
)
