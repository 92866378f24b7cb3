"""Which cells are excluded: the one rule of every mean, ranking, verdict, comparison and headline figure."""

from __future__ import annotations

from collections.abc import Mapping

from measurement.schema import MEASURED

PROGRAM_DIFFERS = "program_differs"
# Flags of outputs that say nothing of what stands before them.
_EMPTY = ("zero_outputs", "constant_outputs")


def excluded(record: Mapping) -> str | None:
    """Return why a record is excluded: its status, `program_differs`, `zero_outputs`; None where its figures count.

    An unknown program excludes nothing: see `unknown_program`.
    """
    if record.get("status") not in MEASURED:
        return record.get("status") or "no status"
    if record.get("program") == "differs":
        return PROGRAM_DIFFERS
    flags = (record.get("flags") or "").split(";")
    return next((flag for flag in _EMPTY if flag in flags), None)
