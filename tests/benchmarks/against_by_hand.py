"""The suite against short scripts by hand, in one go: `python tests/benchmarks/against_by_hand.py FRAMEWORK [...]`.

Runs `by_hand/bert_FRAMEWORK.py`, `runner.py bench` on the same shapes, and the script once more, each in processes of
its own, and prints a line for each mode. Wants, of every graph mode, the suite's median within 5 % of the script's
where the host decides (regime `overhead`) and within 2 % elsewhere, or inside the range of the script's own samples.

Processes of the same code differ, and shared machines change speed: `--paired` takes the suite's steps and the script's
calls in turn in one process instead, and prints the ratio with its interval. It wants the interval to reach 1 within
2 %, or 5 % for calls below 5 ms.

`--out FOLDER` keeps what the processes gave: `by-hand-1.json`, `by-hand-2.json` and the suite's run in `suite`, or
`paired.json`, each with the machine's id, as in the suite's records, and what was asked.

The exit code is 1 where that is not met. No test asserts it: times on a shared machine fail for its neighbours.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import frameworks  # noqa: E402
from frameworks import policies  # noqa: E402
from launchers import local  # noqa: E402
from measurement.machine import cpu_assignment, facts  # noqa: E402
from tests.benchmarks.by_hand import loop  # noqa: E402

BY_HAND = Path(loop.__file__).parent
SCRIPTS = sorted(path.stem.removeprefix("bert_") for path in BY_HAND.glob("bert_*.py"))
WITHIN = {"overhead": 0.05}
WITHIN_ELSEWHERE = 0.02
HOST_DECIDES_BELOW_MS = 5.0  # where no regime is measured


def by_hand(asked: argparse.Namespace, framework: str, python: str, file: str, *more: str) -> dict[str, dict]:
    """Mode -> figures of a file of `by_hand` in a fresh process, under a worker's variables and on its CPUs."""
    description = frameworks.describe(framework)
    command = [python, str(BY_HAND / file), "--device", asked.device, *more]
    command += ["--batch", str(asked.batch), "--seq", str(asked.seq), "--dtype", asked.dtype]
    command += ["--workload", asked.workload, "--threads", str(asked.threads), "--seconds", str(asked.seconds)]
    command += ["--inputs", str(asked.inputs), *(["--mode", ",".join(asked.mode)] if asked.mode else [])]
    environment = local.environment(
        description.environment(asked.threads, asked.device) | policies.variables(framework, asked.device, {})
    )
    cpus = cpu_assignment(asked.threads, exactly=policies.pinned(framework, asked.device, {}))
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cpus)
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"mode"')]
    if done.returncode or not lines:
        sys.exit(f"{' '.join(command)} ended with exit code {done.returncode}; what it said stands above.")
    return {line.pop("mode"): line for line in lines}


def by_suite(asked: argparse.Namespace, framework: str, python: str, modes: list[str], out: Path) -> dict[str, dict]:
    """Mode -> record of the suite."""
    command = [sys.executable, "runner.py", "bench", "--framework", framework, "--workload", asked.workload]
    command += ["--impl", "library", "--mode", ",".join(modes), "--device", asked.device, "--dtype", asked.dtype]
    command += ["--batch", str(asked.batch), "--seq", str(asked.seq), "--threads", str(asked.threads)]
    command += ["--python", python, "--budget", str(asked.budget or asked.seconds), "--out", str(out)]
    subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=True)
    records = map(json.loads, (out / "records.jsonl").read_text().splitlines())
    return {record["mode"]: record for record in records}


