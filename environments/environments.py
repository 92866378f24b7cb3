"""Virtual environments: one per framework and device, one for the runner, one that holds uv.

An environment is its lock: `frameworks/<framework>/requirements-<device>.txt`, versions and hashes, no index address.
The `.in` file in the same folder is its source, and has further directives as comment lines. So adding a framework is
adding a folder:

    # uv: OPTIONS                  options for `uv pip compile` (`make lock`), such as an upload cut-off
    # unhashed: PACKAGE ...        packages locked by version alone: which file fits differs from machine to machine
    # without-find-links: VAR=VAL  set for the install, unless pip's find-links offer the files already
    # check: STATEMENT             Python that must run in a new environment
    # unhashed-index: URL          where `make setup COLLECT=…` finds the unhashed packages, unless find-links do
    # own-index: VAR PACKAGE VERSION_VAR=DEFAULT for LOCKED in LOCK
                                   with VAR set: LOCK without LOCKED, then PACKAGE from the index that VAR names

Packages of one mode alone have a separate lock, `requirements-<device>-<mode>.txt`. They are added to the framework's
environment when the mode is requested.

With WHEELHOUSE=FOLDER in the environment everything comes from that folder, nothing from an index:
`environments.offline`.

Standard library only: this module makes the environments that everything else needs.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from environments import offline
from environments.uv import SetupError, environment, exclusive, run, use, uv
from measurement import programs
from measurement.places import INSTALLED, SUITE, VENVS, shown

__all__ = ["Recipe", "SetupError", "ensure", "lock", "make", "path", "recipe", "runner_recipe"]

DEVICES = ("cpu", "gpu")
MINIMUM_PYTHON = (3, 11)
ASKED = (60.0, programs.MOST)  # seconds and bytes within which an interpreter must print its version
WAY_OUT = "give the path of one, such as /path/to/venv/bin/python."
RUNNERS_OWN = ("numpy", "python")  # references: the runner's environment has them
DIRECTIVES = ("uv", "unhashed", "unhashed-index", "without-find-links", "check", "own-index")


def path(framework: str, device: str) -> Path:
    """Return the path of the environment of `framework` for `device` ("cpu" or "gpu"), made or not."""
    return VENVS / f"{framework}-{device}"


class OwnIndex(NamedTuple):
    """The words of the directive `own-index`."""

    variable: str
    package: str
    version: str
    locked: str
    lock: str

    @classmethod
    def of(cls, directive: str) -> OwnIndex:
        """Return the words of a directive."""
        variable, package, version, _for, locked, _in, lock = directive.split()
        return cls(variable, package, version, locked, lock)


@dataclass(frozen=True)
class Recipe:
    """Recipe of an environment: locked requirements, and the directives of its `.in` file.

    `from_index` is empty, or the address of an index and the one requirement that comes from there; `lock_file` is then
    that of the other requirements. With `mode` it has that mode's additions to the environment.
    """

    home: Path
    lock_file: Path
    requirements: str
    from_index: tuple[str, ...]
    directives: dict[str, str]
    mode: str = ""

    @property
    def name(self) -> str:
        """Return the environment's name, followed by the mode's."""
        return "-".join(filter(None, (self.home.name, self.mode)))

    @property
    def fingerprint(self) -> str:
        """A fingerprint of everything that decides the environment's contents."""
        deciding = {key: value for key, value in self.directives.items() if key != "unhashed-index"}
        content = json.dumps([self.requirements, list(self.from_index), deciding])
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def interpreter(self) -> Path:
        """Return the interpreter of the environment."""
        return self.home / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """The file that names the environment's recipe."""
        return self.home / "-".join(filter(None, (".stamp", self.mode)))

    def is_made(self) -> bool:
        """Return whether the environment is there, made from this recipe."""
        return self.interpreter.exists() and self.stamp.is_file() and self.stamp.read_text() == self.fingerprint


