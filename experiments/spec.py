"""Definition of an experiment: its sweeps, the published figures, and the claims that are checked on the records."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from experiments.evidence import Evidence, Records
from measurement.places import SUITE
from measurement.statistics import INCONCLUSIVE
from records.record import Record

EDITION = SUITE / "experiments" / "edition"  # sweeps of the published results, one for each table
# The side of a claim's answer from the published figures.
PUBLISHED = "as published"
# The side of a claim that is not about one framework's mode.
ALL = "all"

Published = list[dict[str, str]]  # the rows of `published.csv`


class Verdict(StrEnum):
    """Verdict of the numbers on a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = INCONCLUSIVE


@dataclass(frozen=True)
class Answer:
    """A verdict with its numbers, or with the missing ones; `measured` where there are any.

    `accepted` is the range of the numbers in which the claim holds, as text.
    """

    verdict: Verdict
    numbers: str
    measured: bool = True
    accepted: str = ""

    @property
    def text(self) -> str:
        """Return the numbers with the accepted range."""
        return f"{self.numbers} (accepted: {self.accepted})" if self.accepted else self.numbers


@dataclass(frozen=True)
class Claim:
    """A sentence of the source's as a predicate.

    `of` names the subject of the sentence, and so the input of `check`: each `graph` mode, with its framework's eager
    mode; the `eager` mode of each framework, its graph modes included; or `all` together. If the experiment can turn
    its published figures into records, these are checked as well. `devices` are the kinds that the sentence refers to.
    """

    sentence: str
    check: Callable[[Evidence], Answer]
    of: str = "graph"
    devices: tuple[str, ...] = ("cpu", "gpu")


@dataclass(frozen=True)
class Table:
    """Rows of text under a title; the first columns name the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Sweep:
    """One sweep file `<device>[-part].toml`: flags as for bench, and a table `about`.

    `about` may have `scaled_down` (a sentence on sizes smaller than in the source), `minutes` (its duration, and `on`
    which machine) and `measure`. The last is `bench`, `explain`, `start` or `stream`. `start` and `stream` have
    `strategies` and `processes` too, and a stream its `lengths`, `calls` and `caches`. A table of an edition has a
    `title`, and `headline` if `TABLE=headline` measures it, and `mean` if it is in the geometric mean over models.
    """

    path: Path
    flags: dict[str, Any]
    about: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Sweep:
        """Read a sweep file."""
        flags = tomllib.loads(path.read_text())
        return cls(path, flags, flags.pop("about", {}))

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def device(self) -> str:
        """Return `cpu` or `gpu`."""
        return self.name.partition("-")[0]

    @property
    def measures(self) -> str:
        """Return the command that measures it: `bench`, `explain` for profiles, `start` or `stream`."""
        return str(self.about.get("measure", "bench"))


@dataclass(frozen=True)
class Experiment:
    """A published table. `folder` holds `published.csv`, the sweep files, and `__init__.py` with the rest.

    Tables of an edition whose names begin with one of `edition` are sweeps of it too, so published results answer it.
    `tables` takes the evidence and the published rows. `published_records` makes records of those rows, so that the
    claims can be checked on the source's own figures.
    """

    folder: Path
    title: str
    source: str
    claims: tuple[Claim, ...]
    tables: Callable[[Evidence, Published], list[Table]]
    published_records: Callable[[Published], list[Record]] | None = None
    edition: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.folder.name.replace("_", "-")

    def published(self) -> Published:
        """Return the published figures, a dictionary of texts for every row."""
        with open(self.folder / "published.csv", newline="") as file:
            return list(csv.DictReader(file))

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return the addresses of the published figures, each once, in their order."""
        return tuple(dict.fromkeys(row["address"] for row in self.published() if row.get("address")))

    def sweeps(self, device: str | None = None) -> list[Sweep]:
        """Return the sweeps for `cpu` or `gpu`, or all of them."""
        paths = sorted(self.folder.glob("*.toml"))
        paths += [path for path in sorted(EDITION.glob("*.toml")) if path.stem.startswith(self.edition)]
        return [sweep for sweep in map(Sweep.read, paths) if device in (None, sweep.device)]

    def answers(self, claim: Claim, evidence: Evidence) -> dict[str, Answer]:
        """Return the claim's answers by side, the published figures first."""
        answers = {}
        if self.published_records is not None:
            theirs = sides_of(claim, Evidence(Records(self.published_records(self.published()))))
            for name, side in theirs.items():
                mode = name.rpartition(" ")[2]
                answers[PUBLISHED if len(theirs) == 1 else f"{PUBLISHED}: {mode}"] = claim.check(side)
        if evidence.device_kinds and not evidence.device_kinds & set(claim.devices):
            return answers
        return answers | {name: claim.check(side) for name, side in sides_of(claim, evidence).items()}


def sides_of(claim: Claim, evidence: Evidence) -> dict[str, Evidence]:
    """Return the sides of a claim, by name."""
    return {"graph": evidence.sides, "eager": evidence.frameworks, ALL: lambda: {ALL: evidence}}[claim.of]()


def all_of(answers: Iterable[Answer]) -> Answer:
    """Return an answer that holds if every one does, fails if any does, and is open otherwise."""
    answers = list(answers)
    ranges = {answer.accepted for answer in answers if answer.measured}
    accepted = ranges.pop() if len(ranges) == 1 else ""  # a common one is named once
    texts = (answer.numbers if accepted else answer.text for answer in answers)
    numbers = "; ".join(texts) or "nothing of this was measured"
    verdicts = {answer.verdict for answer in answers}
    if Verdict.FAILS in verdicts:
        return Answer(Verdict.FAILS, numbers, accepted=accepted)
    measured = any(answer.measured for answer in answers)
    return Answer(Verdict.HOLDS if verdicts == {Verdict.HOLDS} else Verdict.OPEN, numbers, measured, accepted)
