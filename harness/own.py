"""Users' own models on the command line: made known before anything is checked, and the same when a run is resumed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import workloads
from harness.refusals import UsageError
from workloads.own import Own, is_own, named
from workloads.signature import Unreadable


def take_in(words: Iterable[str]) -> dict[str, str]:
    """Make the models among these words for workloads known; their sources by name. Raises UsageError."""
    try:
        sources = named(word for word in words if is_own(word))
        workloads.add(sources)
    except Unreadable as error:
        raise UsageError(str(error)) from None
    return sources


def names_of(words: Sequence[str], sources: dict[str, str]) -> list[str]:
    """The words for workloads with names in place of sources."""
    by_source = {source: name for name, source in sources.items()}
    return [by_source[next(iter(named([word]).values()))] if is_own(word) else word for word in words]


def with_names(given: dict, words: Sequence[str]) -> tuple[dict, dict[str, str]]:
    """What was given with names in place of users' models, which are made known, and their sources by name.

    `words` are the words for workloads. Where only users' models are asked for, and no framework, it is theirs. Raises
    UsageError.
    """
    sources = take_in(words)
    if not sources:
        return given, {}
    if given.get("weights"):
        raise UsageError("WEIGHTS is for the suite's own workloads: a user's model() loads its weights itself.")
    names = names_of(words, sources)
    framework = given.get("framework") or frameworks_for(names) or None
    return given | {"workload": names, "framework": framework}, sources


def on_the_command_line(words: Sequence[str]) -> None:
    """Make known what `--workload` names there: a file's parameters are flags. What is wrong is said later."""
    given = [word.partition("=")[2] for word in words if word.startswith("--workload=")]
    given += [after for word, after in itertools.pairwise(words) if word == "--workload"]
    for word in ",".join(given).split(","):
        try:
            take_in([word.strip()])
        except UsageError:
            continue


def frameworks_for(names: Iterable[str]) -> list[str]:
    """The frameworks of users' models where all workloads are users' and none is named. Raises UsageError."""
    models = [workloads.get(name) for name in names]
    if not models or not all(isinstance(workload, Own) for workload in models):
        return []
    for workload in models:
        if not workload.frameworks:
            raise UsageError(f"{workload.name} imports no framework by its name: say which, such as FRAMEWORK=torch.")
    return list(dict.fromkeys(name for workload in models for name in workload.frameworks))


def is_users_file(workload) -> bool:
    """Return whether the workload is a user's file, and no model of a library or of the suite."""
    return isinstance(workload, Own) and workload.is_file


def is_for(workload, framework: str) -> bool:
    """Whether the workload is measured in this framework: a user's model in those that it imports, if it shows any."""
    return not isinstance(workload, Own) or not workload.frameworks or framework in workload.frameworks


def untrained(names: Iterable[str]) -> str:
    """What a sentence on models that cannot be trained says of users' files besides; empty where there is none."""
    files = [workload.name for name in names if is_users_file(workload := workloads.get(name))]
    return f" Give {' and '.join(files)} a function loss(output) that returns a scalar." if files else ""


def digests(sources: dict[str, str]) -> dict[str, dict[str, str]]:
    """Return what a run's plan keeps of users' files: where they lie, and a digest of what they held."""
    return {name: {"source": source, "digest": workloads.get(name).digest} for name, source in sources.items()}


def check_unchanged(sources: dict[str, str], kept: dict) -> None:
    """Raise UsageError where one of these files is another than when the run was begun; `kept` is in the run's plan."""
    for name, source in sources.items():
        entry = kept.get(name)
        before = entry.get("digest") if isinstance(entry, dict) else None
        if before and workloads.get(name).digest != before:
            raise UsageError(
                f"{Path(source).name} was changed since the run was begun: put it back, or begin another run."
            )
