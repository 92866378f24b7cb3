"""Options of commands. Each is declared once: `--some-flag value` and `SOME_FLAG=value` are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from measurement.refusals import UsageError

_KINDS = {int: "a whole number", float: "a number"}


def variable(flag: str) -> str:
    """Return the name of a flag's variable: SOME_FLAG."""
    return flag.upper().replace("-", "_")


@dataclass(frozen=True)
class Option:
    """An option of a command; `default` is its value if the command line omits it.

    A `switch` has no value: NAME=1 is on, NAME=0 off. `alone` is the value of a flag given without one. With `nargs`
    the values are positional: "?" allows one, "*" several. `cluster` marks options of commands that also measure on
    other machines. A `parameter` belongs to a workload; `model` names the user model whose `inputs` declare it.
    """

    flag: str
    help: str
    metavar: str | None = None
    default: Any = None
    parse: Callable[[Any], Any] = str
    switch: bool = False
    alone: str | None = None
    nargs: str | None = None
    cluster: bool = False
    parameter: bool = False
    model: str | None = None

    @property
    def name(self) -> str:
        """Return the name of the option's variable."""
        return variable(self.flag)

    @property
    def attribute(self) -> str:
        """Return the name of the option's attribute in a command's parsed arguments."""
        return self.flag.replace("-", "_")

    def value(self, given: Any) -> Any:
        """Return the parsed value of a given word. Raises UsageError."""
        try:
            return self.parse(given)
        except ValueError:
            raise UsageError(f"{self.name} must be {_KINDS[self.parse]}, not {given!r}.") from None  # type: ignore[index]


def option(default: Any, help: str, **declared: Any) -> Any:
    """Return a dataclass field that declares an option; its flag defaults to the field's name."""
    return field(default=default, metadata={"option": Option(declared.pop("flag", ""), help, **declared)})


def declared(owner: type) -> dict[str, Option]:
    """Return the options that a dataclass declares, by field."""
    found = {one.name: (one, one.metadata["option"]) for one in fields(owner) if "option" in one.metadata}
    return {
        name: replace(option, flag=option.flag or name.replace("_", "-"), default=one.default)
        for name, (one, option) in found.items()
    }


def chosen(options: Iterable[Option], flags: str, **changes: Any) -> list[Option]:
    """Return the options with these flags, in the order of `flags`, with `changes` applied to each."""
    by_flag = {option.flag: option for option in options}
    return [replace(by_flag[flag], **changes) for flag in flags.split()]


def without(options: Iterable[Option], flags: str) -> list[Option]:
    """Return all options except those with these flags."""
    return [option for option in options if option.flag not in flags.split()]


def check_unique(options: Iterable[Option]) -> None:
    """Raise UsageError if a user model's parameter has the name of another option."""
    options = list(options)
    taken = {option.flag for option in options if option.model is None}
    for option in options:
        if option.model is not None and option.flag in taken:
            name = option.attribute
            raise UsageError(
                f"{option.model}: inputs has a parameter {name}, a name that the suite reserves: rename it."
            )
