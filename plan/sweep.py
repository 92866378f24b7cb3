"""What the user asked for, checked: from flags or a TOML file to the values of every axis."""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import frameworks
import workloads
from frameworks import policies
from measurement.checked import LARGEST_INTEGER
from measurement.machine import gpus
from measurement.profiles import PROFILES
from measurement.refusals import UsageError, read_text
from plan import hosts, nearest, user_models
from plan.hosts import ALL_GPUS
from plan.words import canonical, choose, numbers, whole_number

DTYPES = ("fp32", "tf32", "bf16", "fp16")
IMPLEMENTATIONS = ("library", "plain")
PASSES = workloads.PASSES
SHAPES = ("static", "dynamic")
PRESETS = Path(__file__).parent / "presets"


@dataclass(frozen=True)
class Axis:
    """One axis of the sweep: its flag, and how one of its words becomes a value."""

    flag: str
    help: str
    default: str
    parse: Callable[[Any], object]  # of a word, or of a number of threads


def _threads(value: int | str) -> int:
    if not isinstance(value, int) or value < 1:
        raise UsageError(f"THREADS is a whole number from 1 up, not {value!r}.")
    return value


def _device(word: str) -> str:
    if word == ALL_GPUS:
        return "gpu:0"
    kind, _, index = word.partition(":")
    choose(kind, ("cpu", "gpu"), "device")
    if kind == "cpu" and not index:
        return "cpu"
    if kind == "cpu" or (index and not index.isdigit()):
        raise UsageError(f"DEVICE is cpu, gpu, gpu:<index> or {ALL_GPUS}, not {word!r}.")
    count = len(gpus())
    if index and count and int(index) >= count:
        raise UsageError(f"There is no {word}: this machine has {count} GPU{'s' if count > 1 else ''}, from gpu:0.")
    return f"gpu:{index or 0}"


AXES = {
    "framework": Axis(
        "framework", "frameworks, or all",
        ",".join(frameworks.swept()),
        lambda word: choose(word, frameworks.NAMES, "framework"),
    ),
    "workload": Axis(
        "workload", "what is computed", "bert-base,mlp", lambda word: choose(word, workloads.names(), "workload")
    ),
    "implementation": Axis(
        "impl", "library, plain; by default library of the BERTs, else plain", "",
        lambda word: choose(word, IMPLEMENTATIONS, "implementation"),
    ),
    "mode": Axis(
        "mode", "graph (each framework's default), all, ladder (its rungs), or a mode's name; eager comes with each",
        "eager,graph",
        lambda word: word,  # checked when the frameworks are known
    ),
    "pass": Axis("pass", ", ".join(PASSES), "inference", lambda word: choose(word, PASSES, "pass")),
    "device": Axis("device", f"cpu, gpu, gpu:<index>, or {ALL_GPUS}: side by side", "cpu", _device),
    "dtype": Axis("dtype", ", ".join(DTYPES), "fp32", lambda word: choose(word, DTYPES, "dtype")),
    "shapes": Axis(
        "shapes", "static, dynamic: whether graphs are compiled for one shape or asked to serve all", "static",
        lambda word: choose(word, SHAPES, "setting of shapes"),
    ),
    "threads": Axis("threads", "intra-op CPU threads; by default all CPUs this process may use", "", _threads),
}  # fmt: skip


def parameter_flags() -> dict[str, str]:
    """Flag -> help of every workload parameter, in the order in which workloads declare them."""
    flags: dict[str, str] = {}
    for name, pass_name in itertools.product(workloads.names(), PASSES):
        for parameter in workloads.get(name, pass_name).parameters:
            flags.setdefault(parameter.flag, parameter.help)
    return flags


@dataclass(frozen=True)
class Sweep:
    """The checked values of every axis. `parameters` maps a parameter's flag to the values asked for."""

    axes: dict[str, list[Any]]
    parameters: dict[str, list[int | str]]
    profile: str
    budget: float | None  # seconds per cell, instead of the profile's
    weights: str | None
    seed: int
    compile_cache: str
    filter: str | None
    isolate: bool
    force: bool
    unseen_seq: int | str | None = None  # a sequence length that every mode meets for the first time once it is warm
    places: hosts.Hosts = hosts.HERE  # where it is measured
    policies: dict[str, str] = field(default_factory=dict)  # choices other than the suite's own
    user_models: dict[str, str] = field(default_factory=dict)  # users' files or libraries' names, by workload


OPTIONS: dict[str, Any] = {"profile": "quick", "weights": None, "seed": 0, "compile-cache": "cold", "filter": None}
OPTIONS |= {"isolate": False, "force": False, "budget": None, "unseen-seq": None, "policy": None}
OPTIONS |= {"launcher": hosts.LOCAL}


def option_names() -> list[str]:
    """Return the flags that say what is measured."""
    return [*(axis.flag for axis in AXES.values()), *parameter_flags(), *OPTIONS]


MOST_OF_A_SWEEP = 1 << 20  # bytes of a sweep file


def from_file(path: str) -> dict[str, Any]:
    """The flags a TOML sweep file sets; a list or a single value per flag. Raises UsageError."""
    text = read_text(path, "The sweep file", MOST_OF_A_SWEEP)
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError as well
        raise UsageError(f"The sweep file {path} is not TOML: {error}.") from None
    user_models.take_in(words(content.get("workload", ())))
    known = {*option_names()} - {"launcher"}
    content.pop("about", None)  # what the file says of itself; `experiments` reads it
    for key in content:
        choose(key, sorted(known), f"setting in {path} called")
    return content


def presets() -> dict[str, Path]:
    """The sweep files that come with the suite, by the name that PRESET takes."""
    return {path.stem: path for path in sorted(PRESETS.glob("*.toml"))}


