"""Launches side by side on a host with several GPUs: one lane per GPU, with CPU cores of its own.

Everything the suite does itself, from starting a worker to writing a record, is done by one lane at a time: a lane
gives its turn away only while it waits for its worker's next message. So no other code needs to know of lanes.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from harness.plan import Bundle
from launchers import local


@dataclass(frozen=True)
class Lane:
    """Where launches run one after the other: the whole machine, or one GPU and some CPUs beside other lanes.

    `environment` shows a worker its GPU alone, which is then `gpu:0` to it, whichever it is. `of` counts the lanes.
    """

    number: int = 0
    of: int = 1
    environment: dict[str, str] = field(default_factory=dict)
    cpus: tuple[int, ...] = ()  # empty: all that this process may use
    turn: threading.Lock | None = None
    stop: int | None = None  # a pipe's end that becomes readable when all lanes are to stop

    @property
    def alone(self) -> bool:
        return self.of == 1

    def served_by(self) -> dict:
        """Which GPU and CPUs the launches of this lane get, for the record; empty for the whole machine."""
        return {} if self.alone else {**self.environment, "cpus": list(self.cpus)}

    def messages(self, launch: local.Launch, job: dict) -> Iterator[dict]:
        """A worker's messages, as `local.run` gives them; the turn is others' while this lane waits for the next."""
        with contextlib.closing(local.run(launch, job, self.stop)) as messages:
            while True:
                with self._given_away():
                    message = next(messages, None)
                if message is None:
                    return
                yield message

    @contextlib.contextmanager
    def _given_away(self) -> Iterator[None]:
        if self.turn is None:
            yield
            return
        self.turn.release()
        try:
            yield
        finally:
            self.turn.acquire()


ALONE = Lane()


def gpu_environment(name: str) -> dict[str, str]:
    """Variables that show a process one GPU: `name` is its number in nvidia-smi's order, or its UUID."""
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": name}


def serve(
    bundles: Sequence[Bundle], gpus: tuple[str, ...], shares: list[list[int]], work: Callable[[Lane, Bundle], None]
) -> None:
    """Do `work(lane, bundle)` for every bundle, a lane for each GPU with its share of the CPUs.

    Bundles are taken from one queue, so a lane that is done early takes the next. Ctrl-C makes every lane stop its
    worker and keep what is finished, and is raised again; so is what a lane fails with, once the others have stopped.
    """
    queue, turn, failures = iter(bundles), threading.Lock(), []
    stopped, stop = os.pipe()

    def lane_thread(lane: Lane) -> None:
        with turn:
            try:
                # What this lane does itself, and the workers it starts, keep to its CPUs: affinity is inherited.
                os.sched_setaffinity(0, lane.cpus)
                while not failures and (bundle := next(queue, None)) is not None:
                    work(lane, bundle)
            except BaseException as error:
                failures.append(error)
                os.write(stop, b"x")
            finally:
                ended[lane.number].set()

    count = len(gpus)
    ended = [threading.Event() for _ in gpus]
    threads = [
        threading.Thread(
            target=lane_thread,
            args=(Lane(index, count, gpu_environment(name), tuple(cpus), turn, stopped),),
            name=f"lane {index}",
        )
        for index, (name, cpus) in enumerate(zip(gpus, shares, strict=True))
    ]
    try:
        for thread in threads:
            thread.start()
        _wait(ended, failures, stop)
    finally:
        os.close(stop)
        os.close(stopped)
    if failures:
        raise failures[0]


def _wait(ended: list[threading.Event], failures: list[BaseException], stop: int) -> None:
    """Wait for all lanes; Ctrl-C, which reaches the main thread alone, is passed on to them, as often as it comes.

    Not by `Thread.join`: interrupted, it takes a thread that goes on for one that has ended (Python 3.11).
    """
    while True:
        try:
            for event in ended:
                event.wait()
            return
        except KeyboardInterrupt as interrupt:
            failures.insert(0, interrupt)
            os.write(stop, b"x")
