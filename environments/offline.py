"""A wheelhouse: a folder of wheels that environments are made from without any index. `WHEELHOUSE` names it.

`wheelhouse.json` in it describes the collecting machine; `commands.wheelhouse` writes it. A folder of wheels without
that file works as well, but then only uv reports missing files.

Standard library only: needed to make the environments.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

MANIFEST = "wheelhouse.json"
# Settings that name another source of packages than the wheelhouse.
_SOURCES = (
    *("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_TORCH_BACKEND"),
    *("UV_INDEX_STRATEGY", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"),
)


def folder() -> Path | None:
    """Return the wheelhouse that the environment variable WHEELHOUSE names; None if it names none."""
    named = os.environ.get("WHEELHOUSE")
    return Path(named).expanduser().absolute() if named else None


def arguments(wheelhouse: Path | None) -> list[str]:
    """Return the options that limit pip and uv to the wheelhouse; none without one."""
    return ["--no-index", "--find-links", str(wheelhouse)] if wheelhouse else []


def without_sources(env: dict[str, str], wheelhouse: Path | None) -> dict[str, str]:
    """Return the variables; with a wheelhouse, without those of other package sources, and without network."""
    if wheelhouse is None:
        return env
    return {**{name: value for name, value in env.items() if name not in _SOURCES}, "UV_OFFLINE": "1"}


def machine() -> dict[str, str]:
    """Return the facts that decide which files fit: versions of Python and the C library (if known), and platform."""
    libc = " ".join(platform.libc_ver()).strip()
    version = ".".join(map(str, sys.version_info[:2]))
    return {"python": version, "platform": sysconfig.get_platform(), "libc": libc}


def read(wheelhouse: Path) -> dict[str, Any]:
    """Return the wheelhouse's own description: `machine()` and `environments`; empty if it has none."""
    try:
        return json.loads((wheelhouse / MANIFEST).read_text())
    except FileNotFoundError:
        return {}


def note(wheelhouse: Path, environment: str, fingerprint: str, files: list[str], built: dict[str, str]) -> None:
    """Record that `environment` needs `files`; `fingerprint` is that of its requirements.

    `built` has the SHA-256 of each wheel built from source, by its pin: locks contain only the source's.
    """
    content = {**read(wheelhouse), **machine()}
    entry = {"wanted": fingerprint, "files": sorted(files), "built": built}
    content["environments"] = {**content.get("environments", {}), environment: entry}
    (wheelhouse / MANIFEST).write_text(json.dumps(content, indent=1) + "\n")


def with_built(wheelhouse: Path | None, environment: str, requirements: str) -> str:
    """Return locked requirements that also accept the wheels that the wheelhouse built from source."""
    known = read(wheelhouse).get("environments", {}) if wheelhouse else {}
    for pin, digest in known.get(environment, {}).get("built", {}).items():
        first_line = rf"(?m)^({re.escape(pin)}(?=[ ;\\]).*\\)$"
        requirements = re.sub(first_line, rf"\1\n    --hash=sha256:{digest} \\", requirements)
    return requirements


def problem(wheelhouse: Path, environment: str, fingerprint: str) -> str | None:
    """Return why `environment` cannot be made from this wheelhouse, with the way out; None if nothing is known.

    Older C libraries are no reason: most wheels run on much older ones than the collecting machine's.
    """
    if not wheelhouse.is_dir():
        return f"there is no folder {wheelhouse}; `make setup COLLECT=FOLDER` makes one on a machine with internet."
    content = read(wheelhouse)
    if not content:
        return None
    here = machine()
    theirs, ours = (f"Python {m['python']} on {m['platform']}" for m in (content, here))
    if theirs != ours:
        return (
            f"the wheelhouse {wheelhouse} is for {theirs}, this is {ours}: collect one on a similar machine, with "
            f"the same Python."
        )
    entry = content["environments"].get(environment)
    if entry is None:
        there = ", ".join(sorted(content["environments"])) or "nothing"
        parts = re.fullmatch(r"(\w+)-(cpu|gpu)-?(.*)", environment)
        words = zip(("FRAMEWORK", "DEVICE", "MODE"), parts.groups() if parts else (), strict=False)
        variables = " ".join([*(f"{name}={word}" for name, word in words if word), "COLLECT=…"])
        return f"the wheelhouse {wheelhouse} has {there}, but not {environment}: make setup {variables} adds it."
    if entry["wanted"] != fingerprint:
        return (
            f"the wheelhouse {wheelhouse} has other requirements of {environment} than this version of the "
            f"suite: collect it again with this version, and the same PADDLE_INDEX if any."
        )
    missing = [name for name in entry["files"] if not (wheelhouse / name).is_file()]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        return f"the wheelhouse {wheelhouse} lacks {missing[0]}{more}, which {environment} needs: copy it again."
    return None


def hint(wheelhouse: Path | None) -> str:
    """Return a hint for a failure with a wheelhouse: where files came from, and for which C library."""
    if wheelhouse is None:
        return ""
    theirs, ours = read(wheelhouse).get("libc"), machine()["libc"]
    other = f", collected on a machine with {theirs}; this one has {ours or 'another C library'}"
    return f"Only the wheelhouse {wheelhouse} was searched{other if theirs and theirs != ours else ''}."


def split(requirements: str) -> tuple[str, list[str]]:
    """Return a lock's hashed requirements as text, and a list of those locked by version alone."""
    text = re.sub(r"(?m)^\s*#.*\n?", "", requirements).replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    hashed = [line for line in lines if "--hash=" in line]
    return "\n".join(hashed), [line for line in lines if "--hash=" not in line]
