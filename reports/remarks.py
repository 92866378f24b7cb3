"""Remarks that the terminal, the page and the Markdown share."""

from __future__ import annotations

import json
from collections.abc import Iterable

from analysis import facts
from analysis.points import machine_names
from measurement.flags import EAGER_COMPILES
from measurement.text import listed, times
from records.record import Record
from reports.numbers import text_of

MOST_PLACES = 2  # in a sentence; report.md has all


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
            f"The machine{whose} had different load for each framework: other work and the hypervisor took {parts} "
            f"(cores, median of its cells). This affects all modes of a framework equally; compare frameworks in a "
            f"quieter run."
        )
    return sentences


def recompilation(record: Record) -> str:
    """Return `inductor recompiled 5 times: x.size(0) == 3 (net.py:12).`; empty where nothing was compiled again."""
    if record.is_baseline and record.excluded == EAGER_COMPILES:
        return f"{record.mode} compiles or traces in every call, so no speedup over it counts."
    count, text = record.recompilations or 0, record.recompiled_places
    places = json.loads(text) if text else []
    if not count and not places:
        return ""
    if count and count >= _calls(record):
        done = "compiles in every call"
    else:
        done = f"recompiled {times(count, 'time')}" if count else "recompiled"
    shown = listed([f"{why} ({place})" for place, why in places], MOST_PLACES, "; ")
    return f"{record.mode} {done}{f': {shown}' if shown else ''}."


def recompilations(records: Iterable[Record]) -> list[str]:
    """Return each sentence once, in the order of the records."""
    return list(dict.fromkeys(filter(None, map(recompilation, records))))


def _calls(record: Record) -> float:
    """Return the calls in the samples of a record; infinite where it has none."""
    calls = (record.samples or 0) * (record.calls_per_sample or 0)
    return calls or float("inf")
