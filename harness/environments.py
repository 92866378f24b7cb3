"""Virtual environments: one per framework and device, one for the runner, one that holds uv.

An environment is its lock: `frameworks/<framework>/requirements-<device>.txt`, versions and hashes, no index address,
compiled from the `.in` file beside it. What else there is to know stands in that `.in` file as comment lines, so that
adding a framework is adding a folder:

    # uv: OPTIONS                  options for `uv pip compile` (`make lock`), such as an upload cut-off
    # unhashed: PACKAGE ...        packages locked by version alone: which file fits differs from machine to machine
    # without-find-links: VAR=VAL  set for the install, unless pip's find-links offer the files already
    # check: STATEMENT             Python that must run in a new environment
    # own-index: VAR PACKAGE VERSION_VAR=DEFAULT for LOCKED in LOCK
                                   with VAR set: LOCK without LOCKED, then PACKAGE from the index that VAR names

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
from pathlib import Path

from harness.uv import ROOT, VENVS, SetupError, environment, exclusive, run, uv

__all__ = ["SetupError", "ensure", "lock", "path", "runner"]

DEVICES = ("cpu", "gpu")
MINIMUM_PYTHON = (3, 11)
RUNNERS_OWN = ("numpy", "python")  # references: the runner's environment has them
DIRECTIVES = ("uv", "unhashed", "without-find-links", "check", "own-index")


def path(framework: str, device: str) -> Path:
    """Where the environment of `framework` for `device` ("cpu" or "gpu") lies, made or not."""
    return VENVS / f"{framework}-{device}"


def ensure(
    framework: str, device: str, *, python: str | None = None, wheelhouse: Path | None = None, report=print
) -> Path:
    """The interpreter to run a worker with; its environment is made first where it is missing or its lock has changed.

    `python` names an interpreter to use instead, which is only checked. `wheelhouse` is a folder of wheels to install
    from without any index. Raises SetupError. Safe to call from several processes at once.
    """
    if python is not None:
        return _users_interpreter(python)
    if device not in DEVICES:
        raise SetupError(f"no environments for device '{device}'; choose cpu or gpu.")
    folder = ROOT / "frameworks" / framework
    if framework in RUNNERS_OWN and not list(folder.glob("requirements-*.txt")):
        return Path(sys.executable)
    lock_file = folder / f"requirements-{device}.txt"
    if not lock_file.is_file():
        known = sorted(p.parent.name for p in ROOT.glob(f"frameworks/*/requirements-{device}.txt"))
        near = difflib.get_close_matches(framework, known, 1)
        raise SetupError(
            f"no locked requirements for '{framework}' on {device}"
            + (f": did you mean {near[0]}?" if near else ".")
            + f" There are {', '.join(known) or 'none'}; `make lock` makes a new one from its .in file."
        )
    return _environment(path(framework, device), lock_file, _directives(lock_file), wheelhouse, report)


def runner(report=print) -> Path:
    """The interpreter of the runner's own environment, made from `requirements.txt`."""
    return _environment(VENVS / "runner", ROOT / "requirements.txt", {}, None, report)


def lock(frameworks: list[str] | None = None, *, upgrade: bool = False, report=print) -> None:
    """Compile `requirements.txt` and the frameworks' locks (all, or those named), for Python 3.11 and newer everywhere.

    Pins that still fit stay, unless `upgrade`. Raises SetupError.
    """
    jobs = [] if frameworks else [("pyproject.toml", "requirements.txt", {"uv": "--group dev"})]
    sources = sorted(ROOT.glob("frameworks/*/requirements-*.in"))
    for name in frameworks or []:
        if name not in {source.parent.name for source in sources}:
            raise SetupError(f"no frameworks/{name}/requirements-*.in to lock.")
    for source in sources:
        if not frameworks or source.parent.name in frameworks:
            relative = source.relative_to(ROOT)
            jobs.append((str(relative), str(relative.with_suffix(".txt")), _directives(source)))
    # Local files must not get into a lock: nobody else has them.
    env = {**environment(), "UV_CUSTOM_COMPILE_COMMAND": "make lock", "UV_FIND_LINKS": "", "UV_INDEX": ""}
    for source, target, directives in jobs:
        report(f"locking {target}")
        options = shlex.split(directives.get("uv", "")) + (["--upgrade"] if upgrade else [])
        universal = ["--universal", "--python-version", "3.11", "--generate-hashes"]
        command = ["pip", "compile", "--quiet", *universal, *options, source, "--output-file", target]
        uv(command, env, f"{target} could not be locked", report=report)
        text = (ROOT / target).read_text()
        for package in directives.get("unhashed", "").split():
            text = re.sub(_pin(package), lambda pin: re.sub(r" \\\n +--hash=\S+", "", pin[0]), text)
        (ROOT / target).write_text(text)


