"""Environments with versions other than the locked ones: the framework's requirements with other pins."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import frameworks
from environments import environments
from environments.uv import SetupError, environment, uv
from measurement import durable
from measurement.places import SUITE, VENVS
from measurement.refusals import UsageError

_PIN = re.compile(r"[A-Za-z0-9][\w.-]*==[\w.+!-]+")
NEVER = "2100-01-01"  # a cut-off that excludes no package
_MISSING = r"no version of (\S+?)==(\S+)"
# uv's message if a later index may have the version: https://docs.astral.sh/uv/concepts/indexes/
_ELSEWHERE = r"was found on (\S+), but not at the requested version"


def is_version(word: str) -> bool:
    """Return whether `word` names versions (`torch==2.12`, several separated by spaces), not an interpreter."""
    return "==" in word


def pins(word: str) -> dict[str, str]:
    """Return the version of each package that a word pins. Raises UsageError."""
    parts = word.split()
    if wrong := [part for part in parts if not _PIN.fullmatch(part)]:
        raise UsageError(f"{wrong[0]!r} is not a version: write package==version, such as torch==2.12.0.")
    return dict(part.split("==") for part in parts)


def framework_of(word: str) -> str | None:
    """Return the framework whose own package is pinned; None if only other packages are."""
    for name in frameworks.NAMES:
        description = frameworks.describe(name)
        packages = {name, *(d for d in description.distributions if d.startswith(name))}  # others have it too
        if not description.is_reference and pins(word).keys() & packages:
            return name
    return None


def ensure(
    framework: str, device: str, word: str, report: Callable[[str], None] = print, make: bool = True
) -> Path | None:
    """Return the interpreter of an environment with those versions; create a missing one. Raises SetupError.

    Without `make` install nothing, and return None if the environment is missing. Resolve the framework's dependencies
    with the pins, and store the result next to the environment, so that a second call installs the same packages.
    """
    base, requirements = _with(framework, device, word)
    return _make_with(base, f"{framework}-{device}-{_slug(word)}", requirements, word, report, make)


def ensure_beside(
    framework: str, device: str, more: str, report: Callable[[str], None] = print, make: bool = True
) -> Path | None:
    """Return the interpreter of an environment with the framework and `more`, further lines of requirements.

    The framework's own packages have the versions in its `.in` file. `make` acts as in `ensure`. Raises SetupError.
    """
    base, requirements = _with(framework, device, "")
    requirements += more
    return _make_with(base, f"{framework}-{device}-with-{_digest(requirements)}", requirements, "", report, make)


def _with(framework: str, device: str, word: str) -> tuple[environments.Recipe, str]:
    """Return a framework's recipe and requirements with these versions; a package of an own index is in the recipe."""
    base = environments.recipe(framework, device)
    if base is None:
        raise SetupError(f"{framework} always runs in the suite's environment: VERSIONS cannot name it.")
    if not base.from_index:
        return base, pinned(_source(base), framework, word)
    own, (index, requirement) = environments.OwnIndex.of(base.directives["own-index"]), base.from_index
    rest = []
    for name, version in pins(word).items():
        if name in (framework, own.package, own.locked):
            requirement = f"{own.package}=={version}"
        else:
            rest.append(f"{name}=={version}")
    requirements = re.sub(rf"(?m)^{re.escape(own.locked)}==.*\n", "", _source(base))
    return replace(base, from_index=(index, requirement)), pinned(requirements, framework, " ".join(rest))


def _source(base: environments.Recipe) -> str:
    return base.lock_file.with_suffix(".in").read_text()


def _make_with(
    base: environments.Recipe, name: str, requirements: str, word: str, report: Callable[[str], None], make: bool
) -> Path | None:
    """Return the interpreter of the environment `name`; store the resolved versions next to it."""
    name += f"-{_digest(' '.join(base.from_index))}" if base.from_index else ""
    lock = VENVS / f"{name}.txt"
    if not lock.exists():
        if not make:
            return None
        durable.replace(lock, _resolved(base, requirements, name, word, report).encode())
    recipe = replace(base, home=VENVS / name, lock_file=lock, requirements=lock.read_text())
    if make:
        return environments.make(recipe, report)
    return recipe.interpreter if recipe.is_made() else None


