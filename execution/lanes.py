"""Launches side by side: on a host one lane per GPU with CPU cores of its own, on a cluster lanes on each node.

Everything the suite does itself, from starting a worker to writing a record, is done by one lane at a time: a lane
gives its turn away only while it waits for its worker's next message. So no other code needs to know of lanes.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from launchers import local
from plan.plan import Bundle

STRIKES = 3  # bundles lost in a row after which a node is given up
GLANCE = 1.0  # seconds after which a lane without work looks again for what another one gave back


class NoLaneLeft(OSError):
    """Bundles are left and no lane to run them; the message says why the last one was given up."""


@dataclass(frozen=True)
class Lane:
    """Where launches run one after the other: the whole machine, one GPU and some CPUs beside other lanes, or a node.

    `environment` shows a worker its GPU alone, which is then `gpu:0` to it, whichever it is. `of` counts the lanes of
    the same host. On a cluster `start` runs workers on `node`, and `unfit` tells why that is to serve no more,
    given whether it is the last one, and `stop`, or raises OSError where none may serve any more.
    """

    number: int = 0
    of: int = 1
    environment: dict[str, str] = field(default_factory=dict)
    cpus: tuple[int, ...] = ()  # empty: all that this process may use
    turn: threading.Lock | None = None
    stop: int | None = None  # a pipe's end that becomes readable when all lanes are to stop
    node: str = ""
    start: Callable[[local.Launch, dict[str, Any], int | None], Generator[dict[str, Any], None, None]] = local.run
    unfit: Callable[[bool, int | None], str | None] = lambda last, stop: None

    @property
    def alone(self) -> bool:
        return self.of == 1 and not self.node

    def served_by(self) -> dict[str, Any]:
        """Return which GPU and CPUs the launches of this lane get, for the record; empty for the whole machine.

        Empty on a cluster as well, where each step tells what it was given (`protocol.Where`).
        """
        return {} if self.of == 1 or self.node else {**self.environment, "cpus": list(self.cpus)}

    def messages(self, launch: local.Launch, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A worker's messages, as `start` gives them; the turn is others' while this lane waits for the next."""
        messages = self.start(launch, job, self.stop)
        try:
            while True:
                with self.given_away():
                    message = next(messages, None)
                if message is None:
                    return
                yield message
        finally:
            with self.given_away():  # lanes that are stopped together end their workers at the same time
                messages.close()

    @contextlib.contextmanager
    def given_away(self) -> Iterator[None]:
        """Let other lanes do something meanwhile."""
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


def of_gpus(gpus: Sequence[str], shares: list[list[int]]) -> tuple[Lane, ...]:
    """A lane for each GPU of this host with its share of the CPUs."""
    return tuple(
        Lane(number, len(gpus), gpu_environment(name), tuple(cpus))
        for number, (name, cpus) in enumerate(zip(gpus, shares, strict=True))
    )


@dataclass(frozen=True)
class Errand:
    """A bundle to be served; `left` is the node that it was moved away from."""

    bundle: Bundle
    left: str | None = None


class Queue:
    """The errands that wait, from which every lane takes its next. All of it is used by the lane whose turn it is."""

    def __init__(self, bundles: Sequence[Bundle], lanes: Sequence[Lane], turn: threading.Lock):
        self._waiting = [Errand(bundle) for bundle in bundles]
        self._nodes = {lane.number: lane.node for lane in lanes}  # of the lanes that serve
        self._served = 0  # errands that lanes are at work on, any of which may come back
        self._changed = threading.Condition(turn)

    def take(self, lane: Lane, failures: list[BaseException]) -> Errand | None:
        """The next errand of a lane; None where none is left, nor can come back. Waits while one still can."""
        while not failures:
            for errand in self._waiting:
                if errand.left != lane.node or self.is_last(lane):
                    self._waiting.remove(errand)
                    self._served += 1
                    return errand
            if not self._served and not self._waiting:
                return None
            self._changed.wait(GLANCE)
        return None

    def done(self, rest: Errand | None) -> None:
        """An errand is served, or `rest` of it is for another lane."""
        self._served -= 1
        self._waiting += [rest] if rest else []
        self._changed.notify_all()

    def is_last(self, lane: Lane) -> bool:
        """Whether no other node serves any more."""
        return all(node == lane.node for node in self._nodes.values())

    def leave(self, lane: Lane) -> bool:
        """Serve no more with this lane; whether work is left and nobody else is there."""
        self._nodes.pop(lane.number, None)
        self._changed.notify_all()
        return not self._nodes and bool(self._waiting)


@dataclass(frozen=True)
class Service:
    """What is done with a bundle: `work` serves it, `rest_of` is what a lane that failed left of it, None if nothing.

    What two nodes failed with is given up.
    """

    work: Callable[[Lane, Bundle], None]
    rest_of: Callable[[Bundle], Bundle | None]
    give_up: Callable[[Lane, Bundle, str], None]

    def serve(self, lane: Lane, queue: Queue, failures: list[BaseException]) -> str | None:
        """Serve errands until there are none; why the lane was given up before, if it was."""
        lost = 0
        while (errand := queue.take(lane, failures)) is not None:
            try:
                self.work(lane, errand.bundle)
                failure, lost = None, 0
            except local.LaneFailure as error:
                failure, lost = error, lost + 1
            with lane.given_away():
                why = lane.unfit(queue.is_last(lane), lane.stop)
            rest = self.rest_of(errand.bundle) if failure else None
            if rest and failure and failure.began and errand.left is not None:
                self.give_up(lane, rest, f"It was lost on {errand.left}, and again: {failure}")
                rest = None
            queue.done(Errand(rest, lane.node) if rest else None)
            if why or lost == STRIKES:
                return why or f"since {STRIKES} bundles in a row were lost there"
        return None


def serve(bundles: Sequence[Bundle], lanes: Sequence[Lane], service: Service) -> None:
    """Serve every bundle.

    Bundles are taken from one queue, so a lane that is done early takes the next. Ctrl-C makes every lane stop its
    worker and keep what is finished, and is raised again; so is what a lane fails with, once the others have stopped.
    Raises NoLaneLeft where every lane was given up before all was done.
    """
    turn = threading.Lock()
    failures: list[BaseException] = []
    queue = Queue(bundles, lanes, turn)
    stopped, stop = os.pipe()

    def lane_thread(lane: Lane) -> None:
        with turn:
            try:
                if lane.cpus:  # for what it does itself and the workers that it starts: affinity is inherited
                    os.sched_setaffinity(0, lane.cpus)
                why = service.serve(lane, queue, failures)
                if queue.leave(lane) and why and not failures:
                    raise NoLaneLeft(0, f"the last node that served was given up, {why}", lane.node)
            except BaseException as error:
                failures.append(error)
                os.write(stop, b"x")
            finally:
                ended[lane.number].set()

    ended = [threading.Event() for _ in lanes]
    threads = [
        threading.Thread(target=lane_thread, args=(replace(lane, turn=turn, stop=stopped),), name=f"lane {lane.number}")
        for lane in lanes
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
