"""The misbehaving modes behind the real boundary. `FAKE_IMPORT` and `FAKE_CANARY` break the whole framework instead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from frameworks import adapter, canary
from frameworks.adapter import Capture, Effective, Step, Unsupported
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

if os.environ.get("FAKE_IMPORT") == "raises":
    raise ImportError("libfake.so.1: cannot open shared object file")
if os.environ.get("FAKE_IMPORT") == "dies":
    os.kill(os.getpid(), signal.SIGSEGV)

CACHE = Path(os.environ["FAKE_CACHE_DIR"])
SAMPLES_BEFORE_TROUBLE = 3


class Adapter(adapter.Adapter):
    """NumPy on the CPU, `graph` included."""

    def __init__(self) -> None:
        self._device_works = os.environ.get("FAKE_CANARY") != "broken"

    def available(self, device: str) -> str | None:
        return None

    def canary(self, device: str) -> dict[str, Any]:
        right = {
            "ones": np.ones((4, 4), np.float32),
            "sum": canary.LEFT + canary.RIGHT,
            "matmul": canary.LEFT @ canary.RIGHT,
            "relu": np.maximum(canary.LEFT, 0),
        }
        return right if self._device_works else {name: np.zeros_like(value) for name, value in right.items()}

    def configure(self, cell: Cell) -> Effective:
        found = sorted(path.name for path in CACHE.glob("*"))
        return Effective(threads=cell.threads, settings={"cache": str(CACHE), "found_in_cache": found})

    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        if cell.mode == "unsupported":
            raise Unsupported("Fake has no such mode on this machine.")
        if cell.mode == "oom":
            raise MemoryError("cannot allocate 1 TiB")
        resident = {name: np.array(value) for name, value in weights.items()}
        if cell.mode == "wrong-weight":
            resident["layers.0.linear.weight"] = resident["layers.0.linear.weight"].T
        call = partial(workload.reference, dict(cell.parameters), resident)
        if cell.mode == "poisons":
            call = after_some_samples(call, self.poison)
        elif cell.mode in MISBEHAVIOUR:
            call = MISBEHAVIOUR[cell.mode](call)
        if cell.mode == "eager":
            return Step(call, [self.place(cell, arrays) for arrays in inputs])
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / cell.mode).touch()  # "compiled code"
        whole = cell.mode != "silent-fallback"
        captured = Capture(whole, graphs=1 if whole else 2, graph_breaks=0 if whole else 1, compilations=1)
        return Step(call, [self.place(cell, arrays) for arrays in inputs], lambda: captured)

    def poison(self) -> None:
        """Like an illegal access on a GPU: the process can do nothing right from here on."""
        self._device_works = False
        raise RuntimeError("an illegal memory access was encountered")

    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        return (arrays,)

    def synchronize(self, output: Any) -> None:
        return None

    def to_numpy(self, output: Any) -> Arrays:
        return output if self._device_works else {name: np.zeros_like(value) for name, value in output.items()}


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


def is_sampled() -> bool:
    """Whether this call belongs to a sample rather than to the warm-up."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "take_sample":
            return True
        frame = frame.f_back
    return False


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
    """Never returns, and has a child. With `FAKE_NOTES` it tells there who they are, and ignores polite signals."""

    def trouble() -> None:
        child = subprocess.Popen(["sleep", "1000"])
        if notes := os.environ.get("FAKE_NOTES"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            Path(notes + ".new").write_text(f"{os.getpid()} {child.pid}")
            os.rename(notes + ".new", notes)
        print("waiting for a lock", file=sys.stderr, flush=True)
        time.sleep(1000)

    return after_some_samples(call, trouble)


MISBEHAVIOUR = {
    "prints": printing,
    "constant": constant,
    "raises": raising,
    "rubbish": partial(writing, line="Compiling 3 kernels..."),
    "half-message": partial(writing, line='{"type": "cell"}'),
    "crash": crashing,
    "hang": hanging,
}
