"""Where the suite lies and where it writes: in its checkout, or outside of it where a wheel installed it."""

from __future__ import annotations

import re
from pathlib import Path

SUITE = Path(__file__).resolve().parent.parent  # the folder of all the suite's packages
INSTALLED = not (SUITE / "Makefile").is_file()
NAME = "eager-vs-graph"
RESULTS = SUITE / "results"
PROGRAM = "egvg" if INSTALLED else "make"  # the first word of the suite's commands
SPEAKER = NAME if INSTALLED else "runner.py"  # begins what a command says of a refusal


def _cache() -> Path:
    """Return the folder of files that can be made again; the platform's where the suite is installed."""
    if not INSTALLED:
        return SUITE / ".cache"
    import platformdirs  # a dependency of the wheel; a checkout makes its environments with the standard library alone

    return Path(platformdirs.user_cache_dir(NAME))


CACHE = _cache()
VENVS = CACHE / "environments" if INSTALLED else SUITE / ".venvs"
RUNS = Path.cwd() / "egvg-runs" if INSTALLED else RESULTS / "runs"


def as_typed(text: str) -> str:
    """Return a text with the commands that it quotes as this installation has them: `egvg bench` for `make bench`."""
    return text if PROGRAM == "make" else re.sub(r"(?<=`)make(?=[` ])|\bmake(?= [a-z-]+ [A-Z]+=)", PROGRAM, text)


def shown(path: Path) -> str:
    """Return a path of the suite's as a user types it: relative to the suite or to the working folder, if inside."""
    for folder in (SUITE, Path.cwd()):
        if path.is_relative_to(folder):
            return str(path.relative_to(folder))
    return str(path)
