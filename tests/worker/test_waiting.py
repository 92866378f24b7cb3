"""A worker that waits for its whole job."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest

from frameworks.adapter import Unsupported
from measurement.checked import data_of
from measurement.profiles import PROFILES
from measurement.protocol import COMPLETE, MEASURE, Failed, GroupJob, Job, Phase
from worker.__main__ import measure
from worker.channel import Channel
from worker.context import Context
from worker.group import GroupWork
from worker.interleaved import InterleavedComparison


class Noting(Channel):
    """A channel that keeps what it sends and marks."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def send(self, message) -> None:
        self.sent.append(message)

    def mark(self, cell_id: str) -> None:
        self.sent.append(cell_id)


def test_a_worker_takes_its_whole_job_and_blames_no_cell_until_then(tmp_path):
    job = Job(MEASURE, "numpy", (), PROFILES["quick"], str(tmp_path), 0, waits=True)
    whole = replace(job, waits=False, seed=7)
    (tmp_path / COMPLETE).write_text(json.dumps(data_of(whole)))
    channel = Noting()
    context = Context(job, channel)
    context.await_job()
    assert context.job.seed == 7 and channel.sent == [Phase(None, "wait"), ""]


@pytest.mark.parametrize(("number", "early"), [(0, True), (1, False)])
def test_only_the_first_process_starts_its_compilers_while_it_waits(cell, tmp_path, monkeypatch, number, early):
    """Later ones would fill the compile cache of the first."""
    events = []
    monkeypatch.setattr(GroupWork, "start_early", lambda work: events.append("early"))
    monkeypatch.setattr(InterleavedComparison, "run", lambda comparison: events.append(comparison.group.settled))
    group = GroupJob((cell(framework="fake"),), "", "", (), None, settled=False)
    job = Job(MEASURE, "numpy", (group,), PROFILES["quick"], str(tmp_path), 0, process=number, waits=True)
    whole = replace(job, waits=False, groups=(replace(group, settled=True),))
    (tmp_path / COMPLETE).write_text(json.dumps(data_of(whole)))
    context = Context(job, Noting())
    context.adapter = None
    measure(context, [cell()])
    assert events == [*(["early"] if early else []), True]


@pytest.mark.parametrize(
    ("waits", "error", "status"),
    [
        (True, MemoryError("none left"), None),
        (True, Unsupported("it has no kernels"), "unsupported"),
        (False, MemoryError("none left"), "oom"),
    ],
)
def test_a_worker_that_waits_blames_no_cell_for_memory_that_another_process_has(cell, tmp_path, waits, error, status):
    """It ends instead, and the parent starts another, which has the device alone."""
    channel = Noting()
    context = Context(Job(MEASURE, "numpy", (), PROFILES["quick"], str(tmp_path), 0, waits=waits), channel)
    with pytest.raises(SystemExit) if status is None else contextlib.nullcontext(), context.reporting([cell()]):
        raise error
    assert [message.status for message in channel.sent if isinstance(message, Failed)] == ([status] if status else [])
    assert (channel.sent[-2:] == [Phase(None, "wait"), ""]) == (status is None)  # else its death blames a cell
