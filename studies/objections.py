"""Objections answered by a measurement: `python studies/objections.py [QUESTION ...]`.

Each question is a script in `by_question/`, which runs in `--processes` fresh processes of its framework's environment,
with a worker's variables and CPUs, and times some ways to make a call in turn. Printed are a table of each trial (the
median over processes of microseconds and of minor page faults a call, and the ratio to the first way with its 95 %
interval over processes) and, last, a line a question. `--out FILE` adds what every process gave, a line of JSON each.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from measurement.machine import cpu_name, facts, usable_cpus  # noqa: E402
from records.intervals import over_launches  # noqa: E402
from studies.against_by_hand import surroundings  # noqa: E402

SCRIPTS = Path(__file__).parent / "by_question"
# What glibc keeps of freed memory: 32 MB is the largest block that it can be told not to give back at once.
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_ARENA_MAX": "1"}
HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


@dataclass(frozen=True)
class Question:
    """A script of a framework's, run once for each of some additions to its environment, by what they are called."""

    framework: str
    script: str
    environments: dict[str, dict[str, str]] = field(default_factory=lambda: {"": {}})


QUESTIONS = {
    "jax-leaves": Question("jax", "jax_leaves.py"),
    "jax-chain": Question(
        "jax", "jax_chain.py", {"": {}, "glibc keeps freed memory": KEPT, "glibc takes huge pages": HUGE}
    ),
    "jax-operators": Question("jax", "jax_operators.py"),
    "jax-blocks": Question("jax", "jax_blocks.py"),
    "tensorflow-saved": Question("tensorflow", "tensorflow_saved.py"),
    "paddle-sot": Question("paddle", "paddle_sot.py"),
    "torch-aot": Question("torch", "torch_aot.py"),
    "torch-aot-casts": Question("torch", "torch_aot_casts.py"),
    "torch-autocast": Question("torch", "torch_autocast.py"),
    "torch-mha": Question("torch", "torch_mha.py"),
}


def ask(question: Question, addition: str, options: argparse.Namespace) -> list[dict]:
    """What one fresh process gives: a line for each way of each trial."""
    environment, cpus = surroundings(argparse.Namespace(**vars(options), environment="worker"), question.framework)
    python = ROOT / f".venvs/{question.framework}-cpu/bin/python"
    command = [str(python), str(SCRIPTS / question.script), "--threads", str(options.threads)]
    done = subprocess.run(
        [*command, "--seconds", str(options.seconds)],
        env=environment | question.environments[addition],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cpus),
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with exit code {done.returncode}; what it said stands above.")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"trial"')]
    return [{**line, "trial": "; ".join(filter(None, (line["trial"], addition)))} for line in lines]


def compared(processes: list[list[dict]]) -> dict[str, dict[str, dict]]:
    """Trial -> way -> figures: medians over the processes, and the ratio to the trial's first way, round by round."""
    trials: dict[str, dict[str, list[dict]]] = {}
    for line in (line for process in processes for line in process):
        trials.setdefault(line["trial"], {}).setdefault(line["way"], []).append(line)
    return {trial: {way: _figures(lines, next(iter(ways.values()))) for way, lines in ways.items()}
            for trial, ways in trials.items()}  # fmt: skip


def _figures(lines: list[dict], first: list[dict]) -> dict:
    logs = [
        [math.log(mine / base) for mine, base in zip(a["us"], b["us"], strict=True)]
        for a, b in zip(lines, first, strict=True)
    ]
    interval = over_launches(logs)
    return {
        "us": median(median(line["us"]) for line in lines),
        "faults": median(median(line["faults"]) for line in lines),
        "ratio": math.exp(median(map(median, logs))),
        "interval": interval and (math.exp(interval.low), math.exp(interval.high)),
    }


def table(trial: str, ways: dict[str, dict]) -> str:
    """A trial as Markdown."""
    lines = [f"| {trial} | microseconds | page faults | ratio (95 %) |", "|---|---|---|---|"]
    lines += [f"| {way} | {f['us']:.4g} | {f['faults']:.4g} | {ratio(f)} |" for way, f in ways.items()]
    return "\n".join(lines)


def ratio(figures: dict) -> str:
    """A ratio with its interval, where there is one."""
    interval = figures["interval"]
    return f"{figures['ratio']:.3f}" + (f" ({interval[0]:.3f} to {interval[1]:.3f})" if interval else "")


def line(name: str, trials: dict[str, dict[str, dict]]) -> str:
    """A question's answer in one line: how many times as long as the first way each other one takes."""
    parts = []
    for trial, ways in trials.items():
        base, *others = ways
        told = ", ".join(f"{way} {ratio(ways[way])}" for way in others)
        parts.append(f"{trial}, times {base} ({ways[base]['us']:.4g} us): {told}")
    return f"{name}: {'; '.join(parts)}."


def main() -> None:
    """Ask, print tables, then the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", nargs="*", choices=[*QUESTIONS, []], metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="of samples for each way in a process (default: 2)")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--out", help="a file of JSON lines to add to")
    options, told = parser.parse_args(), []
    options.device = "cpu"
    machine = {"machine_id": facts()["machine_id"], "cpu": cpu_name(), "cpus": usable_cpus()}
    print(*(f"{key} {value}" for key, value in machine.items()), f"threads {options.threads}", sep=", ", flush=True)
    for name in options.question or QUESTIONS:
        processes = []
        for number in range(options.processes):
            for addition in QUESTIONS[name].environments:
                print(f"{name}, process {number + 1} of {options.processes} {addition}", file=sys.stderr, flush=True)
                processes.append(ask(QUESTIONS[name], addition, options))
                if options.out:
                    with open(options.out, "a") as out:
                        head = {**machine, "question": name, "process": number + 1, "threads": options.threads}
                        out.writelines(json.dumps({**head, **given}) + "\n" for given in processes[-1])
        trials = compared(processes)
        print(*(f"\n{table(trial, ways)}" for trial, ways in trials.items()), sep="\n", flush=True)
        told.append(line(name, trials))
    print("", *told, sep="\n")


if __name__ == "__main__":
    main()