def recipe(framework: str, device: str, mode: str = "") -> Recipe | None:
    """Return the recipe of `framework` on `device`; None if it uses the runner's environment. Raises SetupError.

    With `mode`, that mode's additions; None if it has none.
    """
    if device not in DEVICES:
        raise SetupError(f"there are no environments for device '{device}'; choose cpu or gpu.")
    folder = SUITE / "frameworks" / framework
    if mode:
        lock_file = folder / f"requirements-{device}-{mode}.txt"
        return replace(_recipe(path(framework, device), lock_file), mode=mode) if lock_file.is_file() else None
    if framework in RUNNERS_OWN and not list(folder.glob("requirements-*.txt")):
        return None
    lock_file = folder / f"requirements-{device}.txt"
    if not lock_file.is_file():
        known = sorted(p.parent.name for p in SUITE.glob(f"frameworks/*/requirements-{device}.txt"))
        near = difflib.get_close_matches(framework, known, 1)
        raise SetupError(
            f"no locked requirements for '{framework}' on {device}"
            + (f": did you mean {near[0]}?" if near else ".")
            + f" There are {', '.join(known) or 'none'}"
            + ("." if INSTALLED else "; `make lock` makes a new one from its .in file.")
        )
    return _recipe(path(framework, device), lock_file)


def runner_recipe() -> Recipe:
    """Return the recipe of the runner's own environment: `requirements.txt`."""
    return Recipe(VENVS / "runner", SUITE / "requirements.txt", (SUITE / "requirements.txt").read_text(), (), {})


def _recipe(home: Path, lock_file: Path) -> Recipe:
    directives = directives_of(lock_file)
    own = OwnIndex.of(directives["own-index"]) if "own-index" in directives else None
    if own is None or not (index := os.environ.get(own.variable)):
        return Recipe(home, lock_file, lock_file.read_text(), (), directives)
    lock_file, (version, default) = lock_file.parent / own.lock, own.version.split("=")
    requirements = re.sub(_pin(own.locked), "", lock_file.read_text())
    from_index = (index, f"{own.package}=={os.environ.get(version) or default}")
    return Recipe(home, lock_file, requirements, from_index, directives)


def ensure(
    framework: str,
    device: str,
    *,
    modes: Sequence[str] = (),
    python: str | None = None,
    report: Callable[[str], None] = print,
) -> Path:
    """Return the interpreter of a worker; make its environment first if it is missing or its lock has changed.

    Packages that one of `modes` adds are installed there as well. `python` names an interpreter to use instead, which
    is only checked. Raises SetupError. Safe to call from several processes at once.
    """
    if Path(sys.prefix).resolve() == (VENVS / "runner").resolve():
        use(VENVS / "runner", report)  # this process runs in it, and may import more
    if python is not None:
        return _users_interpreter(python)
    recipes = _recipes(framework, device, modes)
    for one in recipes:
        make(one, report)
    return recipes[0].interpreter if recipes else Path(sys.executable)


def existing(framework: str, device: str, modes: Sequence[str] = ()) -> Path | None:
    """Return the interpreter that `ensure` would return; None if it has to make something. Raises SetupError."""
    recipes = _recipes(framework, device, modes)
    if not all(one.is_made() for one in recipes):
        return None
    return recipes[0].interpreter if recipes else Path(sys.executable)


def _recipes(framework: str, device: str, modes: Sequence[str]) -> list[Recipe]:
    """Return the recipes of an environment and its modes' additions; none if it is the runner's."""
    return list(filter(None, (recipe(framework, device, mode) for mode in ("", *modes))))


def lacking(interpreter: Path, modules: Sequence[Sequence[str]]) -> list[str]:
    """Return the modules that an interpreter lacks, each given with its other names. Raises SetupError."""
    code = (
        "import importlib.util, json, sys\n"
        "find = importlib.util.find_spec\n"
        "print(json.dumps([names[0] for names in json.loads(sys.argv[1]) if not any(map(find, names))]))"
    )
    command = [str(interpreter), "-c", code, json.dumps(modules)]
    return json.loads(run(command, dict(os.environ), f"interpreter '{interpreter}' does not run").splitlines()[-1])


