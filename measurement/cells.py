"""A cell is one point of the sweep; cells that differ only in their mode form a group and are measured together."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from measurement.checked import Count

ParameterValue = int | str
PEAK_PREFIX = "peak:"  # before a peak benchmark's id: the sweep may hold the same cell


@dataclass(frozen=True)
class Cell:
    """One point of the sweep.

    `parameters` holds the workload's own parameters in the workload's order, e.g.
    `(("batch_size", 1), ("seq_len", 128), ("mask", "none"))`. `threads` counts intra-op CPU threads. `device` is
    `cpu` or `gpu:<index>`.
    """

    framework: str
    workload: str
    implementation: str
    pass_name: str
    device: str
    dtype: str
    threads: int
    parameters: tuple[tuple[str, ParameterValue], ...]
    mode: str
    shapes: str = "static"  # dynamic: graphs must accept every batch size and sequence length

    @property
    def group_id(self) -> str:
        """Return the cell's name without its mode: cells with one `group_id` are compared with each other."""
        shape = ",".join(f"{name}={value}" for name, value in self.parameters)
        return "/".join(
            (
                *(self.framework, self.workload, self.implementation, self.pass_name),
                *(self.device, self.dtype, f"threads={self.threads}", shape),
                *(["shapes=dynamic"] if self.shapes == "dynamic" else []),
            )
        )

    @property
    def id(self) -> str:
        """Return a stable name for the cell: `--filter` matches it and `--resume` looks it up."""
        return f"{self.group_id}/{self.mode}"

    @property
    def device_kind(self) -> str:
        """`cpu` or `gpu`, without the index."""
        return self.device.split(":")[0]

    @property
    def ranks(self) -> int:
        """Return how many processes or devices train together."""
        return int(self.parameter("ranks", 1) or 1)

    def parameter(self, name: str, default: ParameterValue | None = None) -> ParameterValue | None:
        """Return the value of a workload parameter, or `default` if the cell lacks it."""
        return dict(self.parameters).get(name, default)

    def to_json(self) -> dict[str, Any]:
        """Return the cell as JSON-ready data; `from_json` reads it back."""
        return {**vars(self), "parameters": dict(self.parameters)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cell:
        """Return the cell from `to_json`'s data."""
        return cls(**{**data, "parameters": tuple(data["parameters"].items())})


def matches(cell: str, pattern: str) -> bool:
    """Return whether a cell's name contains `pattern`, or matches it as a shell wildcard."""
    return fnmatch.fnmatch(cell, pattern) if any(c in pattern for c in "*?[") else pattern in cell


@dataclass(frozen=True)
class Effective:
    """Settings in effect, read back from the framework after they were set. None if it reports none."""

    threads: int | None = None
    device_name: str | None = None
    tf32: bool | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)  # versions of CUDA and cuDNN as the framework reports them


@dataclass(frozen=True)
class Capture:
    """Result of graph capture so far.

    `whole` is true if one graph holds the entire model. `compilations` counts compilations and traces; warm-up waits
    until it is stable. A change in the timed region is flagged. `loaded` is true if all compiled code came from the
    compile cache, hence from an earlier process. It is None if the framework keeps no such cache or does not report it.

    The other fields are for user models: `breaks` lists the graph breaks and `recompiled` the recompiled code, each
    place with the framework's reason. `recompilations` counts recompilations from the first call. `calls_outside`
    counts the calls that entered no graph, for the reason in `gave_up`.
    """

    whole: bool
    graphs: int | None = None
    graph_breaks: int | None = None
    compilations: int | None = None
    backend: str | None = None
    detail: str = ""
    loaded: bool | None = None
    breaks: tuple[tuple[str, str], ...] = ()
    recompiled: tuple[tuple[str, str], ...] = ()
    recompilations: Count = 0
    calls_outside: Count = 0
    gave_up: str = ""
