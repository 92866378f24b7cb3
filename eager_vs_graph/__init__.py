"""Measure eager mode against graph modes from Python: `compare(model, inputs)`.

    import eager_vs_graph as evg
    result = evg.compare(model, (x,), modes="eager,inductor", device="gpu", dtype="bf16")
    result.verdict, result.frame

Separate processes with the same interpreter measure, so this process keeps its state. They receive the model and its
inputs by cloudpickle, including those that a notebook defines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eager_vs_graph.interface import Problem, Result, compare

__all__ = ["Problem", "Result", "compare"]


def __getattr__(name: str) -> object:
    """Return a name of `__all__`. The command line imports nothing of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from eager_vs_graph import interface

    return getattr(interface, name)
