"""The misbehaving modes behind the real boundary. `FAKE_IMPORT` and `FAKE_CANARY` break the whole framework instead,
`FAKE_THREADS` is how many threads it uses, whatever it is told, and `FAKE_DELAY` by which share its calls are slowed
down; those of one mode alone with `FAKE_DELAYED`, its name. For `FAKE_SLEEP` seconds it sleeps before each cell.
`FAKE_HARM` names harm done to the disk below the run's folder while a model is built; see `harm`.
`FAKE_IMPORT=dies` kills each process; where it names a file, only the one that makes that file.

Its GPU is the CPU. With `FAKE_MEETING`, a folder, a process goes on only once it has met another one there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from frameworks.fake.misbehaviour import MISBEHAVIOUR, after_some_samples, delayed, loading, program, recompiling
from frameworks.fake.mischief import MISCHIEF, mischievous

from frameworks import adapter, smoke_test
from frameworks.adapter import Capture, Effective, Step, Unsupported
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

if os.environ.get("FAKE_IMPORT") == "raises":
    raise ImportError("libfake.so.1: cannot open shared object file")
if os.environ.get("FAKE_IMPORT") == "dies":
    os.kill(os.getpid(), signal.SIGSEGV)
if (once := Path(os.environ.get("FAKE_IMPORT", ""))).is_absolute() and not once.exists():
    once.touch()
    os.kill(os.getpid(), signal.SIGKILL)

CACHE = Path(os.environ["FAKE_CACHE_DIR"])
MEETING_SECONDS = 300


def meet(place: Path) -> None:
    """Wait until another process has been at this place. Raises TimeoutError."""
    (place / str(os.getpid())).touch()
    deadline = time.monotonic() + MEETING_SECONDS
    while len(list(place.iterdir())) < 2:
        if time.monotonic() > deadline:
            raise TimeoutError("nobody else came")
        time.sleep(0.05)


def harm(kind: str) -> None:
    """Remove the worker's folder, or fill the disk of the run's folder up to 24 KiB; then go on, fail, or die of it."""
    launch = Path(sys.argv[1]).parent
    if kind == "removes":
        shutil.rmtree(launch)
        return
    with open(launch.parents[2] / "filler", "ab", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(512))
        file.truncate(file.tell() - (24 << 10))
    if kind == "dies":
        os.kill(os.getpid(), signal.SIGBUS)
    if kind == "fails":
        raise RuntimeError("the compiler's assembler failed")
    if kind == "refuses":
        raise Unsupported("Fake fell back.")


class Adapter(adapter.Adapter):
    """NumPy on the CPU, `graph` included."""

    def __init__(self) -> None:
        super().__init__()
        self._device_works = os.environ.get("FAKE_CANARY") != "broken"

    def obstacle(self, device: str, mode: str | None = None) -> str | None:
        return None

    def smoke_test(self, device: str) -> dict[str, Any]:
        right = {
            "ones": np.ones((4, 4), np.float32),
            "sum": smoke_test.LEFT + smoke_test.RIGHT,
            "matmul": smoke_test.LEFT @ smoke_test.RIGHT,
            "relu": np.maximum(smoke_test.LEFT, 0),
        }
        results = right if self._device_works else {name: np.zeros_like(value) for name, value in right.items()}
        if wrong := smoke_test.problem(results):
            why = "this fake has kernels for sm_1; a fake for this device is on another index"
            raise Unsupported(f"{wrong}: {why}")
        return results

    def configure(self, cell: Cell) -> Effective:
        cached = sorted(path.name for path in CACHE.glob("*"))
        if meeting := os.environ.get("FAKE_MEETING"):
            meet(Path(meeting))
        settings = {"cache": str(CACHE), "found_in_cache": cached, "affinity": sorted(os.sched_getaffinity(0))}
        settings["gpu"] = os.environ.get("CUDA_VISIBLE_DEVICES")
        return Effective(threads=int(os.environ.get("FAKE_THREADS", cell.threads)), settings=settings)

    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        if cell.mode == "unsupported":
            raise Unsupported("Fake has no such mode on this machine.")
        if cell.mode == "silent-refusal":
            raise Unsupported("")
        if cell.mode == "long-refusal":
            raise Unsupported("No. " * 1_000_000)
        if cell.mode == "oom":
            raise MemoryError("cannot allocate 1 TiB")
        if workload.family != "mlp":
            raise KeyError(workload.family)  # as of a table of models
        time.sleep(float(os.environ.get("FAKE_SLEEP", 0)))
        if kind := os.environ.get("FAKE_HARM"):
            harm(kind)
        resident = {name: np.array(value) for name, value in weights.items()}
        if cell.mode == "wrong-weight":
            resident["layers.0.linear.weight"] = resident["layers.0.linear.weight"].T
        call = partial(workload.reference, dict(cell.parameters), resident)
        if cell.mode == "poisons":
            call = after_some_samples(call, self.poison)
        elif cell.mode in MISBEHAVIOUR:
            call = MISBEHAVIOUR[cell.mode](call)
        elif cell.mode in MISCHIEF:
            call = mischievous(cell.mode)(call)
        delay = float(os.environ.get("FAKE_DELAY", 0))
        if delay and os.environ.get("FAKE_DELAYED", cell.mode) == cell.mode:
            call = delayed(call, delay)
        listed = partial(program, cell.mode)
        if cell.mode == "eager":
            return Step(call, [self.place(cell, arrays) for arrays in inputs], program=listed)
        loaded = (CACHE / cell.mode).exists()
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / cell.mode).touch()  # "compiled code"
        if cell.mode == "recompiles":
            return recompiling(call, [self.place(cell, arrays) for arrays in inputs])
        if cell.mode == "disguised":
            captured = Capture(whole=True, graphs=0, compilations=0)
            return Step(call, [self.place(cell, arrays) for arrays in inputs], lambda: captured)
        if cell.mode == "ahead-of-time":
            return loading(call, [self.place(cell, arrays) for arrays in inputs])
        whole = cell.mode != "silent-fallback"
        captured = Capture(
            whole, graphs=1 if whole else 2, graph_breaks=0 if whole else 1, compilations=1, loaded=loaded
        )
        return Step(call, [self.place(cell, arrays) for arrays in inputs], lambda: captured, program=listed)

    def poison(self) -> None:
        """Like an illegal access on a GPU: the process can do nothing right from here on."""
        self._device_works = False
        raise RuntimeError("an illegal memory access was encountered")

    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        return (arrays,)

    def synchronize(self, output: Any) -> None:
        return None

    def to_numpy(self, output: Any) -> Arrays:
        if isinstance(output, Future):
            output = output.result()
        return output if self._device_works else {name: np.zeros_like(value) for name, value in output.items()}
