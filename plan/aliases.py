"""Aliases of option values, and ranges of whole numbers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

import frameworks
from measurement.refusals import UsageError
from plan.options import variable

MOST_VALUES = 256  # of one range: more is a typing error
# By flag: other names of a value, and the suite's name. torch users call the graph mode `compile`.
ALIASES = {
    "framework": {alias: name for name in frameworks.NAMES for alias in frameworks.describe(name).aliases},
    "workload": {"bert": "bert-base", "gpt2": "gpt2-124m"},
    "impl": {"hf": "library", "huggingface": "library"},
    "mode": {"compile": "graph", "compiled": "graph"},
    "pass": {"train": "training", "infer": "inference"},
    "dtype": {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "half": "fp16"},
    "device": {"cuda": "gpu"},
}
_RANGE = re.compile(r"(\d+)\.\.(\d+)(?:\.\.(\d+))?")
_ALMOST_A_RANGE = re.compile(r"(\d+)(?:-|:|\.\.\.)(\d+)(?:[:.]+\d+)?")


def canonical(flag: str, word: str) -> str:
    """Return the suite's name of a value: tensorflow for `tf`, gpu:1 for `cuda:1`; return any other word unchanged."""
    known = ALIASES.get(flag, {})
    kind, colon, index = word.partition(":")
    return known.get(kind.lower(), kind) + colon + index


def choose(word: str, valid: Iterable[str], what: str, listed: Iterable[str] | None = None) -> str:
    """Return `word` if it is one of `valid`; raise UsageError with the nearest of `listed`, or with all of them."""
    valid = list(valid)
    if word in valid:
        return word
    listed = list(dict.fromkeys(valid if listed is None else listed))
    near = difflib.get_close_matches(word, listed, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(listed)}."
    raise UsageError(f"There is no {what} {word!r}; {hint}")


def whole_number(word: str) -> int | str:
    """Return `word` as an int if it is one, else unchanged: the parameter's check refuses it."""
    try:
        return int(word)
    except ValueError:
        return word


def numbers(flag: str, word: str) -> Sequence[int | str]:
    """Return the values of a range: `32..512` doubles from 32, `32..512..32` goes up in steps of 32.

    The upper end is always included. Any other word is returned as a single value. Raises UsageError.
    """
    name = variable(flag)
    if almost := _ALMOST_A_RANGE.fullmatch(word):
        low, high = map(int, almost.groups())
        if 0 < low < high:
            raise UsageError(
                f"{name}={word} is not a list: write {name}={_listed(_range(low, high))}; {name}={low}..{high} means "
                f"the same, and {name}={low}..{high}..1 means every whole number in between."
            )
    match = _RANGE.fullmatch(word)
    if not match:
        return [whole_number(word)]
    low, high = int(match[1]), int(match[2])
    step = int(match[3]) if match[3] else None
    if low < 1 or high <= low or step == 0:
        raise UsageError(f"{name}={word} is an empty range: ranges increase from 1 or more, such as {name}=32..512.")
    if step and (high - low) // step >= MOST_VALUES:
        raise UsageError(f"{name}={word} is {(high - low) // step + 1:,} values; at most {MOST_VALUES} are allowed.")
    return _range(low, high, step)


def _range(low: int, high: int, step: int | None = None) -> list[int]:
    values = [low]
    while (value := values[-1] + step if step else 2 * values[-1]) < high:
        values.append(value)
    return [*values, high]


def _listed(values: list[int]) -> str:
    return ",".join(map(str, values))
