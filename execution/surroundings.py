"""Surroundings of a worker's command: a container, and a node's local disk."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from measurement.places import SUITE
from measurement.refusals import UsageError

APPTAINER, PYXIS = "apptainer", "pyxis"
SCRATCH = SUITE / "launchers" / "scratch.py"


@dataclass(frozen=True)
class Surroundings:
    """A folder on the node's local disk, and a container image with the tool that runs it."""

    scratch: str | None = None
    tool: str | None = None
    image: str | None = None

    def prefix(self, folders: list[Path], gpu: bool, python: str | None) -> tuple[str, ...]:
        """Return the words before a worker's command; the container mounts the suite, `folders` and scratch disk."""
        words: list[str] = []
        if self.tool == APPTAINER:
            binds = [word for folder in self._shown(folders) for word in ("--bind", str(folder))]
            words += ["apptainer", "exec", *(["--nv"] if gpu else []), *binds, str(self.image)]
        if self.scratch:
            words += [python if self.tool and python else sys.executable, "-IS", str(SCRATCH), self.scratch]
        return tuple(words)

    def options(self, folders: list[Path]) -> tuple[str, ...]:
        """Return srun's options for the container; empty without pyxis."""
        if self.tool != PYXIS:
            return ()
        mounts = ",".join(f"{folder}:{folder}" for folder in self._shown(folders))
        return (f"--container-image={self.image}", f"--container-mounts={mounts}", f"--container-workdir={SUITE}")

    def relay(self, python: str | None) -> str:
        """Return the interpreter of the suite's relay on a node: in a pyxis container that of the image."""
        return (python or "python3") if self.tool == PYXIS else sys.executable

    def _shown(self, folders: list[Path]) -> list[Path]:
        return list(dict.fromkeys([SUITE, *folders, *([Path(self.scratch)] if self.scratch else [])]))


def resolve(scratch: str | None, container: str | None, python: str | None) -> Surroundings:
    """Return the surroundings from SCRATCH and CONTAINER. Raises UsageError."""
    if scratch and not Path(scratch).is_absolute():
        raise UsageError(
            f"SCRATCH={scratch} is not an absolute path; name a folder on each node's own disk, such as /tmp."
        )
    if not container:
        return Surroundings(scratch)
    tool, colon, image = container.partition(":")
    if tool not in (APPTAINER, PYXIS) or not colon or not image:
        raise UsageError(
            f"CONTAINER={container} names no container runtime: write CONTAINER={APPTAINER}:image.sif, "
            f"or CONTAINER={PYXIS}:nvcr.io#nvidia/pytorch:25.01-py3."
        )
    if not python:
        raise UsageError(f"CONTAINER={container} needs PYTHON=, the interpreter in the image, such as python3.")
    return Surroundings(scratch, tool, image)
