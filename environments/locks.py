"""Locks that the kernel releases when the process that holds them ends, however it ends. Standard library only.

`flock` on a file: a lock belongs to an open file, so workers, which inherit none of these, hold none.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import json
import os
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

_BUSY = (errno.EWOULDBLOCK, errno.EACCES)
_shared: dict[Path, int] = {}  # lock file -> descriptor: what this process uses until it ends


class Busy(Exception):
    """Another process holds the lock; the message names it if known."""


@contextlib.contextmanager
def alone(path: Path) -> Iterator[Callable[[], bool]]:
    """Hold the lock file `path`, name the holder in it, and remove it afterwards. Raises Busy if it is held.

    Yields a check whether the lock is still in place: not if its folder was moved, or the file removed.
    """
    descriptor = _claimed(path)
    try:
        since = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        word = {"process": os.getpid(), "host": socket.gethostname(), "since": since}
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps(word).encode())
        yield partial(_is_at, descriptor, path)
    finally:
        if _is_at(descriptor, path):  # else the folder was cleared, and another process may hold a new one
            with contextlib.suppress(OSError):  # a file that stays is held by nobody
                path.unlink()
        os.close(descriptor)


def _claimed(path: Path) -> int:
    """Return a descriptor of the file at `path`, locked."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                if os.fstat(descriptor).st_nlink == 1:
                    return descriptor
                path.unlink()  # the file has a second hard link, so writes here would change that file, too
        except OSError as error:
            word = os.read(descriptor, 1000)
            os.close(descriptor)
            if error.errno in _BUSY:
                raise Busy(_holder(word)) from None
            error.filename = str(path)
            raise
        os.close(descriptor)  # its holder removed it


def _is_at(descriptor: int, path: Path) -> bool:
    """Return whether `path` still names the open file."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    return False


def _holder(word: bytes) -> str:
    """Return `process 12 since …`, from a holder's line."""
    try:
        held = json.loads(word)
        elsewhere = "" if held["host"] == socket.gethostname() else f" on {held['host']}"
        return f"process {held['process']}{elsewhere} since {held['since']}"
    except (ValueError, TypeError, KeyError):  # it has not written it yet
        return "another process"


@contextlib.contextmanager
def exclusive(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold `path` exclusively; call `waiting` before a wait. Releases this process's own share."""
    release(path)
    with open(path, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def share(path: Path, waiting: Callable[[], None] = lambda: None) -> None:
    """Share `path` with other holders until this process ends; this blocks `exclusive`.

    If it cannot be opened, this user cannot change the data that it guards either.
    """
    if path in _shared:
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        waiting()
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    _shared[path] = descriptor


def release(path: Path) -> None:
    """Release a lock of `share`."""
    if (descriptor := _shared.pop(path, None)) is not None:
        os.close(descriptor)


def is_free(folder: Path) -> bool:
    """Return whether nobody holds this folder by `hold_folder`."""
    with contextlib.suppress(OSError), hold_folder(folder):
        return True
    return False


@contextlib.contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Hold a folder. Raises OSError if another process has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
