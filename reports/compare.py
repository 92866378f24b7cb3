"""Two sets of records cell by cell: faster, slower, the same, or not comparable and why."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import median

import numpy as np

from measurement.schema import MEASURED
from measurement.statistics import ENOUGH_LAUNCHES, Interval, independent_ratio
from reports import markdown
from reports.content import Figure, Row, Table, text_of, times
from reports.points import machine_names

FASTER, SLOWER, SAME, NOT_COMPARABLE = "faster", "slower", "same", "not comparable"
UNTOLD = "cannot be told"  # a difference between processes of which too few were measured
# Two processes that run the same code differ by so much; docs/methodology.md has the self-checks that say so.
SAME_WITHIN = 0.02
# A comment on a pull request holds 65,536 characters.
MOST_ROWS = 100
_FAILED = ("mismatch", "unsupported", "oom", "timeout", "crash", "error")
# What must be alike for two times to be those of the same thing.
_ALIKE = {"weights": "weights", "tf32": "TF32 setting", "policies": "policies"}
_STATE = ("status", "reason", *_ALIKE, "launches")
_OF_A_RUN = ("machine_id", "device_name", "framework", "framework_version", "git_revision", "profile", "launches")
_HOST = "host_loop_ms_median"
SAME_HOST_WITHIN = 0.1
_LATENCY = ("latency_ms_median", "latency_ms_ci_low", "latency_ms_ci_high")
_NOWHERE = (None,) * len(_STATE), (None,) * len(_LATENCY)  # what a run says of a cell that it has not
# The columns of a record that a comparison looks at.
_MADE = "policies"  # of the settings
COLUMNS_READ = tuple(
    name
    for name in dict.fromkeys(("cell", "run_id", *_OF_A_RUN, *_STATE, *_LATENCY, _HOST, "settings"))
    if name != _MADE
)
COLUMNS = ("cell", "A, ms", "B, ms", "B over A", "95 % interval", "B is")


@dataclass(eq=False, slots=True)
class Compared:
    """One cell of either run: its times, B's over A's, the verdict on B, and why there is none."""

    cell: str
    times_ms: tuple[float | None, float | None]  # A's and B's; None where it was not measured
    ratio: Interval | None
    verdict: str
    why: str = ""
    broke: bool = False  # B fails where A was measured

    @property
    def slowdown(self) -> float:
        """By which share B is slower; 0 unless the verdict says so."""
        return self.ratio.value - 1 if self.verdict == SLOWER else 0.0


@dataclass(frozen=True)
class Comparison:
    """All cells of both runs, the slowest first, and sentences on what differs between the runs themselves."""

    cells: tuple[Compared, ...]
    in_both: int  # how many cells both runs have
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


class _Side:
    """One run's records by the names of their cells: the state of each, and its latency with its interval."""

    def __init__(self, columns: Mapping[str, list]):
        columns = {**columns, _MADE: list(map(_policies, columns["settings"]))}
        names = columns["cell"]
        states, latencies, kinds = (zip(*map(columns.get, part), strict=True) for part in (_STATE, _LATENCY, _OF_A_RUN))
        self.found = dict(zip(names, zip(states, latencies, strict=True), strict=True))
        self.count = Counter(names)
        self.kinds = [dict(zip(_OF_A_RUN, values, strict=True)) for values in dict.fromkeys(kinds)]


@cache  # a few, over and over
def _policies(settings: str | None) -> str | None:
    """The choices of settings that a worker followed, as text; None where the record does not say."""
    followed = json.loads(settings).get("policies") if settings else None
    return followed and ", ".join(f"{name}={choice}" for name, choice in sorted(followed.items()))


