"""A worker that waits for its whole job."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest

from frameworks.adapter import Unsupported
from measurement.profiles import PROFILES
from measurement.protocol import COMPLETE, MEASURE, Failed, Job, Phase
from worker.channel import Channel
from worker.context import Context


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
    (tmp_path / COMPLETE).write_text(json.dumps(whole.to_json()))
    channel = Noting()
    context = Context(job, channel)
    for _ in range(2):  # every group of the job asks
        context.await_job()
    assert context.job.seed == 7 and channel.sent == [Phase(None, "wait"), ""]


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
