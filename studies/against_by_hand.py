"""The suite against short scripts by hand, in one go: `python studies/against_by_hand.py FRAMEWORK [...]`.

Runs `by_hand/bert_FRAMEWORK.py`, `runner.py bench` on the same shapes, and the script once more, each in processes of
its own. Prints a line for each mode: the suite's time over the script's with its 95 % interval. A graph mode agrees if
the whole interval lies within a margin of 1. The margin is 5 % where the host decides (bottleneck `overhead`) and 2 %
elsewhere. It is an equivalence test, two one-sided tests at 2.5 %. An interval that reaches beyond the margin shows
nothing.

The script runs as users have it (`--environment users`, the default): with the variables of the shell, on as many CPUs
as threads, as under `taskset`. So this tests the suite's settings, too. With `--environment worker` it has a worker's
variables and CPUs, and the loop alone is tested.

Processes of the same code differ, compilations of it too, and shared machines change speed. So `--paired` interleaves
the suite's steps and the script's calls in one process, a worker's, and prints the ratio of these. Both load the same
compiled code in torch. The margin is 5 % for calls below 5 ms.

`--out FOLDER` keeps the results: `by-hand-1.json`, `by-hand-2.json` and the suite's run in `suite`, or `paired.json`.
Each has the machine's id, as in the suite's records, and the options.

The exit code is 1 where a graph mode is not shown to agree. No test asserts it: times on a shared machine fail for its
neighbours.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import frameworks  # noqa: E402
from analysis.significance import independent_ratio  # noqa: E402
from frameworks import policies  # noqa: E402
from launchers import local  # noqa: E402
from measurement.machine import cpu_assignment, facts  # noqa: E402
from measurement.statistics import Interval  # noqa: E402
from records.intervals import over_processes  # noqa: E402
from studies.by_hand import loop  # noqa: E402

BY_HAND = Path(loop.__file__).parent
SCRIPTS = sorted(path.stem.removeprefix("bert_") for path in BY_HAND.glob("bert_*.py"))
WITHIN = {"overhead": 0.05}
WITHIN_ELSEWHERE = 0.02
HOST_DECIDES_BELOW_MS = 5.0  # where no bottleneck is known
AGREES, DIFFERS, NOT_SHOWN = "agrees", "does not agree", "not shown to agree"


def by_hand(options: argparse.Namespace, framework: str, python: str, file: str, *more: str) -> dict[str, dict]:
    """Return by mode the figures of a file of `by_hand` in a fresh process."""
    command = [python, str(BY_HAND / file), "--device", options.device, *more]
    command += ["--batch", str(options.batch), "--seq", str(options.seq), "--dtype", options.dtype]
    command += ["--workload", options.workload, "--threads", str(options.threads), "--seconds", str(options.seconds)]
    command += ["--inputs", str(options.inputs), *(["--mode", ",".join(options.mode)] if options.mode else [])]
    environment, cpus = surroundings(options, framework)
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cpus)
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"mode"')]
    if done.returncode or not lines:
        sys.exit(f"{' '.join(command)} ended with exit code {done.returncode}; what it said stands above.")
    return {line.pop("mode"): line for line in lines}


def surroundings(options: argparse.Namespace, framework: str) -> tuple[dict[str, str], list[int]]:
    """Return the variables and CPUs of a script: a user's, or a worker's."""
    if options.environment == "users":
        return dict(os.environ), cpu_assignment(options.threads, exactly=True)
    variables = frameworks.describe(framework).environment(options.threads, options.device)
    variables |= policies.variables(framework, options.device, {})
    pinned = policies.pinned(framework, options.device, {})
    return local.environment(variables), cpu_assignment(options.threads, exactly=pinned)


def by_suite(options: argparse.Namespace, framework: str, python: str, modes: list[str], out: Path) -> dict[str, dict]:
    """Return by mode the record of the suite."""
    command = [sys.executable, "runner.py", "bench", "--framework", framework, "--workload", options.workload]
    command += ["--impl", "library", "--mode", ",".join(modes), "--device", options.device, "--dtype", options.dtype]
    command += ["--batch", str(options.batch), "--seq", str(options.seq), "--threads", str(options.threads)]
    command += ["--python", python, "--budget", str(options.budget or options.seconds), "--out", str(out)]
    passes = {**os.environ, "EAGER_VS_GRAPH_UNDECIDED_PASSES": "1"}
    subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=True, env=passes)
    records = map(json.loads, (out / "records.jsonl").read_text().splitlines())
    return {record["mode"]: record for record in records}


def compared(mode: str, runs: list[dict], record: dict) -> bool:
    """Print a mode's line; return whether it passes."""
    hand = over_processes([run["samples_ms"] for run in runs])
    both = " and ".join(f"{run['ms']:.4g}" for run in runs)
    head = f"{mode}: by hand {both} ms, the suite"
    suite, low, high = (record[f"latency_ms_{name}"] for name in ("median", "ci_low", "ci_high"))
    if suite is None:
        print(f"{head}: {record['status']}: {record['reason']}")
        return False
    head = f"{head} {suite:.4g} ({record['regime'] or 'bottleneck unknown'})"
    ratio = (
        independent_ratio(Interval(suite, low, high), hand, (record.get("launches"), len(runs)))
        if hand and low
        else None
    )
    return told(head, mode, ratio, WITHIN.get(record["regime"], WITHIN_ELSEWHERE))


