"""How much faster two nodes serve a plan than one machine: `python studies/one_box_speed.py [--seconds 2.5]`.

The nodes are those of a real Slurm on this machine, the framework is the fake, which sleeps --seconds before each cell
in each of three launches, so that the cores that the nodes share do not decide. Wants at least 1.8 times, from the
command's start to its end; the exit code is 1 where that is not reached. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from doubles.one_box import OneBox, why_not  # noqa: E402
from doubles.suite import Suite, copy_with_fake  # noqa: E402

from studies.faults.trial import FAKE  # noqa: E402

WANTED = 1.8


def timed(suite: Suite, out: Path, words: tuple[str, ...], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds of the whole command, and those from its first launch to its last record."""
    begun = time.monotonic()
    done = suite.bench(out, *FAKE, *words, "--out", str(out), environment=environment)
    whole = time.monotonic() - begun
    if done.code or not done.complete():
        sys.exit(f"The run was not completed:\n{done.output[-2000:]}")
    first = min(datetime.fromisoformat(record["started_at"]).timestamp() for record in done.records)
    measuring = (out / "records.jsonl").stat().st_mtime - first
    nodes = dict(sorted(Counter(record["node"] or "this machine" for record in done.records).items()))
    print(f"{json.dumps(nodes)}: {whole:.1f} s, measuring {measuring:.1f} s", flush=True)
    return whole, measuring


def main() -> int:
    """Run the same plan without a cluster and on two nodes."""
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--seconds", type=float, default=2.5, help="that each cell sleeps in each launch (default: 2.5)")
    top.add_argument("--shapes", type=int, default=12, help="of two modes each (default: 12)")
    options = top.parse_args()
    if why := why_not():
        sys.exit(why)
    words = ("--mode", "eager,graph", "--batch", f"1..{options.shapes}..1", "--timeout", str(60 + options.seconds))
    with tempfile.TemporaryDirectory(prefix="one-box-speed-") as name:
        folder = Path(name)
        suite = copy_with_fake(folder / "suite")
        sleeps = {"FAKE_SLEEP": str(options.seconds)}
        alone = timed(suite, folder / "alone", words, dict(os.environ) | sleeps)
        box = OneBox(folder / "box", 2)
        try:
            box.start()
            both = timed(suite, folder / "both", (*words, "--launcher", "slurm"), box.allocate() | sleeps)
        finally:
            box.stop()
    faster = [one / other for one, other in zip(alone, both, strict=True)]
    print(f"two nodes are {faster[0]:.2f} times as fast, measuring alone {faster[1]:.2f} times")
    return int(faster[0] < WANTED)


if __name__ == "__main__":
    sys.exit(main())
