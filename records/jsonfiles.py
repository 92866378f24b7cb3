"""JSON and JSON Lines files: read, appended to one line at a time, or written compressed and whole.

Readers check them against the shape of their name, so that no other code does; an error is one sentence with its place.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from measurement import checked, durable, files
from measurement.checked import Misfit
from measurement.refusals import UsageError, naming
from records import shapes

MOST_OF_A_FILE = 1 << 26
MOST_OF_A_LINE = 1 << 26
# A file that unpacks to more than these bytes and more than these times its size is not a file of samples.
MOST_UNPACKED, MOST_TIMES = 1 << 28, 50
_BLOCK = 1 << 20
_DIGEST = "digest"


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


def append(
    path: Path,
    entry: dict[str, Any],
    synced: bool = False,
    waiting: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Append one JSON line. First end a line that a crash truncated, so that it does not damage this one.

    If `synced`, wait within the context `waiting()` until the line is on disk.
    """
    with naming(path), open(path, "ab+", opener=durable.no_link) as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(entry, default=str).encode() + b"\n")
        file.flush()
        if synced:
            with waiting():
                os.fsync(file.fileno())


def write_compressed(path: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines with gzip, atomically; the same entries give the same bytes."""
    with durable.replacing(path) as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.writelines(json.dumps(entry).encode() + b"\n" for entry in entries)


def distinct(entries: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield each distinct entry once; keep only a digest of each."""
    seen = set()
    for entry in entries:
        if (digest := hashlib.blake2b(json.dumps(entry).encode(), digest_size=16).digest()) not in seen:
            seen.add(digest)
            yield entry


def amend(path: Path, changes: Mapping[str, dict[str, Any]]) -> None:
    """Change values in a file of records, by cell, in the cell's first line, atomically; all other lines stay."""
    left = dict(changes)
    with files.opened(path) as before, durable.replacing(path) as after:
        for line in before:
            record = json_object(line) or {}
            if changed := left.pop(record.get("cell", ""), None):
                line = json.dumps(record | changed).encode() + b"\n" * line.endswith(b"\n")
            after.write(line)


def line_count(path: Path) -> int:
    """Return the number of lines in a file, including a last line without a newline. Raises Unreadable."""
    count, last = 0, b"\n"
    with opened(path) as file:
        while block := file.read(_BLOCK):
            count += block.count(b"\n")
            last = block
    return count + (not last.endswith(b"\n"))


def sealed(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the entry with a digest of its content, which `intact` checks and removes."""
    return {**entry, _DIGEST: _digest(entry)}


def intact(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Return the sealed entry without its digest; None if the digest does not match."""
    content = {name: value for name, value in entry.items() if name != _DIGEST}
    return content if entry.get(_DIGEST) == _digest(content) else None


def _digest(entry: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True, default=str).encode()).hexdigest()[:16]
