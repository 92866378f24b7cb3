"""Lengths of calls as counts, and seeded streams of them. Two distributions come with the suite, with their source."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

from measurement import files

HERE = Path(__file__).resolve().parent
NAMES = ("chat", "retrieval")
COLUMNS = ["length", "count"]
LARGEST_FILE = 1 << 22  # bytes


class NoLengths(ValueError):
    """A file of counts does not fit, in one sentence."""


@dataclass(frozen=True)
class Lengths:
    """How many calls have each length, in order of length. `source` holds the file's comment lines."""

    name: str
    counts: tuple[tuple[int, int], ...]
    source: tuple[str, ...] = ()

    @property
    def shortest(self) -> int:
        return self.counts[0][0]

    @property
    def longest(self) -> int:
        return self.counts[-1][0]

    def share_above(self, maximum: int) -> float:
        """Return which share of the calls is longer than `maximum`."""
        return sum(count for length, count in self.counts if length > maximum) / sum(count for _, count in self.counts)

    def clipped(self, maximum: int) -> Lengths:
        """Return the distribution with every longer call cut to `maximum`."""
        kept: dict[int, int] = {}
        for length, count in self.counts:
            kept[min(length, maximum)] = kept.get(min(length, maximum), 0) + count
        return replace(self, counts=tuple(kept.items()))

    def quantiles(self, parts: int) -> tuple[int, ...]:
        """Return the lengths that divide the calls into so many parts of about one size, the longest included."""
        sums = list(accumulate(count for _, count in self.counts))
        places = [next(n for n, done in enumerate(sums) if done * parts >= sums[-1] * part) for part in _from_1(parts)]
        return tuple(dict.fromkeys(self.counts[place][0] for place in places))

    def stream(self, calls: int, seed: int) -> tuple[int, ...]:
        """Return the lengths of so many calls, drawn with replacement; the same for the same seed."""
        lengths, weights = zip(*self.counts, strict=True)
        return tuple(random.Random(f"{self.name}/{seed}").choices(lengths, weights, k=calls))


def _from_1(count: int) -> Iterable[int]:
    return range(1, count + 1)


def read(word: str) -> Lengths:
    """Return the distribution of that name, or the file's: columns length,count. Raises NoLengths with a sentence."""
    path = HERE / f"{word}.csv" if word in NAMES else Path(word).expanduser()
    if word not in NAMES and path.suffix != ".csv":
        raise NoLengths(
            f"LENGTHS must be {', '.join(NAMES)}, or a CSV file with the columns length,count, not {word!r}."
        )
    try:
        lines = files.content(path, LARGEST_FILE).decode().splitlines()
    except OSError as error:
        raise NoLengths(f"The file {path} cannot be read: {error.strerror}.") from None
    except (files.Unfit, UnicodeDecodeError):
        raise NoLengths(f"{path} is no file of counts: give a CSV file with the columns length,count.") from None
    source = tuple(line.removeprefix("#").strip() for line in lines if line.startswith("#"))
    header, *rows = list(csv.reader(line for line in lines if line and not line.startswith("#"))) or [[]]
    if header != COLUMNS or not rows:
        raise NoLengths(f"{path} has no counts: the first line must be length,count, followed by rows.")
    counts: dict[int, int] = {}
    for row in rows:
        if len(row) != 2 or not all(cell.strip().isascii() and cell.strip().isdigit() for cell in row):
            raise NoLengths(f"{path} has the row {','.join(row)[:40]!r}: give two whole numbers, length,count.")
        length, count = int(row[0]), int(row[1])
        if length < 1 or count < 1 or length in counts:
            raise NoLengths(f"{path} gives length {length} count {count}: write each length, from 1, once.")
        counts[length] = count
    return Lengths(word if word in NAMES else path.stem, tuple(sorted(counts.items())), source)
