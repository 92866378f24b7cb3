"""A model with five planted graph breaks, mended one after the other: what the suite counts, locates and prices.

Six files, from five breaks to none, in one real run of `bench`. Counts and lines are asserted; the price (the share of
a call outside of graphs, and what the cell would gain at best) is printed, since it is a time.

.venvs/runner/bin/python tests/benchmarks/own_breaks.py [--budget 2] [--mode inductor] [--out FOLDER]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAD = """import os
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(256, 256), nn.Linear(256, 256)

    def forward(self, x):
        x = torch.relu(self.a(x))
        {0}
        x = torch.relu(self.b(x))
        {1}
        x = torch.relu(self.a(x))
        {2}
        x = torch.relu(self.b(x))
        {3}
        x = torch.relu(self.a(x))
        {4}
        return self.b(x)


def model():
    return Net()


def inputs(batch_size=64):
    return torch.randn(batch_size, 256)
"""
# What breaks the model, what mends it, and a word of the reason that torch gives.
PLANTED = (
    ('print("seen", x.shape)', "pass", "`print`"),
    ("x = x * 2 if x.sum() > 0 else x", "x = torch.where(x.sum() > 0, x * 2, x)", "branching"),
    ("x = x + x.mean().item()", "x = x + x.mean()", "item()"),
    ("x = x + torch.nonzero(x).shape[0]", "x = x + torch.count_nonzero(x)", "nonzero"),
    ('os.environ["SEEN"] = "1"', "pass", "putenv"),
)
LINES = tuple(13 + 2 * index for index in range(len(PLANTED)))


def variants(folder: Path) -> list[Path]:
    """Files with the first 0, 1, … 5 breaks mended; every line stays where it was."""
    paths = []
    for mended in range(len(PLANTED) + 1):
        lines = [good if index < mended else bad for index, (bad, good, _) in enumerate(PLANTED)]
        paths.append(folder / f"mended{mended}.py")
        paths[-1].write_text(HEAD.format(*lines))
    return paths


def check(mended: int, record: dict) -> None:
    """Raise AssertionError unless what is left is found, at its line, for its reason."""
    left = range(mended, len(PLANTED))
    places = json.loads(record["graph_break_places"] or "[]")
    assert record["status"] != "mismatch" and record["graph_breaks"] == len(left), record
    assert [place for place, _ in places] == [f"mended{mended}.py:{LINES[index]}" for index in left], places
    assert all(PLANTED[index][2] in reason for index, (_, reason) in zip(left, places, strict=True)), places
    assert (record["gain_at_best"] is not None) == bool(left), record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="2", help="seconds of samples a cell")
    parser.add_argument("--mode", default="inductor", help="whose prices; what is found depends on none")
    parser.add_argument("--out", type=Path, default=Path(tempfile.mkdtemp(prefix="own-breaks-")))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    sources = ",".join(map(str, variants(options.out)))
    words = ["--workload", sources, "--mode", f"eager,{options.mode}", "--threads", "1", "--profile", "quick"]
    command = [
        sys.executable,
        ROOT / "runner.py",
        "bench",
        *words,
        "--budget",
        options.budget,
        "--out",
        options.out / "run",
    ]
    subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)
    records = map(json.loads, (options.out / "run" / "records.jsonl").read_text().splitlines())
    by_workload = {record["workload"]: record for record in records if record["mode"] == options.mode}
    for mended in range(len(PLANTED) + 1):
        record = by_workload[f"mended{mended}.py"]
        check(mended, record)
        names = ("latency_ms_median", "outside_share", "gain_at_best")
        figures = [f"{record[name]:.3g}" if record[name] is not None else "" for name in names]
        print(mended, record["status"], record["graph_breaks"], *figures, sep="\t")


if __name__ == "__main__":
    main()
