"""Waits that a framework causes in this process: programs that it starts, such as compilers, and modules it imports."""

from __future__ import annotations

import importlib
import os
import subprocess
import threading
import time
from typing import Any

MOST_NAMES = 40


class Programs:
    """Programs that Python code of this process starts from now on, by name, and the main thread's wait for them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.seconds = 0.0  # from a program's start to its end, of those that the main thread started
        self._begun: dict[int, float] = {}
        begin, wait = subprocess.Popen.__init__, subprocess.Popen.wait

        def started(process: Any, *words: Any, **how: Any) -> None:
            now = time.monotonic()
            begin(process, *words, **how)
            if len(self.names) < MOST_NAMES:
                self.names.append(os.path.basename(_first(process.args)))
            if threading.current_thread() is threading.main_thread():
                self._begun[id(process)] = now

        def waited(process: Any, *words: Any, **how: Any) -> Any:
            code = wait(process, *words, **how)
            if since := self._begun.pop(id(process), None):
                self.seconds += time.monotonic() - since
            return code

        subprocess.Popen.__init__, subprocess.Popen.wait = started, waited  # type: ignore[method-assign,assignment]

    def summary(self) -> str:
        """Return the names with their numbers of starts: `g++ 3, python 1`."""
        counted = {name: self.names.count(name) for name in dict.fromkeys(self.names)}
        return ", ".join(f"{name} {count}" for name, count in counted.items())


class Imports:
    """Seconds that the main thread spends on modules imported from now on, by any importer."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._inside = False
        # Python looks it up for each module that is not loaded yet.
        bootstrap: Any = vars(importlib)["_bootstrap"]
        find = bootstrap._find_and_load

        def found(*words: Any) -> Any:
            if self._inside or threading.current_thread() is not threading.main_thread():
                return find(*words)
            self._inside, begin = True, time.monotonic()
            try:
                return find(*words)
            finally:
                self._inside = False
                self.seconds += time.monotonic() - begin

        bootstrap._find_and_load = found


def _first(words: Any) -> str:
    first = words if isinstance(words, str | bytes | os.PathLike) else words[0]
    return os.fsdecode(first).split()[0]
