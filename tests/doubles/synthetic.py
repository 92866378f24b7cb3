"""Records of experiments, as they would be if a claim held, did not, or could not be told."""

from __future__ import annotations

from collections.abc import Callable

import experiments
from experiments.evidence import Evidence, Records, published
from experiments.spec import Verdict
from records.record import Record

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


def verdict(table: str, text: str, evidence: Evidence | list[Record], side: str | None = None) -> Verdict:
    """Answer the claim that begins with the text; of alpha, or its graph, unless a side is named."""
    experiment = experiments.get(table)
    (claim,) = [claim for claim in experiment.claims if claim.sentence.startswith(text)]
    given = evidence if isinstance(evidence, Evidence) else Evidence(Records(evidence))
    return experiment.answers(claim, given)[
        side or {"graph": "alpha graph", "all": "all"}.get(claim.of, "alpha")
    ].verdict


def timed(
    milliseconds: float,
    gain_pct: float | None = None,
    spread: float = 0.01,
    framework: str = "alpha",
    mode: str | None = None,
    parameters: dict | None = None,
    **columns,
) -> Record:
    """A record with a latency, and a gain over eager if it is a graph's; `spread` is the relative half-width of both.

    A spread of 0 stands for a cell without an interval.
    """
    mode = mode or ("eager" if gain_pct is None else "graph")
    fields = {"framework": framework, "mode": mode, "device": "cpu", "status": "ok", "latency_ms_median": milliseconds}
    fields["parameters"] = ";".join(f"{name}={value}" for name, value in (parameters or {}).items()) or None
    if spread:
        fields |= {"latency_ms_ci_low": milliseconds * (1 - spread), "latency_ms_ci_high": milliseconds * (1 + spread)}
    if gain_pct is not None:
        ratio = 1 / (1 - gain_pct / 100)
        fields["speedup_vs_eager"] = ratio
        if spread:
            fields |= {"speedup_ci_low": ratio * (1 - spread), "speedup_ci_high": ratio * (1 + spread)}
    return published({"workload": "mlp"} | fields | columns)


def bert_table(
    gain: Callable[[int, int], float], device: str = "cpu", threads: int = 1, cores: float = 1.0, **options
) -> Evidence:
    """BERT at six shapes; `gain(batch, length)` in percent."""
    shared = {"device": device, "threads": threads, "cpu_per_wall": cores, "workload": "bert-base"}
    records = []
    for batch in (1, 4):
        for length in (32, 128, 512):
            shape = {"batch_size": batch, "seq_len": length}
            records.append(timed(10.0, **shape, **shared, **options))
            records.append(timed(5.0, gain(batch, length), **shape, **shared, **options))
    return Evidence(Records(records))