def compare(a: Mapping[str, list], b: Mapping[str, list], same_within: float = SAME_WITHIN) -> Comparison:
    """Compare the records of two runs, as columns of `COLUMNS_READ`, by the names of their cells."""
    ours, theirs = _Side(a), _Side(b)
    cells, names, latencies, few = [], [], ([], []), []
    for name in ours.found | theirs.found:
        (state_a, a_ms), (state_b, b_ms) = ours.found.get(name, _NOWHERE), theirs.found.get(name, _NOWHERE)
        if (
            why := _unpaired(ours.count[name], theirs.count[name])
            or _unlike(state_a, state_b)
            or _unbounded(a_ms, b_ms)
        ):
            times_ms = a_ms[0] if state_a[0] in MEASURED else None, b_ms[0] if state_b[0] in MEASURED else None
            broke = state_a[0] in MEASURED and state_b[0] in _FAILED
            cells.append(Compared(name, times_ms, None, NOT_COMPARABLE, why, broke))
        else:
            names.append(name)
            latencies[0].append(a_ms)
            latencies[1].append(b_ms)
            few.append(min(state[-1] or ENOUGH_LAUNCHES for state in (state_a, state_b)) < ENOUGH_LAUNCHES)
    cells += _judged(names, *latencies, few, same_within)
    place = {SLOWER: 0, FASTER: 1, UNTOLD: 2, NOT_COMPARABLE: 3, SAME: 4}
    cells.sort(key=lambda cell: (place[cell.verdict], -cell.ratio.value if cell.ratio else 0.0, cell.cell))
    in_both = len(ours.found.keys() & theirs.found.keys())
    cautions = [*_cautions(ours.kinds, theirs.kinds), *_host_speeds(a[_HOST], b[_HOST])]
    return Comparison(tuple(cells), in_both, tuple(cautions))


def _judged(
    names: list[str], ours: list[tuple], theirs: list[tuple], few: list[bool], same_within: float
) -> Iterator[Compared]:
    """The verdicts on cells that can be compared, by both sides' latencies with their intervals.

    Two runs are different processes: where a side's interval is of `few` launches, it says nothing of others, and a
    difference cannot be told from that between two processes of the same code.
    """
    if not names:
        return
    ratios = independent_ratio(*(Interval(*np.array(side).T) for side in (theirs, ours)), of=np)
    slower = (ratios.low > 1) & (ratios.value > 1 + same_within)
    faster = (ratios.high < 1) & (ratios.value < 1 / (1 + same_within))
    verdicts = np.where(slower, SLOWER, np.where(faster, FASTER, SAME))
    verdicts = np.where(few & (verdicts != SAME), UNTOLD, verdicts).tolist()
    intervals = map(Interval, *(part.tolist() for part in ratios))
    for name, a, b, ratio, verdict in zip(names, ours, theirs, intervals, verdicts, strict=True):
        yield Compared(name, (a[0], b[0]), ratio, verdict)


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
    for (column, name), *both in zip(_ALIKE.items(), a[2:-1], b[2:-1], strict=True):
        if None not in both and both[0] != both[1]:
            return f"the {name} differ{'s' if column == 'tf32' else ''}: {both[0]} and {both[1]}"
    return ""


def _unbounded(a: tuple, b: tuple) -> str:
    """Which side's latency has no interval; empty where both have one."""
    for side, latency in (("A", a), ("B", b)):
        if None in latency:
            return f"{side} has too few samples for an interval"
    return ""


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
            "Intervals of fewer than three launches hold within their processes alone. What differs there cannot be "
            "told from how processes of the same code differ, and breaks no limit: PROFILE=standard measures that."
        )
    return found


def _host_speeds(a: list[float | None], b: list[float | None]) -> list[str]:
    """Which run's host was slower, by the loop that both timed in every round; nothing where they are alike."""
    times_ms = [[value for value in side if value is not None] for side in (a, b)]
    if not all(times_ms):
        return []
    ours, theirs = map(median, times_ms)
    if max(ours, theirs) <= (1 + SAME_HOST_WITHIN) * min(ours, theirs):
        return []
    return [
        f"A slower host: the same loop of Python took {text_of(ours)} ms in A and {text_of(theirs)} ms in B. What the "
        "host decides differs for that alone; a finding in both is the same finding on a slower host."
    ]


def _versions(records: Iterable[dict]) -> dict[str, str]:
    found: dict[str, set] = defaultdict(set)
    for record in records:
        if record.get("framework_version"):
            found[record["framework"]].add(record["framework_version"])
    return {framework: ", ".join(sorted(versions)) for framework, versions in found.items()}


def summary(comparison: Comparison, threshold: float) -> str:
    """How many cells ended how, and whether the threshold is kept."""
    verdicts = {verdict: len(comparison.of(verdict)) for verdict in (SLOWER, FASTER, UNTOLD, SAME, NOT_COMPARABLE)}
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
    figures = [Figure(text_of(value), value) if value else "" for value in cell.times_ms]
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
    for verdict in (SLOWER, FASTER, UNTOLD, NOT_COMPARABLE):
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
