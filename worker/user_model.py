"""User models in a worker: what their outputs are compared with, what a call costs, what leaves its graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from frameworks.adapter import Step, Unsupported
from frameworks.user_model import Subject, Uncounted
from frameworks.values import Values
from measurement.parity import MOST_EAGER_ERROR, difference
from measurement.sampling import Clocks
from measurement.user_model import UserModelReport
from worker import writing
from workloads.spec import sampled

# Calls whose graphs are timed apart; each graph is waited for, so these are never the calls of a sample.
PRICED_CALLS = 7
# Seeds of the calls that must agree: a model with state differs from the first on, one that draws numbers at the last.
SEEDS = (0, 0, 0, 1)
STATE = (
    "the same call twice gives two answers, by state that is in no buffer, which cannot be put back between "
    "modes: keep it in buffers, or have model() return the model without it."
)
RANDOMNESS = (
    "the model draws random numbers in a call, which no two modes draw alike: take them as inputs, or turn what draws "
    "them off, such as dropout, which inference leaves out and training does not."
)


def of(step: Step) -> Subject:
    """Return the user model behind a step. Raises TypeError for a step of another workload."""
    if step.user_model is None:
        raise TypeError("this step is of no user model")
    return step.user_model


def examined(subject: Subject, calls: int, tolerance: float, folder: Path, position: int) -> UserModelReport:
    """Return what was found out of a user model: files with what outputs are compared with, costs, dtypes, settings.

    Raises Unsupported for a model whose outputs no two modes can have in common.
    """
    refuse_what_changes(subject, tolerance)
    eager = subject.eager(calls)
    name, outputs = reference(subject, eager, calls)
    kept = _saved(outputs, folder / f"reference-{position}.npz")
    beside = ""
    if eager is not None:
        beside = _saved(eager, folder / f"eager-{position}.npz")
        _refuse_what_is_far(eager, outputs, tolerance, name)
    costs, reason = cost_of(subject)
    return UserModelReport(
        kept,
        name,
        eager=beside,
        not_compared=tuple(sorted({name for found in outputs for name in found.not_compared})),
        computes_in=_quietly(subject.computes_in),
        settings={name: str(value) for name, value in subject.settings.items()},
        counted_by=costs.pop("by", reason),
        **costs,
    )


def refuse_what_changes(subject: Subject, tolerance: float) -> None:
    """Raise Unsupported for a model of which the same call gives several answers."""
    first, *others = (subject.repeated(seed).arrays for seed in SEEDS)
    for seed, again in zip(SEEDS[1:], others, strict=True):
        if first.keys() != again.keys() or (first and not difference(again, first).within(tolerance)):
            raise Unsupported(STATE if seed == SEEDS[0] else RANDOMNESS)


def reference(subject: Subject, eager: list[Values] | None, calls: int) -> tuple[str, list[Values]]:
    """Return the name and the outputs of the first precision that the model runs in with outputs of eager's form."""
    failed = ""
    for dtype in subject.precisions:
        try:
            outputs = subject.precise(dtype, calls)
        except Exception as error:  # its own code may insist on a dtype, or not be copied
            failed = failed or f" ({dtype} failed: {_line(error)})"
            continue
        if eager is None or list(map(_form, outputs)) == list(map(_form, eager)):
            return f"its own eager mode in {dtype}", outputs
        failed = failed or f" ({dtype} gives outputs of other sizes)"
    if eager is None:
        raise Unsupported(
            f"the model runs in no precision on a copy of its weights, so nothing can be compared{failed}."
        )
    return f"its own eager mode{failed}", eager


def _refuse_what_is_far(eager: list[Values], reference: list[Values], tolerance: float, name: str) -> None:
    error = difference(_joined(eager), _joined(reference))
    if error.needed > max(MOST_EAGER_ERROR, tolerance):
        raise Unsupported(
            f"eager mode is off {name} by a relative {error.relative:.2g}, so no mode can be "
            "compared with it: measure in a wider dtype, or give settings a tolerance."
        )


def cost_of(subject: Subject) -> tuple[dict[str, Any], str]:
    """Return the columns of a call's cost, or none and why: a cost that cannot be counted ends no cell."""
    try:
        counted = subject.cost()
    except Exception as error:
        return {}, f"not counted: {error if isinstance(error, Uncounted) else _line(error)}"
    return ({}, "") if counted is None else (asdict(counted), "")


def _quietly(ask: Callable[[], Sequence[str]]) -> tuple[str, ...]:
    try:
        return tuple(ask())
    except Exception:  # what cannot be listed is measured all the same
        return ()


def _saved(outputs: Sequence[Values], path: Path) -> str:
    return writing.save(path, {name: sampled(array, None) for name, array in _joined(outputs).items()})


def _joined(outputs: Sequence[Values]) -> dict[str, np.ndarray]:
    return {f"{index}.{name}": array for index, found in enumerate(outputs) for name, array in found.arrays.items()}


def _form(found: Values) -> Mapping[str, tuple]:
    return {name: (array.shape, array.dtype.kind) for name, array in found.arrays.items()}


def _line(error: Exception) -> str:
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return words[:200]


def priced(step: Step, synchronize: Callable[[Any], None], clocks: Clocks) -> tuple[float, float]:
    """Return the seconds of a call within its graphs, and of the whole call, both waited for: medians over calls."""
    inside, watch = 0.0, step.watch
    if watch is None:
        raise TypeError("this step has no graphs to watch")

    def around(graph: Callable, arguments: Sequence) -> Any:
        nonlocal inside
        synchronize(None)
        start = clocks.wall()
        output = graph(*arguments)
        synchronize(output)
        inside += clocks.wall() - start
        return output

    watch(around)
    calls = []
    try:
        for _ in range(PRICED_CALLS):
            step.get_ready()
            inside, start = 0.0, clocks.wall()
            synchronize(step())
            calls.append((inside, clocks.wall() - start))
    finally:
        watch(None)
    return median(within for within, _ in calls), median(whole for _, whole in calls)
