"""Files from users and other programs: only regular files are opened, and read up to a limit.

Standard library only: also needed before any environment exists.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


class Unfit(Exception):
    """A file of an unacceptable kind or size; the message is a clause about it, without a full stop."""


@contextlib.contextmanager
def opened(path: Path | str) -> Iterator[BinaryIO]:
    """Open a regular file for reading. Raises Unfit for a pipe, a device or a folder, and OSError."""
    # Without O_NONBLOCK opening a pipe waits for a writer.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Unfit("it is not a file, but a device, a pipe or a folder")
        yield file


def content(path: Path | str, limit: int) -> bytes:
    """Return the bytes of a regular file. Raises Unfit, also above `limit` bytes, and OSError."""
    with opened(path) as file:
        read = file.read(limit + 1)
    if len(read) > limit:
        raise Unfit(f"it has more than {limit >> 20} MiB")
    return read


def lines(file: BinaryIO | io.BufferedIOBase, limit: int) -> Iterator[bytes]:
    """Yield the lines of an open file. Raises Unfit for a line above `limit` bytes."""
    while line := file.readline(limit + 1):
        if len(line) > limit:
            raise Unfit(f"it has a line of more than {limit >> 20} MiB")
        yield line
