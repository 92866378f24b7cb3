"""Atomic file replacement, and stored files with a digest that reveals changes.

A digest has the format of `sha256sum`: `name.sha256` next to its file, or `sha256sums` within a folder.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import resource
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

SUMS = "sha256sums"
READERS = 4  # threads that hash files
ROOM = 1 << 20  # size of the test file in bytes
_OF_A_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)


def replace(path: Path, content: bytes) -> None:
    """Replace a file atomically: the old content stays until the new one is on disk."""
    with replacing(path) as file:
        file.write(content)


def replace_text(path: Path, text: str) -> None:
    """Replace a text file as `replace` does; lone surrogates become escapes."""
    replace(path, text.encode("utf-8", "backslashreplace"))


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write in pieces; it replaces `path` when the block ends."""
    temporary = path.with_name(f".{path.name[:80]}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb", opener=no_link) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # or a crash can leave an empty file under the new name
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None  # a refused write names nothing
        raise


def no_link(path: str, flags: int) -> int:
    """Open a file for `open(…, opener=…)`; refuse a symbolic link, which would redirect the write."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def check_room(folder: Path, environment: Mapping[str, str]) -> None:
    """Raise OSError if a folder, or the disk of a process's temporary folder, accepts no file."""
    _write_and_drop(folder)
    try:
        _write_and_drop(Path(environment.get("TMPDIR") or "/tmp"))
    except OSError as error:
        if error.errno in _OF_A_DISK:  # a missing folder is the user's setting
            raise


def _write_and_drop(folder: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
            file.write(bytes(ROOM if limit == resource.RLIM_INFINITY else min(ROOM, limit)))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename, error.filename2 = str(folder), None
        raise


def sha256(path: Path) -> str:
    """Return the digest of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sums(folder: Path) -> str:
    """Return the digests of a folder's files, a line each."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    with ThreadPoolExecutor(READERS) as threads:
        return "".join(
            f"{digest}  {path.name}\n" for digest, path in zip(threads.map(sha256, files), files, strict=True)
        )


def beside(path: Path) -> Path:
    """Return the path of the digest of a file or of a folder's files."""
    return path / SUMS if path.is_dir() else path.with_name(path.name + ".sha256")


def digest_line(path: Path) -> str:
    """Return the line that records the digest of a file, or the lines for a folder's files."""
    return sums(path) if path.is_dir() else f"{sha256(path)}  {path.name}\n"


def fits(path: Path) -> bool:
    """Return whether a file, or a folder's files, match their digest; False if one is missing."""
    try:
        return beside(path).read_text() == digest_line(path)
    except (OSError, ValueError):
        return False


def seal(path: Path) -> str | None:
    """Return a digest that changes with every write to a file or to a folder's files; None if it is missing.

    It reads only metadata.
    """
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        states = [(file.name, os.stat(file)) for file in files]
    except OSError:
        return None
    known = [(name, s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for name, s in states]
    return hashlib.sha256(repr(known).encode()).hexdigest()
