"""Evidence of a reproduction: records to be searched by shape, and profiles of explained cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from analysis import starts, streams
from measurement.statistics import Interval
from records.record import FIELDS, SCHEMA_VERSION, Record, Row
from records.shapes import Profile, of_baseline


def value(record: Record, name: str) -> Any:
    """Return a parameter of the record's workload by its name, else a column."""
    parameter = record.parameter(name)
    return getattr(record, FIELDS.get(name, name), None) if parameter is None else parameter


def published(row: Row, speedup: float | None = None) -> Record:
    """Return the record of a published row by its columns, torch's on a GPU by default; ratios have no width."""
    usual = {"schema_version": SCHEMA_VERSION, "cell": "", "status": "ok", "framework": "torch", "device": "gpu:0"}
    ratios = dict.fromkeys(("speedup_vs_eager", "speedup_ci_low", "speedup_ci_high"), speedup)
    return Record.from_row({**usual, **ratios, **row})


def exactly(ms: float) -> dict[str, float]:
    """Return the columns of a latency for which a source gives no interval, as one without width."""
    return dict.fromkeys(("latency_ms_median", "latency_ms_ci_low", "latency_ms_ci_high"), ms)


def shape_of(record: Record) -> str:
    """Return a shape as text: `8×128`, `batch 8`, or without a batch its last parameter or `any batch`."""
    if not record.batch_size:
        return ", ".join(part.replace("=", " ") for part in record.other_parameters[-1:]) or "any batch"
    return f"{record.batch_size}×{record.seq_len}" if record.seq_len else f"batch {record.batch_size}"


def latency_of(record: Record) -> Interval | None:
    """Return the median latency in ms; None without an interval, for an excluded record, and on a slow host."""
    return None if record.excluded or record.slowed else record.latency


def rate_of(record: Record, rate: float | None) -> Interval | None:
    """Return a rate at the median latency with the interval of the latency; None without either."""
    latency = latency_of(record)
    if not rate or latency is None:
        return None
    return Interval(rate, rate * latency.value / latency.high, rate * latency.value / latency.low)


def speedup_of(record: Record) -> Interval | None:
    """Return eager time over this mode's; None without an interval, for an excluded record, and on a slow host."""
    return record.speedup if record.headline else None


def gain_of(record: Record) -> Interval | None:
    """Return the share of eager's time that the graph saves, (eager − graph) / eager, in percent."""
    ratio = speedup_of(record)
    return ratio.map(lambda times: 100 * (1 - 1 / times)) if ratio else None


def apart(*records: Record) -> bool:
    """Return whether several machines measured them.

    Eager mode's speed may differ twofold between hosts, so figures of two machines enter no ratio and no order.
    """
    return len({record.machine_id for record in records}) > 1


class Records:
    """Records that can be searched: `records.where(threads=1, mode="eager")`."""

    def __init__(self, records: Iterable[Record]):
        self._records = list(records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def where(self, **criteria) -> Records:
        """Return those with these values; a tuple or list offers several."""

        def fits(record: Record) -> bool:
            return all(
                value(record, name) in (wanted if isinstance(wanted, (tuple, list)) else (wanted,))
                for name, wanted in criteria.items()
            )

        return Records(record for record in self if fits(record))

    def on(self, device_kind: str) -> Records:
        """Return those of `cpu` or `gpu`."""
        return Records(record for record in self if record.device_kind == device_kind)

    def by_machine(self) -> list[Records]:
        """Return those of each machine, in the order of first appearance."""
        return [self.where(machine_id=name) for name in dict.fromkeys(record.machine_id for record in self)]

    @property
    def included(self) -> Records:
        """Return those that are not excluded."""
        return Records(record for record in self if not record.excluded)

    @property
    def eager(self) -> Records:
        return Records(record for record in self if record.is_baseline)

    @property
    def graph(self) -> Records:
        """Return those of any graph mode."""
        return Records(record for record in self if not record.is_baseline)

    def find_one(self, **criteria) -> Record | None:
        """Return the only measured one with these values; None where there is none or more than one."""
        matching = list(self.where(**criteria).included)
        return matching[0] if len(matching) == 1 else None

    def values(self, name: str) -> list:
        """Return the different values of a column or parameter, sorted, of the records that have one."""
        return sorted({value(record, name) for record in self} - {None})

    def sorted_by(self, name: str) -> list[Record]:
        return sorted(self, key=lambda record: value(record, name))


@dataclass(frozen=True)
class Evidence:
    """The records of an experiment's sweeps, and the profiles of its explained cells (see `commands.explain`).

    `references` are the records of frameworks without a graph mode, such as Python itself. `paired` gives the ratio of
    the times of two records where one process timed them in turn, and None elsewhere. `by_process` gives ln of a
    record's speedup by process, as far as samples are there. `starts` and `streams` are the cells that those
    commands measured.
    """

    records: Records
    profiles: tuple[Profile, ...] = ()
    references: Records = field(default_factory=lambda: Records(()))
    paired: Callable[[Record, Record], Interval | None] = lambda this, other: None
    by_process: Callable[[Record], Mapping[tuple, float]] = lambda record: {}
    starts: tuple[starts.Cell, ...] = ()
    streams: tuple[streams.Cell, ...] = ()

    @property
    def device_kinds(self) -> set[str]:
        """Return `cpu`, `gpu` or both."""
        devices = [profile["device"] for profile in self.profiles]
        devices += [cell.record.device for cell in self.starts] + [cell.record.device for cell in self.streams]
        return {record.device_kind for record in self.records} | {device.partition(":")[0] for device in devices}

    def sides(self) -> dict[str, Evidence]:
        """Return every framework's graph mode with its eager mode, by name (framework and mode)."""
        sides = {}
        for framework, side in self.frameworks().items():
            baselines = tuple({mode for _, mode, baseline in side.modes() if baseline})
            for mode in dict.fromkeys(mode for _, mode, baseline in side.modes() if not baseline):
                chosen = (*baselines, mode)
                profiles = tuple(profile for profile in side.profiles if profile["mode"] in chosen)
                sides[f"{framework} {mode}"] = replace(side, records=side.records.where(mode=chosen), profiles=profiles)
        return sides

    def modes(self) -> list[tuple[str, str, bool]]:
        """Return framework and mode of every record and profile, and whether it is the baseline."""
        modes = [(record.framework, record.mode, record.is_baseline) for record in self.records]
        return modes + [(profile["framework"], profile["mode"], of_baseline(profile)) for profile in self.profiles]

    def frameworks(self) -> dict[str, Evidence]:
        """Return every framework that has graph modes, with all its modes."""
        names = dict.fromkeys(framework for framework, _, baseline in self.modes() if not baseline)
        references = Records(record for record in self.records if record.framework not in names)
        return {
            name: replace(
                self,
                records=self.records.where(framework=name),
                profiles=tuple(profile for profile in self.profiles if profile["framework"] == name),
                references=references,
            )
            for name in names
        }

    def profile(self, **criteria) -> Profile | None:
        """Return the only profile with these values of cell or workload parameters; None for none or several."""
        matching = [p for p in self.profiles if all({**p, **p["parameters"]}.get(k) == v for k, v in criteria.items())]
        return matching[0] if len(matching) == 1 else None
