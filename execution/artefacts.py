"""Artefacts of `make start`, and compiled code of a stopped `bench`: used only if they match completely.

They are in the run's folder, each with a manifest.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from measurement import durable

MANIFEST = "manifest.json"
_FACTS = {
    "run": "another run",
    "cell": "another model, shape or device",
    "strategy": "another strategy",
    "model": "another version of the model",
    "weights": "other weights",
    "machine": "another machine",
    "code": "another version of the suite",
}


def seal(folder: Path, facts: Mapping[str, Any], seconds: float = 0.0) -> None:
    """Write the manifest of a finished artefact: its facts, the digest of each file, and the seconds it took."""
    files = {str(path.relative_to(folder)): durable.sha256(path) for path in _files(folder)}
    content = {"facts": dict(facts), "files": files, "seconds": seconds}
    durable.replace(folder / MANIFEST, (json.dumps(content, indent=1) + "\n").encode())


def problem(folder: Path, facts: Mapping[str, Any]) -> str | None:
    """Return a clause on why an artefact cannot be used; None if it matches, empty if it does not exist."""
    if not folder.exists():
        return ""
    try:
        content = json.loads((folder / MANIFEST).read_text())
        known, files = dict(content["facts"]), dict(content["files"])
        float(content["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return "its manifest is missing or incomplete"
    if known.get("versions") != facts["versions"]:
        return f"it was made with other versions ({_differing(known.get('versions'), facts['versions'])})"
    for name, what in _FACTS.items():
        if known.get(name) != facts.get(name):
            return f"it was made for {what}"
    if any(path.is_symlink() for path in folder.rglob("*")):
        return "it holds a link"
    there = {str(path.relative_to(folder)) for path in _files(folder)}
    if there != set(files):
        odd = min(there ^ set(files))
        return f"{odd} is {'missing' if odd in files else 'unexpected'}"
    changed = [name for name, digest in files.items() if durable.sha256(folder / name) != digest]
    return f"{changed[0]} is truncated or was changed" if changed else None


def restore(folder: Path, facts: Mapping[str, Any]) -> bool:
    """Remove the files added after the seal; return whether all other files have the sealed contents."""
    try:
        sealed = json.loads((folder / MANIFEST).read_text())["files"].keys()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    for path in _files(folder):
        if str(path.relative_to(folder)) not in sealed:
            path.unlink()
    return problem(folder, facts) is None


def seconds(folder: Path) -> float:
    """Return the seconds that a sealed artefact took to make."""
    return float(json.loads((folder / MANIFEST).read_text())["seconds"])


def size(folder: Path) -> int:
    """Return the size of an artefact's files in bytes."""
    return sum(path.stat().st_size for path in _files(folder))


def copy(folder: Path, to: Path) -> None:
    """Copy files and folders, without an artefact's manifest: a user model may leave sockets, pipes and links."""

    def others(within: str, names: list[str]) -> set[str]:
        paths = [Path(within, name) for name in names]
        kept = {path.name for path in paths if not path.is_symlink() and (path.is_file() or path.is_dir())}
        return set(names) - kept | {MANIFEST}

    shutil.copytree(folder, to, ignore=others, dirs_exist_ok=True)


def remove(folder: Path) -> None:
    """Remove an artefact, or any other file in its place."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)


def _differing(known: Any, versions: Mapping[str, str]) -> str:
    known = known if isinstance(known, dict) else {}
    names = [name for name in versions if known.get(name) != versions[name]]
    return ", ".join(f"{name} {known.get(name, 'missing')}, now {versions[name]}" for name in names[:2]) or "unknown"
