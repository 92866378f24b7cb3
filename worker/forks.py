"""Detect forks of this worker by a user's model: none may continue as a second worker.

Otherwise each call of a model that forks would double the processes that measure.
"""

from __future__ import annotations

import os
from typing import Any

from frameworks.adapter import Step
from frameworks.user_file import Fault, UserFile
from worker.channel import Channel


class Forks:
    """Counts the forks that Python made of this process since `watch`.

    Those of a user's `model()` and `inputs()`, such as workers of a data loader, do not count.
    """

    def __init__(self) -> None:
        self.count = 0

    def watch(self) -> None:
        """Start counting, and end every child that would call a model or send a message."""
        os.register_at_fork(after_in_parent=self._made, after_in_child=_disarm)

    def refuse(self, before: int) -> None:
        """Raise Fault if the process forked since `count` was `before`."""
        if self.count > before:
            raise Fault("the model forks the measuring process during a call: remove the fork.")

    def _made(self) -> None:
        self.count += not UserFile.at_work


def _disarm() -> None:
    """End this child at its next step or message. A child with other work, like multiprocessing's, continues."""
    Step.__call__ = _leave  # type: ignore[method-assign]
    Channel.send = _leave  # type: ignore[method-assign]


def _leave(*_: Any, **__: Any) -> None:
    os._exit(0)
