"""The table of transformers' page on `torch.compile`: ViT and ResNet at batch 1, 4 and 16."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from experiments import gains
from experiments.evidence import Evidence, gain_of
from experiments.gains import named_with_dtype
from experiments.judge import between, greater_of, inconclusive, series_along
from experiments.spec import Answer, Claim, Experiment, all_of


def saves_up_to(percent: float) -> Callable[[Evidence], Answer]:
    """Return a check that no graph is slower than eager, and none saves more of its time."""

    def check(evidence: Evidence) -> Answer:
        graphs = list(evidence.records.graph.included)
        if not graphs:
            return inconclusive("no graph was measured")
        return all_of(between(f"{named_with_dtype(r)} saves", gain_of(r), 0, percent, " % of the time") for r in graphs)

    return check


def less_in_large_batches(workload: str) -> Callable[[Evidence], Answer]:
    """Return a check that in each dtype less of the time is saved at the largest batch than at the smallest."""

    def check(evidence: Evidence) -> Answer:
        graphs = evidence.records.graph.where(workload=workload).included
        ends = []
        for dtype in dict.fromkeys(record.dtype for record in graphs):
            series = series_along(graphs.where(dtype=dtype), "batch_size")
            ends += [(by_batch[0], by_batch[-1]) for by_batch in series]
        if not ends:
            return inconclusive(f"{workload} was not measured at two batches")
        return all_of(greater_of(gain_of, named_with_dtype(a), a, named_with_dtype(b), b, " %") for a, b in ends)

    return check


CLAIMS = (
    Claim("Compiling saves up to 30 % of the time.", saves_up_to(30)),
    Claim("It saves less of ViT-B/16's time at batch 16 (2 %) than at 1 (19 %).", less_in_large_batches("vit-b16")),
    Claim("It saves less of ResNet-50's time at batch 16 (28 %) than at 1 (37 %).", less_in_large_batches("resnet50")),
)

EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="transformers' vision models, eager and compiled",
    source='"Optimize inference using torch.compile()", documentation of transformers 4.41',
    claims=CLAIMS,
    tables=partial(gains.make_tables, axes=("workload", "dtype", "batch_size")),
    published_records=gains.published_records,
)
