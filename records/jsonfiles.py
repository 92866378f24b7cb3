"""JSON and JSON Lines files, checked against the shape of their name; an error is one sentence with its place.

Code that uses these readers does not check again.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from measurement import checked, files
from measurement.checked import Misfit
from measurement.refusals import UsageError
from records import shapes

MOST_OF_A_FILE = 1 << 26
MOST_OF_A_LINE = 1 << 26
# A file that unpacks to more than these bytes and more than these times its size is not a file of samples.
MOST_UNPACKED, MOST_TIMES = 1 << 28, 50
_BLOCK = 1 << 20


class Unreadable(UsageError):
    """A file's content does not fit its reader; the message is one sentence with a remedy."""


def read_object(path: Path) -> dict[str, Any]:
    """Return a JSON file's object, empty if the file does not exist. Raises Unreadable."""
    way_out = "start a new run" if shapes.KINDS.get(path.name) is shapes.Plan else "remove it, then try again"
    try:
        text = files.content(path, MOST_OF_A_FILE)
        entry = json.loads(text)
        if not isinstance(entry, dict):
            raise ValueError
        return _fitting(path, entry)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}.") from None
    except (files.Unfit, Misfit) as problem:
        raise Unreadable(f"{path} is truncated or was changed: {problem}; {way_out}.") from None
    except (ValueError, RecursionError):
        raise Unreadable(f"{path} is truncated or was changed: it is not a JSON object; {way_out}.") from None


def lines(path: Path, truncated: list[int] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a JSONL file, compressed or not; none if the file does not exist.

    Skip other lines, and add their numbers to `truncated`. Raises Unreadable.
    """
    for number, entry in numbered(path, truncated):
        try:
            yield _fitting(path, entry)
        except Misfit as problem:
            raise Unreadable(f"{path}, line {number}: {problem}; remove that line.") from None


def numbered(path: Path, truncated: list[int] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the JSON object, of any shape, of each line of a JSONL file. Raises Unreadable."""
    with contextlib.suppress(FileNotFoundError), opened(path) as file:
        if path.suffix == ".gz":
            _check_packed(path, file)
        unpacked = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        for number, line in enumerate(files.lines(unpacked, MOST_OF_A_LINE), 1):
            if (entry := json_object(line)) is not None:
                yield number, entry
            elif truncated is not None and line.strip():
                truncated.append(number)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading. Raises FileNotFoundError, or Unreadable for other files or failed reads."""
    try:
        with files.opened(path) as file:
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror or error}.") from None
    except files.Unfit as problem:
        raise Unreadable(f"{path} cannot be read: {problem}; move it away, then try again.") from None


def json_object(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line; None if it has none or a truncated one."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _fitting(path: Path, entry: dict[str, Any]) -> dict[str, Any]:
    if kind := shapes.KINDS.get(path.name):
        checked.value(kind, entry, "")
    return entry


def _check_packed(path: Path, file: BinaryIO) -> None:
    """Raise Unreadable unless a compressed file is complete and unpacks to a plausible size; rewind it."""
    packed, unpacked = file.seek(0, 2), 0
    most = max(MOST_UNPACKED, MOST_TIMES * packed)
    file.seek(0)
    try:
        with gzip.GzipFile(fileobj=file) as reader:
            while block := reader.read(_BLOCK):
                if (unpacked := unpacked + len(block)) > most:
                    raise files.Unfit(f"its {packed:,} bytes unpack to more than {most >> 20} MiB")
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise Unreadable(
            f"{path} is truncated or was changed: it is not a gzip file; move it away, then try again."
        ) from None
    file.seek(0)
