"""Lengths of calls as counts, and seeded streams of them. The suite includes two distributions, with sources."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

from measurement import files

HERE = Path(__file__).resolve().parent
NAMES = ("chat", "retrieval")
COLUMNS, BATCHES = ["length", "count"], ["length", "batch", "count"]
LARGEST_FILE = 1 << 22  # bytes
MOST_DIGITS = 12


class NoLengths(ValueError):
    """An invalid file of counts, in one sentence."""


@dataclass(frozen=True)
class Lengths:
    """How many calls have each length, in order of length. `source` holds the file's comment lines.

    `batches` holds the batch size of each of these counts, if the file names it.
    """

    name: str
    counts: tuple[tuple[int, int], ...]
    source: tuple[str, ...] = ()
    batches: tuple[int, ...] = ()

    @property
    def shortest(self) -> int:
        return self.counts[0][0]

    @property
    def longest(self) -> int:
        return self.counts[-1][0]

    def share_above(self, maximum: int) -> float:
        """Return the share of calls longer than `maximum`."""
        return sum(count for length, count in self.counts if length > maximum) / sum(count for _, count in self.counts)

    def clipped(self, maximum: int) -> Lengths:
        """Return the distribution with every longer call cut to `maximum`."""
        return replace(self, counts=tuple((min(length, maximum), count) for length, count in self.counts))

    def quantiles(self, parts: int) -> tuple[int, ...]:
        """Return the lengths that divide the calls into `parts` of about equal size, the longest included."""
        sums = list(accumulate(count for _, count in self.counts))
        after = [sums[-1] * part for part in range(1, parts + 1)]
        places = [next(n for n, done in enumerate(sums) if done * parts >= limit) for limit in after]
        return tuple(dict.fromkeys(self.counts[place][0] for place in places))

    def stream(self, calls: int, seed: int, batch: int = 1) -> tuple[tuple[int, int], ...]:
        """Return length and batch size of `calls` calls, drawn with replacement; the same for the same seed.

        `batch` is the batch size if the file names none.
        """
        shapes, weights = list(zip(*self.shapes(batch), strict=True)), [count for _, count in self.counts]
        return tuple(random.Random(f"{self.name}/{seed}").choices(shapes, weights, k=calls))

    def shapes(self, batch: int = 1) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the length and the batch size of each count; `batch` is the batch size if the file names none."""
        return tuple(length for length, _ in self.counts), self.batches or (batch,) * len(self.counts)


def read(word: str) -> Lengths:
    """Return the distribution of that name or CSV file (length,count or length,batch,count). Raises NoLengths."""
    path = HERE / f"{word}.csv" if word in NAMES else Path(word).expanduser()
    if word not in NAMES and path.suffix != ".csv":
        raise NoLengths(
            f"LENGTHS must be {', '.join(NAMES)}, or a CSV file with the columns length,count, not {word!r}."
        )
    try:
        lines = files.content(path, LARGEST_FILE).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise NoLengths(f"The file {path} cannot be read: {error.strerror}.") from None
    except (files.Unfit, UnicodeDecodeError):
        raise NoLengths(f"{path} is no file of counts: give a CSV file with the columns length,count.") from None
    source = tuple(line.removeprefix("#").strip() for line in lines if line.startswith("#"))
    written = [line.split(",") for line in lines if line.strip() and not line.startswith("#")] or [[]]
    header, *rows = [[cell.strip(' \t"') for cell in row] for row in written]
    if header not in (COLUMNS, BATCHES):
        raise NoLengths(f"{path} has no counts: the first line must be length,count or length,batch,count.")
    if not rows:
        raise NoLengths(f"{path} has no counts: write rows of {','.join(header)} below its first line.")
    names = ",".join(header)
    counts: dict[tuple[int, ...], int] = {}
    for row in rows:
        if len(row) != len(header) or not all(map(_is_count, row)):
            raise NoLengths(
                f"{path} has the row {','.join(row)[:40]!r}: give {len(header)} whole numbers, {names}, of at most "
                f"{MOST_DIGITS} digits."
            )
        *shape, count = map(int, row)
        if min(*shape, count) < 1 or tuple(shape) in counts:
            raise NoLengths(f"{path} has the row {','.join(row)}: write numbers from 1, and each shape once.")
        counts[tuple(shape)] = count
    ordered = sorted(counts.items())
    batches = tuple(shape[1] for shape, _ in ordered) if header == BATCHES else ()
    return Lengths(
        word if word in NAMES else path.stem, tuple((shape[0], count) for shape, count in ordered), source, batches
    )


def _is_count(cell: str) -> bool:
    return cell.isascii() and cell.isdigit() and len(cell) <= MOST_DIGITS
