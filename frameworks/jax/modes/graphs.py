"""jax.jit of a whole model or of its blocks, and a count of compilations."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax

from frameworks.adapter import Capture
from frameworks.jax import runtime
from frameworks.jax.inspect import program
from frameworks.jax.modes import compiling
from measurement.cells import Cell

COMPILED = "/jax/core/compile/backend_compile_duration"  # fires once per executable, cached on disk or not
OVERWRITTEN = "tf.aliasing_output"  # of an argument in StableHLO: a result of the call reuses its memory
OFFERED, TAKEN = "jax.buffer_donor", "-alias)"  # on several devices XLA decides, and its module shows it
CACHE_HIT, CACHE_MISS = "/jax/compilation_cache/cache_hits", "/jax/compilation_cache/cache_misses"


class Compilations:
    """Counts the executables that this process compiles after this was made."""

    def __init__(self) -> None:
        self._compiled: Counter[str] = Counter()  # by the function they were compiled for
        self._loaded: Counter[str] = Counter()  # those that the compile cache had
        self._hit = False  # whether the cache had the executable that is being made
        jax.monitoring.register_event_duration_secs_listener(self._count)
        jax.monitoring.register_event_listener(self._look_up)

    @property
    def total(self) -> int:
        """Return how many executables were compiled."""
        return self._compiled.total()

    @property
    def loaded(self) -> int:
        """Return how many of them the compile cache had."""
        return self._loaded.total()

    def _look_up(self, event: str, **_details: Any) -> None:
        if event in (CACHE_HIT, CACHE_MISS):
            self._hit = event == CACHE_HIT

    def _count(self, event: str, _seconds: float, **details: Any) -> None:
        if event == COMPILED:
            function = str(details.get("fun_name", ""))
            self._compiled[function] += 1
            self._loaded[function] += self._hit
            self._hit = False

    def callable(
        self, cell: Cell, function: Callable, arguments: tuple, detail: str, donated: tuple[int, ...] = ()
    ) -> tuple[Callable, Callable[[], Capture]]:
        """Return `function` as the cell's mode calls it, and the report of its capture.

        `arguments` have the shapes of a call's; those numbered in `donated` donate their memory to the results.
        """
        backend = f"xla:{cell.device_kind}"
        if cell.mode == "eager":
            return function, self._of_operators(backend, detail)
        if cell.mode == compiling.BLOCKS:
            return function, self._of_blocks(cell, function, arguments, backend, detail)

        def whole_model(*arguments):
            return function(*arguments)

        whole_model.__name__ = whole_model.__qualname__ = compiling.name(cell)
        graph = compiling.compiled(cell, whole_model, donate_argnums=donated)
        return graph, self._of_graph(cell, graph, runtime.shapes(arguments), backend, detail)

    def _of_blocks(
        self, cell: Cell, function: Callable, arguments: tuple, backend: str, detail: str
    ) -> Callable[[], Capture]:
        """Return a report of blocks: they hold the whole model where one call dispatches nothing else."""
        name = compiling.name(cell)
        dispatched = functools.cache(lambda: program.names(program.dispatched(function, arguments)))
        counted = self._since(name)

        def capture() -> Capture:
            compiled, loaded = counted()
            if not compiled:
                return Capture(False, 0, 0, 0, backend, "no block was called: this model is not divided into blocks")
            stray = {other: count for other, count in dispatched().items() if other != name}
            blocks = dispatched()[name]
            text = f"{blocks} blocks a call" + (f"; op by op between them: {stray}" if stray else "")
            text += f"; {detail}" if detail else ""
            return Capture(not stray, blocks, None, compiled, backend, text, _all_loaded(compiled, loaded))

        return capture

    def _since(self, name: str) -> Callable[[], tuple[int, int]]:
        """Return a function that counts compilations under that name from now on, and those that were loaded."""

        def counts() -> tuple[int, int]:
            events = (self._compiled, self._loaded)
            return tuple(sum(count for function, count in seen.items() if name in function) for seen in events)

        before = counts()  # the cell may have been prepared before
        return lambda: tuple(now - then for now, then in zip(counts(), before, strict=True))

    def _of_operators(self, backend: str, detail: str) -> Callable[[], Capture]:
        def operators(counts: Counter[str]) -> int:
            return sum(count for function, count in counts.items() if compiling.OWN not in function)

        before, loaded_before = operators(self._compiled), operators(self._loaded)

        def capture() -> Capture:
            compiled = operators(self._compiled) - before
            loaded = operators(self._loaded) - loaded_before
            return Capture(False, 0, None, compiled, backend, detail, _all_loaded(compiled, loaded))

        return capture

    def _of_graph(self, cell: Cell, graph: Any, shapes: tuple, backend: str, detail: str) -> Callable[[], Capture]:
        problem_of = functools.cache(lambda: _problem(cell, graph.lower(*shapes)))
        counted = self._since(graph.__name__)

        def capture() -> Capture:
            events = counted()[0]
            graphs = graph._cache_size() if hasattr(graph, "_cache_size") else events  # no part of JAX's API
            if not graphs:
                return Capture(False, 0, 0, events, backend, "not called yet")
            problem = problem_of()
            # A version whose events name no function still moves the cache's size.
            events, loaded = counted()  # proving that nothing is fused compiles once more
            events = max(events, graphs)
            return Capture(not problem, graphs, 0, events, backend, problem or detail, _all_loaded(events, loaded))

        return capture


def _problem(cell: Cell, lowered: Any) -> str:
    """Return how a lowered model differs from its mode's description, as text; empty if it does not."""
    text = lowered.as_text()
    if not runtime.is_whole(text):
        return "the module calls back into Python"
    donated = sum(argument.donated for argument in jax.tree.leaves(lowered.args_info))
    overwritten = text.count(OVERWRITTEN)
    if OFFERED in text:
        overwritten = lowered.compile().as_text().count(TAKEN)  # of all, those in the StableHLO among them
    if overwritten < donated:
        return f"only {overwritten} of {donated} donated arrays are reused for results"
    if cell.mode in compiling.UNFUSED and (fusions := compiling.fused(lowered.compile().as_text())):
        return f"XLA fused operators {fusions} times in spite of the option"
    return ""


def _all_loaded(compiled: int, loaded: int) -> bool | None:
    """Return whether the compile cache had every executable; None where none was made."""
    return loaded == compiled if compiled else None
