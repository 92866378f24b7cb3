"""Environments with a user model's additional packages; they are measured like PYTHON."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from environments.uv import SetupError
from measurement.refusals import UsageError, read_text
from plan import versions

LARGEST_FILE = 1 << 20  # bytes


def interpreter(
    path: str, frameworks: Sequence[str], devices: Sequence[str], report: Callable[[str], None], make: bool = True
) -> str | None:
    """Return the interpreter of an environment with the packages of a requirements file. Raises UsageError.

    Without `make` install nothing, and return None if the environment is missing.
    """
    kinds = list(dict.fromkeys(device.split(":")[0] for device in devices))
    if len(frameworks) != 1 or len(kinds) != 1:
        raise UsageError("REQUIREMENTS makes one environment: name one framework and one kind of device.")
    more = read_text(path, "The file of requirements", LARGEST_FILE)
    try:
        found = versions.ensure_beside(frameworks[0], kinds[0], more, report, make)
        return None if found is None else str(found)
    except SetupError as error:
        raise UsageError(f"REQUIREMENTS={path}: {error}") from None
