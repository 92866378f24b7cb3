"""A rank other than 0. Run as `python -m worker.other_rank JOB`; it obeys rank 0 (`worker/ranked_adapter.py`)."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from frameworks import ranks
from measurement.checked import read
from measurement.protocol import Job
from worker.channel import Channel, classify
from worker.context import Context
from worker.ranked_adapter import LEFT


class Unheard(Channel):
    """A channel for ranks that send nothing to the parent."""

    def __init__(self) -> None:
        self.at_work = ""

    def send(self, message: Any) -> None:
        """Do nothing."""

    def mark(self, cell_id: str) -> None:
        """Do nothing."""


def main() -> None:
    """Follow rank 0 until the process is ended."""
    job = read(Job, json.loads(Path(sys.argv[1]).read_text()))
    try:
        Context(job, Unheard()).start(job.cells[0])
    except BaseException as error:
        at = time.time()
        status, reason = classify(error)
        own = {"rank": ranks.own(), "at": at, "status": status, "reason": reason}
        path = Path(job.folder) / LEFT.format(ranks.own())
        with contextlib.suppress(OSError):  # on a full disk the exit code remains
            traceback.print_exc()
            path.with_suffix(".new").write_text(json.dumps(own))
            path.with_suffix(".new").rename(path)
        os._exit(1)


if __name__ == "__main__":
    main()
