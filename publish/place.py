"""A place of an edition: the tables that it holds, and the page that shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.facts import first_s
from analysis.paired import baselines, control_loops, speedups_by_process
from analysis.points import Point, Points, grouped
from analysis.significance import geometric_mean, ratio_of_latencies
from commands import start, stream
from commands.rounds import Form
from experiments import spec
from experiments.spec import Sweep
from measurement.refusals import UsageError
from measurement.statistics import Interval
from measurement.text import in_markdown, markdown_table
from plan import plan, sweep
from publish.committed import machine
from records import manifest, runs
from records.process import ProcessRecord
from records.record import Record
from records.recordfile import benches
from reports.answers import share_kept
from reports.numbers import SLOWED, UNCHECKED, marked, plus_minus, ratio, speedup, text_of, with_width
from reports.run_headings import versions

WITH_START = 10  # the first version of records with `compiler_start_s`
EDITION = "2026-12"  # which the README and the findings show
# Files of a measured table; the others can be made from them.
KEPT = (
    *(runs.PLAN, runs.COMPRESSED_SAMPLES, runs.MACHINE, runs.RECORDS),
    *(name for form in (start.FORM, stream.FORM) for name in (form.manifest, form.journal.lines)),
)
SLOWED_MEANS = "`host slowed` marks times that a slow host lengthens; their speedups and efficiencies are omitted."


# Commands that start processes in rounds.
ROUNDS = {form.command: form for form in (start.FORM, stream.FORM)}


@dataclass(frozen=True)
class Table:
    """A sweep of the edition and the folder of its run."""

    part: Sweep
    folder: Path

    @property
    def title(self) -> str:
        return str(self.part.about["title"])

    @property
    def form(self) -> Form | None:
        """Return the form of the command that measures it in rounds of processes; None where `bench` does."""
        return ROUNDS.get(self.part.measures)

    @property
    def records(self) -> Sequence[Record | ProcessRecord]:
        """Return the records that the folder holds."""
        return self.form.journal.read(self.folder) if self.form else benches(self.folder)

    def state(self) -> tuple[int, int] | None:
        """Return how many cells it has, or strategies of cells, and how many of these lack records.

        Return None where this machine cannot plan the sweep.
        """
        try:
            wanted = self._strategies() if self.form else self._cells()
        except UsageError:
            return None
        return len(wanted), len(wanted - (self._served() if self.form else {one.cell for one in self.records}))

    @property
    def complete(self) -> bool:
        """Return whether all cells of its run have a record; of `start` and `stream`, whether there are any."""
        if self.form or not (self.folder / runs.PLAN).exists():
            return bool(self.records)
        return self._cells() <= {one.cell for one in self.records}

    @property
    def share(self) -> str:
        """Return a clause on how many cells of its run have a record; empty if all have."""
        wanted = set() if self.complete else self._cells()
        return f"; {len(wanted & {one.cell for one in self.records})} of {len(wanted)} cells" if wanted else ""

    def begun(self) -> float:
        """Return the processes that cells without a record have, as a number of cells, each short of one process."""
        if self.form:
            return 0.0
        expected = plan.expected_processes(plan.profile_of(sweep.resolve(self.part.flags)))
        lacking = self._cells() - {one.cell for one in self.records}
        kept = [entry for entry in runs.Run(self.folder).kept_reports() if entry.get("report")]
        found = {(entry["cell"], entry["report"]["process"]) for entry in kept if entry["cell"] in lacking}
        return sum(min(count, expected - 1) for count in Counter(cell for cell, _ in found).values()) / expected

    def _cells(self) -> set[Any]:
        """Return the names of its cells: the run's own, else those planned for this machine. Raises UsageError."""
        if (self.folder / runs.PLAN).exists():
            return set(manifest.read(self.folder / runs.PLAN)["cells"])
        return {cell.id for cell in plan.plan(sweep.resolve(self.part.flags)).cells}

    def _strategies(self) -> set[Any]:
        """Return cells and strategies that can be measured. Raises UsageError."""
        planned = plan.plan(sweep.resolve(self.part.flags))
        cells = [cell.group_id for cell in planned.cells if cell.id not in planned.impossible]
        return {(cell, name) for cell in cells for name in self.part.about["strategies"]}

    def _served(self) -> set[Any]:
        """Return cells and strategies that have all their processes, or one that ended the strategy."""
        about = self.part.about
        each = about["processes"] * len(about.get("caches", ("cold",)))
        found = [one for one in self.records if isinstance(one, ProcessRecord)]
        counts = Counter((one.cell, one.strategy) for one in found)
        ended = {(one.cell, one.strategy) for one in found if one.ends_strategy}
        return ended | {key for key, count in counts.items() if count >= each}

    def clear(self) -> None:
        """Remove the files that are not kept, unless something is missing still; folders stay."""
        if self.lacks:
            return
        for path in self.folder.iterdir():
            if path.name not in KEPT and not path.is_dir():
                path.unlink()

    @property
    def lacks(self) -> bool:
        """Return whether this machine can measure something that it lacks."""
        state = self.state()
        return state is not None and state[1] > 0