def lock(frameworks: list[str] | None = None, *, upgrade: bool = False, report: Callable[[str], None] = print) -> None:
    """Compile `requirements.txt` and the frameworks' locks (all, or those named), for Python 3.11 and newer everywhere.

    Pins that still fit stay, unless `upgrade`. Raises SetupError.
    """
    jobs: list[tuple[str, str, dict[str, str]]] = []
    if not frameworks:
        jobs.append(("pyproject.toml", "requirements.txt", {"uv": "--group dev"}))
    sources = sorted(SUITE.glob("frameworks/*/requirements-*.in"))
    for name in frameworks or []:
        if name not in {source.parent.name for source in sources}:
            raise SetupError(f"no frameworks/{name}/requirements-*.in to lock.")
    for source in sources:
        if not frameworks or source.parent.name in frameworks:
            relative = source.relative_to(SUITE)
            jobs.append((str(relative), str(relative.with_suffix(".txt")), directives_of(source)))
    # Local files must not get into a lock: nobody else has them.
    env = {**environment(), "UV_CUSTOM_COMPILE_COMMAND": "make lock", "UV_FIND_LINKS": "", "UV_INDEX": ""}
    for requirements, target, directives in jobs:
        report(f"locking {target}")
        options = shlex.split(directives.get("uv", "")) + (["--upgrade"] if upgrade else [])
        universal = ["--universal", "--python-version", "3.11", "--generate-hashes"]
        command = ["pip", "compile", "--quiet", *universal, *options, requirements, "--output-file", target]
        uv(command, env, f"{target} could not be locked", report=report)
        text = (SUITE / target).read_text()
        for package in directives.get("unhashed", "").split():
            text = re.sub(_pin(package), lambda pin: re.sub(r" \\\n +--hash=\S+", "", pin[0]), text)
        (SUITE / target).write_text(text)


def make(recipe: Recipe, report: Callable[[str], None]) -> Path:
    """Make an environment unless its stamp is current; return its interpreter. Raises SetupError.

    No other process changes the environment before this one ends: all processes of a run have the same packages.
    """
    home = recipe.home
    while True:
        if home.exists():
            use(home, report)
        if recipe.is_made():
            return recipe.interpreter
        with exclusive(home, report):
            if not recipe.is_made():  # else made by another process meanwhile
                started = time.monotonic()
                _install(recipe, recipe.interpreter, report)
                recipe.stamp.write_text(recipe.fingerprint)
                report(f"{recipe.name}: ready after {time.monotonic() - started:.0f} s")


def _install(recipe: Recipe, interpreter: Path, report: Callable[[str], None]) -> None:
    """Install the recipe's packages, in a new virtual environment or as a mode's packages in the existing one.

    Files come from the wheelhouse if there is one.
    """
    home, directives, wheelhouse = recipe.home, recipe.directives, offline.folder()
    failed = f"environment {recipe.name} could not be installed"
    if wheelhouse and (why := offline.problem(wheelhouse, recipe.name, recipe.fingerprint)):
        raise SetupError(f"{failed}: {why}")
    source = f" from {wheelhouse}" if wheelhouse else ""
    report(f"{recipe.name}: installing {shown(recipe.lock_file)}{source} …")
    env = offline.without_sources(environment(), wheelhouse)
    if not wheelhouse and not env.get("UV_FIND_LINKS") and "without-find-links" in directives:
        variable, _, value = directives["without-find-links"].partition("=")
        env.setdefault(variable, value)
    # Bytecode is compiled here, or the first process of each framework would pay for it inside its first call.
    install = ["--quiet", "--compile-bytecode", *offline.arguments(wheelhouse), "--python", str(interpreter)]
    if not recipe.mode:
        new = ["venv", "--quiet", "--clear", "--no-project", "--python", sys.executable, str(home)]
        uv(new, env, failed, report=report)
    requirements = offline.with_built(wheelhouse, recipe.name, recipe.requirements)
    apart: list[str] = []
    if "UV_INDEX" in env:  # several indexes: any may serve a hashed requirement, only the first an unhashed one
        requirements, apart = offline.split(requirements)
    anywhere = {"UV_INDEX_STRATEGY": "unsafe-best-match"} if "UV_INDEX" in env else {}
    command = ["install", "--no-deps", "--requirement"] if recipe.mode else ["sync"]
    uv(["pip", *command, "-", *install], {**anywhere, **env}, failed, stdin=requirements, report=report)
    if apart:
        uv(["pip", "install", "--no-deps", *install, *apart], env, failed, report=report)
    if recipe.from_index:
        index, requirement = recipe.from_index
        where = [] if wheelhouse else ["--index", index]
        uv(["pip", "install", *install, *where, requirement], env, failed, report=report)
    if "check" in directives:
        run([str(interpreter), "-c", directives["check"]], dict(os.environ), f"{failed}: it does not run")


