"""Starts of fresh processes: artefacts and references first, then rounds in which every strategy starts once."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from execution import artefacts
from execution.rounds import Rounds, failure
from measurement import durable
from measurement.protocol import START, Ended, Filled, Hello, Started
from measurement.starts import MOST_UNACCOUNTED, WAYS, StartJob
from plan.plan import Group
from records import starts
from records.starts import START_SCHEMA_VERSION, StartRecord

# A name that begins or ends in what a version or a target adds.
COMPILER = re.compile(
    r"(.*-)?(g\+\+|gcc|cc|c\+\+|c89|c99|cpp|clang(\+\+|-cpp)?|icpx?|icx|nvcc|ptxas|ld(\.\w+)?|as|collect2)(-[\d.]+)?"
)
_ENVIRONMENT = ("CC", "CXX", "CUDACXX", "CUDAHOSTCXX")


@dataclass
class Known:
    """What is known of a cell before its starts are counted."""

    filled: Filled
    hello: Hello
    facts: dict[str, Any]


class Starts(Rounds):
    """The starts of a run."""

    journal = starts.JOURNAL
    known: dict[str, Known]

    def left(self, group: Group, records: Sequence[StartRecord]) -> list[tuple[int, int, str]]:
        """Return what is to be started: round, place within it, and strategy.

        A strategy that failed in any way but by its answer starts no more.
        """
        done = {(record.round, record.strategy) for record in records}
        over = {record.strategy for record in records if record.status not in ("ok", "mismatch")}
        rounds = enumerate(self.order(group, WAYS))
        found = [(number, place, name) for number, names in rounds for place, name in enumerate(names)]
        return [one for one in found if (one[0], one[2]) not in done and one[2] not in over]

    def take_group(self, group: Group, records: list[StartRecord]) -> None:
        """Start the processes of one cell."""
        cell = group.cells[0]
        title = f"{cell.framework} {cell.workload}"
        ended = self.process(group, StartJob("eager", "", self.reference(group), refers=True))
        if not isinstance(ended[0], Filled) or ended[1] is None:
            self.say(f"{title} does not run: {failure(ended[0])[1]}")
            return
        self.known[cell.group_id] = Known(ended[0], ended[1], self.facts(group, ended[1]))
        self.say(f"{title}: reference, {ended[0].seconds:.1f} s, not counted")
        while left := self.left(group, records):
            number, place, strategy = left[0]
            record = self.start(group, number, place, strategy)
            self.journal.append(self.run.folder, record)
            records.append(record)
            self.say(line(title, record, self.processes))

    def reference(self, group: Group) -> str:
        """Return the file of the workload's own reference; empty without one."""
        path = self.launcher.materials(group).reference
        return str(path) if path else ""

    def facts(self, group: Group, hello: Hello) -> dict[str, Any]:
        """Return what an artefact has to be made for."""
        cell, models = group.cells[0], self.launcher.sweep.user_models
        source = models.get(cell.workload, "")
        return {
            "run": self.run.id,
            "cell": cell.group_id,
            "model": durable.sha256(Path(source)) if Path(source).is_file() else source,
            "weights": self.launcher.materials(group).weights_name,
            "machine": self.machine[0],
            "versions": dict(hello.versions),
        }

    def start(self, group: Group, number: int, place: int, strategy: str) -> StartRecord:
        """Start one process and return its record."""
        known, way = self.known[group.cells[0].group_id], WAYS[strategy]
        parts: dict[str, Any] = {
            "schema_version": START_SCHEMA_VERSION,
            **self.columns(group, known.hello),
            "strategy": strategy,
            "round": number,
            "place": place,
        }
        source = way.beside or strategy
        folder = self.folder(group, source)
        if WAYS[source].fills:
            failed = self.ensure(group, source, folder)
            if failed:
                return StartRecord(**parts, status=failed[0], reason=failed[1])
            parts |= {"artefact_s": artefacts.seconds(folder), "artefact_bytes": artefacts.size(folder)}
        filled = known.filled
        job = StartJob(strategy, str(folder), filled.reference, filled.eager, settings=filled.settings)
        ended, _ = self.process(group, job, warm=folder if way.warm else None, hidden=way.hides_compilers)
        if not isinstance(ended, Started):
            status, reason = failure(ended)
            return StartRecord(**parts, status=status, reason=reason)
        return StartRecord(**parts, **figures(ended))

    def folder(self, group: Group, strategy: str) -> Path:
        """Return where a strategy's artefact lies."""
        return self.run.folder / "artefacts" / re.sub(r"[^\w.=-]+", "_", group.cells[0].group_id) / strategy

    def ensure(self, group: Group, strategy: str, folder: Path) -> tuple[str, str] | None:
        """Make an artefact unless one fits; return the status and the reason where it cannot be made."""
        facts = self.known[group.cells[0].group_id].facts | {"strategy": strategy}
        why = artefacts.problem(folder, facts)
        if why is None:
            return None
        if why:
            self.say(f"Making the artefact of {strategy} again, because {why}.")
        artefacts.remove(folder)
        folder.mkdir(parents=True)
        job = StartJob(strategy, str(folder), fills=True, settings=self.known[group.cells[0].group_id].filled.settings)
        ended, _ = self.process(group, job, keeps=folder if WAYS[strategy].warm else None)
        if not isinstance(ended, Filled):
            artefacts.remove(folder)
            return failure(ended)
        artefacts.seal(folder, facts, ended.seconds)
        self.say(f"{group.cells[0].framework} {strategy}: artefact, {ended.seconds:.1f} s, not counted")
        return None

    def process(
        self,
        group: Group,
        what: StartJob,
        warm: Path | None = None,
        keeps: Path | None = None,
        hidden: bool = False,
    ) -> tuple[Ended | str, Hello | None]:
        """Run one process with caches and temporary files of its own; return how it ended.

        Its caches are empty, or a copy of `warm`; afterwards they become the folder `keeps`. All processes have them
        at one path.
        """
        folder, live = self.run.new_launch(), self.caches()
        if warm:
            shutil.copytree(warm, live, ignore=lambda _, names: {artefacts.MANIFEST} & set(names), dirs_exist_ok=True)
        begun = self.launcher.start_of(group.cells[0], folder, live)
        environment = begun.environment | {"TMPDIR": str(live / "tmp")}
        if hidden:
            environment = without_compilers(environment, self.run.folder / "launches" / "path")
        job = replace(self.launcher.job(START, [group], folder), start=what)
        ended = self.ended(replace(begun, environment=environment), job)
        if keeps and isinstance(ended[0], Filled):
            shutil.copytree(live, keeps, dirs_exist_ok=True)
        artefacts.remove(live)
        return ended


