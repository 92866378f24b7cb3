"""The ways in which the fake's modes misbehave: each makes a bad call out of a good one."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from frameworks.adapter import Capture, Step
from frameworks.program import Operation, Program
from measurement.cells import Cell
from workloads.spec import Arrays

SAMPLES_BEFORE_TROUBLE = 3
# A report as a worker sends it.
MEASURED = {
    "type": "cell", "cell": "CELL", "status": "measured", "samples": [0.1, 0.1], "prepare_s": 0.1, "first_call_s": 0.1,
    "timed_s": 0.2, "warmup_calls": 1, "calls_per_sample": 1, "steady": True, "capture": {"whole": True}, "position": 1,
    "noise": {
        "seconds": 1.0, "other_load_cores": 0.0, "steal_share": 0.0, "involuntary_switches_per_s": 0.0,
        "frequency_change": 0.0, "load_average": 0.0,
    },
}  # fmt: skip
DEEP = json.dumps(MEASURED | {"compiler": {}}).replace("{}", '{"a":' * 500 + "1" + "}" * 500)
TWICE = "\n".join([json.dumps(MEASURED)] * 2)


def after_some_samples(call: Callable, trouble: Callable[[], None]) -> Callable:
    """`call`, with trouble in the middle of sampling, when everything before went well."""
    samples = 0

    def troubled(inputs: Arrays) -> Arrays:
        nonlocal samples
        samples += is_sampled()
        if samples > SAMPLES_BEFORE_TROUBLE:
            trouble()
        return call(inputs)

    return troubled


def delayed(call: Callable, share: float) -> Callable:
    """`call`, which then spins for that share of its own time."""

    def slower(inputs: Arrays) -> Arrays:
        begun = time.perf_counter()
        output = call(inputs)
        until = time.perf_counter() + share * (time.perf_counter() - begun)
        while time.perf_counter() < until:
            pass
        return output

    return slower


def recompiling(call: Callable, inputs: list[tuple]) -> Step:
    """A step whose compile counter moves in the middle of sampling."""
    compilations = 1

    def once_more() -> None:
        nonlocal compilations
        compilations += 1

    def capture() -> Capture:
        return Capture(whole=True, graphs=1, graph_breaks=0, compilations=compilations)

    return Step(after_some_samples(call, once_more), inputs, capture)


def loading(call: Callable, inputs: list[tuple]) -> Step:
    """A step that takes 50 ms to load, once, and cannot be called before."""
    loads = 0

    def load() -> None:
        nonlocal loads
        loads += 1
        time.sleep(0.05)

    def loaded(inputs: Arrays) -> Arrays:
        if loads != 1:
            raise RuntimeError(f"called after {loads} loads")
        return call(inputs)

    return Step(loaded, inputs, lambda: Capture(whole=True, graphs=1, compilations=1), load=load)


def is_sampled() -> bool:
    """Whether this call belongs to a sample rather than to the warm-up."""
    return is_called_by("take_sample")


def local_above(name: str) -> Any:
    """The variable of this name in the innermost function under way that has one."""
    frame = sys._getframe()
    while name not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals[name]


def is_called_by(name: str) -> bool:
    """Whether a function of this name is under way."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == name:
            return True
        frame = frame.f_back
    return False


def program(mode: str) -> Program:
    """The operators of a mode, as it tells them. Raises RuntimeError where it cannot."""
    if mode == "unlistable":
        raise RuntimeError("this build shows no operators")
    mask = "bool (1,1,8,8) stride (0,8,1,0)" if mode == "another-program" else "none"
    return [Operation("matmul", "matmul"), Operation("attention", "attention", {"mask": mask}), Operation("add")]


def printing(call: Callable) -> Callable:
    def prints(inputs: Arrays) -> Arrays:
        print('{"type": "done"}')
        print("a warning that nobody asked for", file=sys.stderr)
        os.write(1, b"\xff\xfe no UTF-8 either\n")
        return call(inputs)

    return prints


def constant(call: Callable) -> Callable:
    first: list[Arrays] = []

    def constantly(inputs: Arrays) -> Arrays:
        if not first:
            first.append(call(inputs))
        return first[0]

    return constantly


def writing(call: Callable, line: str) -> Callable:
    def writes(inputs: Arrays) -> Arrays:
        with open(sys.argv[2], "w") as pipe:
            pipe.write(line + "\n")
        return call(inputs)

    return writes


def saying(mode: str, message: dict) -> Callable:
    """Makes calls that tell the parent something, `CELL` in it the cell's own name."""
    return lambda call: after_some_samples(call, partial(tell, mode, json.dumps(message)))


