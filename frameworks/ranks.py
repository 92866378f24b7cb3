"""Processes of a framework that train together: their collectives (`Ranks`), and the start of the others (`Others`)."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

RANK = "EAGER_VS_GRAPH_RANK"  # the variable with a process's rank; rank 0 has none
PLACE = "EAGER_VS_GRAPH_PLACE"  # and with its number on its node, where that differs
ALONE = "this command measures one rank only: use `make bench` for RANKS above 1."
PROGRAM = "operators are not listed on several ranks"


def own() -> int:
    """Return the rank of this process."""
    return int(os.environ.get(RANK, "0"))


def place() -> int:
    """Return the number of this process among those of its node."""
    return int(os.environ.get(PLACE, own()))


class Ranks(ABC):
    """One process's place among several. Every method is called by all of them in the same order."""

    @abstractmethod
    def share(self, value: Any) -> Any:
        """Return rank 0's value on every rank; the others pass None."""

    @abstractmethod
    def gather(self, value: Any) -> list:
        """Return the values of all ranks in their order on rank 0, and an empty list elsewhere."""

    @abstractmethod
    def barrier(self) -> None:
        """Wait until every rank is here."""


class Others(ABC):
    """The processes that rank 0 started."""

    kept: Any = None  # an object that must live that long

    @abstractmethod
    def wait(self) -> dict[int, int]:
        """Wait until one has failed or all have ended; return exit codes by rank of those that failed."""

    @property
    @abstractmethod
    def processes(self) -> Sequence[int]:
        """Return their process ids."""


class Started(Others):
    """Ranks 1 and up, each started by its own command and variables.

    Those on other nodes (`elsewhere`) are Slurm steps: each ends with its stdin, and prints its exit code last.
    """

    def __init__(self, commands: Sequence[Sequence[str]], variables: Callable[[int], dict[str, str]], elsewhere: bool):
        self._elsewhere, pipe = elsewhere, subprocess.PIPE if elsewhere else None
        kept = {
            name: value
            for name, value in os.environ.items()
            if not elsewhere or name == "SLURM_CONF" or not name.startswith(("SLURM", "SRUN"))
        }
        self._others = [
            subprocess.Popen(command, env=kept | {RANK: str(rank)} | variables(rank), stdin=pipe, stdout=pipe)
            for rank, command in enumerate(commands, start=1)
        ]

    def wait(self) -> dict[int, int]:
        ended: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()

        def wait(rank: int, other: subprocess.Popen) -> None:
            said = other.stdout.read().decode(errors="replace") if other.stdout else ""
            code = other.wait()
            ended.put((rank, _code_of_step(said) if self._elsewhere else code))

        for place in enumerate(self._others, start=1):
            threading.Thread(target=wait, args=place, daemon=True).start()
        codes = (ended.get() for _ in self._others)
        return next(({rank: code} for rank, code in codes if code), {})

    @property
    def processes(self) -> Sequence[int]:
        return [other.pid for other in self._others]


def _code_of_step(said: str) -> int:
    """Return a worker's exit code from its step's last line; 1 where that has none."""
    last = json.loads((said.strip() or "{}").splitlines()[-1])
    kind, _, number = last.get("words", "").partition(" ")
    return {"exit": 1, "signal": -1}.get(kind, 0) * int(number) if number.isdigit() else 1
