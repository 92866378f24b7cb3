"""How a speedup depends on the host's speed, for cells in which eager mode waits for the host.

A call takes as long as the slower of host and device. On a core `slowdown` times slower, the host's part takes
`slowdown` times as long. A call of time t in which the host is busy for h then takes max(t, slowdown · h). Where eager
mode waits for the host throughout, the speedup s becomes s · slowdown / (max(t_g, slowdown · h_g) / t_g). h_g is at
most t_g: it is a median over all turns, t_g one over those at full speed.
"""

from __future__ import annotations

from records.record import Record

SLOWDOWN = 2.0  # of a core half as fast


def slowed(eager: Record, graph: Record) -> float | None:
    """Return the speedup on a core half as fast; None where eager mode does not wait for the host."""
    if eager.host_ms_in_loops is None or graph.speedup_vs_eager is None:
        return None
    total_ms, host_ms = graph.median_ms, min(graph.host_ms_median or 0.0, graph.median_ms)
    return graph.speedup_vs_eager * SLOWDOWN / (max(total_ms, SLOWDOWN * host_ms) / total_ms)
