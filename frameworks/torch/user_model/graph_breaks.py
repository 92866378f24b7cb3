"""torch.compile of models that it may break into several graphs: places, reasons, and calls of the graphs."""

from __future__ import annotations

import logging
import operator
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from frameworks.adapter import Capture
from frameworks.program import Program
from frameworks.torch.inspect import program
from frameworks.torch.modes import graphs
from frameworks.user_file import PACKAGES, short_place, without_folders
from measurement.cells import Cell

# What torch logs under TORCH_LOGS=graph_breaks,recompiles: https://docs.pytorch.org/docs/stable/logging.html
_LOGS = {"graph_breaks": ("symbolic_convert", "convert_frame"), "recompiles": ("guards",)}
_BREAK = re.compile(
    r"in user code at (?P<file>.+):(?P<line>\d+)\nGraph Break Reason: (?P<reason>[^\n]+)(?P<rest>.*)", re.DOTALL
)
_EXPLANATION = re.compile(r"^ *Explanation: (.+?)(?:\. [A-Z]|\.?$)", re.MULTILINE)
_FRAME = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)
_RECOMPILED = re.compile(r"Recompiling function \S+ in (?P<file>.+):(?P<line>\d+)\n(?P<rest>.*)", re.DOTALL)
_GUARD = re.compile(r"- \d+/\d+: (.+)")
LIMIT = re.compile(
    r"hit config\.(?:accumulated_)?(?:recompile|cache_size)_limit \((?P<count>\d+)\)(?P<rest>.*)", re.DOTALL
)
_WHERE = re.compile(r"function: '[^']*' \((?P<file>.+):(?P<line>\d+)\)")
_LAST = re.compile(r"last reason: (?:\d+/\d+: )?(?P<guard>[^\n]+)")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # another one in each process
_SKIPPED = "torch.compile will skip tracing the frame"
REASON_CHARACTERS = 140
FAILED = (
    "the graph does not compile, and torch._dynamo.config.suppress_errors is on: turn it off to get torch's exception"
)
UNSEEN = "torch counts graph breaks that it does not log: remove code that changes torch's loggers"
_PYTHON = f"{Path(os.__file__).parent}/"


Receiver = TypeVar("Receiver", bound=logging.Handler)


def follow(name: str, level: int, handler: Receiver) -> Receiver:
    """Return a handler that receives records of a logger of Dynamo, even where a user's file switches logging off.

    `logging.disable` acts in `isEnabledFor`, and `disable_existing_loggers` of logging.config in `handle`.
    """
    logger = logging.getLogger(f"torch._dynamo.{name}")
    logger.addHandler(handler)
    vars(logger).update(isEnabledFor=partial(operator.le, level), handle=logger.callHandlers)
    return handler


class Limits(logging.Handler):
    """Notes that torch stops compiling a function, which may be a part of the model and then runs in eager mode."""

    gave_up = ""
    count = 0

    @classmethod
    def followed(cls) -> Limits:
        """Return a note of what torch stops compiling from now on."""
        return follow("convert_frame", logging.WARNING, cls())

    def emit(self, record: logging.LogRecord) -> None:
        if match := LIMIT.search(record.getMessage()):
            self.gave_up = gave_up(match)
            self.count += 1


