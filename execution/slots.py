"""Processes side by side: on a host one slot per GPU with CPU cores of its own, on a cluster slots on each node.

Only one slot at a time runs the suite's own code, from starting a worker to writing a record: a slot gives its turn
away only while it waits, mostly for its worker's next message. So other code does not depend on slots.
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
GLANCE = 1.0  # seconds after which a slot without work looks again for returned tasks


class NoSlotLeft(OSError):
    """Bundles remain and no slot can run them; the message explains why the last slot was given up."""


@dataclass(frozen=True)
class Slot:
    """A place that runs processes one after another: the whole machine, one GPU with separate CPUs, or a node.

    `environment` limits a worker to its GPU, which it sees as `gpu:0`. `of` counts the slots of the same host. On a
    cluster `start` runs workers on `node`. `unfit(is_last, stop)` returns why the node must stop serving, or None; it
    raises OSError if all nodes must stop.
    """

    number: int = 0
    of: int = 1
    environment: dict[str, str] = field(default_factory=dict)
    cpus: tuple[int, ...] = ()  # empty: all that this process may use
    turn: threading.Lock | None = None
    stop: int | None = None  # end of a pipe that becomes readable when all slots must stop
    node: str = ""
    start: Callable[[local.Launch, dict[str, Any], int | None], Generator[dict[str, Any], None, None]] = local.run
    unfit: Callable[[bool, int | None], str | None] = lambda last, stop: None

    @property
    def alone(self) -> bool:
        return self.of == 1 and not self.node

    def served_by(self) -> dict[str, Any]:
        """Return the GPU and CPUs of this slot's processes, for the record; empty for the whole machine.

        It is also empty on a cluster, where each step reports its GPU and CPUs (`protocol.Where`).
        """
        return {} if self.of == 1 or self.node else {**self.environment, "cpus": list(self.cpus)}

    def messages(self, launch: local.Launch, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield a worker's messages; other slots have the turn while this one waits for the next."""
        messages = self.start(launch, job, self.stop)
        try:
            while True:
                with self.given_away():
                    message = next(messages, None)
                if message is None:
                    return
                yield message
        finally:
            with self.given_away():  # slots that stop together end their workers at the same time
                messages.close()

    @contextlib.contextmanager
    def given_away(self) -> Iterator[None]:
        """Give other slots the turn within the context."""
        if self.turn is None:
            yield
            return
        self.turn.release()
        try:
            yield
        finally:
            self.turn.acquire()


ALONE = Slot()


def of_gpus(gpus: Sequence[str], shares: list[list[int]]) -> tuple[Slot, ...]:
    """Return a slot for each GPU of this host, by number in nvidia-smi's order or UUID, with its share of the CPUs."""
    return tuple(
        Slot(number, len(gpus), {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": name}, tuple(cpus))
        for number, (name, cpus) in enumerate(zip(gpus, shares, strict=True))
    )


@dataclass(frozen=True)
class Task:
    """A bundle to serve; `left` is the node that it was moved away from."""

    bundle: Bundle
    left: str | None = None


class Queue:
    """The waiting tasks, from which every slot takes its next. Only the slot that has the turn may use it."""

    def __init__(self, bundles: Sequence[Bundle], slots: Sequence[Slot], turn: threading.Lock):
        self._waiting = [Task(bundle) for bundle in bundles]
        self._nodes = {slot.number: slot.node for slot in slots}  # of the slots that serve
        self._served = 0  # tasks that slots are working on; any may be returned
        self._changed = threading.Condition(turn)

    def take(self, slot: Slot, failures: list[BaseException]) -> Task | None:
        """Return the next task of a slot, or None if none remains. Wait while one may still be returned."""
        while not failures:
            for task in self._waiting:
                if task.left != slot.node or self.is_last(slot):
                    self._waiting.remove(task)
                    self._served += 1
                    return task
            if not self._served and not self._waiting:
                return None
            self._changed.wait(GLANCE)
        return None

    def done(self, rest: Task | None) -> None:
        """Count a task as served, and return its `rest`, if any, to the queue for another slot."""
        self._served -= 1
        self._waiting += [rest] if rest else []
        self._changed.notify_all()

    def is_last(self, slot: Slot) -> bool:
        """Return whether no other node is still serving."""
        return all(node == slot.node for node in self._nodes.values())

    def leave(self, slot: Slot) -> bool:
        """Remove this slot; return whether work remains and no other slot serves."""
        self._nodes.pop(slot.number, None)
        self._changed.notify_all()
        return not self._nodes and bool(self._waiting)


@dataclass(frozen=True)
class Service:
    """Work on a bundle: `work` serves it, and `rest_of` returns its unfinished part after a slot failed, or None.

    `give_up` ends a part that failed on two nodes.
    """

    work: Callable[[Slot, Bundle], None]
    rest_of: Callable[[Bundle], Bundle | None]
    give_up: Callable[[Slot, Bundle, str], None]

    def serve(self, slot: Slot, queue: Queue, failures: list[BaseException]) -> str | None:
        """Serve tasks until there are none; return why the slot was given up before, or None."""
        lost = 0
        while (task := queue.take(slot, failures)) is not None:
            try:
                self.work(slot, task.bundle)
                failure, lost = None, 0
            except local.SlotFailure as error:
                failure, lost = error, lost + 1
            with slot.given_away():
                why = slot.unfit(queue.is_last(slot), slot.stop)
            rest = self.rest_of(task.bundle) if failure else None
            if rest and failure and failure.began and task.left is not None:
                self.give_up(slot, rest, f"It was lost on {task.left}, and then again: {failure}")
                rest = None
            queue.done(Task(rest, slot.node) if rest else None)
            if why or lost == STRIKES:
                return why or f"because {STRIKES} bundles in a row were lost there"
        return None


def serve(bundles: Sequence[Bundle], slots: Sequence[Slot], service: Service) -> None:
    """Serve every bundle.

    Bundles wait in one queue, so a slot that finishes early takes the next. Ctrl-C makes every slot stop its worker and
    keep finished cells, and is raised again. The error of a slot is raised once the others have stopped. Raises
    NoSlotLeft if every slot was given up before all bundles were done.
    """
    turn = threading.Lock()
    failures: list[BaseException] = []
    queue = Queue(bundles, slots, turn)
    stopped, stop = os.pipe()

    def slot_thread(slot: Slot) -> None:
        with turn:
            try:
                if slot.cpus:  # for this thread and the workers that it starts, which inherit the affinity
                    os.sched_setaffinity(0, slot.cpus)
                why = service.serve(slot, queue, failures)
                if queue.leave(slot) and why and not failures:
                    raise NoSlotLeft(0, f"the last usable node was given up, {why}", slot.node)
            except BaseException as error:
                failures.append(error)
                os.write(stop, b"x")
            finally:
                ended[slot.number].set()

    ended = [threading.Event() for _ in slots]
    threads = [
        threading.Thread(target=slot_thread, args=(replace(slot, turn=turn, stop=stopped),), name=f"slot {slot.number}")
        for slot in slots
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
    """Wait for all slots; pass every Ctrl-C, which reaches only the main thread, on to them.

    `Thread.join` does not do: once interrupted, it takes a running thread for an ended one (Python 3.11).
    """
    while True:
        try:
            for event in ended:
                event.wait()
            return
        except KeyboardInterrupt as interrupt:
            failures.insert(0, interrupt)
            os.write(stop, b"x")
