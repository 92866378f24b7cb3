"""What each setting of `frameworks/policies.py` costs: `python studies/ablations.py [POLICY ...]`.

Runs `runner.py bench` as users have the setting and each other way, in fresh processes taken in turn, the first one
changing from pair to pair, and writes `ablations.md` after each pair: latency, speedup and cores kept busy both ways as
the median over processes with their range, and the ratio of latencies with Student's interval over the pairs.

It begins no process after `--minutes`; called again with the same `--out` it goes on, so an idle machine may be used in
parts. Every run's folder is kept there. What follows `--` goes to bench, such as `-- --mode all`.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from frameworks.policies import POLICIES, Policy  # noqa: E402
from measurement.machine import cpu_assignment, cpu_name, facts, usable_cpus  # noqa: E402
from records import jsonfiles  # noqa: E402
from records.intervals import over_launches  # noqa: E402
from records.statuses import MEASURED  # noqa: E402

BERT = ("bert-tiny", "bert-base")
WORKLOADS = {"paddle-multiply": ("pointwise-chain",)}  # those of other policies are BERT's
HEAD = (
    "| workload | threads | mode | users: {users} ms | {other} ms | users / {other} (95 %) | pairs "
    "| speedup: users | {other} | cores: users | {other} |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Trial:
    """One choice that users do not have, against theirs, on one workload at one thread count."""

    policy: Policy
    workload: str
    threads: int
    other: str

    def folder(self, out: Path, pair: int, choice: str) -> Path:
        """Where the run of that pair and choice lies, made or not."""
        return out / self.policy.name / self.other / f"{self.workload}-{self.threads}-threads" / f"{pair:02d}-{choice}"

    def flags(self, choice: str, budget: float) -> list[str]:
        """Bench's flags."""
        shape = [] if self.workload not in BERT else ["--batch", "1", "--seq", "32"]
        flags = ["--framework", self.policy.framework, "--workload", self.workload, "--threads", str(self.threads)]
        return [*flags, *shape, "--budget", str(budget), "--policy", f"{self.policy.name}={choice}"]

    def differs(self) -> bool:
        """Whether the choices can differ here: pinned to all CPUs is not pinned, one thread has no idle ones."""
        if any(choice.pinned for choice in self.policy.choices.values()):
            return cpu_assignment(self.threads, exactly=True) != cpu_assignment(self.threads, exactly=False)
        return self.threads > 1 or not self.policy.name.endswith("openmp-idle")


def trials(policies: list[str], workloads: list[str] | None, threads: list[int]) -> list[Trial]:
    """All trials asked for that can differ on this machine."""
    every = [
        Trial(policy, workload, count, other)
        for policy in POLICIES
        if not policies or policy.name in policies
        for other in policy.others
        for workload in WORKLOADS.get(policy.name, BERT)
        if not workloads or workload in workloads
        for count in threads
    ]
    return [trial for trial in every if trial.differs()]


def records_of(folder: Path) -> dict[str, dict] | None:
    """Mode -> record of a finished run; None for one that is not."""
    plan = folder / "plan.json"
    records = list(jsonfiles.lines(folder / "records.jsonl"))
    done = plan.exists() and len(records) == len(json.loads(plan.read_text())["cells"])
    return {record["mode"]: record for record in records} if done else None


def measure(trial: Trial, folder: Path, choice: str, budget: float, more: list[str]) -> None:
    """One run of bench in `folder`, gone on with where it was begun. Its peaks are those of the trial's first run."""
    begun = (folder / "plan.json").exists()
    first = next(iter(sorted(folder.parent.glob(f"*-{choice}/peaks.json"))), None)
    if first and not begun:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(first, folder)
    where = ["--resume" if begun else "--out", str(folder)]
    command = [sys.executable, "runner.py", "bench", *trial.flags(choice, budget), *more, *where]
    if subprocess.run(command, cwd=ROOT, stdout=sys.stderr).returncode not in (0, 3):  # 3: a record says what failed
        sys.exit(f"{' '.join(command)} failed; what it said stands above.")


def pairs_of(trial: Trial, out: Path) -> list[tuple[dict, dict]]:
    """The finished pairs: records by mode as users have the setting, and the other way."""
    numbers = sorted(int(path.name[:2]) for path in trial.folder(out, 0, "").parent.glob(f"*-{trial.policy.users}"))
    both = [tuple(records_of(trial.folder(out, n, c)) for c in (trial.policy.users, trial.other)) for n in numbers]
    return [pair for pair in both if all(pair)]


