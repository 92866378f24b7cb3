"""Starts of fresh processes: artefacts and references first, then rounds in which every strategy starts once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from execution import artefacts
from execution.rounds import Rounds, failure, judged
from measurement import durable
from measurement.protocol import START, Filled, Started
from measurement.starts import EAGER, MOST_UNACCOUNTED, WAYS, StartJob
from plan.plan import Group
from records import starts
from records.starts import StartRecord
from reports.numbers import text_of

# Names with the prefix of a target or the suffix of a version.
COMPILER = re.compile(
    r"(.*-)?(g\+\+|gcc|cc|c\+\+|c89|c99|cpp|clang(\+\+|-cpp)?|icpx?|icx|nvcc|ptxas|ld(\.\w+)?|as|collect2)(-[\d.]+)?"
)
WRONG = "The first output differs by more than the tolerance."
OTHER = (
    "Two processes of eager mode give different outputs: let model() and inputs() give the same values in each, with "
    "seeds for what they draw."
)
_ENVIRONMENT = ("CC", "CXX", "CUDACXX", "CUDAHOSTCXX")


@dataclass(kw_only=True)
class Starts(Rounds[StartRecord]):
    """The starts of a run. `refused` has, by folder, the columns of each artefact that the framework cannot make."""

    journal: ClassVar = starts.JOURNAL
    task: ClassVar = START
    names: ClassVar = WAYS
    refused: dict[Path, dict[str, str]] = field(default_factory=dict)

    def referring(self, group: Group) -> StartJob:
        """Return the job that makes the reference, unless the workload already has one."""
        path = self.launcher.reference_data(group).reference
        return StartJob("eager", "", str(path) if path else "", refers=True)

    def facts(self, group: Group, strategy: str) -> dict[str, Any]:
        """Return the facts for which an artefact is valid."""
        cell, models = group.cells[0], self.launcher.sweep.user_models
        source = models.get(cell.workload, "")
        return {
            "run": self.run.id,
            "cell": cell.group_id,
            "model": durable.sha256(Path(source)) if Path(source).is_file() else source,
            "weights": self.launcher.reference_data(group).weights_name,
            "machine": self.machine[0],
            "versions": dict(self.known[cell.group_id][1].versions),
            "strategy": strategy,
            "code": self.revision,
        }

    def measured(self, group: Group, number: int, *arm: str) -> dict[str, Any]:
        """Start one process, with its artefact, and return the columns of its measurement."""
        (strategy,) = arm
        way, filled = WAYS[strategy], self.known[group.cells[0].group_id][0]
        source = way.beside or strategy
        folder, columns = self.folder(group, source), {}
        if WAYS[source].fills:
            if failed := self.ensure(group, source, folder):
                return failed
            columns = {"artefact_s": artefacts.seconds(folder), "artefact_bytes": artefacts.size(folder)}
        job = StartJob(strategy, str(folder), filled.reference, filled.eager, settings=filled.settings)
        live = self.caches()
        if way.warm:
            artefacts.copy(folder, live)
        hidden = partial(without_compilers, folder=self.run.folder / "processes" / "path")
        ended, _ = self.process(group, job, live, hidden if way.hides_compilers else dict)
        artefacts.remove(live)
        wrong = OTHER if strategy == EAGER and group.cells[0].implementation == "own" else WRONG
        return columns | (figures(ended, wrong) if isinstance(ended, Started) else failure(ended))

    def folder(self, group: Group, strategy: str) -> Path:
        """Return the folder of a strategy's artefact."""
        return self.run.folder / "artefacts" / re.sub(r"[^\w.=-]+", "_", group.cells[0].group_id) / strategy

    def ensure(self, group: Group, strategy: str, folder: Path) -> dict[str, str]:
        """Make an artefact unless a valid one exists or it was refused; return a failure's columns, else nothing."""
        if folder in self.refused:
            return self.refused[folder]
        facts = self.facts(group, strategy)
        why = artefacts.problem(folder, facts)
        if why is None:
            return {}
        if why:
            self.say(f"Making the artefact of {strategy} again, because {why}.")
        artefacts.remove(folder)
        folder.mkdir(parents=True)
        settings, live = self.known[group.cells[0].group_id][0].settings, self.caches()
        ended, _ = self.process(group, StartJob(strategy, str(folder), fills=True, settings=settings), live)
        if WAYS[strategy].warm and isinstance(ended, Filled):
            artefacts.copy(live, folder)
        artefacts.remove(live)
        if not isinstance(ended, Filled):
            artefacts.remove(folder)
            failed = failure(ended)
            if failed["status"] == "unsupported":
                self.refused[folder] = failed
            return failed
        artefacts.seal(folder, facts, ended.seconds)
        self.say(f"{group.cells[0].framework} {strategy}: artefact, {ended.seconds:.1f} s, not counted")
        return {}

    def figures(self, record: StartRecord) -> str:
        """Return a text with the seconds to the first answer and the time per call after it."""
        if record.first_answer_s is None:
            return ""
        steady = f", then {text_of(record.steady_ms)} ms a call" if record.steady_ms else ""
        return f"{record.first_answer_s:.2f} s{steady}"


def figures(ended: Started, wrong: str) -> dict[str, Any]:
    """Return the columns of a start that gave an answer, with the reason `wrong` where it is wrong."""
    found = ended.start
    unaccounted = 1 - sum(found.phases.values()) / found.wall_s
    flags = {"unaccounted": abs(unaccounted) > MOST_UNACCOUNTED, "recompiled": bool(found.compilations)}
    flags |= {"partial": found.partial, "compiled_again": found.compiled_again}
    return {
        **judged(found, wrong, flags),
        "first_answer_s": found.wall_s,
        **{f"{name}_s": seconds for name, seconds in found.phases.items()},
        "unaccounted": unaccounted,
        "programs": found.programs or None,
        "programs_s": found.programs_s,
        "compiler": found.compiler or None,
        "memory_bytes": found.memory_bytes,
        "children_bytes": found.children_bytes,
        "steady_ms": 1000 * median(found.samples) if found.samples else None,
        "samples": len(found.samples),
        "compilations": found.compilations,
    }


def without_compilers(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """Return the environment with a PATH of links to all programs except compilers, assemblers and linkers."""
    artefacts.remove(folder)
    folder.mkdir(parents=True)
    for program in programs_on(environment.get("PATH", os.defpath)):
        if not COMPILER.fullmatch(program.name) and not (folder / program.name).is_symlink():
            (folder / program.name).symlink_to(program)
    kept = {name: value for name, value in environment.items() if name not in _ENVIRONMENT}
    return kept | {"PATH": str(folder)}


def programs_on(path: str) -> Iterator[Path]:
    """Yield the files in the folders of a PATH, in search order."""
    for word in filter(None, path.split(os.pathsep)):
        if Path(word).is_dir():
            yield from sorted(Path(word).iterdir())
