"""A sweep: the values of every axis, from options or a TOML file, checked."""

from __future__ import annotations

import difflib
import itertools
import math
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import frameworks
import workloads
from frameworks import policies
from measurement.checked import LARGEST_INTEGER
from measurement.machine import gpus
from measurement.profiles import PROFILES
from measurement.refusals import UsageError, read_text
from measurement.text import times
from plan import hosts, options, suggestions, user_models
from plan.aliases import canonical, choose, numbers, whole_number
from plan.hosts import ALL_GPUS
from plan.options import Option, option

DTYPES = ("fp32", "tf32", "bf16", "fp16")
IMPLEMENTATIONS = ("library", "plain")
PASSES = workloads.PASSES
SHAPES = ("static", "dynamic")
PRESETS = Path(__file__).parent / "presets"


def _threads(value: int | str) -> int:
    if not isinstance(value, int) or value < 1:
        raise UsageError(f"THREADS must be a whole number of at least 1, not {value!r}.")
    return value


def _device(word: str) -> str:
    if word == ALL_GPUS:
        return "gpu:0"
    kind, _, index = word.partition(":")
    choose(kind, ("cpu", "gpu"), "device")
    if kind == "cpu" and not index:
        return "cpu"
    if kind == "cpu" or (index and not index.isdigit()):
        raise UsageError(f"DEVICE must be cpu, gpu, gpu:<index> or {ALL_GPUS}, not {word!r}.")
    count = len(gpus())
    if index and count and int(index) >= count:
        raise UsageError(f"There is no {word}: this machine has {times(count, 'GPU')}, from gpu:0.")
    return f"gpu:{index or 0}"


# By axis name; `parse` turns one of its words into a value.
AXES = {
    "framework": Option(
        "framework", "frameworks, or all", "A,B", ",".join(frameworks.swept()),
        lambda word: choose(word, frameworks.NAMES, "framework"),
    ),
    "workload": Option(
        "workload", "what is computed", "A,B", "bert-base,mlp", lambda word: choose(word, workloads.names(), "workload")
    ),
    "implementation": Option(
        "impl", "library (default for BERT) or plain (default for all others)", "A,B", "",
        lambda word: choose(word, IMPLEMENTATIONS, "implementation"),
    ),
    "mode": Option(  # checked when the frameworks are known
        "mode", "recommended, graph (each framework's default), all, ladder (its rungs), or a mode's name; eager is "
        "always added", "A,B", "eager,recommended",
    ),
    "pass": Option("pass", ", ".join(PASSES), "A,B", "inference", lambda word: choose(word, PASSES, "pass")),
    "device": Option("device", f"cpu, gpu, gpu:<index>, or {ALL_GPUS} (a process on each)", "A,B", "cpu", _device),
    "dtype": Option("dtype", ", ".join(DTYPES), "A,B", "fp32", lambda word: choose(word, DTYPES, "dtype")),
    "shapes": Option(
        "shapes", "static (a graph for each shape) or dynamic (one graph for all)", "A,B", "static",
        lambda word: choose(word, SHAPES, "setting of shapes"),
    ),
    "threads": Option(
        "threads", "intra-op CPU threads (default: all CPUs that this process may use)", "A,B", "", _threads,
    ),
}  # fmt: skip


def parameters() -> list[Option]:
    """Return an option for every parameter of a workload, in the order in which workloads declare them."""
    found: dict[str, Option] = {}
    for name, pass_name in itertools.product(workloads.names(), PASSES):
        model = None if workloads.source_of(name) is None else name
        for parameter in workloads.get(name, pass_name).parameters:
            found.setdefault(parameter.flag, Option(parameter.flag, parameter.help, "A,B", parameter=True, model=model))
    return list(found.values())


def no_parameter(name: str, given: Mapping[str, Any]) -> str:
    """Return a sentence that reports an unknown parameter, with the parameters of the given workloads."""
    words, passes = (split_words(given.get(AXES[axis].flag) or AXES[axis].default) for axis in ("workload", "pass"))
    measured = [canonical("workload", word) for word in user_models.by_name(words, user_models.register(words))]
    pairs = itertools.product(measured, (canonical("pass", word) for word in passes))
    known = (pair for pair in pairs if pair[0] in workloads.names() and pair[1] in PASSES)
    own = dict.fromkeys(parameter.flag for pair in known for parameter in workloads.get(*pair).parameters)
    near = difflib.get_close_matches(name, [*own, *(one.flag for one in parameters())], 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"There is no parameter {name}; {hint}{takes(measured, own)}."


def takes(names: Sequence[str], own: Iterable[str]) -> str:
    """Return a clause that lists the parameters of workloads."""
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{listed} take{'s' if len(names) == 1 else ''} {', '.join(own) or 'none'}"


def _one_of(valid: Iterable[str], what: str) -> Callable[[Any], str]:
    return lambda given: choose(str(given), valid, what)


def _budget(given: str | float) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError):
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(f"BUDGET must be a number of seconds above 0, not {given!r}.")
    return value


