"""User models on the command line: registered before anything is checked, and unchanged when a run is resumed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import workloads
from measurement.refusals import UsageError
from workloads.signature import Unreadable
from workloads.spec import Workload
from workloads.user_model import UserModel, in_suite, is_user_model, named, portable


def register(words: Iterable[str]) -> dict[str, str]:
    """Register the user models among these workload words; return their sources by name. Raises UsageError."""
    try:
        sources = named(word for word in words if is_user_model(word))
    except Unreadable as error:
        raise UsageError(str(error)) from None
    problems = []
    for name, source in sources.items():
        try:
            workloads.add({name: source})
        except Unreadable as error:
            problems.append(str(error))
    if problems:
        raise UsageError(" ".join(problems))
    return sources


def by_name(words: Sequence[str], sources: dict[str, str]) -> list[str]:
    """Return the workload words, with the source of each user model replaced by its name."""
    by_source = {source: name for name, source in sources.items()}
    return [by_source[next(iter(named([word]).values()))] if is_user_model(word) else word for word in words]


def with_names(given: dict[str, Any], words: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Register the given user models; return the options with their names, and their sources by name.

    `words` are the workload words. If all are user models and no framework is given, theirs is used. Raises UsageError.
    """
    sources = register(words)
    if not sources:
        return given, {}
    if given.get("weights"):
        raise UsageError("WEIGHTS applies to the suite's workloads only: load your weights in model().")
    names = by_name(words, sources)
    framework = given.get("framework") or frameworks_for(sources, only=len(sources) == len(set(names))) or None
    return given | {"workload": names, "framework": framework}, sources


def register_named_in(words: Sequence[str]) -> None:
    """Register a command line's user models, because their parameters are options. Leave errors to `resolve`."""
    given = [word.partition("=")[2] for word in words if word.startswith(("WORKLOAD=", "--workload="))]
    given += [after for word, after in itertools.pairwise(words) if word == "--workload"]
    for word in ",".join(given).split(","):
        try:
            register([word.strip()])
        except UsageError:
            continue


def frameworks_for(names: Iterable[str], only: bool) -> list[str]:
    """Return the frameworks of user models if no framework is given; empty unless these are the `only` workloads.

    Raises UsageError for a model that is not for exactly one framework.
    """
    models = [_model(name) for name in names]
    for model in models:
        if len(model.frameworks) != 1:
            imported = f"imports {' and '.join(model.frameworks)}" if model.frameworks else "imports no framework"
            which = model.frameworks[0] if model.frameworks else "torch"
            raise UsageError(f"{model.name} {imported}: name the model's framework, such as FRAMEWORK={which}.")
    return list(dict.fromkeys(name for model in models for name in model.frameworks)) if only else []


def check_frameworks(names: Iterable[str], asked: Sequence[str]) -> None:
    """Raise UsageError for user models that none of the requested frameworks runs."""
    others = [model for name in names if not any(is_for(model := _model(name), other) for other in asked)]
    if others:
        found = "; ".join(f"{model.name} is for {' or '.join(model.frameworks)}" for model in others)
        raise UsageError(f"{found}, and FRAMEWORK={','.join(asked)} names another: omit FRAMEWORK.")


def is_users_file(workload: Workload) -> bool:
    """Return whether the workload is a user's file rather than a model of a library or of the suite."""
    return isinstance(workload, UserModel) and workload.is_file


def is_for(workload: Workload, framework: str) -> bool:
    """Return whether the workload is measured in this framework: a user's model only in those it imports, if any."""
    return not isinstance(workload, UserModel) or not workload.frameworks or framework in workload.frameworks


def training_hint(names: Iterable[str]) -> str:
    """Return a hint for user files that cannot be trained; empty if there are none."""
    files = [workload.name for name in names if is_users_file(workload := workloads.get(name))]
    return f" Add a function loss(output) that returns a scalar to {' and '.join(files)}." if files else ""


def digests(sources: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the sources and digests of user models by name, as stored in a run's plan."""
    return {name: {"source": portable(source), "digest": _model(name).digest} for name, source in sources.items()}


def kept(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as a plan keeps them: the suite's own files by their place in it, so that checkouts agree."""
    return _with_sources(given, portable)


def found(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan's options with absolute sources, whatever the working folder."""
    return _with_sources(given, in_suite)


def _with_sources(given: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    words = given.get("workload")
    if not isinstance(words, list):
        return dict(given)
    return {**given, "workload": [change(word) if is_user_model(word) else word for word in words]}


def check_unchanged(sources: dict[str, str], kept: dict[str, Any]) -> None:
    """Raise UsageError if one of these files changed since the run began; `kept` comes from the run's plan."""
    for name, source in sources.items():
        entry = kept.get(name)
        before = entry.get("digest") if isinstance(entry, dict) else None
        if before and _model(name).digest != before:
            raise UsageError(
                f"{Path(source).name} was changed since the run was started: restore it, or start a new run."
            )


def _model(name: str) -> UserModel:
    model = workloads.get(name)
    assert isinstance(model, UserModel), f"{name} is no user model"
    return model
