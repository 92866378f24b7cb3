"""Read JSON lines from a pipe to which a framework may write anything, within limits of size."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

LINE_BYTES = 8 << 20  # many times what a report with all its samples, or a profile, takes
TOTAL_BYTES = 256 << 20
STRAYS = 100_000  # lines that are no messages

Message = dict[str, Any]  # `type` is a word; its reader checks the rest (`measurement.protocol`)


class TooLong(Exception):
    """A worker wrote too much; the message is one sentence."""


class Messages:
    """Splits a stream of bytes into whole messages. `note` gets each line that is no message.

    So text that a framework prints to the wrong descriptor costs no cell: a worker begins each message with a line end,
    which ends any text before it.
    """

    def __init__(self, note: Callable[[bytes], None]) -> None:
        self._note = note
        self._pending = bytearray()  # of the line that has no end yet
        self._total = self._strays = 0

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that end in `data`. Raises TooLong."""
        self._total += len(data)
        if self._total > TOTAL_BYTES:
            raise TooLong(f"The worker wrote more than {TOTAL_BYTES >> 20} MiB to its results pipe.")
        lines = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            lines.append(bytes(self._pending + end))
            self._pending.clear()
        self._pending += rest
        if max(len(self._pending), *map(len, lines), 0) > LINE_BYTES:
            raise TooLong(f"The worker wrote a line of more than {LINE_BYTES >> 20} MiB to its results pipe.")
        return [message for line in lines if line and (message := self._message(line))]

    def _message(self, line: bytes) -> Message | None:
        """Return the message in a line, or None."""
        try:
            message = json.loads(line) if line.startswith(b"{") else None
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict) and isinstance(message.get("type"), str):
            return message
        self._strays += 1
        if self._strays > STRAYS:
            raise TooLong(f"The worker wrote more than {STRAYS} lines that are not messages to its results pipe.")
        self._note(line)
        return None
