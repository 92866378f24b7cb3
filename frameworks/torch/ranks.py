"""torch.distributed: gloo between CPUs, NCCL between GPUs; the other ranks are started by torch's elastic API."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.constants import default_pg_timeout
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, PContext, start_processes

from frameworks import ranks

HERE, HOST, PORT = "127.0.0.1", "MASTER_ADDR", "MASTER_PORT"
PATIENCE = 48 * default_pg_timeout  # the parent ends a process that is silent for too long
POLL_SECONDS = 0.5


def others(commands: Sequence[Sequence[str]], elsewhere: bool) -> ranks.Others:
    """Start ranks 1 and up, on other nodes where they are `elsewhere`; they find rank 0 by its store."""
    os.environ[HOST] = socket.gethostname() if elsewhere else HERE
    store = dist.TCPStore(HERE, 0, len(commands) + 1, is_master=True, wait_for_workers=False, timeout=PATIENCE)
    os.environ[PORT] = str(store.port)
    if elsewhere:
        started: ranks.Others = ranks.Started(commands, lambda rank: {ranks.PLACE: "0"}, elsewhere)
    else:
        started = Others(commands)
    started.kept = store
    return started


class Others(ranks.Others):
    """Ranks 1 and up, as processes on this machine."""

    def __init__(self, commands: Sequence[Sequence[str]]):
        program, *arguments = commands[0]
        places = range(len(commands))
        with tempfile.TemporaryDirectory(prefix="ranks-") as logs:  # it stays empty: ranks print where rank 0 does
            self._context: PContext = start_processes(
                "ranks",
                program,
                args={place: tuple(arguments) for place in places},
                envs={place: {ranks.RANK: str(place + 1)} for place in places},
                logs_specs=DefaultLogsSpecs(log_dir=logs),
            )

    def wait(self) -> dict[int, int]:
        result = self._context.wait(period=POLL_SECONDS)
        return {place + 1: failure.exitcode for place, failure in (result.failures if result else {}).items()}

    @property
    def processes(self) -> Sequence[int]:
        return list(self._context.pids().values())


class Ranks(ranks.Ranks):
    """This process in the default process group; messages about the measurement use gloo on every device."""

    def __init__(self, count: int, device: torch.device):
        if os.environ[HOST] == HERE:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        rank = ranks.own()
        store = dist.TCPStore(os.environ[HOST], int(os.environ[PORT]), count, is_master=False, timeout=PATIENCE)
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        bound = {"device_id": device} if device.type == "cuda" else {}
        dist.init_process_group(backend, store=store, rank=rank, world_size=count, **bound)
        self._control: Any = dist.new_group(backend="gloo", timeout=PATIENCE)

    def share(self, value: Any) -> Any:
        held = [value]
        dist.broadcast_object_list(held, src=0, group=self._control)
        return held[0]

    def gather(self, value: Any) -> list:
        found: list = [None] * dist.get_world_size()
        is_first = dist.get_rank() == 0
        dist.gather_object(value, found if is_first else None, dst=0, group=self._control)
        return found if is_first else []

    def barrier(self) -> None:
        dist.barrier(group=self._control)
