"""User models in a worker: reference outputs, cost of a call, and time outside of its graphs."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from frameworks.adapter import Step, Unsupported
from frameworks.user_file import in_a_line, seed_python
from frameworks.user_model import LOSS, Subject, Uncounted
from frameworks.values import Values
from measurement.parity import MOST_EAGER_ERROR, MOST_UNEQUAL, Difference, differences
from measurement.protocol import UserModelReport
from measurement.sampling import Clocks
from measurement.text import listed, percent
from worker import writing
from workloads.spec import sampled

# Calls with separately timed graphs; each graph is waited for, so samples contain no such calls.
PRICED_CALLS = 7
SEEDS, MOST_SECONDS = 20, 10.0  # that a model that draws random numbers is called with, and for how long
MOST_NAMES = 5  # of outputs in a sentence
NOTHING = (
    "every floating-point value in {outputs} is NaN or infinite, so nothing can be compared: choose inputs with finite "
    "outputs, or a wider dtype."
)
STATE = (
    "two equal calls differ in {outputs}, because of state outside of buffers, an optimizer's step, a clock, or "
    "kernels that are not deterministic: register the state as buffers, remove it, leave the step to PASS=training, "
    "return no times, or select deterministic kernels."
)
REMEMBERS = (
    "the model keeps results by the identity of its inputs or by their values, and calls repeat the same inputs, so "
    "they would compute less than calls on new ones: remove the cache, such as functools.lru_cache or a dict."
)
WORK = (
    "calls change the model's state, such as a threshold that selects values or the length of a cache, so that later "
    "calls do other work: pass that state as an input, or change it in training mode alone."
)
COUNTING = (
    "a second call of the model differs in {outputs}, because of state in Python, which every training iteration "
    "restores: pass that state as an input."
)
RANDOMNESS = (
    "the model draws random numbers for {outputs}, and no two modes draw the same: pass them as inputs, or disable "
    "dropout and other random layers."
)


def subject_of(step: Step) -> Subject:
    """Return the user model behind a step. Raises TypeError for a step of another workload."""
    if step.user_model is None:
        raise TypeError("this step runs no user model")
    return step.user_model


def examined(subject: Subject, calls: int, tolerance: float, folder: Path, position: int) -> UserModelReport:
    """Return the report of a user model: files of reference outputs, costs, dtypes, settings.

    Raises Unsupported for a model whose modes cannot be compared.
    """
    refuse_what_modes_cannot_share(subject, calls, tolerance)
    name, outputs, eager = referred(subject, calls, tolerance)
    kept = saved(outputs, folder / f"reference-{position}.npz")
    beside = saved(eager, folder / f"eager-{position}.npz") if eager is not None else ""
    costs, reason = cost_of(subject)
    settings = {name: str(value) for name, value in subject.settings.items()}
    try:
        computes_in = tuple(subject.computes_in())
    except Exception as error:  # the measurement is still valid
        computes_in, settings["computes_in"] = (), f"not known: {in_a_line(error)}"
    return UserModelReport(
        kept,
        name,
        eager=beside,
        not_compared=tuple(sorted({name for found in outputs for name in found.not_compared})),
        computes_in=computes_in,
        settings=settings,
        counted_by=costs.pop("by", reason),
        shapes=shapes_of(outputs),
        **costs,
    )


def referred(subject: Subject, calls: int, tolerance: float) -> tuple[str, list[Values], list[Values] | None]:
    """Return the reference's name and outputs of the first calls, and eager mode's, None where they are not known.

    Raises Unsupported where eager mode is far off the reference.
    """
    eager = subject.eager(calls)
    name, outputs = reference(subject, eager, calls, tolerance)
    if eager is not None:
        _refuse_what_is_far(eager, outputs, tolerance, name)
    return name, outputs, eager


def refuse_what_modes_cannot_share(subject: Subject, calls: int, tolerance: float) -> None:
    """Raise Unsupported for outputs that equal calls change, for kept results, and for work that state changes."""
    refuse_what_changes(subject, tolerance)
    if _remembers(subject):
        raise Unsupported(REMEMBERS)
    refuse_other_work(subject, calls)


def refuse_what_changes(subject: Subject, tolerance: float) -> None:
    """Raise Unsupported if equal calls give different outputs, or none is finite."""
    first = subject.repeated(0)

    def unlike(seed: int) -> list[str]:
        return _unlike(subject.repeated(seed), first, tolerance)

    floating = {name: array for name, array in first.arrays.items() if array.dtype.kind == "f" and array.size}
    for names in (list(floating), [name for name in floating if name == LOSS]):
        if names and not any(np.isfinite(floating[name]).any() for name in names):
            raise Unsupported(NOTHING.format(outputs=_named(names)))
    if outputs := unlike(0):
        raise Unsupported(STATE.format(outputs=_named(outputs)))
    if outputs := unlike(1):  # if state begins late, seed 0 does not repeat the first answer either
        raise Unsupported((STATE if unlike(0) else RANDOMNESS).format(outputs=_named(outputs)))
    if outputs := _changed_by_seeds(subject, first):
        raise Unsupported(RANDOMNESS.format(outputs=_named(outputs)))
    if (found := subject.successive()) and (outputs := _unlike(found[1], found[0], tolerance)):
        raise Unsupported(COUNTING.format(outputs=_named(outputs)))


def refuse_other_work(subject: Subject, calls: int) -> None:
    """Raise Unsupported if a call now does other work than each of the first `calls`, because of the model's state.

    Samples contain such calls, and only the first ones are compared.
    """
    drifts = False
    with contextlib.suppress(Exception):  # of what cannot be listed
        drifts = subject.drifts(calls)
    if drifts:
        raise Unsupported(WORK)


def _changed_by_seeds(subject: Subject, first: Values) -> list[str]:
    """Return the outputs that change with the seed, however little.

    Among large values, such as those of a mask, a tolerance hides draws. Draws that seldom change anything need several
    seeds. Outputs that calls with one seed do not repeat to the bit show nothing.
    """
    seed_python(0)
    before = _python_draws()
    repeats = not _unequal(subject.repeated(0), first)
    seeds = SEEDS if repeats and (_python_draws() != before or _draws(subject)) else 2
    started = time.monotonic()
    for seed in range(1, seeds if repeats else 0):
        found = subject.repeated(seed)
        if (outputs := _unequal(found, first)) and not _unequal(subject.repeated(seed), found):
            return outputs
        if time.monotonic() - started > MOST_SECONDS:
            break
    return []


def _python_draws() -> list[str]:
    """Return the states of Python's and NumPy's random numbers as texts."""
    return [repr(random.getstate()), repr(np.random.get_state(legacy=False))]


def _unequal(values: Values, others: Values) -> list[str]:
    """Return the outputs that differ in any bit but those of NaN."""
    pairs = ((name, array, others.arrays.get(name)) for name, array in values.arrays.items())
    return [name for name, one, other in pairs if other is None or not _same(one, other)]


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc" and other.dtype.kind in "fc")


def reference(subject: Subject, eager: list[Values] | None, calls: int, tolerance: float) -> tuple[str, list[Values]]:
    """Return the name and the outputs of the first precision whose outputs can be a reference of eager mode's."""
    failed = ""
    for dtype in subject.precisions:
        if eager is None and dtype == "float64" and len(subject.precisions) > 1 and _draws(subject):
            failed = " (draws other numbers in float64)"
            continue
        try:
            outputs = subject.precise(dtype, calls)
            reason = "" if eager is None else _no_reference(subject, dtype, outputs, eager, tolerance)
        except Exception as error:  # its own code may insist on a dtype, or not be copied
            reason = f"{dtype} failed: {in_a_line(error)}"
        if not reason:
            return f"its own eager mode in {dtype}{failed}", outputs
        failed = failed or f" ({reason})"
    if eager is None:
        raise Unsupported(f"a copy of the model fails in every precision, so nothing can be compared{failed}.")
    return f"its own eager mode{failed}", eager


