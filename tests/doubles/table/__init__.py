"""An experiment of the fake framework's, which tests add to a copy of the suite by copying this folder."""

from __future__ import annotations

from pathlib import Path

from experiments import tables
from experiments.judge import above
from experiments.spec import Claim, Experiment


def measured(evidence):
    """That the eager cell took any time."""
    (record,) = evidence.records.eager
    return above("eager took", record.latency, 0, " ms")


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="A table of the fake's",
    source="a double",
    claims=(
        Claim("It takes time.", measured),
        Claim("It takes time, all in all.", measured, of="all"),
        Claim("It takes time on a GPU.", measured, devices=("gpu",)),
    ),
    tables=lambda evidence, published: [
        tables.by_shape("Times", ("batch_size",), tables.by_framework(evidence), tables.latency)
    ],
)