def pinned(requirements: str, framework: str, word: str) -> str:
    """Return the requirements of an `.in` file, with these versions added or replacing its own."""
    lines = [line for line in requirements.splitlines() if line and not line.startswith("#")]
    for package, version in pins(word).items():
        if package == framework:  # its package index has another name for it
            package = next((d for d in frameworks.describe(framework).distributions if _line(d, lines)), package)
        replaced = _line(package, lines)
        lines = [line for line in lines if line != replaced] + [f"{package}=={version}"]
    return "\n".join(lines) + "\n"


def _line(package: str, lines: list[str]) -> str | None:
    return next((line for line in lines if re.match(rf"{re.escape(package)}(?![\w.-])", line)), None)


def _resolved(base: environments.Recipe, requirements: str, name: str, word: str, report: Callable[[str], None]) -> str:
    """Return these requirements with all dependencies pinned, as resolved in the package indexes. Raises SetupError."""
    report(f"{name}: resolving {word or 'its requirements'} …")
    target, settings = VENVS / f".{name}.resolving", VENVS / f".{name}.toml"
    VENVS.mkdir(parents=True, exist_ok=True)
    options = _options(base, requirements, word, settings)
    env = environment()
    if "without-find-links" in base.directives and not env.get("UV_FIND_LINKS"):
        variable, _, value = base.directives["without-find-links"].partition("=")
        env.setdefault(variable, value)
    command = ["pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", sys.executable, *options]
    failed = f"{word or 'the requirements'} could not be resolved"
    try:
        uv([*command, "-", "--output-file", str(target)], env, failed, stdin=requirements, report=report)
        return target.read_text()
    except SetupError as error:
        if missing := re.search(_MISSING, str(error)):
            known = f"{missing[1]} {missing[2].rstrip('.,')}"
            if first := re.search(_ELSEWHERE, str(error)):
                raise SetupError(
                    f"there is no {known} in {first[1]}, the first of your package indexes that has {missing[1]}, and "
                    "uv looks no further: if you trust them all alike, UV_INDEX_STRATEGY=unsafe-best-match in the "
                    "environment has it look in the others."
                ) from None
            raise SetupError(f"there is no {known} for this Python and platform.") from None
        raise
    finally:
        for path in (target, settings):
            path.unlink(missing_ok=True)


def _options(base: environments.Recipe, requirements: str, word: str, settings: Path) -> list[str]:
    """Return uv's options for the locked requirements, with the settings of the locked version applied to this one.

    torch's wheels require CUDA packages even without a GPU, and the settings exclude them. A cut-off is not for
    packages that the user names, only for those that they require.
    """
    options = shlex.split(environments.directives_of(base.lock_file).get("uv", ""))
    if "--exclude-newer" in options:
        added = [line for line in requirements.splitlines() if line not in _source(base).splitlines()]
        names = [found[0] for line in added if (found := re.match(r"[A-Za-z0-9][\w.-]*", line))]
        options += [f"--exclude-newer-package={name}={NEVER}" for name in names]
    if "--config-file" in options:
        place = options.index("--config-file") + 1
        text = (SUITE / options[place]).read_text()
        for package, version in pins(word).items():
            text = re.sub(rf'(name = "{re.escape(package)}"\nversion = )"[^"]*"', rf'\1"{version}"', text)
        settings.write_text(text)
        options[place] = str(settings)
    return options


def _slug(word: str) -> str:
    """Return the versions as part of a folder's name."""
    text = re.sub(r"[^\w.]+", "-", word)
    return text if len(text) < 60 else _digest(word)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
