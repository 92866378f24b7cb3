"""Warm modes and streams that run something else than their name says."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from types import SimpleNamespace

import pytest

from frameworks.adapter import Capture, Step, Unsupported
from measurement.sampling import Clocks, Variant
from worker import interleaved
from worker.stream import refuse_unrecorded


@pytest.mark.parametrize(
    ("strategy", "recorded", "refused"),
    [("automatic-cuda-graphs", 0, True), ("automatic-cuda-graphs", 3, False), ("automatic", 0, False)],
)
def test_a_stream_with_cuda_graphs_records_some(strategy, recorded, refused):
    with pytest.raises(Unsupported, match="no CUDA graph") if refused else contextlib.nullcontext():
        refuse_unrecorded(strategy, recorded)


@pytest.mark.parametrize(("outside", "problem"), [(0, None), (1, "Calls of this length run no graph")])
def test_another_length_that_runs_no_graph_has_no_figures_of_a_graph(cell, monkeypatch, outside, problem):
    """Torch ends in eager mode where it gives up to compile."""
    captured = Capture(whole=True, graphs=1, graph_breaks=0, compilations=1, backend="stub")
    count = []

    def call(*inputs: object) -> None:
        count.append(0)

    def capture() -> Capture:
        return replace(captured, calls_outside=outside * len(count))

    step = Step(call, [()], capture)
    variant = Variant(cell().id, step, lambda output: None, lambda: 1)
    work = SimpleNamespace(
        group=SimpleNamespace(unseen=SimpleNamespace(inputs="", seq_len=7)),
        channel=SimpleNamespace(phase=lambda *given: None),
        context=SimpleNamespace(clocks=Clocks(), job=None),
        save_outputs=lambda *given: "outputs",
    )
    monkeypatch.setattr(interleaved, "load_inputs", lambda path: [])
    monkeypatch.setattr(step, "rebound", lambda inputs: step)
    unseen = interleaved.InterleavedComparison.unseen(work, SimpleNamespace(variant=variant, cell=cell(), step=step))
    assert unseen.seq_len == 7 and (unseen.problem or "").startswith(problem or "")
    assert (unseen.latency_s is None) is bool(problem)
