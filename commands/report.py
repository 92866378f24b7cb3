"""The command `report`; and how records are read, for other commands as well."""

from __future__ import annotations

import argparse
import contextlib
import gc
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import cast

from analysis import ladders, modes, select
from analysis.ladders import Ladder
from analysis.points import COLUMNS_READ, Points
from commands import published
from measurement.places import shown
from measurement.refusals import UsageError, writing
from measurement.text import listed, make_command, times
from plan import sweep
from plan.aliases import choose
from plan.options import Option, chosen
from records import belonging, jsonfiles, manifest, recordfile, runs
from records import record as schema
from records.record import Record
from records.recordfile import RECORDS, TABLE
from records.shapes import MachineFacts, NodeLine, Profile, SampleLine
from reports import explanation, terminal

RUNS = f"folders of runs (or names in {shown(runs.RUNS)}), CSV or JSONL files of records, or newest"
FILTER = Option("filter", "only cells whose name contains TEXT or matches it as a wildcard", "TEXT")
MOST_RUNS = 12  # that a heading names


@dataclass
class Source:
    """The content of the runs named: records, profiles, machines, and remarks on odd parts."""

    home: Path  # the first run's folder
    names: list[str] = field(default_factory=list)
    loaded: list[recordfile.Loaded] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    machines: dict[str, MachineFacts] = field(default_factory=dict)
    folders: dict[Path, int] = field(default_factory=dict)  # of runs, and which of `loaded` is theirs
    remarks: list[str] = field(default_factory=list)
    commands: dict[str, None] = field(default_factory=dict)  # that measured the records

    @cached_property
    def by_file(self) -> list[list[Record]]:
        """Return the records of each file. They replace the columns, which are as large."""
        return [self.loaded.pop(0).records for _ in range(len(self.loaded))]

    @cached_property
    def records(self) -> list[Record]:
        """Return the records of all files."""
        return list(chain.from_iterable(self.by_file))

    def ladders(self, records: Sequence[Record]) -> Iterator[Ladder]:
        """Yield the ladders among these of its `records` (the objects themselves), each with its own folder's samples.

        A run's name identifies no folder: several may share one, and a folder that was put together has several.
        """
        asked_for = set(map(id, records)) if any(map(ladders.is_rung, records)) else ()
        for home, place in self.folders.items():
            yield from ladders.of_run(home, [record for record in self.by_file[place] if id(record) in asked_for])

    def samples(self) -> Iterator[SampleLine]:
        """Yield the samples of all folders, each with the run of its cell's record, else of its folder."""
        for home, place in self.folders.items():
            columns = self.loaded[place].columns
            run_ids = dict(zip(columns["cell"], columns["run_id"], strict=True))
            others = next(iter(run_ids.values())) if len(set(run_ids.values())) == 1 else home.name
            for entry in runs.Run(home).samples():
                yield cast(SampleLine, {"run_id": run_ids.get(entry["cell"], others), **entry})

    def check_measured(self) -> None:
        """Raise UsageError where no file holds records."""
        if not self.loaded:
            raise UsageError(f"{', '.join(self.names)}: there are profiles but no records; name a run of `make bench`.")

    @property
    def columns(self) -> dict[str, list]:
        """Return the columns of all files, one after the other. Raises UsageError where no file holds records."""
        self.check_measured()
        first, *others = (part.columns for part in self.loaded)
        return {name: list(chain(column, *(other[name] for other in others))) for name, column in first.items()}


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Disable Python's collector of cycles: it would look through all the records again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def options() -> list[Option]:
    """Return the options of `report`."""
    return [
        runs_option(" (default: newest)"),
        *chosen(sweep.all_options(), " ".join(select.FLAGS), help="only these"),
        FILTER,
        Option("across", "rank results of different machines together", default=False, switch=True),
        Option("out", "folder of the files (default: the first run's folder)", "FOLDER"),
    ]


def runs_option(default: str = "") -> Option:
    """Return the option that names runs; `default` says what none means."""
    return Option("run", f"{RUNS}; several also as A,B{default}", nargs="*", default=[])


