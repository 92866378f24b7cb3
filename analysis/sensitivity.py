"""How a speedup depends on the host's speed, for cells in which eager mode waits for the host.

A call takes as long as the slower of host and device. On a core `slowdown` times slower, the host's part takes
`slowdown` times as long. A call of time t in which the host is busy for h then takes max(t, slowdown · h). Where eager
mode waits for the host throughout, the speedup s becomes s · slowdown / (max(t_g, slowdown · h_g) / t_g). h_g is at
most t_g: it is a median over all turns, t_g one over those at full speed.
"""

from __future__ import annotations

from records.record import Record

HALF_AS_FAST = 2.0  # the slowdown that reports name


def slowed(eager: Record, graph: Record, slowdown: float = HALF_AS_FAST) -> float | None:
    """Return the speedup on a core `slowdown` times slower; None where eager mode does not wait for the host."""
    if eager.host_ms_in_loops is None or graph.speedup_vs_eager is None:
        return None
    return graph.speedup_vs_eager * slowdown / _longer(graph.median_ms, graph.host_ms_median or 0.0, slowdown)


def _longer(total_ms: float, host_ms: float, slowdown: float) -> float:
    """Return by which factor a call takes longer on the slower core."""
    return max(total_ms, slowdown * min(host_ms, total_ms)) / total_ms
