"""Files that a worker writes for the suite: a failed write is never a cell's result, and ends the process."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from measurement import durable

# Errors that a framework causes in its own process: leaks of descriptors or memory, descriptors that it closed.
_OF_THE_PROCESS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EBADF, errno.ESPIPE)
# As the user set them, before a framework is loaded or a model changes them.
_TEMPORARY = {"TMPDIR": os.environ.get("TMPDIR", "")}
_LONGEST_FILE = resource.getrlimit(resource.RLIMIT_FSIZE)


class Unwritten(BaseException):
    """The system refused to write a suite file. No Exception, so handlers of cell failures do not catch it."""

    def __init__(self, error: OSError, path: Path | str):
        super().__init__(str(error))
        self.number, self.path = error.errno or errno.EIO, str(error.filename or path)


@contextlib.contextmanager
def suite_file(path: Path | str) -> Iterator[None]:
    """Write a suite file in the block. Raises Unwritten, and OSError for errors that a cell caused in this process."""
    try:
        yield
    except OSError as error:
        if _is_of_the_process(error):
            raise
        raise Unwritten(error, path) from error


def _is_of_the_process(error: OSError) -> bool:
    if error.errno == errno.EFBIG:
        return resource.getrlimit(resource.RLIMIT_FSIZE) != _LONGEST_FILE
    return error.errno in _OF_THE_PROCESS


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Write arrays into a file and return its path. Raises Unwritten."""
    packed = io.BytesIO()  # packing can fail for the arrays alone, and writing for the disk alone
    np.savez(packed, **arrays)  # type: ignore[arg-type]
    with suite_file(path):
        path.write_bytes(packed.getbuffer())
    return str(path)


def check_room(folder: Path | str) -> None:
    """Raise Unwritten if this folder, or the temporary one, accepts no file: that may have caused a failure."""
    try:
        durable.check_room(Path(folder), _TEMPORARY)
    except OSError as error:
        if not _is_of_the_process(error):
            raise Unwritten(error, folder) from error