@uncollected()
def run(arguments: argparse.Namespace) -> int:
    """Show what runs have found: a table here, report.md and report.html in the first run's folder."""
    console = terminal.console()
    source = read(arguments.run, COLUMNS_READ)
    check_sides(source.folders)
    chosen, text = selection(arguments, source)
    records = select.chosen(source.records, chosen, arguments.filter)
    profiles = select.chosen(explanation.explained(source.profiles), chosen, arguments.filter)
    if not records and not profiles:
        raise UsageError(f"No cell of {', '.join(source.names)} matches {text}; remove one of these filters.")
    kept = select.combined(records)
    if len(kept) < len(records):
        again = len(records) - len(kept)
        shown = "speedups and latencies combine runs under equal conditions, other columns are from the newest"
        source.remarks.append(f"{times(again, 'repeated cell')}: {shown}.")
    folder = folder_for(arguments.out, source.home)
    from reports import report_data, sections, write

    points, notes = Points(kept, arguments.across), (tuple(source.remarks), modes.labels(), tuple(source.commands))
    whole = report_data.ReportData(points, tuple(profiles), source.machines, *notes, tuple(source.ladders(kept)))
    heading = listed(list(dict.fromkeys(source.names)), MOST_RUNS) + (f" ({text})" if text else "")
    written = write.files(folder, heading, whole, sections.build(whole))
    write.terminal(whole, kept, console)
    for path in written:
        console.print(f"Written: {path}", soft_wrap=True)
    return 0


def read(words: list[str], only: Collection[str] = schema.NAMES) -> Source:
    """Return the content of the named folders of runs or of reproductions, CSV or JSONL files. Raises UsageError.

    `only` are the columns to keep of the records.
    """
    found = {name: places(name) for name in split(words) or ["newest"]}
    first = next(iter(found.values()))[0]
    source = Source(first if first.is_dir() else first.parent)
    for name, below in found.items():
        for place in below:
            read_into(source, place, only)
        source.remarks += [f"{len(below)} runs found below {name}."] if len(below) > 1 else []
    if not any(map(len, source.loaded)) and not source.profiles:
        raise UsageError(f"{', '.join(source.names)}: there are no records yet; resume the run (RESUME=).")
    return source


def split(words: list[str]) -> list[str]:
    """Return the names in words that may list several with commas; the name of an existing file may hold one."""
    parts = ([word] if Path(word).exists() else word.split(",") for word in words)
    return [name for part in parts for name in part if name]


def located(word: str) -> set[Path]:
    """Return the paths that a word names, a run's folder in place of its own records or table. Raises UsageError."""
    found = {place for name in split([word]) for place in places(name)}
    return {place.parent if place.name in (RECORDS, TABLE) else place for place in found}


def places(name: str) -> list[Path]:
    """Return the folders or the file that a name stands for. Raises UsageError."""
    if name == "newest":
        folders = manifest.in_order(path for path in runs.RUNS.glob("*") if path.is_dir() and within(path))
        if not folders:
            raise UsageError(f"There is no run under {shown(runs.RUNS)} yet; `make bench` makes one.")
        measured = [path for path in folders if any((p / n).exists() for p in within(path) for n in (RECORDS, TABLE))]
        return within((measured or folders)[-1])  # profiles of `make explain` alone do not stand before a run
    for path in (Path(name), runs.RUNS / name):
        if path.is_file() and path.suffix in (".csv", ".jsonl"):
            return [path.resolve()]
        if path.is_dir() and (folders := within(path.resolve())):
            return folders
        for command in (Path(file).stem for file in (manifest.STARTS, manifest.STREAMS) if (path / file).exists()):
            pages = (path / f"{command}s.html", path.parent / "README.md")  # published runs have a page for their place
            page = next((shown(one) for one in pages if one.exists()), pages[0].name)
            raise UsageError(f"{name} is a run of `make {command}`: read {page}.")
    raise UsageError(f"{name} contains no run: there is no {RECORDS}, {TABLE} or {runs.EXPLAINED} in it.")