def _users_interpreter(python: str) -> Path:
    """Return the interpreter `python` (a path, or a name on PATH) after a check of its version. Raises SetupError."""
    executable = shutil.which(os.path.expanduser(python))
    if executable is None:
        raise SetupError(f"no interpreter '{python}'; {WAY_OUT}")
    command = [executable, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    printed = run(command, dict(os.environ), f"interpreter '{python}' does not run", limits=ASKED)
    version = re.search(r"(?:^|\n)(\d{1,4})\.(\d{1,4})\s*$", printed)  # a site's own start-up may print above it
    if not version:
        said = printed.strip()[-80:]
        raise SetupError(
            f"'{python}' is not a Python interpreter: asked for its version, it printed {said!r}; {WAY_OUT}"
        )
    if tuple(map(int, version.groups())) < MINIMUM_PYTHON:
        raise SetupError(f"interpreter '{python}' is Python {version[0].strip()}; workers need 3.11 or newer.")
    return Path(os.path.abspath(executable))  # not resolved: a virtual environment's python is a symbolic link


def directives_of(requirements: Path) -> dict[str, str]:
    """Return the `# key: value` lines of the `.in` file that belongs to `requirements`."""
    source = requirements.with_suffix(".in")
    lines = re.findall(r"^# ([\w-]+): (.+)$", source.read_text() if source.is_file() else "", re.MULTILINE)
    return {key: value.strip() for key, value in lines if key in DIRECTIVES}


def _pin(package: str) -> str:
    """Return a pattern for the lines of `package` in a lock: the version, and the hashes and comments under it."""
    return rf"(?m)^{re.escape(package)}==.*\n(?:[ \t]+.*\n)*"


def main(argv: list[str] | None = None) -> int:
    """Make or lock environments, as the arguments say; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="environments.environments", description="Make the environments and their locks."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("runner", help="the runner's environment")
    setup = commands.add_parser(
        "setup", help="make frameworks' environments (default: all), with the packages of every mode"
    )
    setup.add_argument("--device", choices=DEVICES, default="cpu")
    locking = commands.add_parser("lock", help="compile the lock files (default: all)")
    locking.add_argument("--upgrade", action="store_true", help="newest versions that fit, not the pinned ones")
    for command in (setup, locking):
        command.add_argument("frameworks", nargs="*", metavar="NAME")
    options = parser.parse_args(argv)
    try:
        if options.command == "runner":
            make(runner_recipe(), print)
        elif options.command == "lock":
            lock(options.frameworks, upgrade=options.upgrade)
        else:
            locks = sorted(SUITE.glob(f"frameworks/*/requirements-{options.device}.txt"))
            for name in options.frameworks or [file.parent.name for file in locks]:
                of_modes = SUITE.glob(f"frameworks/{name}/requirements-{options.device}-*.txt")
                modes = [file.stem.removeprefix(f"requirements-{options.device}-") for file in sorted(of_modes)]
                ensure(name, options.device, modes=modes)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
