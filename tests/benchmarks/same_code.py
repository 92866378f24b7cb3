"""Real runs of the same code compared with each other: `python tests/benchmarks/same_code.py FOLDER [--repeats N] …`.

Measures N runs of each profile with the frameworks' own environments (what follows `--` goes to `runner.py bench`; by
default a small BERT and an MLP in torch), compares each with the one before it as `make compare` does, and counts the
comparisons that say *slower* or *faster*, which are false. Runs are kept in FOLDER: what is complete there is not
measured again, so the command can be stopped and repeated, and without `--repeats` it compares what lies there.
(`make selfcheck WORKLOAD=… REPEATS=n` keeps no folders of its runs, only their intervals.) The exit code is 1 where
more than one comparison in twenty was false.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(HERE)]

from compare_power import HEADER, Count  # noqa: E402

from harness import changes, pairs, report  # noqa: E402
from harness.selfcheck import load_on  # noqa: E402
from reports.compare import FASTER, SLOWER, Comparison  # noqa: E402

MOST_FALSE = 1 / 20
DEFAULT = ("--framework", "torch", "--workload", "bert-tiny,mlp", "--impl", "plain")


def measure(folder: Path, words: list[str]) -> None:
    """Make a run in this folder, or go on with the one that lies there; a complete one is left as it is."""
    if (folder / "plan.json").exists():
        words = ["--resume", str(folder)]
    else:
        words = [*words, "--out", str(folder)]
    done = subprocess.run([sys.executable, "runner.py", "bench", *words], cwd=ROOT, capture_output=True, text=True)
    if not (folder / "records.jsonl").exists() or done.returncode == 130:
        sys.exit(done.stdout + done.stderr)


def compared(a: Path, b: Path) -> Comparison:
    """What `make compare` finds between two runs."""
    return changes.compare(*(report.read([str(folder)], pairs.COLUMNS_READ).columns for folder in (a, b)))


def count(name: str, folders: list[Path]) -> Count:
    """The comparisons of each run with the one before it; what is said to have moved is printed."""
    counted = Count()
    for a, b in pairwise(folders):
        comparison = compared(a, b)
        counted.same(comparison)
        for verdict in (SLOWER, FASTER):
            for cell in comparison.of(verdict):
                print(f"false: {b.name} against {a.name}: {cell.cell} is {verdict}", flush=True)
    print(counted.row(name), flush=True)
    return counted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the runs are kept, a folder below it for each profile")
    parser.add_argument("--repeats", type=int, default=0, help="runs of each profile (default: those that lie there)")
    parser.add_argument("--profile", default="quick,standard", help="quick, standard or both (default)")
    parser.add_argument("--load", type=int, default=0, help="other processes kept busy meanwhile (default: 0)")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, bench = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1 :] or list(DEFAULT)
    counts = []
    for profile in options.profile.split(","):
        place = options.folder.resolve() / f"{profile}-{options.load}-busy"
        place.mkdir(parents=True, exist_ok=True)
        for number in range(options.repeats):
            print(f"{profile}: run {number + 1} of {options.repeats}", file=sys.stderr, flush=True)
            with load_on(options.load):
                measure(place / f"{number:03d}", [*bench, "--profile", profile])
        folders = sorted(path for path in place.glob("*") if (path / "records.jsonl").exists())
        print(HEADER)
        counts.append(count(f"measured, {profile}, {options.load} busy beside, compare", folders))
    return int(any(one.alarmed > max(1, one.comparisons * MOST_FALSE) for one in counts))


if __name__ == "__main__":
    sys.exit(main())