def _no_reference(subject: Subject, dtype: str, outputs: list[Values], eager: list[Values], tolerance: float) -> str:
    """Return why outputs of a copy in `dtype` are no reference of eager mode's; empty where only rounding differs.

    A model that draws random numbers from a fixed seed may draw others in a precision. A copy may share state with the
    model, or lack some of it: then it has other outputs in the cell's own dtype, too.
    """

    def far(others: list[Values]) -> bool:
        return bool(_beyond(eager, others, lambda error: not error.within(tolerance)))

    if list(map(_form, outputs)) != list(map(_form, eager)):
        return f"{dtype} gives outputs of other sizes"
    if not far(outputs):
        return ""
    if _draws(subject):
        return f"draws other numbers in {dtype}"
    if dtype == "float64" and _too_far(eager, outputs, tolerance):
        narrow = subject.with_own_integers(len(eager))
        if narrow is not None and not _too_far(eager, narrow, tolerance):
            return f"whole numbers are wider in {dtype}"
    copied = subject.in_a_copy(len(eager))
    return "a copy gives other outputs" if copied is not None and far(copied) else ""


def _remembers(subject: Subject) -> bool:
    try:
        return subject.remembers()
    except Exception:  # what cannot be listed
        return False


def _draws(subject: Subject) -> bool:
    try:
        return subject.draws()
    except Exception:  # what cannot be listed
        return False


