"""JSON lines: appended one at a time, or written compressed and whole."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from measurement import durable, files
from measurement.refusals import naming
from records import jsonfiles

_DIGEST = "digest"


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
            record = jsonfiles.json_object(line) or {}
            if changed := left.pop(record.get("cell", ""), None):
                line = json.dumps(record | changed).encode() + b"\n" * line.endswith(b"\n")
            after.write(line)


def line_count(path: Path) -> int:
    """Return the number of lines in a file, including a last line without a newline. Raises Unreadable."""
    count, last = 0, b"\n"
    with jsonfiles.opened(path) as file:
        while block := file.read(1 << 20):
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
