"""Parts of a user's own model that a mode leaves to Python: places, reasons, and cost."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

from measurement.text import listed, percent, times
from records.cell_result import CellResult

SHOWN = 5  # places in a sentence; the record has all


def places(result: CellResult, kind: str) -> dict[str, str]:
    """Return the reasons of `breaks` or `recompiled` by place, from all processes."""
    return {place: why for report in result.reports for place, why in getattr(report.capture, kind)}


def outside_share(result: CellResult) -> float | None:
    """Return the share of a call's time outside graphs, as a median over processes; None without graph breaks."""
    shares = [
        max(0.0, 1 - model.inside_s / model.whole_s)
        for report in result.reports
        if (model := report.user_model) and model.inside_s is not None and model.whole_s
    ]
    return median(shares) if shares else None


def columns(result: CellResult) -> dict[str, Any]:
    """Return the columns on graph breaks and recompilations by place."""
    share = outside_share(result)
    broken, again = places(result, "breaks"), places(result, "recompiled")
    return {
        "graph_break_places": json.dumps(list(broken.items())) if broken else None,
        "outside_share": share,
        "gain_at_best": 1 / (1 - share) if share is not None and share < 1 else None,
        "recompiled_places": json.dumps(list(again.items())) if again else None,
    }


def sentence(result: CellResult) -> str | None:
    """Return a sentence on the model's graph breaks and the largest possible gain without them; None without any."""
    broken, share = places(result, "breaks"), outside_share(result)
    if not broken:
        return None
    shown = listed([f"{place} ({why})" for place, why in broken.items()], SHOWN, "; ")
    count = times(len(broken), "graph break")
    if share is None or share >= 1:
        return f"{count}: {shown}."
    return (
        f"{count}, {percent(share)} of a call outside of graphs; without the breaks at most {1 / (1 - share):.3g}× "
        f"faster: {shown}."
    )
