"""Columns of calls that generate tokens: the time per token, and the tokens until compiling pays for itself."""

from __future__ import annotations

from statistics import median
from typing import Any

from measurement.statistics import percentile
from records.cell_result import CellResult
from workloads.spec import Workload


def waited_for(result: CellResult) -> dict[str, float | None]:
    """Return seconds to a call's first token and between tokens, by column; empty if no call waits for tokens."""
    calls = [parts for report in result.reports for parts in report.parts_s]
    if not calls:
        return {}
    between = [seconds for parts in calls for seconds in parts[1:]]
    return {
        "first_token_ms_median": median(parts[0] for parts in calls),
        **{f"inter_token_ms_p{percent}": percentile(between, percent / 100) for percent in (50, 95, 99)},
    }


def break_even(workload: Workload, result: CellResult, row: dict[str, Any]) -> dict[str, float]:
    """Return the column of generated tokens until compiling pays for itself; empty if it never does."""
    made, calls = workload.tokens_made(dict(result.cell.parameters)), row.get("break_even_calls")
    return {"break_even_tokens": made * calls} if made and calls is not None else {}