def rows(trial: Trial, pairs: list[tuple[dict, dict]]) -> list[str]:
    """A table row for each mode that was measured in both runs of at least one pair."""
    lines = []
    for mode in dict.fromkeys(mode for pair in pairs for mode in pair[0]):
        both = [(a[mode], b[mode]) for a, b in pairs if mode in b]
        both = [pair for pair in both if all(record["status"] in MEASURED for record in pair)]
        if not both:
            continue
        logs = [math.log(a["latency_ms_median"] / b["latency_ms_median"]) for a, b in both]
        interval = over_launches([[log] for log in logs])
        ratio = f"{math.exp(sum(logs) / len(logs)):.3f}"
        if interval:
            ratio += f" ({math.exp(interval.low):.3f} to {math.exp(interval.high):.3f})"
        cells = [trial.workload, str(trial.threads), mode]
        cells += [
            spread([record["latency_ms_median"] for record in side], "{:.4g}") for side in zip(*both, strict=True)
        ]
        cells += [ratio, str(len(both))]
        for column, form in (("speedup_vs_eager", "{:.2f}"), ("cpu_per_wall", "{:.2f}")):
            cells += [spread([record[column] for record in side], form) for side in zip(*both, strict=True)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def spread(values: list[float | None], form: str) -> str:
    """The median with the range, where there is more than one."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    middle, low, high = map(form.format, (median(known), min(known), max(known)))
    return f"{middle} ({low} to {high})" if len(known) > 1 else middle


def table(cases: list[Trial], out: Path) -> str:
    """What was measured so far as Markdown, a table for each choice that users do not have."""
    machine = facts()
    parts = [f"# Ablations\n\n{cpu_name()}, {usable_cpus()} CPUs, machine {machine['machine_id']}.\n"]
    for policy in POLICIES:
        for other in policy.others:
            mine = [trial for trial in cases if (trial.policy.name, trial.other) == (policy.name, other)]
            lines = [line for trial in mine for line in rows(trial, pairs_of(trial, out))]
            if not lines:
                continue
            head = HEAD.format(users=policy.users, other=other)
            title = f"## {policy.name}: {other}\n\nThe suite takes `{policy.suite}`.\n\n"
            parts.append(title + "\n".join([head, *lines]) + "\n")
    return "\n".join(parts)


def run(cases: list[Trial], options: argparse.Namespace, more: list[str], clock: Callable[[], float]) -> bool:
    """Pair after pair over all trials while there is time; whether all was measured."""
    out, end = Path(options.out), clock() + 60 * options.minutes
    for pair in range(1, options.repeats + 1):
        for trial in cases:
            choices = [trial.policy.users, trial.other]
            for choice in choices if pair % 2 else reversed(choices):
                folder = trial.folder(out, pair, choice)
                if records_of(folder) is None:
                    if clock() > end:
                        return False
                    measure(trial, folder, choice, options.budget, more)
            (out / "ablations.md").write_text(table(cases, out))
    return True


def main() -> int:
    """Measure, print the table; the exit code is 1 where time ran out."""
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    words, more = words[:split], words[split + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [policy.name for policy in POLICIES]
    parser.add_argument("policy", nargs="*", choices=[*names, []], metavar="POLICY", help=f"of {', '.join(names)}")
    parser.add_argument("--out", required=True, help="a folder for all runs and the table; one begun is gone on with")
    parser.add_argument("--repeats", type=int, default=5, help="pairs of processes for each trial (default: 5)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no process later (default: no end)")
    parser.add_argument("--budget", type=float, default=4.0, help="seconds of samples for each mode (default: 4)")
    parser.add_argument("--workload", type=lambda text: text.split(","), help="only these, separated by commas")
    numbers = [count for count in (1, 2) if count <= usable_cpus()]
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=numbers)
    options = parser.parse_args(words)
    cases = trials(options.policy, options.workload, options.threads)
    if not cases:
        parser.error("nothing to measure: both choices are the same here")
    Path(options.out).mkdir(parents=True, exist_ok=True)
    finished = run(cases, options, more, time.monotonic)
    print(table(cases, Path(options.out)))
    if not finished:
        print(f"Time ran out; the same command goes on in {options.out}.")
    return 0 if finished else 1


if __name__ == "__main__":
    sys.exit(main())
