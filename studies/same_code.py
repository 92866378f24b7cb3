"""Runs of the same code compared with each other: `python studies/same_code.py FOLDER …`.

A FOLDER holds the runs that `make selfcheck WORKLOAD=… REPEATS=21 PROFILE=quick,standard OUT=FOLDER` leaves, with other
processes kept busy beside them by `LOAD=`. Each run is compared with the one before it of the same profile, as
`make compare` does, and those comparisons are counted that say *slower* or *faster* of any cell, which is false. The
exit code is 1 where a folder has more than one such comparison, and more than one in twenty.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parent), str(HERE)]

from compare_power import HEADER, Count  # noqa: E402

from analysis import changes, pairs  # noqa: E402
from commands import report  # noqa: E402
from reports.compare import FASTER, SLOWER, Comparison  # noqa: E402

MOST_FALSE = 1 / 20


def compared(a: Path, b: Path) -> Comparison:
    """What `make compare` finds between two runs."""
    return changes.compare(*(report.read([str(folder)], pairs.COLUMNS_READ).columns for folder in (a, b)))


def counted(runs: list[Path]) -> Count:
    """The comparisons of each run with the one before it; what is said to have moved is printed."""
    count = Count()
    for a, b in pairwise(runs):
        comparison = compared(a, b)
        count.same(comparison)
        for verdict in (SLOWER, FASTER):
            for cell in comparison.of(verdict):
                print(f"false: {b.name} against {a.name}: {cell.cell} is {verdict}")
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    counts = {}
    for folder in parser.parse_args().folders:
        profiles = defaultdict(list)
        for run in sorted(folder.resolve().glob("*-*")):
            if (run / "records.jsonl").exists():
                profiles[run.name.rpartition("-")[0]].append(run)
        counts |= {f"{folder.name}, {profile}, compare": counted(runs) for profile, runs in profiles.items()}
    if not any(count.comparisons for count in counts.values()):
        sys.exit(
            "There are no two runs of one profile in these folders: make selfcheck WORKLOAD=… REPEATS=21 OUT=FOLDER"
        )
    print(HEADER)
    for name, count in counts.items():
        print(count.row(name))
    return int(any(count.alarmed > max(1, count.comparisons * MOST_FALSE) for count in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
