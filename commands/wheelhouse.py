"""`setup` with COLLECT=FOLDER: collect the files that a machine without internet needs to make environments.

For uv, the runner and each framework named: the files that their locks pin, with the locks' hashes checked, for this
Python and this kind of machine. `WHEELHOUSE=FOLDER` then makes the environments from them: `environments.offline`.
Packages that exist as source alone are built here, so that the other machine needs no compiler.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from commands import setup
from environments import environments, offline, uv
from environments.environments import Recipe
from environments.uv import SetupError
from measurement.places import SUITE
from measurement.text import make_command, shell_word
from plan.aliases import choose
from plan.options import Option
from plan.sweep import resolve

UV_PINS = "requirements-uv.txt"


def options() -> list[Option]:
    """Return the options of `setup` with COLLECT=FOLDER."""
    return [
        *setup.options(),
        Option("collect", "collect the packages in this folder, for a machine without internet", "FOLDER"),
    ]


def run(arguments: argparse.Namespace, report: Callable[[str], None] = print) -> int:
    """Collect the files of some frameworks' environments; returns the exit code. Raises UsageError."""
    names = resolve({"framework": arguments.framework}).axes["framework"]
    device = choose(arguments.device or "cpu", environments.DEVICES, "device")
    modes = setup.modes_of(names, arguments.mode)
    out = Path(arguments.collect).absolute()
    try:
        collect([environments.recipe(name, device, mode) for name in names for mode in ("", *modes)], out, report)
    except (SetupError, OSError) as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in out.iterdir() if path.is_file())
    report(f"{out}: {size / 1e6:.0f} MB. Copy it to the other machine and run there:")
    words = {"FRAMEWORK": ",".join(names), "DEVICE": device, "MODE": ",".join(modes), "WHEELHOUSE": "FOLDER"}
    report(make_command("setup", {name: value for name, value in words.items() if value}))
    return 0


def collect(recipes: list[Recipe | None], out: Path, report: Callable[[str], None] = print) -> None:
    """Put the files of uv, of the runner and of these recipes into `out`, and note them. Raises SetupError.

    Files that are already in `out` stay; a recipe of None needs no files of its own.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as scratch:
        pip = Pip(Path(scratch), out)
        report("collecting uv")
        pins = (SUITE / UV_PINS).read_text()
        pip.collect("uv", hashlib.sha256(pins.encode()).hexdigest(), pip.pinned(pins))
        for recipe in [environments.runner_recipe(), *filter(None, recipes)]:
            report(f"collecting {recipe.name}")
            pip.collect(recipe.name, recipe.fingerprint, files_of(recipe, pip))


def files_of(recipe: Recipe, pip: Pip) -> list[Path]:
    """Download all files of an environment."""
    hashed, unhashed = offline.split(recipe.requirements)
    files = pip.pinned(hashed)
    if unhashed:
        index_url = recipe.directives.get("unhashed-index") if not pip.has_find_links() else None
        files += pip.download([*(["--index-url", index_url] if index_url else []), "--no-deps", *unhashed])
    if recipe.from_index:
        index, requirement = recipe.from_index
        files += pip.download(["--extra-index-url", index, "--only-binary=:all:", requirement])
    return files


class Pip:
    """pip of this Python, in an environment of its own: uv cannot download without installing."""

    def __init__(self, scratch: Path, out: Path):
        self._scratch, self._out = scratch, out
        uv.run([sys.executable, "-m", "venv", str(scratch / "pip")], dict(os.environ), "pip could not be set up")
        self._pip = [str(scratch / "pip" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]

    def has_find_links(self) -> bool:
        """Return whether the user's settings name folders of files, which may hold a build for this machine."""
        return "find-links" in uv.run([*self._pip, "config", "list"], dict(os.environ), "pip's settings cannot be read")

    def pinned(self, requirements: str) -> list[Path]:
        """Download exactly the files that locked requirements name for this machine, hashes checked.

        Raises SetupError.
        """
        locked = self._scratch / "requirements.txt"
        locked.write_text(requirements)
        return self.download(["--no-deps", "--require-hashes", "--requirement", str(locked)])

    def download(self, words: list[str]) -> list[Path]:
        """Download into a folder of its own and return the files. Raises SetupError with pip's last lines."""
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        command = [*self._pip, "download", "--quiet", "--find-links", str(self._out), "--dest", str(folder), *words]
        uv.run(command, dict(os.environ), f"`pip download {' '.join(map(shell_word, words))}` failed")
        return sorted(folder.iterdir())

    def collect(self, environment: str, fingerprint: str, files: list[Path]) -> None:
        """Move the files of an environment into the wheelhouse, sources as the wheels they become, and note them."""
        built = [self.built(path) for path in files if path.suffix != ".whl"]
        kept = [path for path in files if path.suffix == ".whl"] + built
        hashes = {pin_of(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in built}
        for path in kept:
            os.replace(path, self._out / path.name)
        offline.note(self._out, environment, fingerprint, [path.name for path in kept], hashes)

    def built(self, source: Path) -> Path:
        """Build a source and return its wheel. Raises SetupError with the builder's last lines."""
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        command = [*self._pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
        uv.run(command, dict(os.environ), f"{source.name} has no wheel and could not be built")
        (wheel,) = folder.glob("*.whl")
        return wheel


def pin_of(wheel: Path) -> str:
    """Return the pin that a lock has for a wheel: name==version, the name as locks write it."""
    name, version = wheel.name.split("-")[:2]
    return f"{re.sub('[-_.]+', '-', name).lower()}=={version}"
