"""paddle.distributed over gloo, between processes on the CPUs of this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any

import paddle.distributed as dist

from frameworks import ranks


class Others(ranks.Started):
    """Ranks 1 and up, each started with the variables that Paddle reads; rank 0 sets its own."""

    def __init__(self, commands: Sequence[Sequence[str]]):
        self._port = socket.socket()  # stays open, so that no other program takes the port before Paddle listens on it
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._port.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{self._port.getsockname()[1]}"
        common = {"PADDLE_DISTRI_BACKEND": "gloo", "PADDLE_MASTER": endpoint, "PADDLE_CURRENT_ENDPOINT": endpoint}
        os.environ |= common | {"PADDLE_TRAINERS_NUM": str(len(commands) + 1), "PADDLE_TRAINER_ID": "0"}
        super().__init__(commands, lambda rank: {"PADDLE_TRAINER_ID": str(rank)}, elsewhere=False)


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
