"""More ways in which a mode misbehaves: to its process, to the results pipe and in what it says.

The fault campaign (`studies/faults`) registers them, with `FAKE_MISCHIEF=1`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from frameworks.fake.misbehaviour import after_some_samples

from frameworks.adapter import Unsupported

ENDLESS = 1000.0


def own_cell() -> str:
    """The cell at work: what the marker says, which lies beside the job."""
    return Path(sys.argv[1]).with_name("marker").read_text().strip()


def on_the_pipe(text: str | bytes) -> None:
    with open(sys.argv[2], "wb", buffering=0) as pipe:
        pipe.write(text.encode() if isinstance(text, str) else text)


def child(leaves: str, lives: float = ENDLESS) -> None:
    """A process that has everything open that this one has; it goes on in a session of its own, or as an orphan."""
    if os.fork():
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if leaves == "orphan" and os.fork():
        os._exit(0)
    if leaves != "stays":
        os.setsid()
    time.sleep(lives)
    os._exit(0)


def killed(sign: int) -> None:
    os.kill(os.getpid(), sign)
    time.sleep(ENDLESS)


def with_child(leaves: str, then: Callable[[], None]) -> Callable[[], None]:
    def trouble() -> None:
        child(leaves)
        then()

    return trouble


def trickle(end: bytes) -> None:
    while True:
        on_the_pipe(b"x" + end)
        time.sleep(0.1)


def endless_line() -> None:
    while True:
        on_the_pipe(b"x" * (1 << 20))


def forged(**content) -> Callable[[], None]:
    """A message on this cell with such a content, and then the process ends."""

    def trouble() -> None:
        on_the_pipe("\n" + json.dumps({"type": "cell", "cell": own_cell(), **content}) + "\n")
        os._exit(0)

    return trouble


def raw(text: str) -> Callable[[], None]:
    def trouble() -> None:
        on_the_pipe("\n" + text.replace("CELL", own_cell()) + "\n")
        os._exit(0)

    return trouble


def raised(error: BaseException) -> Callable[[], None]:
    def trouble() -> None:
        raise error

    return trouble


def flood() -> None:
    """80 MB on stdout and stderr each."""
    for _ in range(80):
        sys.stdout.write("x" * 999_999 + "\n")
        sys.stderr.write("y" * 1_000_000)


def silent_streams() -> None:
    for descriptor in (0, 1, 2):
        os.close(descriptor)


def close_everything() -> None:
    os.closerange(3, 1 << 10)
    time.sleep(ENDLESS)


def thread_that_goes_on() -> None:
    threading.Thread(target=time.sleep, args=(ENDLESS,), daemon=False).start()


def wipe() -> None:
    """Delete what the run reads, once in all its processes."""
    wiped = Path(sys.argv[1]).parents[1] / "wiped"
    if not wiped.exists():
        wiped.touch()
        shutil.rmtree(".cache/reference", ignore_errors=True)


def once(trouble: Callable[[], None]) -> Callable[[], None]:
    """What does no harm need be done once only."""
    left = [trouble]
    return lambda: left.pop()() if left else None


MEASURED, FAILED = ("measured",), ("error", "crash")
STATISTICS = dict(samples=[0.01] * 10, host_loop_s=[0.001] * 10)
# name -> what it does amid its samples, and the statuses that it may end in
MISCHIEF: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {
    "killed": (lambda: killed(signal.SIGKILL), ("crash",)),
    "segfault": (lambda: killed(signal.SIGSEGV), ("crash",)),
    "terminated": (lambda: killed(signal.SIGTERM), ("crash",)),
    "alarmed": (lambda: killed(signal.SIGALRM), ("crash",)),
    "aborts": (os.abort, ("crash",)),
    "stops": (lambda: killed(signal.SIGSTOP), ("timeout",)),
    "exits-0": (lambda: os._exit(0), ("crash",)),
    "exits-3": (lambda: os._exit(3), ("crash",)),
    "raises-exit": (raised(SystemExit(3)), FAILED),
    "raises-interrupt": (raised(KeyboardInterrupt()), FAILED),
    "recursion": (raised(RecursionError("maximum recursion depth exceeded")), ("error",)),
    "no-memory": (raised(MemoryError("cannot allocate 1 TiB")), ("oom",)),
    "child-crash": (with_child("stays", lambda: killed(signal.SIGKILL)), ("crash",)),
    "escaped-crash": (with_child("session", lambda: killed(signal.SIGSEGV)), ("crash",)),
    "orphan-crash": (with_child("orphan", lambda: os._exit(1)), ("crash",)),
    "child-hang": (with_child("orphan", lambda: time.sleep(ENDLESS)), ("timeout",)),
    "child-ok": (once(with_child("stays", lambda: None)), MEASURED),
    "escaped-ok": (once(with_child("session", lambda: None)), MEASURED),
    "orphan-ok": (once(with_child("orphan", lambda: None)), MEASURED),
    "daemon": (once(lambda: subprocess.Popen(["sleep", "1000"], start_new_session=True)), MEASURED),
    "thread": (once(thread_that_goes_on), MEASURED),
    "trickle": (lambda: trickle(b""), ("timeout",)),
    "trickled-lines": (lambda: trickle(b"\n"), ("timeout",)),
    "endless-line": (endless_line, ("error",)),
    "long-line": (once(lambda: on_the_pipe(b"x" * (64 << 20) + b"\n")), ("error",)),
    "glued": (once(lambda: on_the_pipe(b'{"type": "ce')), MEASURED),
    "glued-phase": (once(lambda: on_the_pipe(b'{"type": "phase", "cell": "a')), MEASURED),
    "binary": (once(lambda: on_the_pipe(os.urandom(4096) + b"\n")), MEASURED),
    "closes-pipe": (close_everything, ("crash", "timeout")),
    "closes-streams": (once(silent_streams), MEASURED),
    "flood": (once(flood), MEASURED),
    "wipes": (once(wipe), MEASURED),
    "moves": (once(lambda: os.chdir("/")), MEASURED),
    "nan-sample": (forged(status="measured", **STATISTICS | {"samples": [float("nan")] * 10}), FAILED),
    "infinite-sample": (forged(status="measured", **STATISTICS | {"samples": [float("inf")] * 10}), FAILED),
    "zero-sample": (forged(status="measured", **STATISTICS | {"samples": [0.0] * 10}), FAILED),
    "negative-sample": (forged(status="measured", **STATISTICS | {"samples": [-1.0] * 10}), FAILED),
    "no-sample": (forged(status="measured", **STATISTICS | {"samples": []}), FAILED),
    "text-sample": (forged(status="measured", **STATISTICS | {"samples": "fast"}), FAILED),
    "half-report": (forged(status="measured", **STATISTICS), FAILED),
    "no-report": (forged(status="measured"), FAILED),
    "strange-status": (forged(status="wonderful", reason="so it says"), FAILED),
    "list-status": (forged(status=["ok"], reason="so it says"), FAILED),
    "no-reason": (forged(status="error"), FAILED),
    "null-reason": (forged(status="error", reason=None), FAILED),
    "number-reason": (forged(status="error", reason=3), FAILED),
    "deep": (raw('{"type": "cell", "cell": "CELL", "x": ' + "[" * 5000 + "]" * 5000 + "}"), FAILED),
    "deeper": (raw('{"type": "cell", "x": ' + "[" * 200_000), FAILED),
    "long-number": (raw('{"type": "cell", "cell": "CELL", "status": ' + "9" * 5000 + "}"), FAILED),
    "strange-cell": (raw('{"type": "cell", "cell": "no/such/cell", "status": "error", "reason": "x"}'), FAILED),
    "list-cell": (raw('{"type": "cell", "cell": ["CELL"], "status": "error", "reason": "x"}'), FAILED),
    "hello-again": (raw('{"type": "hello", "versions": null, "installed": null, "effective": null}'), FAILED),
    "bad-progress": (raw('{"type": "progress", "rounds": "many", "seconds": ["a"]}'), FAILED),
    "strange-type": (raw('{"type": "dance", "cell": "CELL"}'), FAILED),
    "early-done": (raw('{"type": "done"}'), FAILED),
    "markup": (raised(RuntimeError("[/job:localhost/replica:0] failed [red]loudly")), ("error",)),
    "enforce": (raised(RuntimeError("[enforce fail at alloc.cpp:117] . ")), ("error",)),
    "escape": (raised(RuntimeError("\x1b[2J\x1b]0;title\x07 gone")), ("error",)),
    "surrogate": (raised(RuntimeError("cannot open \udcff\udcfe.so")), ("error",)),
    "formula": (raised(RuntimeError("=1+1|' /C calc'!A0")), ("error",)),
    "lines": (raised(RuntimeError("a\nb\r\nc\u2028d\x00e")), ("error",)),
    "long-words": (raised(RuntimeError("x" * 3_000_000)), ("error",)),
    "long-refusal": (raised(Unsupported("x" * 3_000_000)), ("unsupported",)),
    "empty-refusal": (raised(Unsupported("")), ("unsupported",)),
    "no-words": (raised(RuntimeError()), ("error",)),
}


def mischievous(mode: str) -> Callable[[Callable], Callable]:
    """The mode as the fake's other misbehaviours are: makes a bad call of a good one."""
    return lambda call: after_some_samples(call, MISCHIEF[mode][0])
