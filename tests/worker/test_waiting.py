"""A worker that waits for its whole job."""

from __future__ import annotations

import json
from dataclasses import replace

from measurement.profiles import PROFILES
from measurement.protocol import COMPLETE, MEASURE, Job, Phase
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