def _environment(home: Path, lock_file: Path, directives: dict, wheelhouse: Path | None, report) -> Path:
    """Make `home` from `lock_file` unless its stamp says that this was done; returns its interpreter."""
    interpreter, stamp = home / "bin" / "python", home / ".stamp"
    requirements, from_index = lock_file.read_text(), []
    if "own-index" in directives:
        variable, package, version, _for, locked, _in, other = directives["own-index"].split()
        if index := os.environ.get(variable):
            version, default = version.split("=")
            requirements = re.sub(_pin(locked), "", (lock_file.parent / other).read_text())
            from_index = ["--index", index, f"{package}=={os.environ.get(version) or default}"]
    wanted = hashlib.sha256(json.dumps([requirements, from_index, directives]).encode()).hexdigest()

    def ready() -> bool:
        return interpreter.exists() and stamp.is_file() and stamp.read_text() == wanted

    if ready():
        return interpreter
    with exclusive(home, report):
        if ready():  # made by another process meanwhile
            return interpreter
        report(f"{home.name}: installing {lock_file.relative_to(ROOT)} …")
        started, failed = time.monotonic(), f"environment {home.name} could not be installed"
        env, offline = environment(), []
        if wheelhouse:
            offline = ["--no-index", "--find-links", str(Path(wheelhouse).absolute())]
        elif not env.get("UV_FIND_LINKS") and "without-find-links" in directives:
            variable, _, value = directives["without-find-links"].partition("=")
            env.setdefault(variable, value)
        # Bytecode is compiled here, or the first launch of each framework would pay for it inside its first call.
        install = ["--quiet", "--compile-bytecode", *offline, "--python", str(interpreter)]
        new = ["venv", "--quiet", "--clear", "--no-project", "--python", sys.executable, str(home)]
        uv(new, env, failed, report=report)
        uv(["pip", "sync", *install, "-"], env, failed, stdin=requirements, report=report)
        if from_index:
            uv(["pip", "install", *install, *from_index], env, failed, report=report)
        if "check" in directives:
            run([str(interpreter), "-c", directives["check"]], dict(os.environ), f"{failed}: it does not run")
        stamp.write_text(wanted)
        report(f"{home.name}: ready after {time.monotonic() - started:.0f} s")
    return interpreter


def _users_interpreter(python: str) -> Path:
    """The interpreter that `python` (a path, or a name on PATH) names, once it has run and told a fitting version."""
    found = shutil.which(os.path.expanduser(python))
    if found is None:
        raise SetupError(f"no interpreter '{python}'; give the path of one, such as /path/to/venv/bin/python.")
    command = [found, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    version = run(command, dict(os.environ), f"interpreter '{python}' does not run").split()[-1]
    if tuple(map(int, version.split("."))) < MINIMUM_PYTHON:
        raise SetupError(f"interpreter '{python}' is Python {version}; workers need 3.11 or newer.")
    return Path(os.path.abspath(found))  # not resolved: a virtual environment's python is a symbolic link


def _directives(requirements: Path) -> dict[str, str]:
    """The `# key: value` lines of the `.in` file that belongs to `requirements`."""
    source = requirements.with_suffix(".in")
    lines = re.findall(r"^# ([\w-]+): (.+)$", source.read_text() if source.is_file() else "", re.MULTILINE)
    return {key: value.strip() for key, value in lines if key in DIRECTIVES}


def _pin(package: str) -> str:
    """A pattern for the lines of `package` in a lock: the version, and the hashes and comments under it."""
    return rf"(?m)^{re.escape(package)}==.*\n(?:[ \t]+.*\n)*"


def main(argv: list[str] | None = None) -> int:
    """`python -m harness.environments runner | setup [NAME ...] [--device cpu|gpu] | lock [NAME ...] [--upgrade]`."""
    parser = argparse.ArgumentParser(prog="harness.environments", description="Make the environments and their locks.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("runner", help="the runner's environment")
    setup = commands.add_parser("setup", help="the frameworks' environments, all unless named")
    setup.add_argument("--device", choices=DEVICES, default="cpu")
    locking = commands.add_parser("lock", help="compile the locks, all unless named")
    locking.add_argument("--upgrade", action="store_true", help="newest versions that fit, not the pinned ones")
    for command in (setup, locking):
        command.add_argument("frameworks", nargs="*", metavar="NAME")
    options = parser.parse_args(argv)
    try:
        if options.command == "runner":
            runner()
        elif options.command == "lock":
            lock(options.frameworks, upgrade=options.upgrade)
        else:
            locks = sorted(ROOT.glob(f"frameworks/*/requirements-{options.device}.txt"))
            for name in options.frameworks or [found.parent.name for found in locks]:
                ensure(name, options.device)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
