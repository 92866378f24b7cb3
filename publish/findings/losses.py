"""Where compiling loses, and what TF32 brings beside it: in a few words for the README, with hosts for the findings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from measurement.statistics import Interval
from publish.findings import models
from publish.findings.evidence import EXPERIMENTS, one, place, unsure
from reports.points import Point
from reports.verdict import wording

DEFAULT, REPLAYED = models.AVERAGED
KERAS = EXPERIMENTS / "keras-io-q-h200"
SWEEPS = {"gpu-predict": "prediction", "gpu-fit": "training"}


@dataclass(frozen=True)
class Loss:
    """A model that is slower compiled by default: its name, a link to what is known of it, and what was measured."""

    model: str
    known: str
    link: str
    point: Point
    folder: Path

    def short(self) -> str:
        """Without the machine, as the README links it."""
        return f"{self.model}, {wording.spread([self.point.speedup])} ([{self.known}]({self.link}))"

    def whole(self) -> str:
        """With all that it was measured on."""
        link = self.link.removeprefix("docs/") if self.link.startswith("docs/") else f"../{self.link}"
        version = f"torch {self.point['framework_version']}"
        return (
            f"- {self.model}: {wording.spread([self.point.speedup])} of eager mode's speed, [{self.known}]({link}) "
            f"({place([self.point], self.folder)}, {version}; {self.point['status']}: "
            f"{', '.join((self.point['flags'] or 'no flag').split(';'))})."
        )


def losses() -> tuple[Loss, ...]:
    """The losses on H200s, of cells that are not excluded."""
    return (
        Loss(
            "an LSTM (`torch.lstm`) at a batch of 8",
            "other batches",
            "results/h200/README.md#an-lstm",
            one(models.AVERAGE, workload="lstm", mode=DEFAULT),
            models.AVERAGE,
        ),
        Loss(
            "ResNet-50 in strict float32 at a batch of 16",
            "the layout that it chooses",
            "docs/experiments.md#vision-docs",
            models.pair(models.STRICT, "nchw", batch_size=16)[1],
            models.STRICT,
        ),
    )


def where_it_loses() -> list[str]:
    """A bullet a loss."""
    return [loss.whole() for loss in losses()]


@dataclass(frozen=True)
class Precision:
    """What TF32 brings eager mode in a pass of BERT-base, and what compiling brings on top of it."""

    doing: str
    alone: Interval
    compiled: Interval
    points: tuple[Point, ...]
    folder: Path

    def told(self) -> str:
        """In words."""
        gains = wording.spread([self.alone]), wording.spread([self.compiled])
        return f"in {self.doing} TF32 alone brings {gains[0]}, compiling on top of it {gains[1]}"


def precisions() -> list[Precision]:
    """Prediction and training as keras.io's table has them.

    Strict float32 and TF32 are two runs on one machine: the ends of their ratio's interval are those of both at worst.
    """
    found = []
    for sweep, doing in SWEEPS.items():
        folder = KERAS / sweep
        exact, rounded = (one(folder, framework="torch", mode="eager", dtype=dtype) for dtype in ("fp32", "tf32"))
        compiled = one(folder, framework="torch", dtype="tf32", mode=REPLAYED)
        before, after = exact.latency, rounded.latency
        times = exact["latency_ms_median"] / rounded["latency_ms_median"]
        alone = Interval(times, before.low / after.high, before.high / after.low)
        found.append(Precision(doing, alone, compiled.speedup, (exact, rounded, compiled), folder))
    return found


def beside_tf32() -> list[str]:
    """A bullet a pass."""
    return [
        f"- BERT-base in the shapes of [keras.io's table](experiments.md#keras-io): {each.told()} "
        f"({place(each.points, each.folder)}, torch {each.points[0]['framework_version']}; strict float32 and TF32 in "
        "runs of their own, the ends of the ratio's interval at their worst). Careful: "
        f"{sum('power_capped' in point['flags'] for point in each.points)} of the 3 figures are of a GPU at its power "
        f"cap; {unsure(list(each.points))}."
        for each in precisions()
    ]