def compared(mode: str, runs: list[dict], record: dict) -> bool:
    """Print a mode's line; whether it is as wanted."""
    hand, low, high = median(r["ms"] for r in runs), min(r["low"] for r in runs), max(r["high"] for r in runs)
    both = " and ".join(f"{run['ms']:.4g}" for run in runs)
    head = f"{mode}: by hand {both} ms ({low:.4g} to {high:.4g}), the suite"
    suite = record["latency_ms_median"]
    if suite is None:
        print(f"{head}: {record['status']}: {record['reason']}")
        return False
    off, limit = suite / hand - 1, WITHIN.get(record["regime"], WITHIN_ELSEWHERE)
    fits = abs(off) <= limit or low <= suite <= high
    interval = f"{record['latency_ms_ci_low'] or suite:.4g} to {record['latency_ms_ci_high'] or suite:.4g}"
    wanted = (
        f"within {limit:.0%}" if abs(off) <= limit else "within the script's range" if fits else f"over {limit:.0%}"
    )
    print(f"{head} {suite:.4g} ({interval}; {record['regime'] or 'regime unknown'}): {off:+.1%}, {wanted}")
    return fits or mode == "eager"


def paired(mode: str, figures: dict) -> bool:
    """Print a mode's line; whether it is as wanted."""
    ratio, low, high = figures["ratio"]
    limit = WITHIN["overhead"] if figures["hand_ms"] < HOST_DECIDES_BELOW_MS else WITHIN_ELSEWHERE
    head = f"{mode}: by hand {figures['hand_ms']:.4g} ms, the suite {figures['suite_ms']:.4g}"
    print(f"{head}: {ratio:.3f} ({low:.3f} to {high:.3f}; {figures['rounds']} rounds), wanted within {limit:.0%}")
    return (low <= 1 + limit and high >= 1 - limit) or mode == "eager"


def separately(asked: argparse.Namespace, framework: str, python: str, folder: Path) -> bool:
    """Script, suite and script again; whether all is as wanted."""
    file = f"bert_{framework}.py"
    first = kept(asked, folder, "by-hand-1", by_hand(asked, framework, python, file))
    suite = by_suite(asked, framework, python, list(first), folder / "suite")
    second = kept(asked, folder, "by-hand-2", by_hand(asked, framework, python, file))
    return all([compared(mode, [first[mode], second[mode]], suite[mode]) for mode in first])


def in_turn(asked: argparse.Namespace, framework: str, python: str, folder: Path) -> bool:
    """Suite's steps and script's calls in one process; whether all is as wanted."""
    found = kept(asked, folder, "paired", by_hand(asked, framework, python, "paired.py", "--framework", framework))
    return all([paired(mode, figures) for mode, figures in found.items()])


def kept(asked: argparse.Namespace, folder: Path, name: str, figures: dict[str, dict]) -> dict[str, dict]:
    """The figures by mode, written to a file as well, with the machine's id and what was asked."""
    folder.mkdir(parents=True, exist_ok=True)
    told = {key: value for key, value in vars(asked).items() if key not in ("framework", "python", "out")}
    whole = {"machine_id": facts()["machine_id"], "asked": told, "modes": figures}
    (folder / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n")
    return figures


def main() -> int:
    """Compare for each framework; the exit code is 1 where a graph mode is not as wanted."""
    parser = loop.arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(threads=len(os.sched_getaffinity(0)), seconds=3.0)
    parser.add_argument("framework", nargs="+", choices=SCRIPTS)
    parser.add_argument("--paired", action="store_true", help="take the suite's steps and the script's calls in turn")
    parser.add_argument("--budget", type=float, help="of the suite's samples for each mode (default: the same)")
    parser.add_argument("--out", help="a folder to keep what the processes gave, one inside it for each framework")
    parser.add_argument("--python", help="the interpreter (default: that of the environment that make setup makes)")
    asked, good = parser.parse_args(), True
    for framework in asked.framework:
        python = asked.python or str(ROOT / f".venvs/{framework}-{asked.device}/bin/python")
        shape = f"{asked.workload} {asked.dtype} {asked.device}, {asked.batch} x {asked.seq} tokens"
        print(f"{framework}, {shape}, threads {asked.threads}:", flush=True)
        with tempfile.TemporaryDirectory() as passing:
            name = f"{framework}-{asked.device}-{asked.workload}-{asked.batch}x{asked.seq}-{asked.dtype}"
            folder = Path(asked.out or passing, name)
            good &= (in_turn if asked.paired else separately)(asked, framework, python, folder)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
