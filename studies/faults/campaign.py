"""Choose faults, try them side by side, and report broken promises."""

from __future__ import annotations

import random
import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from doubles.suite import Suite

from studies.faults import (
    calls,
    misbehaving,
    nodes,
    places,
    signals,
    system,
    tampering,
)
from studies.faults.trial import Trial

GROUPS: dict[str, dict[str, Callable[[Trial, str], None]]] = {
    **signals.FAULTS,
    **misbehaving.FAULTS,
    **tampering.FAULTS,
    **system.FAULTS,
    **calls.FAULTS,
    **places.FAULTS,
    **nodes.FAULTS,
}
CLUSTER = "nodes"  # these take Slurm, and only where named
# These need the environments of real frameworks, and are tried only where named.
REAL = ("real", "pairs")
SIGNALS = ("worker", "runner")
SHORT = (*SIGNALS, "modes", "plan", "streams", "together")  # what the tests try


@dataclass(frozen=True)
class Fault:
    """One fault: a number, which with the seed decides all its random choices, its group and its name there."""

    number: int
    group: str
    name: str


@dataclass
class Finding:
    """Violations of one fault; `skipped`: why it could not be tried here."""

    fault: Fault
    violations: list[tuple[str, str]] = field(default_factory=list)
    skipped: str = ""


def chosen(groups: Iterable[str], count: int, seed: int) -> list[Fault]:
    """Return `count` faults of the groups: each one once in a random order, and then again at other random instants."""
    every = [(group, name) for group in groups for name in GROUPS[group]]
    rng, faults = random.Random(f"faults/{seed}"), []
    while len(faults) < count:
        again = every if not faults else [one for one in every if one[0] in (*SIGNALS, *REAL, CLUSTER)] or every
        faults += rng.sample(again, len(again))
    return [Fault(number, group, name) for number, (group, name) in enumerate(faults[:count])]


def attempt(fault: Fault, suite: Suite, folder: Path, seed: int) -> Finding:
    """Try one fault in its own folder, which is kept only after a violation."""
    choices = f"{seed}/{fault.number}/{fault.name}".encode(errors="surrogateescape")  # names of files may be no UTF-8
    trial = Trial(suite, folder / f"{fault.number:04d}", random.Random(choices))
    finding = Finding(fault, trial.violations)
    try:
        GROUPS[fault.group][fault.name](trial, fault.name)
    except PermissionError as error:
        finding.skipped = str(error)
    except Exception as error:  # the campaign continues; a failed trial is a violation as well
        last = traceback.extract_tb(error.__traceback__)[-1]
        trial.saw("could not be checked", f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})")
    finally:
        trial.nothing_left()
        if not trial.violations:
            shutil.rmtree(trial.folder, ignore_errors=True)
    return finding


def run(
    faults: list[Fault], suite: Suite, folder: Path, seed: int, jobs: int, told: Callable[[Finding], None]
) -> list[Finding]:
    """Try the faults, `jobs` at a time; `told` is called with each finding as it comes."""
    findings = []
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for finding in pool.map(lambda fault: attempt(fault, suite, folder, seed), faults):
                findings.append(finding)
                told(finding)
        except KeyboardInterrupt:  # faults in progress finish, and no others start
            pool.shutdown(cancel_futures=True)
    return findings


def table(findings: list[Finding]) -> str:
    """Return faults and violations by group and kind, as Markdown."""
    lines = ["| group | faults | with violation | kinds of violation (faults) |", "|---|---|---|---|"]
    tried = [finding for finding in findings if not finding.skipped]
    for group in GROUPS:
        of_group = [finding for finding in tried if finding.fault.group == group]
        if of_group:
            kinds = Counter(kind for finding in of_group for kind in {kind for kind, _ in finding.violations})
            told = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
            lines.append(f"| {group} | {len(of_group)} | {sum(bool(f.violations) for f in of_group)} | {told} |")
    lines.append(f"| all | {len(tried)} | {sum(bool(f.violations) for f in tried)} | |")
    return "\n".join(lines)