def _refuse_what_is_far(eager: list[Values], reference: list[Values], tolerance: float, name: str) -> None:
    lost = {key: share for key, share in _lost(eager, reference).items() if share > MOST_UNEQUAL}
    if lost:
        raise Unsupported(
            f"{percent(max(lost.values()))} of eager mode's values in {_named(lost)} are NaN or infinite where {name} "
            "has finite ones, so no mode can be compared with it: measure in a wider dtype, or choose other inputs."
        )
    if far := _too_far(eager, reference, tolerance):
        worst = max(error.relative for error in far.values())
        raise Unsupported(
            f"eager mode is off {name} by a relative {worst:.2g} in {_named(far)}, so no mode can be compared with "
            f"it: measure in a wider dtype, drop outputs that are only rounding errors, or set a tolerance in settings."
        )


def _too_far(eager: list[Values], reference: list[Values], tolerance: float) -> dict[str, Difference]:
    """Return the differences for which eager mode is refused, by output."""
    return _beyond(eager, reference, lambda error: error.needed > max(MOST_EAGER_ERROR, tolerance))


def _lost(eager: list[Values], reference: list[Values]) -> dict[str, float]:
    """Return the largest share of values that are finite in the reference alone, by floating-point output."""
    shares: dict[str, float] = {}
    for ours, theirs in zip(eager, reference, strict=False):
        for name, expected in theirs.arrays.items():
            own = ours.arrays.get(name, expected)
            if own.size and own.shape == expected.shape and {own.dtype.kind, expected.dtype.kind} <= {"f", "c"}:
                share = float(np.mean(np.isfinite(expected) & ~np.isfinite(own)))
                shares[name] = max(shares.get(name, 0.0), share)
    return shares


def _beyond(
    calls: Sequence[Values], reference: Sequence[Values], wrong: Callable[[Difference], bool]
) -> dict[str, Difference]:
    """Return the differences from the reference that are `wrong`, by output."""
    return {name: error for name, error in differences(_joined(calls), _joined(reference)).items() if wrong(error)}


def _unlike(one: Values, other: Values, tolerance: float) -> list[str]:
    """Return the outputs that one of two calls lacks; else those that differ."""
    others = sorted(one.arrays.keys() ^ other.arrays.keys())
    return others or list(_beyond([one], [other], lambda error: not error.within(tolerance)))


def _named(outputs: Iterable[str]) -> str:
    return listed(list(outputs), MOST_NAMES)


def cost_of(subject: Subject) -> tuple[dict[str, Any], str]:
    """Return the columns of a call's cost, or none and the reason: no cell fails for its cost."""
    try:
        counted = subject.cost()
    except Exception as error:
        return {}, f"not counted: {error if isinstance(error, Uncounted) else in_a_line(error)}"
    return ({}, "") if counted is None else (asdict(counted), "")


def saved(outputs: Sequence[Values], path: Path) -> str:
    """Write outputs of calls into a file, by `<call>.<name>`; return its path."""
    return writing.save(path, flat(outputs))


def flat(outputs: Sequence[Values]) -> dict[str, np.ndarray]:
    """Return the values of calls that are compared, by `<call>.<name>`; 1-D."""
    return {name: sampled(array, None) for name, array in _joined(outputs).items()}


def shapes_of(outputs: Sequence[Values]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of outputs, by their key in the files, where they are 1-D."""
    return {
        f"{index}.{name}": found.shapes.get(name, array.shape)
        for index, found in enumerate(outputs)
        for name, array in found.arrays.items()
    }


def _joined(outputs: Sequence[Values]) -> dict[str, np.ndarray]:
    return {f"{index}.{name}": array for index, found in enumerate(outputs) for name, array in found.arrays.items()}


def _form(found: Values) -> Mapping[str, tuple]:
    return {name: (found.shapes.get(name), array.dtype.kind) for name, array in found.arrays.items()}


def priced(step: Step, synchronize: Callable[[Any], None], clocks: Clocks) -> tuple[float, float]:
    """Return a call's synchronized seconds within its graphs and in total: medians over calls."""
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
