"""How a cell ends, and which cells are excluded: the one rule of every mean, ranking, verdict and claim."""

from __future__ import annotations

from functools import cache

from measurement.flags import CONSTANT, PROGRAM_DIFFERS, ZERO

STATUSES = {
    "ok": "measured, outputs agree with the reference, ratio or latency known as well as the profile says, undisturbed",
    "noisy": "measured and correct, but neither latency nor speedup is known so well, or beside eager there is none",
    "disturbed": "measured and correct, but flags say that the machine or the framework was not steady",
    "partial": "measured and correct, but only a part of a user's own model is in graphs; the reason says what is not",
    "mismatch": "the outputs differ from the reference by more than the tolerance; no report compares the cell",
    "unsupported": "this build, machine or framework cannot run the cell as what it says; the reason says why",
    "oom": "the device or the machine ran out of memory",
    "timeout": "a step of the cell lasted longer than --timeout and its worker was stopped",
    "crash": "the worker died, or wrote what is no message",
    "error": "the framework raised an exception, or its worker reported what cannot be",
}
MEASURED = ("ok", "noisy", "disturbed", "partial")
# What `ratio_status` and `latency_status` say of one figure; empty where the cell has no such figure.
FIGURE_STATUSES = {
    "ok": "its interval is within the profile's target, and no flag speaks against it",
    "noisy": "its interval is wider, or there is none",
    "disturbed": "its interval is within the target, but a flag that concerns it is raised",
}
# What a reason says of modes: `inductor ran another program than eager mode`.
WORDS = {
    PROGRAM_DIFFERS: "another program than eager mode's",
    ZERO: "outputs that are zero throughout",
    CONSTANT: "outputs that are constant throughout",
}


@cache  # a few, over and over
def exclusion(status: str | None, program: str | None, flags: str | None) -> str | None:
    """Return why a cell is excluded, from the columns that decide: its status, or one of `WORDS`; None where it counts.

    An unknown program excludes nothing.
    """
    if status not in MEASURED:
        return status or "no status"
    if differs(program):
        return PROGRAM_DIFFERS
    return next((flag for flag in (ZERO, CONSTANT) if flag in (flags or "").split(";")), None)


def differs(program: str | None) -> bool:
    """Return whether a graph's program (column `program`) is another than eager mode's."""
    return program == "differs"


def is_baseline(mode: str, baseline: bool | None) -> bool:
    """Return whether graphs are compared with a mode, by the columns of that name; up to version 4 by `mode` alone."""
    return mode == "eager" if baseline is None else baseline