def tell(mode: str, text: str) -> None:
    (cell,) = (c for g in job()["groups"] for c in g["cells"] if c["mode"] == mode)
    with open(sys.argv[2], "w") as pipe:
        pipe.write(text.replace("CELL", Cell.from_json(cell).id) + "\n")
    if "CELL" not in text:  # the parent blames the cell at work when it reads this, and then ends the process
        time.sleep(10)


def job() -> dict:
    return json.loads(Path(sys.argv[1]).read_text())


def tearing(call: Callable) -> Callable:
    """Cuts the file of its outputs, behind the worker's back."""
    from worker import writing

    whole = writing.save

    def torn(path: Path, arrays: dict) -> str:
        writing.save = whole
        whole(path, arrays)
        path.write_bytes(path.read_bytes()[:100])
        return str(path)

    def calls(inputs: Arrays) -> Arrays:
        if is_called_by("save_outputs"):
            writing.save = torn
        return call(inputs)

    return calls


def raising(call: Callable) -> Callable:
    def trouble() -> None:
        print("the framework's own last words", file=sys.stderr)
        raise RuntimeError("kernel launch failed")

    return after_some_samples(call, trouble)


def crashing(call: Callable) -> Callable:
    def trouble() -> None:
        print("terminate called without an active exception", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    return after_some_samples(call, trouble)


def hanging(call: Callable) -> Callable:
    """Never returns, and has a child. With `FAKE_NOTES` it tells there who they are, and ignores polite signals.

    `{gpu}` in `FAKE_NOTES` is the GPU that the process was given.
    """

    def trouble() -> None:
        child = subprocess.Popen(["sleep", "1000"])
        if notes := os.environ.get("FAKE_NOTES"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            notes = notes.format(gpu=os.environ.get("CUDA_VISIBLE_DEVICES"))
            Path(notes + ".new").write_text(f"{os.getpid()} {child.pid}")
            os.rename(notes + ".new", notes)
        print("waiting for a lock", file=sys.stderr, flush=True)
        time.sleep(1000)

    return after_some_samples(call, trouble)


def unsynchronized(call: Callable) -> Callable:
    """Like a kernel launch: returns at once, and the work goes on for some time."""
    pool = ThreadPoolExecutor(max_workers=1)

    def work(inputs: Arrays) -> Arrays:
        time.sleep(0.02)
        return call(inputs)

    return lambda inputs: pool.submit(work, inputs)


def two_threads(call: Callable) -> Callable:
    """Threads that work all the time, by the worker's CPU clock, which each call moves on by a second.

    How much real threads work is the machine's: a busy one has no second processor for them.
    """
    seconds = 0

    def works(inputs: Arrays) -> Arrays:
        nonlocal seconds
        if seconds == 0:
            clocks = local_above("clocks")
            own = clocks.cpu
            object.__setattr__(clocks, "cpu", lambda: own() + seconds)  # of a frozen class
        seconds += 1
        return call(inputs)

    return works


MISBEHAVIOUR = {
    "unsynchronized": unsynchronized,
    "two-threads": two_threads,
    "prints": printing,
    "constant": constant,
    "raises": raising,
    "rubbish": partial(writing, line="Compiling 3 kernels..."),
    "half-message": partial(writing, line='{"type": "cell"}'),
    "nan-sample": saying("nan-sample", MEASURED | {"samples": [0.1, math.nan]}),
    "infinite-sample": saying("infinite-sample", MEASURED | {"samples": [0.1, math.inf]}),
    "zero-sample": saying("zero-sample", MEASURED | {"samples": [0.1, 0]}),
    "negative-sample": saying("negative-sample", MEASURED | {"samples": [0.1, -0.1]}),
    "no-fields": saying("no-fields", {"type": "cell", "cell": "CELL", "status": "measured"}),
    "unknown-status": saying("unknown-status", {"type": "cell", "cell": "CELL", "status": "fine", "reason": "It is."}),
    "no-reason": saying("no-reason", {"type": "cell", "cell": "CELL", "status": "error", "reason": None}),
    "null-hello": saying("null-hello", {"type": "hello", "versions": None, "installed": None, "effective": None}),
    "list-of-seconds": saying("list-of-seconds", {"type": "progress", "rounds": 1, "seconds": [1, 2]}),
    "deep-message": lambda call: after_some_samples(call, partial(tell, "deep-message", DEEP)),
    "twice": lambda call: after_some_samples(call, partial(tell, "twice", TWICE)),
    "torn-outputs": tearing,
    "crash": crashing,
    "hang": hanging,
}