def read_sweeps() -> list[Sweep]:
    """Return all sweeps of an edition, by name."""
    return [Sweep.read(path) for path in sorted(spec.EDITION.glob("*.toml"))]


def read_records(folder: Path) -> Iterator[Record | ProcessRecord]:
    """Yield the records of all runs below a folder."""
    for path in sorted(folder.glob(f"**/{runs.RECORDS}")):
        yield from benches(path.parent)
    for form in ROUNDS.values():
        for path in sorted(folder.glob(f"**/{form.journal.lines}")):
            yield from form.journal.read(path.parent)


def measured(place: Path) -> list[tuple[Table, Sequence[Record | ProcessRecord]]]:
    """Return the tables that a place holds, with their records."""
    tables = [Table(part, place / part.name) for part in read_sweeps() if (place / part.name).is_dir()]
    return [(table, records) for table in tables if (records := table.records)]


def page(place: Path) -> str:
    """Return the page of a place: machines, versions, means over models, and a table of each run."""
    found = measured(place)
    every = [record for _, records in found for record in records]
    released = ", ".join(f"{name} {which}" for name, which in versions(every, " and ").items())
    days = sorted({str(record.started_at)[:10] for record in every}) or [""]
    lines = [
        f"# {place.name}, edition {place.parent.name}",
        "",
        f"Measured by `make publish` on {' to '.join(dict.fromkeys((days[0], days[-1])))} (UTC), "
        f"suite {revisions(every)}, {released}.",
        "Half-widths (±) are those of 95 % confidence intervals across processes. Speedups are over eager mode.",
    ]
    if any(isinstance(record, Record) for record in every):
        lines.append(SLOWED_MEANS)
    if any(isinstance(record, Record) and _lacks_start(record) for record in every):
        lines.append("`+ start`: these seconds lack the compiler's start.")
    if mean := means(found):
        lines += ["", "## Geometric mean over models", "", *mean]
    for title, alike in grouped(found, lambda one: one[0].title).items():
        lines += ["", f"## {title}", ""]
        for table, records in alike:
            facts = [{"machine_id": record.machine_id, "device_name": record.device_name} for record in records]
            where = machine(table.folder, facts)
            lines.append(f"[{table.part.name}]({table.part.name}): {in_markdown(where)}{table.share}.")
        if benched := [record for _, records in alike for record in records if isinstance(record, Record)]:
            lines += of_bench(benched)
        for table, records in alike:
            lines += of_rounds(table.form, records) if table.form else []
    lines += against(before(place), found)
    return "\n".join(lines) + "\n"


