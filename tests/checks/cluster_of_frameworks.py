"""The real frameworks over the nodes of a Slurm cluster on this machine, and the same cells without it.

.venvs/runner/bin/python tests/checks/cluster_of_frameworks.py [--nodes 4] [more flags of bench, as --mode eager,graph]

Both runs must have every planned cell once, with the same status, and the same columns filled; what only noise fills,
and where the cell ran, apart. Prints what differs; the exit code is 1 where something does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from doubles.one_box import OneBox, why_not  # noqa: E402

from records import record as schema  # noqa: E402

WORDS = ("--framework", "torch,paddle,tensorflow,jax", "--workload", "mlp,bert-tiny", "--batch", "1", "--seq", "16")
WORDS += ("--width", "8", "--depth", "1", "--threads", "1", "--budget", "0.1")
# Columns that a run fills or not by how long calls took: percentiles need many calls, breaking even a faster mode.
OF_NOISE = {"flags", "reason", "break_even_calls", "latency_call_ms_p95", "latency_call_ms_p99"}
OF_PLACE = {"node", "job_steps"}
MEASURED = {status: "measured" for status in schema.MEASURED}


def measured(out: Path, words: list[str], environment: dict[str, str]) -> dict[str, dict]:
    """The records of a run by cell. Raises AssertionError where a planned cell has none, or two."""
    begun = time.monotonic()
    command = [sys.executable, "runner.py", "bench", *WORDS, *words, "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stdout[-2000:] + done.stderr[-2000:]
    records = list(map(json.loads, (out / "records.jsonl").read_text().splitlines()))
    planned = json.loads((out / "plan.json").read_text())["cells"]
    assert sorted(record["cell"] for record in records) == sorted(planned), "cells lack a record, or have two"
    print(
        f"{len(records)} cells, {time.monotonic() - begun:.0f} s, {Counter(r['status'] for r in records)}", flush=True
    )
    return {record["cell"]: record for record in records}


def differences(here: dict[str, dict], there: dict[str, dict]) -> list[str]:
    """How records of a cluster, `there`, differ in kind from those of the machine alone."""
    found = [f"{cell}: in one run only" for cell in here.keys() ^ there.keys()]
    for cell in here.keys() & there.keys():
        one, other = here[cell], there[cell]
        statuses = [MEASURED.get(record["status"], record["status"]) for record in (one, other)]
        filled = [{name for name, value in record.items() if value is not None} for record in (one, other)]
        columns = (filled[0] ^ filled[1]) - OF_NOISE - OF_PLACE
        found += [f"{cell}: {statuses[0]}, on the cluster {statuses[1]}"] if len(set(statuses)) > 1 else []
        found += [f"{cell}: one run alone fills {', '.join(sorted(columns))}"] if columns else []
        found += [f"{cell}: no {name} is told" for name in OF_PLACE - filled[1]]
    return found


def main() -> int:
    """Measure on the cluster and without it, and compare."""
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--nodes", type=int, default=4)
    options, words = top.parse_known_args()
    if why := why_not():
        sys.exit(why)
    with tempfile.TemporaryDirectory(prefix="frameworks-") as folder:
        box = OneBox(Path(folder) / "box", options.nodes)
        try:
            box.start()
            there = measured(Path(folder) / "there", ["--launcher", "slurm", *words], box.allocate())
        finally:
            box.stop()
        here = measured(Path(folder) / "here", words, dict(os.environ))
    print("cells by node:", dict(sorted(Counter(str(record["node"]) for record in there.values()).items())))
    found = differences(here, there)
    print("\n".join(found) or "no difference in kind")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
