"""The runner with brief profiles of COUNT processes: `python launches.py COUNT [FILE …] bench --sweep … …`.

Cells of the further sweep FILEs are planned with those of the first one, so that they share its processes.
With one process alone no peaks are measured, which the tests of two look at: they took 2 s of a run.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import brief

import runner
from execution import campaign, peak_benchmarks
from launchers import local
from plan import plan
from plan.sweep import resolve


def limit(count: int) -> None:
    """Let every profile be brief, with so many processes, and collections of garbage."""
    brief.shorten(count)
    local.worker_command = brief.frozen(local.worker_command)
    if count == 1:
        peak_benchmarks.groups_for = lambda cell: ()


def together(files: list[str], words: list[str]) -> None:
    """Plan the cells of further sweep files, measured with the same words, with those of the sweep in `words`."""
    own, place = plan.cells_of, words.index("--sweep") + 1
    given = [[*words[:place], file, *words[place + 1 :]] for file in files]
    others = [cell for one in given for cell in own(resolve(campaign.options_of(runner.parse(one)[1])))]
    plan.cells_of = lambda sweep: own(sweep) + others


if __name__ == "__main__":
    limit(int(sys.argv[1]))
    command = sys.argv.index("bench")
    if sys.argv[2:command]:
        together(sys.argv[2:command], sys.argv[command:])
    sys.exit(runner.main(sys.argv[command:]))
