"""Torch model files by the suite and by a plain loop: `python studies/models_by_hand.py [FILE ...]`.

For each file `by_hand/model_torch.py` times eager mode and torch.compile in turn, in a process of its own, then
`runner.py bench` measures all files with the same interpreter, device, batch and threads. Prints milliseconds
a call of both modes and the speedup: by hand the median with the interval of the median and the quartiles of the
samples, and the suite's with its 95 % interval. They agree where the intervals overlap or the medians are within 5 %.

Without files it takes five of `tests/field/models`. The exit code is 1 where any figure does not agree; no test asserts
it: times on a shared machine fail for its neighbours.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "studies/by_hand/model_torch.py"
MODELS = [str(ROOT / f"tests/field/models/{name}.py") for name in ("vit", "unet", "gnn", "conformer", "rnnt_joint")]
WITHIN = 0.05
MODES = ("eager", "inductor")
Figure = tuple[float, float, float]  # the median and its 95 % interval


def of_median(samples: list[float]) -> Figure:
    """Return the median with its 95 % interval by order statistics, as if samples were independent."""
    ordered, count = sorted(samples), len(samples)
    rank = max(0, math.floor(count / 2 - 0.98 * math.sqrt(count)))
    return median(ordered), ordered[rank], ordered[count - 1 - rank]


def agree(hand: Figure, suite: Figure) -> bool:
    """Say whether the intervals overlap or the medians are within 5 %."""
    return (hand[1] <= suite[2] and suite[1] <= hand[2]) or abs(suite[0] / hand[0] - 1) <= WITHIN


def by_hand(options: argparse.Namespace, file: str) -> dict:
    """Return what the plain loop gives of a file."""
    command = [options.python, str(SCRIPT), file, "--device", options.device, "--batch", str(options.batch)]
    command += ["--threads", str(options.threads), "--seconds", str(options.seconds)]
    with tempfile.TemporaryDirectory() as caches:  # nothing compiled before, as in the suite
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": caches}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with exit code {done.returncode}; its message stands above.")
    return json.loads(done.stdout.splitlines()[-1])


def by_suite(options: argparse.Namespace, folder: Path) -> dict[tuple[str, str], dict]:
    """Return the suite's records by workload and mode."""
    command = [sys.executable, "runner.py", "bench", "--workload", ",".join(options.file), "--mode", ",".join(MODES)]
    command += ["--framework", "torch", "--python", options.python, "--device", options.device, "--dtype", "fp32"]
    command += ["--batch", str(options.batch), "--threads", str(options.threads), "--profile", "quick"]
    command += ["--budget", str(options.seconds / 2), "--out", str(folder)]
    subprocess.run(command, cwd=ROOT, stdout=sys.stderr)
    records = map(json.loads, (folder / "records.jsonl").read_text().splitlines())
    return {(record["workload"], record["mode"]): record for record in records}


def compared(file: str, hand: dict, records: dict[tuple[str, str], dict]) -> bool:
    """Print the lines of a file; whether all its figures agree."""
    samples, name = hand["samples_ms"], Path(file).name
    samples["speedup"] = [one / other for one, other in zip(samples["eager"], samples["inductor"], strict=True)]
    print(f"{name}, torch {hand['torch']}, {len(samples['eager'])} rounds:", flush=True)
    good = True
    for what, taken in samples.items():
        record = records[name, "inductor" if what == "speedup" else what]
        columns = ("speedup_vs_eager", "speedup_ci_low", "speedup_ci_high")
        if what != "speedup":
            columns = tuple(f"latency_ms_{end}" for end in ("median", "ci_low", "ci_high"))
        suite, figure = tuple(record[column] for column in columns), of_median(taken)
        low, _, high = quantiles(taken, n=4)
        told = f"  {what}: by hand {_text(figure)}, quartiles {low:.4g} to {high:.4g}; the suite"
        if None in suite:
            print(f"{told} {record['status']}: {record['reason']}")
            good = False
            continue
        said = "agree" if agree(figure, suite) else "DO NOT AGREE"
        status = ", ".join(filter(None, (record["status"], record["flags"])))
        print(f"{told} {_text(suite)} ({status}): ratio {suite[0] / figure[0]:.3f}: {said}")
        good &= agree(figure, suite)
    return good


def _text(figure: Figure) -> str:
    return f"{figure[0]:.4g} ({figure[1]:.4g} to {figure[2]:.4g})"


def main() -> int:
    """Compare each file; the exit code is 1 where a figure does not agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="*", help="model files (default: five of tests/field/models)")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=4.0, help="of samples for both modes together")
    parser.add_argument("--python", default=sys.executable, help="the interpreter with torch (default: this one)")
    parser.add_argument("--out", help="a folder to keep the samples by hand and the suite's run")
    options = parser.parse_args()
    options.file = [str(Path(file).resolve()) for file in options.file] or MODELS
    with tempfile.TemporaryDirectory() as passing:
        folder = Path(options.out or passing)
        folder.mkdir(parents=True, exist_ok=True)
        hand = {file: by_hand(options, file) for file in options.file}
        (folder / "by-hand.json").write_text(json.dumps(hand, indent=1) + "\n")
        records = by_suite(options, folder / "suite")
        results = [compared(file, hand[file], records) for file in options.file]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
