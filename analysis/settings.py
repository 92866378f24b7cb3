"""Subject of a verdict: a setting on one machine, with its shapes, and records of the same on another machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

from analysis.points import ALIKE, USUAL, Point, Points, grouped, natural
from measurement.text import times
from records.record import Record


@dataclass(frozen=True)
class Words:
    """Properties of a mode from its framework's description; packages that know the frameworks provide them.

    `call` is the text that a user types; `default` whether users of the framework start with it. `deployed`: whether
    anybody runs a finished model in this mode; if not, a speedup over it has no use. `colour` is the framework's in
    every chart. `place` is the mode's among the framework's modes, which decides its symbol. A `rung` is a graph that
    nobody deploys, and verdicts ignore it.
    """

    call: str = ""
    default: bool = False
    deployed: bool = True
    colour: str = ""
    place: int | None = None
    rung: bool = False


Known = Mapping[tuple[str, str], Words]  # by framework and mode


@dataclass(frozen=True, order=True)
class Shape:
    """Batch and sequence length, or other parameters where a workload has no batch; sorted by size."""

    order: tuple
    batch: int | None = field(compare=False)
    length: int | None = field(compare=False)
    rest: str = field(compare=False)

    @classmethod
    def from_record(cls, record: Record) -> Shape:
        """Return the shape of a record."""
        return cls.sized(record.batch_size, record.seq_len, record.parameters)

    @classmethod
    def sized(cls, batch: int | None, length: int | None, parameters: str | None = None) -> Shape:
        """Return the shape of these sizes; without a batch, parameters distinguish it."""
        rest = "" if batch is not None else (parameters or "").replace(";", ", ")
        return cls((natural(batch), natural(length), natural(rest)), batch, length, rest)

    @property
    def text(self) -> str:
        """Return the shape in words."""
        parts = [] if self.batch is None else [f"batch {self.batch}"]
        parts += [] if self.length is None else [f"{self.length} tokens"]
        return ", ".join(parts) or self.rest or "the only shape"


@dataclass(eq=False)
class Setting:
    """Measured points of one setting on one machine, and those of the same setting on others (`elsewhere`).

    `facts` describe computation and machine in words, by the names of columns.
    """

    facts: dict[str, str]
    points: list[Point]
    elsewhere: list[Point]

    @property
    def name(self) -> str:
        """Return all facts in one line."""
        return ", ".join(filter(None, self.facts.values()))

    @cached_property
    def shapes(self) -> list[Shape]:
        """Return every shape that was measured, by size."""
        return sorted({Shape.from_record(point.record) for point in self.points})

    @cached_property
    def at(self) -> dict[Shape, list[Point]]:
        """Return the points of every shape."""
        return _by_shape(self.points)

    @cached_property
    def at_elsewhere(self) -> dict[Shape, list[Point]]:
        """Return the other machines' points of every shape."""
        return _by_shape(self.elsewhere)


def entrants(points: Iterable[Point]) -> dict[tuple, list[Point]]:
    """Return points by framework and machine, in their order."""
    return grouped(points, lambda point: (point.record.framework, point.record.machine))


def words_of(point: Point, known: Known) -> Words:
    """Return the properties of a point's mode."""
    return known.get((point.record.framework, point.record.mode), Words())


def deployed(framework: str, known: Known) -> bool:
    """Return whether anybody deploys a framework's baseline; True for a framework that `known` lacks."""
    return all(words.deployed or words.rung for (name, _), words in known.items() if name == framework)


def _by_shape(points: Iterable[Point]) -> dict[Shape, list[Point]]:
    return grouped(points, lambda point: Shape.from_record(point.record))


def settings(points: Points, known: Known) -> list[Setting]:
    """Return every setting with measured points, those of most frameworks and points first, without rungs.

    Implementations, precisions, masks and all else that must be equal are separate settings, and so are machines unless
    `points` compare across them.
    """
    groups: dict[tuple, dict[tuple | None, list[Point]]] = defaultdict(lambda: defaultdict(list))
    at: dict[int, list[Point]] = {}  # the same lists, by `Point.place`
    for point in points.measured:
        words = known.get((point.record.framework, point.record.mode))
        if words and words.rung:
            continue
        if (group := at.get(point.place)) is None:
            of_setting = groups[_key(point.record)]
            group = at[point.place] = of_setting[None if points.across else point.record.machine]
        group.append(point)
    by_setting = []
    for machines in groups.values():
        for here in machines.values():
            others = [point for group in machines.values() if group is not here for point in group]
            by_setting.append(Setting(_facts(here, points), here, others))
    return sorted(by_setting, key=lambda setting: (-len(entrants(setting.points)), -len(setting.points)))


alike = attrgetter(*ALIKE)


def _key(record: Record) -> tuple:
    parameters = record.parameters if record.batch_size is not None else None
    return *alike(record), parameters


def _facts(here: list[Point], points: Points) -> dict[str, str]:
    """Return the setting in words, by name; usual values are empty."""
    record = here[0].record
    machines = list(dict.fromkeys(points.machines[point.record.machine] for point in here))
    several = len(points.machines) > 1 or record.device in ("cpu", "gpu:0")
    parameters = record.other_parameters if record.batch_size is not None else ()
    words = {
        "workload": record.workload,
        "implementation": "" if record.implementation == "own" else str(record.implementation),
        "parameters": ", ".join(part.replace("=", " ") for part in parameters if not part.endswith("=none")),
        "machine": machines[0] if len(machines) == 1 else "several machines",
        "device": "" if several else str(record.device),
        "threads": times(record.threads, "thread") if record.threads and record.device_kind == "cpu" else "",
        "dtype": str(record.dtype),
    }
    words |= {
        axis: "" if (value := getattr(record, axis)) in (None, usual) else str(value) for axis, usual in USUAL.items()
    }
    varies = len({point.record.weights for point in points.measured}) > 1
    return words | {"weights": f"weights {record.weights}" if varies else ""}