def within(folder: Path) -> list[Path]:
    """Return the folder where it holds records, else those of its folders that do, as in a reproduction."""
    names = (RECORDS, TABLE, runs.EXPLAINED)
    if any((folder / name).exists() for name in names):
        return [folder]
    return [path for path in sorted(folder.glob("*/")) if any((path / name).exists() for name in names)]


def read_into(source: Source, place: Path, only: Collection[str]) -> None:
    """Add the content of one place. Raises UsageError for unreadable files."""
    folder = place if place.is_dir() else place.parent
    # A part of the columns is read faster from the table, where that is no older than the records it is made from.
    order = (RECORDS, TABLE) if len(only) == len(schema.NAMES) or _is_behind(place) else (TABLE, RECORDS)
    files = [place] if place.is_file() else [path for name in order if (path := place / name).exists()][:1]
    names: dict[str, None] = {}
    for path in files:
        loaded = belonging.of_run(_load(path, only), place) if place.is_dir() else recordfile.load(path, only)
        source.loaded.append(loaded)
        source.remarks += loaded.remarks
        names |= dict.fromkeys(filter(None, loaded.columns["run_id"]))
    source.names.append(next(iter(names)) if len(names) == 1 else place.name)
    if place.is_dir():
        source.profiles += cast(list[Profile], list(jsonfiles.lines(folder / runs.EXPLAINED)))
        if files:
            source.folders[folder.resolve()] = len(source.loaded) - 1
    plan = runs.Run(folder).read(runs.PLAN)
    if plan.get("given") is not None:  # empty where the run had no flags
        source.commands[published.command("bench", plan["given"])] = None
    facts = cast(MachineFacts, runs.Run(folder).read(runs.MACHINE))
    if facts.get("machine_id"):
        known = source.machines.setdefault(facts["machine_id"], facts)
        known.setdefault("controls", []).extend(cast(Iterator[NodeLine], jsonfiles.lines(folder / manifest.NODES)))


def _is_behind(folder: Path) -> bool:
    """Return whether a run has records that its table lacks, by the times of the files."""
    table, records = folder / TABLE, folder / RECORDS
    return not table.exists() or (records.exists() and table.stat().st_mtime < records.stat().st_mtime)


def _load(path: Path, only: Collection[str]) -> recordfile.Loaded:
    """Read a file's records; those that a run's table is made from where it cannot be read or lacks some of them.

    The times of the files do not show that where their folder was copied. Raises Unreadable.
    """
    source = path.parent / RECORDS
    if path.name != TABLE or not source.exists():
        return recordfile.load(path, only)
    with contextlib.suppress(jsonfiles.Unreadable):
        loaded = recordfile.load(path, only)
        if len(loaded) == jsonfiles.line_count(source):
            return loaded
    return recordfile.load(source, only)


def check_sides(folders: Iterable[Path]) -> None:
    """Raise UsageError where both sides of a pair are among the folders: each has cells of its own environment."""
    sides: dict[Path, Path] = {}
    for folder in folders:
        first = sides.setdefault(folder.parent, folder)
        if first != folder and (folder.parent / manifest.PAIR).exists():
            raise UsageError(
                f"{folder.parent} is a pair of runs (`make ab`), and a report shows one of them: name a side, such as "
                f"{make_command('report', {'RUN': shown(first)})}."
            )


def selection(arguments: argparse.Namespace, source: Source) -> tuple[dict[str, list[str]], str]:
    """Return the requested words by column, checked against existing ones, and as a text. Raises UsageError."""
    chosen, texts = {}, []
    for flag, column in select.FLAGS.items():
        if (given := getattr(arguments, flag)) in (None, "all"):
            continue
        known = select.values([*source.records, *explanation.explained(source.profiles)], column)
        words = [word if word in known else sweep.canonical(flag, word) for word in sweep.split_words(given)]
        chosen[column] = [choose(word, known, f"{column} in these records") for word in words]
        texts.append(f"{flag.upper()}={given}")
    texts += [f"FILTER={arguments.filter}"] if arguments.filter else []
    return chosen, ", ".join(texts)


def folder_for(out: str | None, home: Path) -> Path:
    """Return the folder to write into, made where it is missing. Raises UsageError."""
    folder = Path(out) if out else home
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder
