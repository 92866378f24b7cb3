"""A run's folder: the plan, the machine, the growing records, and the CSV made from them."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import itertools
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from environments import locks
from measurement import durable, programs
from measurement.places import INSTALLED, NAME, RUNS, SUITE, shown
from measurement.refusals import UsageError, writing
from measurement.text import make_word
from records import belonging, foreign, jsonfiles, manifest, recordfile, rooflines, values
from records.manifest import EXPLANATION, PLAN, REPRODUCTION, STARTS, STREAMS
from records.record import NAMES, Record
from records.recordfile import RECORDS, TABLE
from records.shapes import SampleLine

MACHINE = "machine.json"
VERSIONS = "versions.json"  # every package installed with each framework
SAMPLES, COMPRESSED_SAMPLES = "samples.jsonl", "samples.jsonl.gz"
EXPLAINED = "explained.jsonl"  # what `explain` adds to a folder
PROCESSES = "processes"  # the folder that contains one for each worker
LOCK = f"{PROCESSES}/lock"
MEASURING = ("execution", "frameworks", "launchers", "measurement", "plan", "worker", "workloads")
_MANIFESTS = (PLAN, REPRODUCTION, EXPLANATION, STARTS, STREAMS, RECORDS)


class Run:
    """A folder: plan, machine and versions as JSON, records, samples, `results.csv` and `processes/`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.records_path = folder / RECORDS
        self.csv_path = folder / TABLE
        self._reports_path = folder / PROCESSES / "reports.jsonl"
        self._is_ours: Callable[[], bool] = _unheld  # whether `folder` is still the folder that is held
        self._processes: int | None = None  # the highest process number so far

    @property
    def id(self) -> str:
        return self.folder.name

    @classmethod
    def create(cls, out: str | None) -> Run:
        """Return a new run in `out`, or in a folder named after the time; overwrite nothing. Raises UsageError."""
        check_free(out)
        folder = Path(out) if out else RUNS
        with writing(folder):
            folder = folder if out else new_folder(folder)
            (folder / PROCESSES).mkdir(parents=True, exist_ok=True)
        return cls(folder.resolve())

    @classmethod
    @contextlib.contextmanager
    def begin(cls, out: str | None) -> Iterator[Run]:
        """Yield a new run, held within the context; remove its files if it ends before it has a plan."""
        place = Path(out).absolute() if out else RUNS
        missing = [path for path in (place, *place.parents) if not path.exists()]
        run = cls.create(out)
        with run.held():
            try:
                check_free(out)  # another process may have used it and finished
                yield run
            finally:
                if not any((run.folder / name).exists() for name in _MANIFESTS):
                    run._remove(missing if out else [run.folder, *missing])

    def _remove(self, made: list[Path]) -> None:
        """Remove the folder if it is empty; also the folders that were `made` for it, the innermost first."""
        with contextlib.suppress(OSError, UsageError):
            self.check_place()
            (self.folder / LOCK).unlink()
            (self.folder / PROCESSES).rmdir()
            for folder in made:
                folder.rmdir()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from adding to this run within the context. Raises UsageError if another one does."""
        with contextlib.ExitStack() as stack:
            try:
                foreign.refuse_links(self.folder)
                (self.folder / PROCESSES).mkdir(exist_ok=True)
                self._is_ours = stack.enter_context(locks.alone(self.folder / LOCK))
                stack.callback(setattr, self, "_is_ours", _unheld)
            except locks.Busy as holder:
                raise UsageError(f"{self.folder} is being measured by {holder}; wait for it, or stop it.") from None
            except OSError as error:
                raise UsageError(f"{self.folder} cannot be written: {error.strerror}; name another folder.") from None
            yield

    def check_place(self) -> None:
        """Raise UsageError if the folder was moved while it is held: another run may be in its place by now."""
        if not self._is_ours():
            raise UsageError(
                f"{self.folder} was moved, or its {LOCK} removed, while it was measured, so nothing more is "
                "written there; resume it in its present place."
            )

    @classmethod
    def open(cls, folder: str | None) -> Run:
        """Return an existing run, the newest one if `folder` is None or `newest`. Raises UsageError."""
        if there := found(folder, PLAN):
            return cls(there)
        if not folder or folder == "newest":
            raise UsageError(f"There is no run under {shown(RUNS)} yet; `make bench` makes one.")
        raise UsageError(
            f"{Path(folder)} contains no run (plan.json is missing): name a run of {shown(RUNS)}, or `newest`."
        )

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Write a JSON file of the run atomically."""
        self.check_place()
        durable.replace(self.folder / name, (json.dumps(content, indent=2, default=str) + "\n").encode())

    def read(self, name: str) -> dict[str, Any]:
        """Return the object in a JSON file of the run, empty if it is missing. Raises UsageError if it is truncated."""
        return jsonfiles.read_object(self.folder / name)

    def begin_with(self, content: dict[str, Any]) -> None:
        """Write the plan, once and before anything else is measured or made."""
        manifest.write(self.folder / PLAN, {**content, "number": next_number(self.folder)})

    @cached_property
    def plan(self) -> dict[str, Any]:
        """Return the run's plan. Raises UsageError if it is truncated or was changed."""
        return manifest.read(self.folder / PLAN)

    def new_process_folder(self) -> Path:
        """Return a new folder for the next worker's files; numbers continue after those of an interrupted run."""
        self.check_place()
        processes = self.folder / PROCESSES
        if self._processes is None:
            names = [path.name for path in processes.glob("[0-9]*")]  # backups of such folders do not count
            self._processes = max((int(name) for name in names if name.isascii() and name.isdigit()), default=0)
        self._processes += 1
        folder = processes / f"{self._processes:04d}"
        (folder / "outputs").mkdir(parents=True)
        return folder

    def append_record(
        self, record: Record, waiting: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> None:
        """Add one record; it is on disk when this returns. Raises ValueError if it violates the schema.

        The disk is awaited within the context `waiting()`.
        """
        row = record.to_row()
        problem = values.problem(row)
        if problem:
            raise ValueError(f"record of {record.framework} {record.mode}: {problem}")
        self.check_place()
        jsonfiles.append(self.records_path, row, True, waiting)

    def append_samples(self, entry: dict[str, Any]) -> None:
        """Add raw samples of one cell and process."""
        self.check_place()
        jsonfiles.append(self.folder / SAMPLES, entry)

    def append_profile(self, entry: dict[str, Any]) -> None:
        """Add a cell's profile from `explain`; it is on disk when this returns."""
        self.check_place()
        jsonfiles.append(self.folder / EXPLAINED, entry, synced=True)

    def samples(self) -> list[SampleLine]:
        """Return the raw samples, one entry per cell and process, compressed or not. Raises UsageError."""
        return list(self._each_sample())

    def _each_sample(self) -> Iterator[SampleLine]:
        files = (self.folder / COMPRESSED_SAMPLES, self.folder / SAMPLES)
        # If a run was stopped while compressing, the same entry may be in both files.
        found = jsonfiles.distinct(itertools.chain.from_iterable(map(jsonfiles.lines, files)))
        yield from cast(Iterator[SampleLine], found)

    def compress_samples(self) -> None:
        """Put the samples of a finished run into one compressed file; a resumed run adds to it."""
        self.check_place()
        if (self.folder / SAMPLES).exists():
            self.keep_samples(self._each_sample())

    def keep_samples(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Replace the run's samples by these, compressed."""
        jsonfiles.write_compressed(self.folder / COMPRESSED_SAMPLES, entries)
        (self.folder / SAMPLES).unlink(missing_ok=True)

    def keep_report(self, entry: dict[str, Any]) -> None:
        """Store a worker's report of a cell in a process until its record exists; a machine that stops may lose it."""
        self.check_place()
        jsonfiles.append(self._reports_path, jsonfiles.sealed(entry))

    def kept_reports(self) -> list[dict[str, Any]]:
        """Return the stored reports of an interrupted run's workers, in order, without lines that fail their digest."""
        return [kept for entry in jsonfiles.lines(self._reports_path) if (kept := jsonfiles.intact(entry))]

    def drop_reports(self) -> None:
        """Remove the stored reports once every cell has its record."""
        self._reports_path.unlink(missing_ok=True)

    def records(self) -> list[Record]:
        """Return the run's records, in the order of writing: the first of each cell, none outside the plan."""
        return list(self._each(self._places()))

    def _places(self) -> frozenset[int]:
        cells = [row.get("cell") for row in jsonfiles.lines(self.records_path)]
        return frozenset(belonging.places_of(self.folder, cells)[0])

    def _each(self, places: frozenset[int]) -> Iterator[Record]:
        for index, row in enumerate(jsonfiles.lines(self.records_path)):
            if index in places:
                yield Record.from_row({name: row.get(name) for name in NAMES})

    def finished(self) -> frozenset[str]:
        """Return the names of the cells that have a record."""
        return frozenset(record.cell for record in self.records())

    def judged(self) -> list[str]:
        """Judge the records as a report does; return sentences on contradictions. Raises UsageError."""
        next(jsonfiles.lines(self.folder / COMPRESSED_SAMPLES), None)
        if not self.records_path.exists():
            return []
        return belonging.of_run(recordfile.load(self.records_path), self.folder).remarks

    def write_csv(self) -> None:
        """Complete the records with columns that depend on several of them, in their file and in the CSV.

        Records do not stay in memory: the file is read for each step.
        """
        self.check_place()
        places = self._places()
        if changes := rooflines.changes(lambda: self._each(places)):
            jsonfiles.amend(self.records_path, changes)
        recordfile.write_csv(self._each(places), self.csv_path)


def _unheld() -> bool:
    """Return True: no process holds the run, and none can take its place meanwhile."""
    return True


def found(name: str | None, file: str) -> Path | None:
    """Return the folder of this name that holds `file`, or the newest (no name, `newest`); None without one."""
    if not name or name == "newest":
        return next(reversed(manifest.in_order(path.parent for path in RUNS.glob(f"*/{file}"))), None)
    return next((place.resolve() for place in (Path(name), RUNS / name) if (place / file).exists()), None)


def check_free(out: str | None) -> None:
    """Raise UsageError for an OUT that contains a run or cannot take one, before anything costs time."""
    if out is None:
        return
    if (Path(out) / EXPLANATION).exists():  # which cannot be resumed
        raise UsageError(f"OUT={out} already contains profiles of `make explain`; choose another folder.")
    if not Path(out).resolve().name:
        raise UsageError(f"OUT={out} has no folder name, which a run needs; choose a folder in it.")
    if any((Path(out) / name).exists() for name in _MANIFESTS):
        raise UsageError(
            f"OUT={out} already contains a run; choose another folder, or resume it: {make_word('RESUME', out)}."
        )
    existing = next(p for p in (Path(out).absolute(), *Path(out).absolute().parents) if p.exists())
    try:
        tempfile.TemporaryDirectory(dir=existing).cleanup()
    except OSError as error:
        raise UsageError(
            f"OUT={out} cannot be written: {existing} takes no folder ({error.strerror}); choose another."
        ) from None


def next_number(folder: Path) -> int:
    """Return the next number of a run in results/runs; 1 for a folder elsewhere, where no run is the newest."""
    beside = RUNS.glob("*/") if folder.parent == RUNS.resolve() else ()
    return 1 + max(map(manifest.number_of, beside), default=0)


def new_folder(parent: Path) -> Path:
    """Return a new folder named after the time, with a suffix if a run began in the same second."""
    parent.mkdir(parents=True, exist_ok=True)
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    suffixes = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    while True:
        folder = parent / (stamp + next(suffixes))
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder


def git_revision() -> str | None:
    """Return the suite's revision, with `+` if tracked files changed; an installed suite's version; else None.

    Published results are not part of the suite: `publish` writes them while it measures.
    """
    if INSTALLED:
        return importlib.metadata.version(NAME)
    revision = (programs.answer(["git", "rev-parse", "--short=10", "HEAD"], cwd=SUITE) or "").strip()
    changed = programs.answer(["git", "status", "--porcelain", "-uno", "--", ".", ":!results"], cwd=SUITE)
    return f"{revision}+" if revision and changed != "" else revision or None


def measuring_code() -> str | None:
    """Return the revision of the measuring code, independent of other commits; None if it is changed or unknown."""
    if INSTALLED:
        return importlib.metadata.version(NAME)
    changed = programs.answer(["git", "status", "--porcelain", "--", *MEASURING], cwd=SUITE)
    trees = programs.answer(["git", "rev-parse", *(f"HEAD:./{name}" for name in MEASURING)], cwd=SUITE)
    return None if changed != "" or not trees else "-".join(tree[:10] for tree in trees.split())


def utc_now() -> str:
    """Return the current time in UTC as ISO 8601, to the second."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
