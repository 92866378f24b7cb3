"""From the times of single tokens to a record."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_assemble import made, outcome  # noqa: F401 (a fixture)

import workloads
from records import tokens


def test_tokens_are_timed_apart(outcome):  # noqa: F811
    """The first apart from the others, of which a percentile is told once there are enough of them."""
    parts = (0.010, *[0.002] * 18, 0.004), (0.012, *[0.002] * 19)
    row = made(outcome(parts_s=parts))
    assert (row.first_token_ms_median, row.inter_token_ms_p50) == (pytest.approx(11.0), pytest.approx(2.0))
    assert (row.inter_token_ms_p95, row.inter_token_ms_p99) == (pytest.approx(2.0), None)
    assert made(outcome()).first_token_ms_median is None


def test_compiling_pays_for_itself_after_so_many_tokens(outcome):  # noqa: F811
    graph, eager = outcome("inductor", samples=(0.001,) * 12, first_call_s=2.003), outcome(samples=(0.003,) * 12)
    row, generate = made(graph, eager).to_row(), workloads.get("llama-tiny", "generate")
    parameters = {"batch_size": 3, "prompt": 4, "tokens": 5, "attention": "explicit"}
    graph.cell = replace(graph.cell, parameters=tuple(parameters.items()))
    assert tokens.break_even(generate, graph, row) == {"break_even_tokens": 15 * row["break_even_calls"]}
    assert tokens.break_even(workloads.get("llama-tiny", "prefill"), graph, row) == {}
    assert tokens.break_even(generate, graph, row | {"break_even_calls": None}) == {}