def means(found: Iterable[tuple[Table, Sequence[Record | ProcessRecord]]]) -> list[str]:
    """Return the geometric means over the models of the tables that are marked `mean`, by machine; no lines without.

    Machines have names only where there are several.
    """
    folders: dict[Record, Path] = {}
    for table, records in found:
        if table.part.about.get("mean"):
            folders |= {record: table.folder for record in records if isinstance(record, Record)}
    samples, eager = {folder: runs.Run(folder).samples() for folder in set(folders.values())}, baselines(folders)

    def by_process(record: Record) -> dict[tuple, float]:
        return speedups_by_process(samples[folders[record]], record, eager.get(record.group, ""))

    graphs = grouped(
        (record for record in folders if not record.is_baseline),
        lambda record: (record.machine_id, record.batch_size, record.mode),
    )
    several = len({machine_id for machine_id, _, _ in graphs}) > 1
    rows = []
    for (machine_id, batch, mode), alike in graphs.items():
        known = [record for record in alike if record.headline and record.speedup]
        if known:
            mean = geometric_mean(known, by_process)
            where = str(machine_id)[:4] if several else ""
            rows.append((f"batch {batch}", mode, where, speedup(mean.value, mean), f"{len(known)} of {len(alike)}"))
    return filled(("shape", "mode", "machine", "speedup", "models"), rows) if rows else []


def of_rounds(form: Form, records: Sequence[Any]) -> list[str]:
    """Return a table in Markdown for each cell of `start` or `stream`, with sentences on its results."""
    lines, words = [], form.words
    for cell in form.cells(list(records)):
        table = filled(("strategy", *words.heads[1:]), words.rows(cell))
        lines += ["", in_markdown(words.heading(cell)), "", *table]
        lines += [f"\n{in_markdown(sentence)}" for sentence in words.sentences(cell)]
    return lines


def of_bench(records: Sequence[Record]) -> list[str]:
    """Return a table in Markdown with a row for each record of `bench`, between common properties and flags."""
    points = Points(records, across=True).all
    shared, shapes = common_parts(points)
    rows = [[shape, *(show(point) for show in COLUMNS.values())] for shape, point in zip(shapes, points, strict=True)]
    raised = flagged(records)
    return [
        "",
        *([f"All: {in_markdown(', '.join(shared))}.", ""] if shared else []),
        *filled(("shape", *COLUMNS), rows),
        *(["", f"Flagged of {len(records)} cells: {raised}."] if raised else []),
    ]


def flagged(records: Sequence[Record]) -> str:
    """Return the flags of records and in how many each was raised, the most frequent first."""
    counts = Counter(flag for record in records for flag in record.raised)
    return ", ".join(f"[`{flag}`](../../../docs/columns.md#flags) {count}" for flag, count in counts.most_common())


def revisions(records: Iterable[Record | ProcessRecord]) -> str:
    """Return the suite's revisions in records, separated by commas."""
    return ", ".join(dict.fromkeys(str(record.git_revision) for record in records if record.git_revision))


def before(place: Path) -> Path:
    """Return the place that this one repeats if both have a table: `h100` for `h100-second`; else a folder without."""
    return place.parent / place.name.rpartition("-")[0]


def relation(pairs: Sequence[tuple[Record, Record]]) -> str:
    """Return a description of the other place, from pairs of records of this place and of the other."""
    same = all(one.gpu_uuid == their.gpu_uuid for one, their in pairs)
    what = "an earlier run on this GPU" if same else "another machine with a GPU of this kind"
    here, there = (revisions(records) for records in zip(*pairs, strict=True))
    return what if here == there else f"{what}, measured by suite {there}"


