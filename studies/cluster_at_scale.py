"""What a large plan costs the runner: `python studies/cluster_at_scale.py [--nodes 64] [--cells 10000]`.

The nodes are pretended (`tests/doubles/pretended_slurm.py`): every cell takes --seconds in each of three launches, and
every launch --start seconds more. Wants: the plan in under a second, the whole within 10 % of the ideal division, the
runner under 5 % of a core, and memory that does not grow with cells. Prints what it took; the exit code is 1 where a
want is not met. On a machine with few cores the pretended steps, control cells among them, are late themselves: how
long they were to take and took is printed, on average over the nodes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from doubles import pretended_slurm  # noqa: E402

from execution.reference_data import Store  # noqa: E402
from plan import plan, sweep  # noqa: E402

THREADS, DTYPES, MODES, LAUNCHES = 64, ("fp32", "bf16"), 2, 3
TICK = os.sysconf("SC_CLK_TCK")


def sweep_of(cells: int) -> dict:
    """A sweep of about so many cells over few shapes, whose weights are then soon made."""
    batches = max(1, round(cells / (THREADS * len(DTYPES) * MODES)))
    threads = min(THREADS, max(1, cells // (MODES * len(DTYPES))))
    return {
        "framework": "torch", "workload": "mlp", "width": "8", "depth": "1", "mode": "eager,graph",
        "batch": ",".join(map(str, range(1, batches + 1))), "threads": ",".join(map(str, range(1, threads + 1))),
        "dtype": ",".join(DTYPES),
    }  # fmt: skip


def usage(process: int) -> tuple[float, float]:
    """Seconds of a processor that a process has used, and the most memory that it had so far in MiB."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    (peak,) = (line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / TICK, int(peak.split()[1]) / 2**10


def outputs_of(planned: plan.Plan) -> dict[str, str]:
    """The file of right outputs of every cell, made here."""
    store, references = Store(None, 0), {}
    groups = [group for bundle in planned.bundles for group in bundle.groups]
    store.prepare(groups, lambda text: None)
    for group in groups:
        references[pretended_slurm.place_of(group.cells[0].to_json())] = str(store(group).reference)
    return references


def simulated(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Run it; what it took."""
    given = sweep_of(options.cells)
    nodes = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n", "SLURM_JOB_CPUS_PER_NODE": "64"}
    environment = pretended_slurm.install(folder / "bin", options.nodes, options.seconds, options.start, {})
    os.environ.update({name: environment[name] for name in (*nodes, "PRETENDED_NODES", "PATH")})
    begun = time.perf_counter()
    planned = plan.plan(sweep.resolve(given | {"launcher": "slurm"}))
    told = {"cells": len(planned.cells), "plan, s": time.perf_counter() - begun, "bundles": len(planned.bundles)}
    (folder / "bin" / "outputs.json").write_text(json.dumps(outputs_of(planned)))
    words = [word for flag, value in given.items() for word in (f"--{flag}", value)]
    command = [sys.executable, "runner.py", "bench", "--launcher", "slurm", "--python", sys.executable, *words]
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen([*command, "--out", str(folder / "run")], cwd=ROOT, env=environment, stdout=output)
    seen = watched(process, folder / "run", len(planned.cells))
    ideal = LAUNCHES * len(planned.cells) * options.seconds / options.nodes
    ideal += LAUNCHES * len(planned.bundles) * options.start / options.nodes
    lines = (folder / "bin" / pretended_slurm.STEPS).read_text().splitlines()
    asked, taken = (
        sum(column) / options.nodes for column in zip(*(map(float, line.split()) for line in lines), strict=True)
    )
    steps = {"steps of a node as asked, s": asked, "as they took, s": taken}
    return {**told, **seen, "ideal, s": ideal, "of the ideal": seen["wall, s"] / ideal, **steps}


def watched(process: subprocess.Popen, run: Path, cells: int) -> dict[str, float]:
    """From the first launch to the last record: time, the runner's share of a core, and its memory on the way."""
    while not (run / "processes" / "0001").exists() and process.poll() is None:
        time.sleep(0.05)
    begun, (before, _) = time.monotonic(), usage(process.pid)
    memory, done, used, ended, read = {}, 0, before, begun, 0
    while process.poll() is None and done < cells:
        time.sleep(0.5)
        if (path := run / "records.jsonl").exists():
            with open(path, "rb") as file:
                file.seek(read)
                read += len(content := file.read())
            done += content.count(b"\n")
        try:
            used, resident = usage(process.pid)
        except (OSError, IndexError, ValueError):
            break
        ended = time.monotonic()
        for share in (0.1, 0.5, 0.95):
            if done >= share * cells:
                memory.setdefault(f"most memory by {share:.0%}, MiB", resident)
    process.wait()
    wall = ended - begun
    cost = {"processor, ms a cell": 1e3 * (used - before) / max(1, done), "of a core": (used - before) / wall}
    return {"records": done, "wall, s": wall, **cost, **memory}


def main() -> int:
    """Print what a simulated run took."""
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--nodes", type=int, default=64)
    top.add_argument("--cells", type=int, default=10_000)
    top.add_argument("--seconds", type=float, default=1.0, help="of a cell in each launch (default: 1)")
    top.add_argument("--start", type=float, default=2.0, help="of a launch besides (default: 2)")
    with tempfile.TemporaryDirectory(prefix="at-scale-") as folder:
        told = simulated(top.parse_args(), Path(folder))
    for name, value in told.items():
        print(f"{name}: {value:.4g}")
    grown = told.get("most memory by 95%, MiB", 0) / max(1, told.get("most memory by 10%, MiB", 1))
    wants = (told["plan, s"] < 1, told["of the ideal"] < 1.1, told["of a core"] < 0.05, grown < 1.25)
    return int(not all(wants) or told["records"] != told["cells"])


if __name__ == "__main__":
    sys.exit(main())
