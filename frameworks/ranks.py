"""The processes of a framework that train together: what they say to each other, and how the others are started."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

RANK = "EAGER_VS_GRAPH_RANK"  # the variable by which a process knows its rank; rank 0 has none
ALONE = "this command measures one rank only: use `make bench` for RANKS above 1."
PROGRAM = "operators are not listed on several ranks"


def own() -> int:
    """Return the rank of this process."""
    return int(os.environ.get(RANK, "0"))


class Ranks(ABC):
    """One process's place among several. Every method is called by all of them in the same order."""

    @abstractmethod
    def share(self, value: Any) -> Any:
        """Return the value of rank 0, on every rank; the others give None."""

    @abstractmethod
    def gather(self, value: Any) -> list:
        """Return the values of all ranks in their order on rank 0, and an empty list elsewhere."""

    @abstractmethod
    def barrier(self) -> None:
        """Return when every rank is here."""


class Others(ABC):
    """The processes that rank 0 started."""

    @abstractmethod
    def wait(self) -> dict[int, int]:
        """Return when one of them has failed, or all have ended: exit codes by rank of those that failed."""

    @property
    @abstractmethod
    def processes(self) -> Sequence[int]:
        """Return their process ids."""
