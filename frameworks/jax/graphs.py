"""jax.jit of a whole model, and the books on what was compiled."""

from __future__ import annotations

import functools
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax

from frameworks.adapter import Capture
from frameworks.jax import runtime
from measurement.cells import Cell

COMPILED = "/jax/core/compile/backend_compile_duration"  # fires once per executable, cached on disk or not
CACHE_HIT, CACHE_MISS = "/jax/compilation_cache/cache_hits", "/jax/compilation_cache/cache_misses"
WHOLE_MODEL = "whole_model_"


class Compilations:
    """Counts the executables of this process from its making on."""

    def __init__(self) -> None:
        self._compiled: Counter[str] = Counter()  # by the function they were compiled for
        self._loaded: Counter[str] = Counter()  # those that the compile cache had
        self._hit = False  # whether the cache had the executable that is being made
        jax.monitoring.register_event_duration_secs_listener(self._count)
        jax.monitoring.register_event_listener(self._look_up)

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
        """`function` as the cell's mode calls it, and what tells of its capture.

        `arguments` have the shapes of a call's; those numbered in `donated` give their memory to the results.
        """
        backend = f"xla:{cell.device_kind}"
        if cell.mode == "eager":
            return function, self._of_operators(backend, detail)

        def whole_model(*arguments):
            return function(*arguments)

        # Compilation events tell this graph from others by its name. The name is part of the key of JAX's compile
        # cache too, so it must be the same in every process.
        whole_model.__name__ = whole_model.__qualname__ = f"{WHOLE_MODEL}{zlib.crc32(cell.id.encode()):08x}"
        graph = jax.jit(whole_model, donate_argnums=donated)
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), arguments)
        return graph, self._of_graph(graph, shapes, backend, detail)

    def _of_operators(self, backend: str, detail: str) -> Callable[[], Capture]:
        def operators(counts: Counter[str]) -> int:
            return sum(count for function, count in counts.items() if WHOLE_MODEL not in function)

        before, loaded_before = operators(self._compiled), operators(self._loaded)

        def capture() -> Capture:
            compiled = operators(self._compiled) - before
            loaded = operators(self._loaded) - loaded_before
            return Capture(False, 0, None, compiled, backend, detail, _all_loaded(compiled, loaded))

        return capture

    def _of_graph(self, graph: Any, shapes: tuple, backend: str, detail: str) -> Callable[[], Capture]:
        whole = functools.cache(lambda: runtime.is_whole(graph.lower(*shapes).as_text()))
        name = graph.__name__

        def compilations(counts: Counter[str] = self._compiled) -> int:
            return sum(count for function, count in counts.items() if name in function)

        before, loaded_before = compilations(), compilations(self._loaded)  # the cell may have been prepared before

        def capture() -> Capture:
            events = compilations() - before
            graphs = graph._cache_size() if hasattr(graph, "_cache_size") else events  # no part of JAX's API
            if not graphs:
                return Capture(False, 0, 0, events, backend, "not called yet")
            problem = "" if whole() else "the module calls back into Python"
            # A version whose events name no function still moves the cache's size.
            loaded = _all_loaded(events, compilations(self._loaded) - loaded_before)
            return Capture(not problem, graphs, 0, max(events, graphs), backend, problem or detail, loaded)

        return capture


def _all_loaded(compiled: int, loaded: int) -> bool | None:
    """Whether the compile cache had every executable; None where none was made."""
    return loaded == compiled if compiled else None