def figures(ended: Started) -> dict[str, Any]:
    """Return the columns of a start that gave an answer."""
    found = ended.start
    unaccounted = 1 - sum(found.phases.values()) / found.wall_s
    flags = ["unaccounted"] if abs(unaccounted) > MOST_UNACCOUNTED else []
    flags += ["recompiled"] if found.compilations else []
    return {
        "status": "ok" if found.right else "mismatch",
        "reason": None if found.right else "The first output differs by more than the tolerance.",
        "first_answer_s": found.wall_s,
        **{f"{name}_s": seconds for name, seconds in found.phases.items()},
        "unaccounted": unaccounted,
        "programs": found.programs or None,
        "programs_s": found.programs_s,
        "compiler": found.compiler or None,
        "memory_bytes": found.memory_bytes,
        "children_bytes": found.children_bytes,
        "parity": found.parity,
        "tolerance": found.tolerance,
        "steady_ms": 1000 * median(found.samples) if found.samples else None,
        "samples": len(found.samples),
        "host_loop_ms": 1000 * median(found.host_loop_s) if found.host_loop_s else None,
        "compilations": found.compilations,
        "flags": ";".join(flags) or None,
    }


def without_compilers(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """Return the environment with links to all programs on its PATH but compilers, assemblers and linkers."""
    artefacts.remove(folder)
    folder.mkdir(parents=True)
    for program in programs_on(environment.get("PATH", os.defpath)):
        if not COMPILER.fullmatch(program.name) and not (folder / program.name).is_symlink():
            (folder / program.name).symlink_to(program)
    kept = {name: value for name, value in environment.items() if name not in _ENVIRONMENT}
    return kept | {"PATH": str(folder)}


def programs_on(path: str) -> Iterator[Path]:
    """Yield the files of the folders of a PATH, those that are found first before others."""
    for word in filter(None, path.split(os.pathsep)):
        if Path(word).is_dir():
            yield from sorted(Path(word).iterdir())


def line(title: str, record: StartRecord, processes: int) -> str:
    """Return what is said of a process once it has its record."""
    head = f"{title} {record.round + 1}/{processes} {record.strategy}"
    if record.first_answer_s is None:
        return f"{head}: {record.status}: {record.reason}"
    steady = f", then {record.steady_ms:.3g} ms a call" if record.steady_ms else ""
    return f"{head}: {record.first_answer_s:.2f} s{steady}{'' if record.is_right else f', {record.status}'}"