def paired(mode: str, figures: dict) -> bool:
    """Print a mode's line; return whether it passes."""
    limit = WITHIN["overhead"] if figures["hand_ms"] < HOST_DECIDES_BELOW_MS else WITHIN_ELSEWHERE
    head = f"{mode}: by hand {figures['hand_ms']:.4g} ms, the suite {figures['suite_ms']:.4g}"
    return told(f"{head} ({figures['rounds']} rounds)", mode, Interval(*figures["ratio"]), limit)


def told(head: str, mode: str, ratio: Interval | None, limit: float) -> bool:
    """Print the ratio's verdict; return whether it passes: graph modes must agree, eager need not."""
    what = verdict(ratio, limit)
    figures = f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})" if ratio else "too few samples"
    print(f"{head}: {figures}: {what} within {limit:.0%}")
    return what == AGREES or mode == "eager"


def verdict(ratio: Interval | None, limit: float) -> str:
    """Return whether a ratio is shown to be 1 within the limit, shown not to be, or neither (Schuirmann 1987)."""
    if ratio is None:
        return NOT_SHOWN
    if 1 - limit <= ratio.low and ratio.high <= 1 + limit:
        return AGREES
    return DIFFERS if ratio.low > 1 + limit or ratio.high < 1 - limit else NOT_SHOWN


def separately(options: argparse.Namespace, framework: str, python: str, folder: Path) -> bool:
    """Run script, suite and script again; return whether all modes agree."""
    file = f"bert_{framework}.py"
    first = kept(options, folder, "by-hand-1", by_hand(options, framework, python, file))
    suite = by_suite(options, framework, python, list(first), folder / "suite")
    second = kept(options, folder, "by-hand-2", by_hand(options, framework, python, file))
    return all([compared(mode, [first[mode], second[mode]], suite[mode]) for mode in first])


def in_turn(options: argparse.Namespace, framework: str, python: str, folder: Path) -> bool:
    """Interleave the suite's steps and the script's calls in one process; return whether all modes agree."""
    by_mode = kept(
        options, folder, "paired", by_hand(options, framework, python, "paired.py", "--framework", framework)
    )
    return all([paired(mode, figures) for mode, figures in by_mode.items()])


def kept(options: argparse.Namespace, folder: Path, name: str, figures: dict[str, dict]) -> dict[str, dict]:
    """Return the figures by mode; write them to a file as well, with the machine's id and the options."""
    folder.mkdir(parents=True, exist_ok=True)
    told = {key: value for key, value in vars(options).items() if key not in ("framework", "python", "out")}
    whole = {"machine_id": facts()["machine_id"], "asked": told, "modes": figures}
    (folder / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n")
    return figures


def main() -> int:
    """Compare for each framework; return exit code 1 where a graph mode does not agree."""
    parser = loop.arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(threads=len(os.sched_getaffinity(0)), seconds=3.0)
    parser.add_argument("framework", nargs="+", choices=SCRIPTS)
    parser.add_argument("--paired", action="store_true", help="take the suite's steps and the script's calls in turn")
    parser.add_argument("--environment", choices=("users", "worker"), default="users", help="of the script")
    parser.add_argument("--budget", type=float, help="of the suite's samples for each mode (default: the same)")
    parser.add_argument("--out", help="a folder to keep what the processes gave, one inside it for each framework")
    parser.add_argument("--python", help="the interpreter (default: that of the environment that make setup makes)")
    options, good = parser.parse_args(), True
    if options.paired:  # one process cannot have both
        options.environment = "worker"
    for framework in options.framework:
        python = options.python or str(ROOT / f".venvs/{framework}-{options.device}/bin/python")
        shape = f"{options.workload} {options.dtype} {options.device}, {options.batch} x {options.seq} tokens"
        print(f"{framework}, {shape}, threads {options.threads}:", flush=True)
        with tempfile.TemporaryDirectory() as passing:
            name = f"{framework}-{options.device}-{options.workload}-{options.batch}x{options.seq}-{options.dtype}"
            folder = Path(options.out or passing, name)
            good &= (in_turn if options.paired else separately)(options, framework, python, folder)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
