"""Two sets of records cell by cell: faster, slower, the same, or not comparable and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter

from measurement.schema import MEASURED
from measurement.statistics import Interval, independent_ratio
from reports import markdown
from reports.content import Figure, Row, Table, text_of, times
from reports.points import machine_names

FASTER, SLOWER, SAME, NOT_COMPARABLE = "faster", "slower", "same", "not comparable"
# Two processes that run the same code differ by so much; docs/methodology.md has the self-checks that say so.
SAME_WITHIN = 0.02
# A comment on a pull request holds 65,536 characters.
MOST_ROWS = 100
_FAILED = ("mismatch", "unsupported", "oom", "timeout", "crash", "error")
# What must be alike for two times to be those of the same thing.
_ALIKE = {"weights": "weights", "tf32": "TF32 setting"}
_OF_A_RUN = ("machine_id", "device_name", "framework", "framework_version", "git_revision", "profile", "launches")
_LATENCY = ("latency_ms_median", "latency_ms_ci_low", "latency_ms_ci_high")
# The columns of a record that a comparison looks at.
COLUMNS_READ = (
    *("cell", "run_id", "machine_id", "device_name", "framework", "framework_version", "git_revision", "profile"),
    *("status", "reason", "weights", "tf32", "launches", *_LATENCY),
)
_state_of, _latency_of = itemgetter("status", "reason", *_ALIKE), itemgetter(*_LATENCY)
COLUMNS = ("cell", "A, ms", "B, ms", "B over A", "95 % interval", "B is")


@dataclass(eq=False, slots=True)
class Compared:
    """One cell in both runs: B's time over A's, the verdict on B, and why there is none."""

    cell: str
    a: dict | None
    b: dict | None
    ratio: Interval | None
    verdict: str
    why: str = ""

    @property
    def slowdown(self) -> float:
        """By which share B is slower; 0 unless the verdict says so."""
        return self.ratio.value - 1 if self.verdict == SLOWER else 0.0

    @property
    def broke(self) -> bool:
        """Whether B fails where A was measured."""
        return bool(self.a and self.b) and self.a["status"] in MEASURED and self.b["status"] in _FAILED


@dataclass(frozen=True)
class Comparison:
    """All cells of both runs, the slowest first, and sentences on what differs between the runs themselves."""

    cells: tuple[Compared, ...]
    cautions: tuple[str, ...]

    @cached_property
    def _by_verdict(self) -> dict[str, list[Compared]]:
        found = defaultdict(list)
        for cell in self.cells:
            found[cell.verdict].append(cell)
        return found

    def of(self, verdict: str) -> list[Compared]:
        """The cells with this verdict."""
        return self._by_verdict[verdict]

    def over(self, threshold: float) -> list[Compared]:
        """The cells that are slower by more than this share, or broke."""
        return [
            *(cell for cell in self.of(SLOWER) if cell.slowdown > threshold),
            *(cell for cell in self.of(NOT_COMPARABLE) if cell.broke),
        ]


def compare(a: list[dict], b: list[dict], same_within: float = SAME_WITHIN) -> Comparison:
    """Compare the records of two runs by the names of their cells."""
    ours, theirs = _by_cell(a), _by_cell(b)
    found = [_compared(name, ours.get(name, ()), theirs.get(name, ()), same_within) for name in ours | theirs]
    place = {SLOWER: 0, FASTER: 1, NOT_COMPARABLE: 2, SAME: 3}
    found.sort(key=lambda cell: (place[cell.verdict], -cell.ratio.value if cell.ratio else 0.0, cell.cell))
    return Comparison(tuple(found), tuple(_cautions(_kinds(a), _kinds(b))))


def _by_cell(records: Iterable[dict]) -> dict[str, list[dict]]:
    found = defaultdict(list)
    for record in records:
        found[record["cell"]].append(record)
    return found


def _compared(name: str, ours: list[dict], theirs: list[dict], same_within: float) -> Compared:
    a, b = ours[0] if ours else None, theirs[0] if theirs else None
    why = _unpaired(len(ours), len(theirs)) or _unlike(_state_of(a), _state_of(b))
    if not why:
        latencies = Interval(*_latency_of(a)), Interval(*_latency_of(b))
        why = _unbounded(*latencies)
    if why:
        return Compared(name, a, b, None, NOT_COMPARABLE, why)
    ratio = independent_ratio(latencies[1], latencies[0])
    if ratio.low > 1 and ratio.value > 1 + same_within:
        return Compared(name, a, b, ratio, SLOWER)
    if ratio.high < 1 and ratio.value < 1 / (1 + same_within):
        return Compared(name, a, b, ratio, FASTER)
    return Compared(name, a, b, ratio, SAME)


@cache  # nearly always one and one
def _unpaired(ours: int, theirs: int) -> str:
    """Why a cell with so many records cannot be compared; empty where each run has one."""
    for side, count, other in (("A", ours, "B"), ("B", theirs, "A")):
        if not count:
            return f"only in {other}"
        if count > 1:
            return f"{side} holds it {count} times"
    return ""


@cache  # a few states, over and over
def _unlike(a: tuple, b: tuple) -> str:
    """Why times of records in these states cannot be compared: one failed, or they are not of the same thing."""
    for side, (status, reason, *_) in (("A", a), ("B", b)):
        if status not in MEASURED:
            return f"{side}: {status}: {reason or 'no reason given'}"
    for (column, name), *both in zip(_ALIKE.items(), a[2:], b[2:], strict=True):
        if None not in both and both[0] != both[1]:
            return f"the {name} differ{'s' if column == 'tf32' else ''}: {both[0]} and {both[1]}"
    return ""


def _unbounded(a: Interval, b: Interval) -> str:
    """Which side's latency has no interval; empty where both have one."""
    for side, latency in (("A", a), ("B", b)):
        if None in latency:
            return f"{side} has too few samples for an interval"
    return ""


