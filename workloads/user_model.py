"""User models as workloads: a file with `model()` and `inputs(…)`, or a library's model by its name.

Nothing here runs the user's code. A workload's weights are a seed, and its inputs are the arguments of the user's
`inputs` with a seed: both become tensors in the worker. There is no reference: the worker runs the model in eager mode
with more precision. It counts FLOPs and bytes, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from measurement.places import SUITE
from workloads import signature, training
from workloads.signature import LIBRARIES, Signature, Unreadable
from workloads.spec import Arrays, Cost, Parameter, Parameters, Weights, Workload

FAMILY = IMPLEMENTATION = "own"
# Root mean square of rounding, relative to the outputs': a limit that deep models of either kind stay within.
TOLERANCE = {"fp32": 1e-4, "tf32": 2e-2, "bf16": 6e-2, "fp16": 2e-2}


@dataclass(frozen=True)
class UserParameter(Parameter):
    """A parameter of the user's `inputs`: a whole number from 1 up, or a word if the default is one."""

    def problem(self, value: int | str) -> str | None:
        if isinstance(self.default, str):
            return None if isinstance(value, str) and re.fullmatch(r"[\w.+-]+", value) else f"{self.name} is a word."
        return super().problem(value)


@dataclass(frozen=True)
class UserModel(Workload):
    """A user's model. `source` is the file's path, or `library:name`; `frameworks` its possible ones."""

    source: str = ""
    frameworks: tuple[str, ...] = ()
    digest: str = ""  # of the file; empty for a library's model
    given: dict[str, float] = field(default_factory=dict, hash=False)  # the user's own tolerance by dtype
    has_reference: bool = field(default=False)
    parity_calls: int = Workload.input_sets  # lengths, flags and branches of a later set may have graphs of their own

    @property
    def is_file(self) -> bool:
        return is_file(self.source)

    def trained(self) -> UserModel:
        """Return its training pass: a call is one optimizer iteration on the file's `loss` of the model's output."""
        kept = {each.name: getattr(self, each.name) for each in fields(self)}
        own = {"tolerance": training.TOLERANCE | self.given, "restart": training.STEPS_COMPARED}
        return TrainedUserModel(**kept | own)

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        return {"seed": ()}

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        return {"seed": np.array(seed)}

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        """Return the arguments of the user's `inputs`, and a seed for their random values."""
        return {**{name: np.array(value) for name, value in parameters.items()}, "seed": np.array(seed)}

    def items_per_call(self, parameters: Parameters) -> int | None:  # type: ignore[override]
        """Return the batch size; None where `inputs` does not take it."""
        return super().items_per_call(parameters) if "batch_size" in parameters else None

    def tokens_per_call(self, parameters: Parameters) -> int | None:
        return super().tokens_per_call(parameters) if "batch_size" in parameters else None

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        raise NotImplementedError(f"{self.name} is compared with its own eager mode")

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        """Return no cost: the worker counts."""
        return Cost((), 0)


class TrainedUserModel(UserModel):
    """A user's model under training."""

    def sets(self, parameters: Parameters, seed: int) -> list[Arrays]:
        return training.first_twice(super().sets(parameters, seed))

    def comparable(
        self, parameters: Parameters, outputs: Arrays, reference: Arrays, dtype: str
    ) -> tuple[Arrays, Arrays]:
        return training.with_fall(outputs, reference), training.with_fall(reference, reference)

    def tolerance_of(self, output: str, dtype: str) -> float:
        if output != training.FALL:
            return self.tolerance[dtype]
        of_loss = self.given.get(dtype, 0.0)  # the user's own, as an error of the fall
        return max(training.FALL_TOLERANCE[dtype], of_loss / training.ADDED_TO_FALL)


def is_user_model(word: str) -> bool:
    """Return whether a workload's name means a user model."""
    return is_file(word) or word.partition(":")[0] in LIBRARIES


def is_file(word: str) -> bool:
    return word.endswith(".py")


def absolute(source: str) -> str:
    """Return the source, with files and folders of configurations as absolute paths."""
    if is_file(source):
        return os.path.abspath(os.path.expanduser(source))
    library, _, name = source.partition(":")
    if library == "transformers" and Path(name).expanduser().is_dir():
        return f"{library}:{os.path.abspath(os.path.expanduser(name))}"
    return source


def portable(source: str) -> str:
    """Return an absolute source as plans name it: a path inside the suite relative to the suite."""
    library, colon, path = _split(source)
    return f"{library}{colon}{Path(path).relative_to(SUITE)}" if Path(path).is_relative_to(SUITE) else source


def in_suite(source: str) -> str:
    """Return the absolute source of a portable one."""
    library, colon, path = _split(source)
    inside = not Path(path).is_absolute() and (is_file(source) or (SUITE / path / "config.json").is_file())
    return f"{library}{colon}{SUITE / path}" if inside else source


def _split(source: str) -> tuple[str, str, str]:
    return ("", "", source) if is_file(source) else source.partition(":")


def named(sources: Iterable[str]) -> dict[str, str]:
    """Return absolute sources by cell name: the file's own name, without a slash.

    A folder's name precedes it if several files share it. Raises Unreadable if these are equal, too.
    """
    whole = list(dict.fromkeys(map(absolute, sources)))
    short = [_parts(source) for source in whole]
    names: dict[str, str] = {}
    for source, (library, parts) in zip(whole, short, strict=True):
        alike = sum((other, others[-1]) == (library, parts[-1]) for other, others in short) > 1
        name = library + ".".join(parts[-2:] if alike else parts[-1:])
        if not re.fullmatch(r"[\w.:+@-]+", name):
            raise Unreadable(f"{name!r} cannot be the name of a cell: use letters, digits, '.', '_' and '-' in it.")
        if name in names:
            raise Unreadable(f"{names[name]} and {source} would both be named {name}: rename one.")
        names[name] = source
    return names


def _parts(source: str) -> tuple[str, list[str]]:
    """Return the library with its colon, empty for a file, and the parts of the path or name."""
    if is_file(source):
        return "", [part for part in source.split("/") if part]
    library, _, name = source.partition(":")
    return f"{library}:", [part for part in name.split("/") if part] or [""]


def workload(name: str, source: str) -> UserModel:
    """Return the workload of that name. Raises Unreadable with a sentence."""
    if is_file(source):
        described = signature.read(source)
        if described.missing:
            functions = " and no ".join(f"{function}()" for function in described.missing)
            raise Unreadable(f"{name} has no {functions}: `make new NAME=my_model` writes one.")
    else:
        framework, parameters = LIBRARIES[source.partition(":")[0]]
        described = Signature(parameters, (framework,))
    settings = described.settings
    allowed: float | dict[str, float] = settings.get("tolerance", {})
    given = allowed if isinstance(allowed, dict) else dict.fromkeys(TOLERANCE, allowed)
    return UserModel(
        name=name,
        family=FAMILY,
        implementations=(IMPLEMENTATION,),
        parameters=tuple(
            UserParameter(
                parameter, signature.flag_of(parameter), default, f"{parameter} of {name}'s inputs",
                implementations=(IMPLEMENTATION,),
            )
            for parameter, default in described.parameters
        ),
        tolerance=TOLERANCE | given,
        passes=("inference", "training") if described.trains else ("inference",),
        source=source,
        frameworks=(settings["framework"],) if "framework" in settings else described.frameworks,
        digest=described.digest,
        given=given,
    )  # fmt: skip