def _seed(given: str | int) -> int:
    seed = whole_number(str(given))
    if not isinstance(seed, int) or not 0 <= seed < LARGEST_INTEGER:
        raise UsageError(f"SEED must be a whole number from 0 to 2^63 - 1, not {str(given)[:40]!r}.")
    return seed


def _policies(given: Any) -> dict[str, str]:
    try:
        return policies.parse(",".join(split_words(given)) if given else None)
    except ValueError as error:
        raise UsageError(str(error)) from None


@dataclass(frozen=True)
class Sweep:
    """The checked values of every axis. `parameters` maps a parameter's flag to the requested values.

    The remaining fields are the other measurement options.
    """

    axes: dict[str, list[Any]]
    parameters: dict[str, list[int | str]]
    policies: dict[str, str] = option(  # choices that differ from the suite's
        "",
        "users (framework defaults), or choices of frameworks/policies.py",
        metavar="NAME=CHOICE",
        parse=_policies,
        flag="policy",
    )
    filter: str | None = option(None, "only cells whose name contains TEXT or matches it as a wildcard", metavar="TEXT")
    force: bool = option(False, "measure even if the machine is busy or the smoke test fails", switch=True, parse=bool)
    weights: str | None = option(None, "a safetensors checkpoint instead of seeded weights", metavar="FOLDER|HUB-NAME")
    profile: str = option("quick", "quick (default), standard or rigorous", parse=_one_of(PROFILES, "profile"))
    budget: float | None = option(
        None, "seconds of sampling per cell and process, instead of the profile's", metavar="SECONDS", parse=_budget
    )
    seed: int = option(0, "seed of weights, inputs and the order of measuring (default: 0)", parse=_seed)
    compile_cache: str = option(
        "cold",
        "cold (default; empty for each run) or warm (all processes load)",
        parse=_one_of(("cold", "warm"), "compile cache state"),
    )
    unseen_seq: int | str | None = option(
        None,
        "after warm-up, also time the first call at sequence length N",
        metavar="N",
        parse=lambda given: whole_number(str(given)),
    )
    isolate: bool = option(False, "measure every shape in separate processes", switch=True, parse=bool)
    energy: bool = option(
        False, "also measure energy per call, in windows of 10 s of each mode", switch=True, parse=bool
    )
    places: hosts.Hosts = hosts.HERE  # where it is measured
    user_models: dict[str, str] = field(default_factory=dict)  # users' files or libraries' names, by workload


SETTINGS = options.declared(Sweep)
LAUNCHER = Option("launcher", "local (default) or slurm (this job's nodes, or a submitted job's)", cluster=True)


# Former names of flags, which sweep files and the plans of earlier runs may contain.
FORMER = {"repeat": "operators", "cache": "kv-cache", "image-size": "image"}

ALSO = {"gpus": "ranks"}  # other names of flags: each rank has one GPU


def current(given: Mapping[str, Any], declared: Collection[str]) -> dict[str, Any]:
    """Return flags under their current names, which override former ones; a `declared` flag keeps its name."""
    former = {old: new for old, new in (FORMER | ALSO).items() if old not in declared}
    kept = {flag: value for flag, value in given.items() if former.get(flag) not in given}
    return {former.get(flag, flag): value for flag, value in kept.items()}


def of_files() -> list[Option]:
    """Return the options that a sweep file may set."""
    return [*AXES.values(), *parameters(), *SETTINGS.values()]


def all_options() -> list[Option]:
    """Return the measurement options as commands take them: as words, which `resolve` turns into values."""
    axes = [
        replace(axis, help=f"{axis.help} (default: {axis.default})") if axis.default else axis for axis in AXES.values()
    ]
    every = (*axes, *parameters(), *SETTINGS.values(), LAUNCHER)
    return [replace(one, default=None, parse=str) for one in every]


MOST_OF_A_SWEEP = 1 << 20  # bytes of a sweep file


def from_file(path: str) -> dict[str, Any]:
    """Return the flags that a TOML sweep file sets, each a list or a single value. Raises UsageError."""
    text = read_text(path, "The sweep file", MOST_OF_A_SWEEP)
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits also raises ValueError
        raise UsageError(f"The sweep file {path} is not valid TOML: {error}.") from None
    user_models.register(split_words(content.get("workload", ())))
    options.check_unique(of_files())
    content.pop("about", None)  # the file's description, which `experiments` reads
    content = current(content, [one.flag for one in of_files()])
    for key in content:
        choose(key, sorted(one.flag for one in of_files()), f"setting in {path} called")
    return content


def presets() -> dict[str, Path]:
    """Return the paths of the suite's sweep files, by the name that PRESET takes."""
    return {path.stem: path for path in sorted(PRESETS.glob("*.toml"))}


def question_of(preset: Path) -> str:
    """Return the question that a preset answers."""
    return tomllib.loads(preset.read_text())["about"]["question"]


