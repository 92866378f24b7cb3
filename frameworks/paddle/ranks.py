"""paddle.distributed over gloo, between processes on the CPUs of this machine."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

import paddle.distributed as dist

from frameworks import ranks


class Others(ranks.Others):
    """Ranks 1 and up, each started with the variables that Paddle reads; rank 0 sets its own."""

    def __init__(self, count: int, command: Sequence[str]):
        self._port = socket.socket()  # stays open, so that no other program takes the port before Paddle listens on it
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._port.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{self._port.getsockname()[1]}"
        common = {"PADDLE_DISTRI_BACKEND": "gloo", "PADDLE_MASTER": endpoint, "PADDLE_CURRENT_ENDPOINT": endpoint}
        os.environ |= common | {"PADDLE_TRAINERS_NUM": str(count), "PADDLE_TRAINER_ID": "0"}
        places = ({ranks.RANK: str(rank), "PADDLE_TRAINER_ID": str(rank)} for rank in range(1, count))
        self._others = [subprocess.Popen(command, env=os.environ | place) for place in places]

    def wait(self) -> dict[int, int]:
        ended: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()

        def wait(rank: int, other: subprocess.Popen) -> None:
            ended.put((rank, other.wait()))

        for place in enumerate(self._others, start=1):
            threading.Thread(target=wait, args=place, daemon=True).start()
        codes = (ended.get() for _ in self._others)
        return next(({rank: code} for rank, code in codes if code), {})

    @property
    def processes(self) -> Sequence[int]:
        return [other.pid for other in self._others]


class Ranks(ranks.Ranks):
    """This process in Paddle's default group."""

    def __init__(self) -> None:
        dist.init_parallel_env()

    def share(self, value: Any) -> Any:
        held = [value]
        dist.broadcast_object_list(held, src=0)
        return held[0]

    def gather(self, value: Any) -> list:
        found: list = []
        dist.all_gather_object(found, value)
        return [] if ranks.own() else found

    def barrier(self) -> None:
        dist.barrier()
