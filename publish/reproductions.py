"""Published tables that were measured again: their claims with the committed answers, and all answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import experiments
from commands import reproduce
from experiments import page
from experiments.evidence import Evidence
from experiments.spec import PUBLISHED, Claim, Experiment, Sweep, Verdict
from measurement.places import RESULTS
from measurement.statistics import INCONCLUSIVE
from publish import place
from publish.definitions import table
from records import manifest

FOLDER = RESULTS / "experiments"
WORDS = {Verdict.HOLDS: "yes", Verdict.FAILS: "no"}


class Reproduction(NamedTuple):
    """A committed reproduction: its name, and its contents."""

    name: str
    experiment: Experiment
    sweeps: list[Sweep]
    evidence: Evidence

    @property
    def on_gpu(self) -> bool:
        return "gpu" in self.evidence.device_kinds


@cache
def committed() -> tuple[Reproduction, ...]:
    """Return all committed reproductions, by name, and those whose sweeps places of the edition measured."""
    found = []
    for path in sorted(FOLDER.glob(f"*/{manifest.REPRODUCTION}")):
        asked = manifest.read(path)
        experiment = experiments.get(asked["table"])
        sweeps = reproduce.chosen_sweeps(experiment, asked)
        found.append(Reproduction(path.parent.name, experiment, sweeps, reproduce.evidence_in(sweeps, path.parent)))
    return (*found, *_in_edition())


def _in_edition() -> Iterator[Reproduction]:
    """Yield a reproduction for each published table and place of the edition whose complete tables answer claims."""
    for name in experiments.names():
        experiment = experiments.get(name)
        for folder in sorted((RESULTS / place.EDITION).glob("*/")):
            if sweeps := [part for part in experiment.sweeps() if place.Table(part, folder / part.name).complete]:
                one = Reproduction(f"{name}-{folder.name}", experiment, sweeps, reproduce.evidence_in(sweeps, folder))
                if any(_answer(claim, [one]) for claim in experiment.claims):
                    yield one


def answers() -> str:
    """Return a chapter for every reproduction: its answers and tables."""
    return "\n\n".join(map(_chapter, committed()))


def _chapter(one: Reproduction) -> str:
    _, _, text = page.markdown(one.experiment, one.sweeps, one.evidence, basis="").partition("\n")
    return f"## {one.name}\n\n{one.experiment.title}.{text}".replace("\n## ", "\n### ").rstrip()


def claims() -> str:
    """Return a section for every published table: its source, and its claims with the committed answers."""
    return "\n\n".join(f"## {name}\n\n{_section(experiments.get(name))}" for name in experiments.names())


def _section(experiment: Experiment) -> str:
    found = [one for one in committed() if one.experiment.name == experiment.name]
    links = ", ".join(f"[{one.name}](../results/experiments/README.md#{one.name})" for one in found)
    gpu, cpu = ([one for one in found if one.on_gpu == on_gpu] for on_gpu in (True, False))
    rows = [(claim.sentence, _answer(claim, gpu), _answer(claim, cpu)) for claim in experiment.claims]
    answered = [row for row in rows if any(row[1:])]
    source = f"{experiment.title}. Source: {experiment.source}. Answers: {links or 'none'}."
    parts = [source, *([table(("claim", "GPU", "CPU"), answered)] if answered else [])]
    if len(rows) > len(answered):
        parts.append(f"Claims without a measurement: {len(rows) - len(answered)}.")
    return "\n\n".join(parts)


def _answer(claim: Claim, measured: Iterable[Reproduction]) -> str:
    """Return the answer if all frameworks have the same one, else the frameworks by answer. Empty: never measured."""
    found: dict[str, set[Verdict]] = {}
    for one in measured:
        for side, answer in one.experiment.answers(claim, one.evidence).items():
            if answer.measured and not side.startswith(PUBLISHED):
                found.setdefault(side.partition(" ")[0], set()).add(answer.verdict)
    by_answer: dict[str, list[str]] = {}
    for framework, verdicts in found.items():
        decided = [word for verdict, word in WORDS.items() if verdict in verdicts]
        word = "mixed" if len(decided) > 1 else decided[0] if decided else INCONCLUSIVE
        by_answer.setdefault(word, []).append(framework)
    if len(by_answer) <= 1:
        return "".join(by_answer)
    return "; ".join(f"{word}: {', '.join(by_answer[word])}" for word in ("yes", "no", "mixed") if word in by_answer)
