"""Modes that misbehave: each costs its own cell, and none is blamed for another."""

from __future__ import annotations

import ast

from conftest import ROOT

from studies.faults.trial import FAKE, Trial

MOST_LOG = 100 << 20  # bytes a worker


def misbehaves(trial: Trial, mode: str) -> None:
    """Run the mode between eager and graph, at two shapes; then a resume, which changes nothing, and a report."""
    trial.run(*FAKE, "--mode", f"eager,graph,{mode}", "--batch", "1,2", "--out", str(trial.out))
    planned, allowed = trial.planned(), {mode: EXPECTED[mode]}
    trial.complete(planned, allowed)
    before = trial.lines()
    trial.resume()
    if trial.lines() != before:
        trial.saw("resume changed", "a completed run")
        trial.complete(planned, allowed)
    trial.report()
    for path in [*trial.folder.glob("output-*"), trial.out / "report.md"]:
        if path.exists() and b"\x1b]0;" in path.read_bytes():
            trial.saw("escape sequence", "report.md" if path.parent == trial.out else "on the terminal")
    for log in trial.out.glob("processes/*/worker.log"):
        if log.stat().st_size > MOST_LOG:
            trial.saw("log", f"{log.stat().st_size >> 20} MiB")


def expected() -> dict[str, tuple[str, ...]]:
    """Return by mode the statuses that it may end in, read from the double, which only a worker can import."""
    path = ROOT / "tests/doubles/fake/mischief.py"
    tree = ast.parse(path.read_text())
    names = {"MEASURED": ("measured",), "FAILED": ("error", "crash")}
    (table,) = [node for node in tree.body if isinstance(node, ast.AnnAssign) and node.target.id == "MISCHIEF"]
    statuses = {}
    for key, value in zip(table.value.keys, table.value.values, strict=True):
        second = value.elts[1]
        statuses[key.value] = names[second.id] if isinstance(second, ast.Name) else ast.literal_eval(second)
    return statuses


EXPECTED = expected()
FAULTS = {"modes": dict.fromkeys(EXPECTED, misbehaves)}