def question_of(preset: Path) -> str:
    """What a preset answers, in its own words."""
    return tomllib.loads(preset.read_text())["about"]["question"]


def given_in_files(sweep_file: str | None, preset: str | None) -> dict[str, Any]:
    """The flags that a sweep file or a preset sets. Raises UsageError."""
    if sweep_file and preset:
        raise UsageError("PRESET names a sweep file of the suite's own: give it or SWEEP, not both.")
    if preset:
        sweep_file = str(presets()[choose(preset, presets(), "preset")])
    return from_file(sweep_file) if sweep_file else {}


def over_file(of_file: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """Flags over what a sweep file sets. Of the file's parameters those go that only workloads or passes have which the
    flags replace: without the ResNets of a file, its LAYOUT is not asked of an LSTM.
    """
    merged = of_file | flags
    for name in parameter_flags().keys() & of_file.keys() - flags.keys():
        if _is_taken(name, of_file) and not _is_taken(name, merged):
            del merged[name]
    return merged


def _is_taken(flag: str, given: dict[str, Any]) -> bool:
    """Return whether a workload that is given takes a parameter; one that is not known yet may."""
    names, passes = (words(given.get(AXES[axis].flag) or AXES[axis].default) for axis in ("workload", "pass"))
    pairs = list(itertools.product(names, passes))
    if any(name not in workloads.names() or kind not in PASSES for name, kind in pairs):
        return True
    return any(flag in workloads.flags_of(name, kind) for name, kind in pairs)


def words(value: Any) -> list[str]:
    """The words of a list, or of a text with commas."""
    if isinstance(value, list):
        return [str(item) for item in value]
    return [word.strip() for word in str(value).split(",") if word.strip()]


def _axis_values(axis: Axis, given: Any) -> list[Any]:
    values: list[Any] = [canonical(axis.flag, word) for word in words(given if given is not None else axis.default)]
    if axis.flag == "framework" and values == ["all"]:
        values = words(axis.default)
    if axis.flag == "threads":
        values = [value for word in values for value in numbers("threads", word)]
    return list(dict.fromkeys(axis.parse(word) for word in values))


def _budget(given: str | float | None) -> float | None:
    if given is None:
        return None
    try:
        value = float(given)
    except (TypeError, ValueError):
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(f"BUDGET is a number of seconds above 0, not {given!r}.")
    return value


MOST_CELLS = 1_000_000
MOST_SECONDS = 1e6  # twelve days: the kernel waits no longer than 24 at once


def check_timeout(value: float) -> None:
    """Raise UsageError for a TIMEOUT that is no time to wait."""
    if not 0 < value <= MOST_SECONDS:  # nor NaN
        raise UsageError(f"TIMEOUT is a number of seconds above 0 and up to {MOST_SECONDS:,.0f}, not {value:g}.")


def _policies(given: Any) -> dict[str, str]:
    try:
        return policies.parse(",".join(words(given)) if given else None)
    except ValueError as error:
        raise UsageError(str(error)) from None


def check_size(axes: Mapping[str, list[Any]], parameters: Mapping[str, list[int | str]]) -> None:
    """Raise UsageError where the lists that are given have too many combinations to plan."""
    count = math.prod(len(values) for values in (*axes.values(), *parameters.values()) if values)
    if count > MOST_CELLS:
        raise UsageError(f"The lists have {count:,} combinations; at most {MOST_CELLS:,} are planned: shorten a list.")


def resolve(given: dict[str, Any], nodes: int | None = None) -> Sweep:
    """Check what was given (flag -> word, words or None) and fill in the defaults. Raises UsageError.

    `nodes` are those of a job that is still to be submitted.
    """
    given, named = user_models.with_names(given, words(given.get("workload") or ()))
    axes = {name: _axis_values(axis, given.get(axis.flag)) for name, axis in AXES.items()}
    user_models.check_frameworks(named, axes["framework"])
    for word in axes["mode"]:
        nearest.check_mode(word, axes["framework"])
    launcher = choose(str(given.get("launcher") or hosts.LOCAL), hosts.LAUNCHERS, "launcher")
    places = hosts.of(launcher, [canonical("device", word) for word in words(given.get("device") or "")], nodes)
    axes["threads"] = places.threads(axes["threads"])
    parameters = {}
    for flag in parameter_flags():
        if given.get(flag) is not None:
            parameters[flag] = [value for word in words(given[flag]) for value in numbers(flag, word)]
    check_size(axes, parameters)
    for name in OPTIONS.keys() - {"policy"}:
        if isinstance(given.get(name), list | dict):
            raise UsageError(f"{name.upper().replace('-', '_')} is one value, not {given[name]!r}.")
    options = {name: given.get(name) if given.get(name) is not None else value for name, value in OPTIONS.items()}
    seed = whole_number(str(options["seed"]))
    if not isinstance(seed, int) or not 0 <= seed < LARGEST_INTEGER:
        raise UsageError(f"SEED is a whole number from 0 to 2^63 - 1, not {str(options['seed'])[:40]!r}.")
    return Sweep(
        axes=axes,
        parameters=parameters,
        profile=choose(str(options["profile"]), PROFILES, "profile"),
        budget=_budget(options["budget"]),
        weights=options["weights"],
        seed=seed,
        compile_cache=choose(str(options["compile-cache"]), ("cold", "warm"), "compile cache state"),
        filter=options["filter"],
        isolate=bool(options["isolate"]),
        force=bool(options["force"]),
        unseen_seq=None if options["unseen-seq"] is None else whole_number(str(options["unseen-seq"])),
        places=places,
        policies=_policies(options["policy"]),
        user_models=named,
    )
