"""Which cells are excluded: the one rule of every mean, ranking, verdict, comparison, claim and headline figure."""

from __future__ import annotations

from functools import cache

from measurement.schema import MEASURED, Record

PROGRAM_DIFFERS, ZERO, CONSTANT = "program_differs", "zero_outputs", "constant_outputs"
# What a reason says of modes: `inductor ran another program than eager mode`.
WORDS = {
    PROGRAM_DIFFERS: "another program than eager mode's",
    ZERO: "outputs that are zero throughout",
    CONSTANT: "outputs that are constant throughout",
}


def excluded(record: Record) -> str | None:
    """Return why a record is excluded: its status, or one of `WORDS`; None where its figures count.

    An unknown program excludes nothing: `unknown_program` says it.
    """
    return reason(record.get("status"), record.get("program"), record.get("flags"))


@cache  # a few, over and over
def reason(status: str | None, program: str | None, flags: str | None) -> str | None:
    """Return the same from the three columns that decide."""
    if status not in MEASURED:
        return status or "no status"
    if differs(program):
        return PROGRAM_DIFFERS
    return next((flag for flag in (ZERO, CONSTANT) if flag in (flags or "").split(";")), None)


def differs(program: str | None) -> bool:
    """Return whether a graph's program (column `program`) is another than eager mode's."""
    return program == "differs"


def unknown_program(record: Record) -> bool:
    """Return whether it is not known that a graph runs eager mode's program."""
    return record.get("program") == "unknown"
