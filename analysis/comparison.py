"""Verdicts of a comparison of two runs, cell by cell."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from measurement.statistics import Interval

FASTER, SLOWER, SAME, NOT_COMPARABLE = "faster", "slower", "same", "not comparable"
# Verdicts that decide a cell; the others leave it open.
DECIDED = (SLOWER, FASTER, SAME)


class Reason(NamedTuple):
    """Why a cell is not decided: the rule, its values for a report's sentence, and flags of the sides."""

    rule: str
    values: tuple[object, ...] = ()
    conditions: str = ""


@dataclass(eq=False, slots=True)
class Compared:
    """One cell of either run: its times, B's over A's, the same relative to eager mode, the verdict on B, and why."""

    cell: str
    times_ms: tuple[float | None, float | None]  # A's and B's; None where it was not measured
    ratio: Interval | None
    verdict: str
    why: Reason | None = None
    broke: bool = False  # B fails where A was measured
    beside_eager: Interval | None = None  # speedup over eager, A's over B's: without eager's own change

    @property
    def slowdown(self) -> float:
        """Return the share by which B is slower; 0 without that verdict."""
        return self.ratio.value - 1 if self.ratio and self.verdict == SLOWER else 0.0


@dataclass(frozen=True)
class Side:
    """Heading of one run."""

    name: str
    facts: tuple[str, ...] = ()  # date, versions, revision, profile and processes, machine
    command: str = ""


@dataclass(frozen=True)
class Comparison:
    """All cells of both runs, the slowest first."""

    cells: tuple[Compared, ...]
    in_both: int  # how many cells both runs have
    limit: float  # share by which B may be slower
    in_turn: bool = False  # whether processes of A and B alternated
    # Added by reports: sentences on differences between the runs themselves, and the heading of each.
    cautions: tuple[str, ...] = ()
    sides: tuple[Side, Side] = (Side("A"), Side("B"))

    @cached_property
    def _by_verdict(self) -> dict[str, list[Compared]]:
        cells = defaultdict(list)
        for cell in self.cells:
            cells[cell.verdict].append(cell)
        return cells

    def with_verdict(self, verdict: str) -> list[Compared]:
        """Return the cells with this verdict."""
        return self._by_verdict[verdict]

    @property
    def over(self) -> list[Compared]:
        """Return the slower cells whose estimate exceeds the limit, and those that broke."""
        return [
            *(cell for cell in self.with_verdict(SLOWER) if cell.slowdown > self.limit),
            *(cell for cell in self.with_verdict(NOT_COMPARABLE) if cell.broke),
        ]

    @property
    def decided(self) -> bool:
        """Return whether any cell is decided."""
        return any(map(self.with_verdict, DECIDED))
