"""Do latencies of whole runs differ because the host itself was faster in one than in the other?

Every round of a run also times a fixed loop of Python, the same in every framework and mode. Over all cells of a
self-check's runs, the logarithm of a cell's latency is compared with that of the loop beside it, both less their mean
over the runs: their correlation, how many percent a latency changes with one percent of the loop's time, and how runs
agree once that is taken out.

.venvs/runner/bin/python studies/runs_and_host.py results/selfcheck/two-cores-standard-runs-again.json
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from commands.repeatability import agreement
from measurement.statistics import Interval


def main(path: str) -> None:
    for profile, runs in json.loads(Path(path).read_text())["runs"].items():
        cells: dict[str, list[tuple[Interval, float]]] = defaultdict(list)
        for record in (record for run in runs for record in run if "latency" in record):
            cells[record["cell"]].append((Interval(*record["latency"]), record["host_loop_ms"]))
        latencies, loops = ([np.log([pair[of] for pair in cell]) for cell in _repeated(cells)] for of in (0, 1))
        latencies = [values[:, 0] for values in latencies]
        deviations = [np.concatenate([values - values.mean() for values in each]) for each in (loops, latencies)]
        fitted = stats.linregress(*deviations)
        print(
            f"{profile}: {len(runs)} runs, {len(latencies)} cells; correlation {fitted.rvalue:.2f}, "
            f"a latency changes by {fitted.slope:.2f} % with 1 % of the loop's time"
        )
        for name, slope in (("as measured", 0.0), ("at the loop's mean speed", fitted.slope)):
            told = agreement(profile, name, (_moved(cell, slope) for cell in cells.values()))
            print(" ", *told.row[1:])


def _repeated(cells: dict) -> list[list]:
    return [cell for cell in cells.values() if len(cell) > 1]


def _moved(cell: list[tuple[Interval, float]], slope: float) -> list[Interval]:
    """A cell's latencies as they would be had its loop taken its mean time in every run."""
    usual = fmean(np.log(loop) for _, loop in cell)
    factors = [np.exp(slope * (usual - np.log(loop))) for _, loop in cell]
    return [interval.map(lambda end, by=by: end * by) for (interval, _), by in zip(cell, factors, strict=True)]


if __name__ == "__main__":
    main(sys.argv[1])