class _Journal(logging.Handler):
    """Passes torch's log of breaks and recompilations to the backend whose mode is being called."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.current: Backend | None = None
        self.places: dict[tuple[str, str], tuple[str, str]] = {}  # the user's line, by where torch reports the stop
        self.breaks: dict[str, dict[str, str]] = {}  # of all modes, by source: torch reports once what it skips
        torch._logging.set_logs(**dict.fromkeys(_LOGS, True))
        follow("convert_frame", logging.WARNING, self)  # which warns where torch gives up
        for artifact, modules in _LOGS.items():
            for module in modules:
                follow(f"{module}.__{artifact}", logging.DEBUG, self)

    def emit(self, record: logging.LogRecord) -> None:
        if self.current is not None:
            self.current.note(record.getMessage())


_journal: _Journal | None = None


class Backend(graphs.CountingBackend):
    """A mode's backend that allows graph breaks and records them.

    `around`, where it is set, runs every graph of a call: `around(graph, arguments)`.
    """

    def __init__(self, mode: str, device: torch.device, source: str):
        super().__init__(mode, device)
        self._source = source
        self._folder = f"{Path(source).parent}/" if Path(source).is_absolute() else "\0"
        self.around: Callable[[Callable, Sequence], Any] | None = None
        self._breaks: dict[str, str] = {}  # reasons by place
        self._recompiled: dict[str, str] = {}
        self._entered = True  # whether the latest call ran a graph
        self._calls_outside = 0  # calls before it that ran none
        self._gave_up = ""
        self._places: dict[int, tuple[str, str] | None] = {}  # the latest line of each frame's graph
        self._counted_before = self._count_breaks()
        global _journal
        _journal = self._journal = _journal or _Journal()

    def begin(self) -> None:
        """Note that a call of this mode begins."""
        self._journal.current = self
        self._calls_outside += not self._entered
        self._entered = False

    def watch(self, around: Callable[[Callable, Sequence], Any] | None) -> None:
        """Run every graph within a call as `around(graph, arguments)` from now on; None: by itself again."""
        self.around = around

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable:
        traces = [node.stack_trace for node in graph.graph.nodes if node.stack_trace]
        self._places[self._compile_context.current_compile_id().frame_id] = self._innermost("".join(traces[-1:]))
        compiled = super().__call__(graph, inputs)

        def run(*arguments: Any) -> Any:
            self._entered = True
            return compiled(*arguments) if self.around is None else self.around(compiled, arguments)

        return run

    def note(self, text: str) -> None:
        """Keep torch's text on one break or one recompilation, once per place."""
        if match := _RECOMPILED.match(text):
            guard = _GUARD.search(match["rest"])
            self._keep(
                self._recompiled,
                (match["file"], match["line"]),
                _without_comment(guard[1]) if guard else "no guard is named",
            )
        elif match := _BREAK.search(text):
            explained = _EXPLANATION.search(match["rest"])
            place, (_, _, traced) = (match["file"], match["line"]), match["rest"].partition("User code traceback:")
            # torch gives no traceback for a repeated break; a break in Python's library stops many files.
            if mine := self._innermost(traced):
                self._journal.places[place] = mine
            place = self._journal.places.get(place, place)
            self._keep_break(place, explained[1] if explained else match["reason"])
        elif match := LIMIT.search(text):
            self._note_limit(match)
        elif _SKIPPED in text and (place := self._innermost(text)):
            self._keep_break(place, "Dynamo cannot resume here, so the whole function runs without a graph")

    def _note_limit(self, limit: re.Match) -> None:
        """Note that torch stops compiling a function, which then runs without a graph."""
        self._gave_up = gave_up(limit)
        if where := _WHERE.search(limit["rest"]):
            self._keep_break((where["file"], where["line"]), self._gave_up)

    def _innermost(self, traced: str) -> tuple[str, str] | None:
        """Return the innermost frame of a traceback that is in the user's folder, else in any file but Python's own."""
        frames = [(match["file"], match["line"]) for match in _FRAME.finditer(traced)]
        mine = [frame for frame in frames if frame[0].startswith(self._folder) and PACKAGES not in frame[0]]
        others = [frame for frame in frames if not _is_pythons(frame[0])]
        return (mine or others or [None])[-1]

    def _keep(self, kept: dict[str, str], place: tuple[str, str], reason: str) -> None:
        text = _ADDRESS.sub("", without_folders(" ".join(reason.split()), self._source))
        kept.setdefault(short_place(*place, self._source), text[:REASON_CHARACTERS])

    def _keep_break(self, place: tuple[str, str], reason: str) -> None:
        self._keep(self._breaks, place, reason)
        self._keep(self._journal.breaks.setdefault(self._source, {}), place, reason)

    def capture(self) -> Capture:
        capture = super().capture()
        for place in map(self._places.get, self._failed):
            self._breaks[short_place(*(place or (self._source, 0)), self._source)] = FAILED
        known = self._breaks or ({} if capture.graphs else self._journal.breaks.get(self._source, {}))
        breaks = tuple(known.items())
        capture = replace(
            capture,
            recompiled=tuple(self._recompiled.items()),
            recompilations=max(len(set(self._compile_ids)) - len(self._frames), 0),
            calls_outside=self._calls_outside + (not self._entered),
            gave_up=self._gave_up,
        )
        if not breaks:
            unseen = self._count_breaks() > self._counted_before
            return replace(capture, whole=False, detail=UNSEEN) if unseen and capture.whole else capture
        detail = f"graph breaks at {len(breaks)}, graphs: {capture.graphs}"
        if not capture.graphs:
            detail = "no part of it is compiled, " + "; ".join(f"{place}: {reason}" for place, reason in breaks)
        return replace(capture, whole=False, graph_breaks=len(breaks), detail=detail, breaks=breaks)

    def _count_breaks(self) -> int:
        """Return Dynamo's own count of the process's graph breaks."""
        return sum(self._counters["graph_break"].values())

    def listed(self, context: Callable[[Callable], Callable] = lambda call: call) -> Program | str:
        """Return the operators of the one graph, called under `context`; a text if several."""
        if self._breaks or len(self._frames) != 1:
            return "the model is broken into several graphs"
        return program.captured(self.captured, context)


def compiled(function: Callable, cell: Cell, device: torch.device, source: str) -> tuple[Callable, Backend]:
    """Return a module or function as the cell's mode compiles it, which may break it, and its backend."""
    backend = Backend(cell.mode, device, source)
    graph = graphs.COMPILE(function, backend=backend, fullgraph=False, dynamic=graphs.DYNAMIC[cell.shapes])
    return graphs.under_options(graph, cell.mode), backend


def gave_up(limit: re.Match) -> str:
    """Return the clause on a match of `LIMIT`: after how many compilations torch gave up, and the last failed guard."""
    last = _LAST.search(limit["rest"])
    guard = _without_comment(last["guard"])[:REASON_CHARACTERS] if last else "torch names no guard"
    return f"gave up after {limit['count']} compilations: {guard}"


def _without_comment(guard: str) -> str:
    """Return a guard without the source line that torch appends."""
    return " ".join(guard.partition("  # ")[0].split())


def _is_pythons(file: str) -> bool:
    """Return whether a file belongs to Python's library, or is no file."""
    return file.startswith("<") or (file.startswith(_PYTHON) and PACKAGES not in file)
