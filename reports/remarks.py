"""Remarks that the terminal, the page and the Markdown share."""

from __future__ import annotations

from collections.abc import Iterable

from analysis import facts
from analysis.points import machine_names
from measurement.text import times
from records.record import Record
from reports.numbers import text_of


def within(few: int | None) -> str:
    """Return what is added to a verdict that holds for these few launches only."""
    return f", in {times(few, 'launch', 'launches')}" if few else ""


def unequal_machines(records: Iterable[Record]) -> list[str]:
    """Return a sentence for every machine that gave some frameworks more of its processor than others."""
    machines = facts.cores_taken(records)
    names, sentences = machine_names(machines), []
    for machine in filter(lambda machine: facts.is_unequal(machines[machine]), machines):
        whose = f" {names[machine]}" if len(names) > 1 else ""
        parts = ", ".join(
            f"{text_of(round(most, 2))} from {framework}" for framework, most in machines[machine].items()
        )
        sentences.append(
            f"The machine{whose} was not the same for all: other work and the hypervisor took {parts} (cores, the "
            "median of its cells). A framework's modes bear that alike; compare frameworks in a quieter run."
        )
    return sentences
