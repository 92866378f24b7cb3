"""Whether a cell is valid, and which cells are excluded: the single rule for every mean, ranking, verdict and claim."""

from __future__ import annotations

from functools import cache

from measurement.flags import CONSTANT, EAGER_COMPILES, PROGRAM_DIFFERS, ZERO

STATUSES = {
    "ok": "measured, and the outputs agree with the reference; half-widths give the precision, flags the conditions",
    "mismatch": "the outputs differ from the reference by more than the tolerance; the cell is excluded",
    "unsupported": "this build, machine or framework cannot run the cell; `reason` explains why",
    "oom": "the device or the machine ran out of memory",
    "timeout": "the worker was silent for longer than TIMEOUT and was stopped",
    "crash": "the worker died, or wrote something other than messages",
    "error": "the framework raised an exception, or the worker reported impossible values",
}
MEASURED = ("ok",)
# The words for each reason in a sentence: `inductor ran another program than eager mode's`.
WORDS = {
    PROGRAM_DIFFERS: "another program than eager mode's",
    EAGER_COMPILES: "eager mode compiles in every call",
    ZERO: "outputs that are zero throughout",
    CONSTANT: "outputs that are constant throughout",
}


@cache  # few arguments, many calls
def exclusion(status: str | None, program: str | None, flags: str | None) -> str | None:
    """Return why a cell is excluded, from the columns that decide: its status, or a key of `WORDS`; None if it counts.

    An unknown program excludes nothing.
    """
    if status not in MEASURED:
        return status or "no status"
    if differs(program):
        return PROGRAM_DIFFERS
    return next((flag for flag in (EAGER_COMPILES, ZERO, CONSTANT) if flag in (flags or "").split(";")), None)


def differs(program: str | None) -> bool:
    """Return whether a graph's program (column `program`) differs from eager mode's."""
    return program == "differs"


def is_baseline(mode: str, baseline: bool | None) -> bool:
    """Return whether graphs are compared with this mode, from these columns; up to version 4 from `mode` alone."""
    return mode == "eager" if baseline is None else baseline
