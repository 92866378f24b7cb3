"""How often `make compare` and `make ab` are right: `python studies/compare_power.py [--trials N]`.

Counts false alarms: comparisons of the same code with itself that have any *slower* or *faster*. Counts detections:
cells slowed by 5 % with a verdict. Runs are drawn from a hierarchy that scatters between processes and rounds as
committed samples do (`tests/doubles/drawn.py`). Each run as a whole also drifts.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from doubles import drawn  # noqa: E402

from analysis.comparison import FASTER, SLOWER, Comparison  # noqa: E402
from measurement.statistics import INCONCLUSIVE  # noqa: E402

SLOWED = 1.05
# Common deviation of whole runs of the same code, or of launches where two sides take turns: on a quiet machine
# (assumed), and of two series of runs on two shared cores beyond their intervals
# (`two-cores-standard-runs*` in `results/selfcheck/series.jsonl.gz`).
DRIFTS = (0.01, 0.04, 0.08)
LAUNCHES = {"quick": (3, 10), "standard": (6, 15)}  # and rounds of each
MACHINES = {
    "H200, 512 tokens, torch 2.11": "h200/torch-2.11-long",
    "H200, 512 tokens, torch 2.13": "h200/torch-2.13-long",
    "H200, 128 tokens, torch 2.11": "h200/torch-2.11-short",
    "shared machine, two cores": "cpu/two-cores",
}
# Scatter between launches on a quiet machine, which limits the detection of 5 %.
STILL = {f"{share:.1%} between launches": share for share in (0.005, 0.01, 0.02)}
HEADER = f"{'':<62} {'false alarms':>12} {'open':>6} {'5 % found':>9}"


@dataclass
class Count:
    """Counts of comparisons: their number, those with a verdict, and the slowed cells that were found."""

    comparisons: int = 0
    alarmed: int = 0  # comparisons of the same code in which a cell is slower or faster
    slowed: int = 0
    found: int = 0
    undecided: int = 0  # cells
    cells: int = 0

    def same(self, comparison: Comparison) -> None:
        self.comparisons += 1
        self.alarmed += any(map(comparison.with_verdict, (SLOWER, FASTER)))
        self.cells += len(comparison.cells)
        self.undecided += len(comparison.with_verdict(INCONCLUSIVE))

    def changed(self, comparison: Comparison, modes: tuple[str, ...]) -> None:
        cells = [cell for cell in comparison.cells if cell.cell.rpartition("/")[2] in modes]
        self.slowed += len(cells)
        self.found += sum(cell.verdict == SLOWER for cell in cells)

    def row(self, name: str) -> str:
        found = f"{self.found / self.slowed:4.0%}" if self.slowed else "   -"
        open_cells = self.undecided / max(self.cells, 1)
        return f"{name:<62} {self.alarmed:>4} of {self.comparisons:<4} {open_cells:>6.0%} {found:>8}"


def still(between: float) -> list[drawn.Scatter]:
    """Return processes that scatter so much, half of it shared, and rounds by 1 %."""
    variance = between**2
    return [drawn.Scatter(((variance, variance / 2), (variance / 2, variance)), (0.01, 0.01))]


def synthetic(
    scatter: list[drawn.Scatter], profile: str, trials: int, seed: int, drift: float = DRIFTS[0]
) -> dict[str, Count]:
    """Return counts of `compare`, whose slowed mode is the graph, and of `ab`, in which both modes are slowed."""
    draw, (launches, rounds) = np.random.default_rng(seed), LAUNCHES[profile]
    counts = {"compare": Count(), "ab": Count()}
    for _ in range(trials):
        scatter = [scatter[n] for n in draw.permutation(len(scatter))]  # the same of both runs
        a, b, slowed = (
            drawn.run(draw, scatter, launches, rounds, factors, drift) for factors in ((1, 1), (1, 1), (1, SLOWED))
        )
        counts["compare"].same(drawn.compared(a, b))
        counts["compare"].changed(drawn.compared(a, slowed), ("graph",))
        machine = draw.normal(0, drift, launches)
        a, b, slowed = (
            drawn.run(draw, scatter, launches, rounds, factors, machine=machine)
            for factors in ((1, 1), (1, 1), (SLOWED, SLOWED))
        )
        counts["ab"].same(drawn.compared_in_turn(a, b))
        counts["ab"].changed(drawn.compared_in_turn(a, slowed), ("eager", "graph"))
    return counts


def drawn_rows(trials: int) -> Iterator[str]:
    """Yield a line for each machine, profile and command."""
    for name, folder in MACHINES.items():
        yield f"{name}: deviation {', '.join(f'{k} {v:.1%}' for k, v in drawn.told(drawn.measured(folder)).items())}"
    scatters = {name: drawn.measured(folder) for name, folder in MACHINES.items()}
    scatters |= {name: still(share) for name, share in STILL.items()}
    yield ""
    for (name, scatter), drift, profile in itertools.product(scatters.items(), DRIFTS, LAUNCHES):
        for command, count in synthetic(scatter, profile, trials, 1, drift).items():
            yield count.row(f"{name}, drift {drift:.0%}, {profile}, {command}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200, help="comparisons of each kind (default: 200)")
    print(HEADER)
    for line in drawn_rows(parser.parse_args().trials):
        print(line, flush=True)


if __name__ == "__main__":
    main()