def given_in_files(sweep_file: str | None, preset: str | None) -> dict[str, Any]:
    """Return the flags that a sweep file or a preset sets. Raises UsageError."""
    if sweep_file and preset:
        raise UsageError("PRESET and SWEEP both name a sweep file: use one of them.")
    if preset:
        sweep_file = str(presets()[choose(preset, presets(), "preset")])
    return from_file(sweep_file) if sweep_file else {}


def over_file(of_file: dict[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """Return flags merged over those of a sweep file.

    A parameter of the file is dropped if the flags replace all workloads or passes that have it: an LSTM that replaces
    the file's ResNets gets no LAYOUT.
    """
    merged = of_file | flags
    for name in {one.flag for one in parameters()} & of_file.keys() - flags.keys():
        if _is_taken(name, of_file) and not _is_taken(name, merged):
            del merged[name]
    return merged


def _is_taken(flag: str, given: dict[str, Any]) -> bool:
    """Return whether a given workload takes a parameter; True if a workload or pass is unknown."""
    names, passes = (split_words(given.get(AXES[axis].flag) or AXES[axis].default) for axis in ("workload", "pass"))
    pairs = list(itertools.product(names, passes))
    if any(name not in workloads.names() or kind not in PASSES for name, kind in pairs):
        return True
    return any(flag in workloads.flags_of(name, kind) for name, kind in pairs)


def split_words(value: Any) -> list[str]:
    """Return the words of a list, or of a comma-separated text."""
    if isinstance(value, list):
        return [str(item) for item in value]
    return [word.strip() for word in str(value).split(",") if word.strip()]


def _axis_values(axis: Option, given: Any) -> list[Any]:
    values: list[Any] = [
        canonical(axis.flag, word) for word in split_words(given if given is not None else axis.default)
    ]
    if axis.flag == "framework" and values == ["all"]:
        values = split_words(axis.default)
    if axis.flag == "threads":
        values = [value for word in values for value in numbers("threads", word)]
    return list(dict.fromkeys(axis.parse(word) for word in values))


MOST_CELLS = 1_000_000
MOST_SECONDS = 1e6  # twelve days: the kernel waits at most 24 at once


def check_timeout(value: float) -> None:
    """Raise UsageError unless TIMEOUT is above 0 and at most `MOST_SECONDS`."""
    if not 0 < value <= MOST_SECONDS:  # true of NaN as well
        raise UsageError(f"TIMEOUT must be a number of seconds above 0 and up to {MOST_SECONDS:,.0f}, not {value:g}.")


def check_size(axes: Mapping[str, list[Any]], parameters: Mapping[str, list[int | str]]) -> None:
    """Raise UsageError if the given lists have more than `MOST_CELLS` combinations."""
    count = math.prod(len(values) for values in (*axes.values(), *parameters.values()) if values)
    if count > MOST_CELLS:
        raise UsageError(f"The lists have {count:,} combinations; at most {MOST_CELLS:,} are allowed: shorten a list.")


def resolve(given: dict[str, Any], nodes: int | None = None) -> Sweep:
    """Return the sweep of the given options (flag -> word, words or None), checked, with defaults. Raises UsageError.

    `nodes` is the number of nodes of a job that is still to be submitted.
    """
    given, named = user_models.with_names(given, split_words(given.get("workload") or ()))
    given = current(given, [one.flag for one in parameters()])
    axes = {name: _axis_values(axis, given.get(axis.flag)) for name, axis in AXES.items()}
    user_models.check_frameworks(named, axes["framework"])
    for word in axes["mode"]:
        suggestions.check_mode(word, axes["framework"])
    launcher = choose(str(given.get("launcher") or hosts.LOCAL), hosts.LAUNCHERS, "launcher")
    places = hosts.hosts_for(
        launcher, [canonical("device", word) for word in split_words(given.get("device") or "")], nodes
    )
    shapes: dict[str, list[int | str]] = {}
    for flag in (one.flag for one in parameters() if given.get(one.flag) is not None):
        shapes[flag] = [value for word in split_words(given[flag]) for value in numbers(flag, word)]
    ranks = [count for count in shapes.get("ranks", ()) if isinstance(count, int) and count > 0]
    if all(frameworks.describe(name).across_nodes for name in axes["framework"]):
        places = places.of_ranks(max(ranks, default=1))
    axes["threads"] = places.threads(axes["threads"], max(ranks, default=1))
    check_size(axes, shapes)
    settings = {name: _setting(one, given.get(one.flag)) for name, one in SETTINGS.items()}
    return Sweep(axes, shapes, places=places, user_models=named, **settings)


def _setting(option: Option, given: Any) -> Any:
    """Return the value of an option that is not an axis; None if it has none. Raises UsageError."""
    if isinstance(given, list | dict) and option.flag != "policy":
        raise UsageError(f"{option.name} takes one value, not {given!r}.")
    given = option.default if given is None else given
    return None if given is None else option.value(given)