def _kinds(records: Iterable[dict]) -> list[dict]:
    """What records say of their run, each different one once."""
    found = dict.fromkeys(map(itemgetter(*_OF_A_RUN), records))
    return [dict(zip(_OF_A_RUN, values, strict=True)) for values in found]


def _cautions(a: list[dict], b: list[dict]) -> list[str]:
    """What differs between the runs as such, by what their records say of them; machines and versions first."""
    names = machine_names([*a, *b])
    machines = [
        {record.get("machine_id"): names[record.get("machine_id"), record.get("device_name")] for record in side}
        for side in (a, b)
    ]
    found = []
    if machines[0].keys() != machines[1].keys():
        sides = (f"{', '.join(side.values())} (machine {', '.join(map(str, side))})" for side in machines)
        found.append(
            f"Different machines: A on {', B on '.join(sides)}. The ratios tell of machines as much as of software."
        )
    versions = [_versions(side) for side in (a, b)]
    changed = [
        f"{framework} {versions[0][framework]} → {versions[1][framework]}"
        for framework in versions[0]
        if framework in versions[1] and versions[0][framework] != versions[1][framework]
    ]
    if changed:
        found.append(f"Different versions: {', '.join(changed)}.")
    for column, title in (("git_revision", "revisions of the suite"), ("profile", "profiles")):
        sides = [", ".join(sorted(map(str, {record.get(column) for record in side}))) for side in (a, b)]
        if sides[0] != sides[1]:
            found.append(f"Different {title}: {sides[0]} and {sides[1]}.")
    if any(record.get("launches") in (1, 2) for record in (*a, *b)):
        found.append(
            "Intervals of fewer than three launches do not hold how processes differ; PROFILE=standard measures that."
        )
    return found


def _versions(records: Iterable[dict]) -> dict[str, str]:
    found: dict[str, set] = defaultdict(set)
    for record in records:
        if record.get("framework_version"):
            found[record["framework"]].add(record["framework_version"])
    return {framework: ", ".join(sorted(versions)) for framework, versions in found.items()}


def summary(comparison: Comparison, threshold: float) -> str:
    """How many cells ended how, and whether the threshold is kept."""
    verdicts = {verdict: len(comparison.of(verdict)) for verdict in (SLOWER, FASTER, SAME, NOT_COMPARABLE)}
    parts = [f"{count:,} {verdict}" for verdict, count in verdicts.items() if count]
    over = Counter(cell.verdict for cell in comparison.over(threshold))
    slower, broke = over[SLOWER], over[NOT_COMPARABLE]
    limit = f"{100 * threshold:g} %"
    end = f"{slower:,} slower by more than {limit}" if over else f"none is slower by more than {limit}"
    return f"{times(len(comparison.cells), 'cell')}: {', '.join(parts)}; {end}" + (
        f", {broke:,} broke" if broke else ""
    )


def table(cells: list[Compared]) -> Table:
    """Cells with their figures."""
    return Table(COLUMNS, tuple(map(_row, cells[:MOST_ROWS])), len(cells))


def _row(cell: Compared) -> Row:
    times_ms = [record and record["status"] in MEASURED and record["latency_ms_median"] for record in (cell.a, cell.b)]
    figures = [Figure(text_of(value), value) if value else "" for value in times_ms]
    ratio = Figure(f"{cell.ratio.value:.3f}", cell.ratio.value) if cell.ratio else ""
    interval = f"{cell.ratio.low:.3f} to {cell.ratio.high:.3f}" if cell.ratio else ""
    return Row((cell.cell, *figures, ratio, interval, cell.verdict + (f": {cell.why}" if cell.why else "")))


def page(comparison: Comparison, a: str, b: str, threshold: float) -> str:
    """The comparison as Markdown for a pull request: cautions first, then what changed; what did not is folded."""
    parts = [f"### A: {a}, B: {b}"]
    if comparison.cautions:
        parts.append(
            "\n".join(
                f"- **{text.partition(':')[0]}**{''.join(text.partition(':')[1:])}" if ":" in text else f"- {text}"
                for text in comparison.cautions
            )
        )
    parts.append(f"**{summary(comparison, threshold)}.** The ratio is B's time over A's; above 1 B is slower.")
    for verdict in (SLOWER, FASTER, NOT_COMPARABLE):
        if cells := comparison.of(verdict):
            parts += [f"#### {verdict.capitalize()}", _shown(cells)]
    if same := comparison.of(SAME):
        why = f"the interval holds 1, or the difference is below {100 * SAME_WITHIN:g} %"
        parts.append(f"<details><summary>Same: {why}</summary>\n\n{_shown(same)}\n\n</details>")
    return "\n\n".join(parts) + "\n"


def _shown(cells: list[Compared]) -> str:
    content = table(cells)
    more = [f"And {content.left_out:,} more."] if content.left_out else []
    return "\n\n".join([markdown.table(content), *more])
