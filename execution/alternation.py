"""Let two executors take turns, process by process, so that changes of the machine affect both equally."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from execution.execute import Executor
from execution.turns import alternate
from execution.worker_run import Display, Figures
from plan.plan import Bundle, Plan, process_key
from records.record import Record


def run(executors: Sequence[Executor], plans: Sequence[Plan], finished: Sequence[frozenset[str]]) -> None:
    """Run both plans: each process of one side alternates with the same process of the other side.

    The order alternates with each process, and from bundle to bundle, so a drift affects both equally.
    """
    for executor, plan, done in zip(executors, plans, finished, strict=True):
        executor.begin(plan, done)
    for number, together in enumerate(paired(plans, executors[0].sweep.isolate)):
        steps = [e.steps(bundle) for e, bundle in zip(executors, together, strict=True) if bundle]
        alternate(reversed(steps) if number % 2 else steps, turning=True)
        for executor in executors:
            executor.run.write_csv()
    for executor in executors:
        executor.end()


def paired(plans: Sequence[Plan], isolate: bool) -> list[list[Bundle | None]]:
    """Return pairs of bundles that measure the same cells; None marks a side that has nothing left to measure."""
    pairs: dict[tuple[str | int, ...], list[Bundle | None]] = {}
    for side, plan in enumerate(plans):
        for bundle in plan.bundles:
            pairs.setdefault(process_key(bundle.first, isolate), [None, None])[side] = bundle
    return list(pairs.values())


@dataclass
class Sided:
    """One side's view of the shared display: its lines begin with its letter."""

    letter: str
    display: Display
    console: Console

    def bundle(self, bundle: Bundle, process: int) -> None:
        self.display.bundle(bundle, process)

    def phase(self, cell_id: str | None, phase: str) -> None:
        self.display.phase(cell_id, phase)

    def progress(self, rounds: int, seconds: dict[str, float]) -> None:
        self.display.progress(rounds, seconds)

    def figures(self, process: int, figures: Figures) -> None:
        """Show nothing, because both sides have the same cells."""

    def record(self, record: Record) -> None:
        self.console.print(self.letter, end=" ")
        self.display.record(record)

    def bound(self, cell_id: str, sentence: str) -> None:
        self.console.print(self.letter, end=" ")
        self.display.bound(cell_id, sentence)

    def process_done(self, bundle: Bundle) -> None:
        if self.letter == "B":
            self.display.process_done(bundle)

    def bundle_done(self, bundle: Bundle) -> None:
        """Show progress once, after side B: estimates cover both sides, and B finishes a bundle after A."""
        if self.letter == "B":
            self.display.bundle_done(bundle)
