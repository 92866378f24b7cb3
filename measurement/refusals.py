"""Errors of one sentence, and the exit codes. Standard library only: needed before anything else."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from measurement import files

# Exit codes of the runner's commands, and their meanings; docs/robustness.md has a table.
DONE, FINDING, REFUSED, INCOMPLETE, INTERRUPTED = 0, 1, 2, 3, 130
MEANINGS = {DONE: "answered", FINDING: "slower than MAX_SLOWDOWN", REFUSED: "usage", INCOMPLETE: "inconclusive"}
MEANINGS |= {INTERRUPTED: "stopped"}
# Longer than any sweep file or checkpoint index; a longer file is something else, or endless.
MOST_TEXT = 1 << 26
_WAYS_OUT = {
    errno.ENOSPC: "free space there",
    errno.EDQUOT: "free space within your quota",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EACCES: "choose a writable place, or correct its permissions",
    errno.EPERM: "choose a writable place, or correct its permissions",
    errno.EROFS: "choose a writable place",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "choose another path",
    errno.ENOTDIR: "choose another path",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
}


class UsageError(Exception):
    """An invalid or impossible request; the message is one sentence with the way out."""


def sentence(error: OSError) -> str:
    """Return a sentence on the operating system's error, with the way out if known."""
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):  # of a folder: a text for each file
        _, copy, text = error.args[0][0]
        number = re.match(r"\[Errno (\d+)\]", str(text))
        error = OSError(int(number[1]), os.strerror(int(number[1])), str(copy)) if number else OSError(str(text))
    name = getattr(error, "filename", None)
    where = f"{os.fsdecode(name)}: " if isinstance(name, str | bytes) else "Output: " if name is None else ""
    why = error.strerror or str(error) or type(error).__name__
    way_out = _WAYS_OUT.get(error.errno or 0)
    return f"{where}{why}; {way_out}, then try again." if way_out else f"{where}{why}."


def unloaded(error: Exception) -> str | None:
    """Return why Python could not load a module, or lacked memory; None for another error."""
    if isinstance(error, MemoryError):
        return "Python ran out of memory: free some, or raise the limit (ulimit -v), then try again."
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    loading = any(code.co_name == "<module>" for code in codes[1:])  # the first is the command line's own
    if not isinstance(error, ImportError) and not loading:
        return None
    words = " ".join(f"{codes[-1].co_filename}: {type(error).__name__}: {error}".split())[:300]
    from measurement.places import INSTALLED, NAME

    way_out = f"install {NAME} again" if INSTALLED else "remove .venvs/runner, which `make` then makes again"
    return f"Python cannot load a module ({words}): clear PYTHONPATH, raise the memory limit (ulimit -v), or {way_out}."


@contextlib.contextmanager
def writing(path: Path | str, variable: str = "OUT") -> Iterator[None]:
    """Refuse a path that `variable` names if the system takes no file of the block there. Raises UsageError."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"{variable}={path} cannot be written: {why}; name another.") from None


@contextlib.contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Add the file's name to OSErrors in the block: refused writes do not name it."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def read_text(path: Path | str, what: str, limit: int = MOST_TEXT) -> str:
    """Return the text of a user's file. Raises UsageError, also for a pipe or an endless file."""
    try:
        content = files.content(path, limit)
    except OSError as error:
        raise UsageError(f"{what} {path} cannot be read: {error.strerror}.") from None
    except files.Unfit as problem:
        raise UsageError(f"{what} {path} cannot be read: {problem}.") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{what} {path} cannot be read: byte {error.start} is not UTF-8; save the file as UTF-8."
        ) from None


def prepare_streams() -> None:
    """Open descriptors 0 to 2 if they are closed, and make every text writable in any terminal encoding.

    The parent may close one of them (cron, `<&-`). The next pipe would then get its number, and a worker's output would
    be written into its results.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    os.environ.pop("PYTHONIOENCODING", None)  # of these streams: text from other processes is read as usual
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # a test's
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def silence(stream) -> None:
    """Discard all further output to a broken stream, including the flush at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def refused(sentence: str) -> int:
    """Print a refusal; return its exit code."""
    from measurement.places import SPEAKER, as_typed
    from measurement.text import plain

    try:
        print(f"{SPEAKER}: {plain(as_typed(sentence))}", file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:  # a full disk, also for what is still to be written
        silence(sys.stdout)
    return REFUSED