def against(other: Path, found: Sequence[tuple[Table, Sequence[Record | ProcessRecord]]]) -> list[str]:
    """Return a section that compares tables with those of another place; no lines without a GPU of the same kind."""
    theirs = {record.cell: record for table, _ in found for record in benches(other / table.part.name)}
    mine = [record for _, records in found for record in records if isinstance(record, Record)]
    pairs = [(one, theirs[one.cell]) for one in mine if one.cell in theirs]
    alike = [(one, their) for one, their in pairs if one.gpu_uuid and one.device_name == their.device_name]
    pairs = [(one, their) for one, their in alike if one.headline and their.headline]
    if not pairs:
        return []
    points = Points([one for one, _ in pairs], across=True).all
    shared, shapes = common_parts(points)
    folders = [table.folder for table, _ in found], [other / table.part.name for table, _ in found]
    both = [control_loops(line for folder in those for line in runs.Run(folder).samples()) for those in folders]
    rows = []
    for shape, point in zip(shapes, points, strict=True):
        one, their = point.record, theirs[point.record.cell]
        times = ratio_of_latencies(one, their)
        shown = f"{ratio(times.value)} {plus_minus(times)}" if times else ""
        here, there = (loops.get(one.cell) for loops in both)
        loop = ratio(here / there) if here and there and one.host_ms_in_loops else ""
        rows.append((shape, point.series, shown, loop, *(_multiple(record, record.speedup) for record in (one, their))))
    return [
        "",
        f"## Against {other.name}",
        "",
        f"[{other.name}](../{other.name}/README.md) is {relation(pairs)}.",
        "`control loop`: the loop's time here over its time there, where eager mode waits for the host.",
        "",
        *([f"All: {in_markdown(', '.join(shared))}.", ""] if shared else []),
        *filled(("shape", "mode", f"ms here over {other.name}'s", "control loop", "speedup here", "there"), rows),
    ]


def common_parts(points: Sequence[Point]) -> tuple[list[str], list[str]]:
    """Return the parts of setting and shape that points, at least one, have in common, and the rest of each."""
    parts = [", ".join(filter(None, (point.setting, point.shape))).split(", ") for point in points]
    shared = [part for part in parts[0] if all(part in others for others in parts)]
    return shared, [", ".join(part for part in own if part not in shared) for own in parts]


def filled(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table in Markdown without the columns that are empty in all rows."""
    kept = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    return markdown_table([heads[place] for place in kept], [[row[place] for place in kept] for row in rows])


def _time(point: Point) -> str:
    """Return a cell's time, or why it counts for nothing."""
    if point.excluded or point.latency is None:
        return point.excluded or str(point.record.status)
    return marked(with_width(point.latency), point.record.slowed)


def _first_call(point: Point) -> str:
    """Return seconds, marked where the start of Inductor's compiler was not measured."""
    text = text_of(first_s(point))
    return f"{text} + start" if text and _lacks_start(point.record) else text


def _lacks_start(record: Record) -> bool:
    return record.framework == "torch" and "inductor" in record.mode and record.schema_version < WITH_START


def _multiple(record: Record, found: Interval | None) -> str:
    if not found:
        return ""
    return speedup(found.value, found) if record.headline else SLOWED


def _gain(point: Point) -> str:
    return _multiple(point.record, None if point.eager or point.excluded else point.speedup)


def _energy(point: Point) -> str:
    energy = None if point.excluded else point.record.energy
    if not energy:
        return ""
    text = UNCHECKED if point.record.energy_unchecked else with_width(energy)
    return marked(text, point.record.slowed)


def _watts(point: Point) -> str:
    watts = None if point.excluded or point.record.energy_unchecked else point.record.power_w
    return marked(text_of(watts), point.record.slowed) if watts else ""


def _saving(point: Point) -> str:
    unknown = point.excluded or point.record.energy_unchecked
    return _multiple(point.record, None if unknown else point.record.energy_saving)


def _efficiency(point: Point) -> str:
    return "" if point.excluded else share_kept(point.record, _with_half_width)


def _with_half_width(share: Interval) -> str:
    return f"{text_of(share.value)} % {plus_minus(share)}"


def _megabytes(point: Point) -> str:
    size = point.record.artefact_bytes
    return "" if size is None else text_of(size / 1e6)


COLUMNS: Mapping[str, Callable[[Point], str]] = {
    "mode": lambda point: point.series,
    "ms": _time,
    "speedup": _gain,
    "first call, s": _first_call,
    "file, MB": _megabytes,
    "J per call": _energy,
    "eager's energy over it": _saving,
    "W": _watts,
    "of one rank's speed": _efficiency,
    "processes": lambda point: str(point.record.processes or ""),
}
