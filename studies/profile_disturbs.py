"""Whether torch's profiler slows what follows it in its process: `python studies/profile_disturbs.py [--processes 3]`.

Each fresh process times calls that wait for the host (a Transformer encoder, batch 1, 128 tokens) in eager mode and,
on a GPU, as a replayed CUDA graph; then profiles 5 calls as `frameworks/torch/inspect/profiler.py` does, and times
both again and a graph captured since. Its arms take turns: without a profile, with one, and with one whose
CUPTI is taken down again (`TEARDOWN_CUPTI=1`). It prints time after over time before, by arm and process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

ARMS: dict[str, tuple[bool, dict[str, str]]] = {
    "no profile": (False, {}),
    "profile": (True, {"TEARDOWN_CUPTI": "0"}),
    "profile, CUPTI taken down": (True, {"TEARDOWN_CUPTI": "1"}),
}
ROUNDS, CALLS = 30, 20


def main() -> None:
    """Run the arms in turn and print a line for each process."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--processes", type=int, default=3)
    options.add_argument("--arm", choices=ARMS, help="run this one alone, here; used by the study itself")
    given = options.parse_args()
    if given.arm:
        print(json.dumps(compared(profiles=ARMS[given.arm][0])))
        return
    for number in range(given.processes):
        for arm, (_, variables) in ARMS.items():
            command = [sys.executable, __file__, "--arm", arm]
            done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
            said = (
                done.stdout.splitlines()[-1]
                if done.returncode == 0
                else f"died ({done.returncode}): {done.stderr[-300:]}"
            )
            print(f"process {number + 1}, {arm}: {said}", flush=True)


def compared(profiles: bool) -> dict[str, float]:
    """Return milliseconds of a call before, and times after as multiples of them, by mode."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.mha.set_fastpath_enabled(False)
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).eval().to(device)
    inputs = torch.randn(1, 128, 768, device=device)

    def eager() -> object:
        with torch.inference_mode():
            return model(inputs)

    def wait(_: object = None) -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    def replayed() -> Callable[[], object]:
        graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(graph):
            model(inputs)
        return graph.replay

    for _ in range(CALLS):
        eager()
    wait()
    modes = {"eager": eager} | ({"replay": replayed()} if device == "cuda" else {})
    before = timed(modes, wait)
    if profiles:
        from frameworks.torch.inspect.profiler import Profiler

        with tempfile.TemporaryDirectory() as folder:
            Profiler(Path(folder)).profile(eager, wait, 5, Path(folder))  # type: ignore[arg-type]
    after = timed(modes, wait)
    shown = {f"{name} before, ms": 1e3 * seconds for name, seconds in before.items()}
    shown |= {f"{name} after / before": after[name] / before[name] for name in before}
    if device == "cuda":
        shown["captured since / before"] = timed({"replay": replayed()}, wait)["replay"] / before["replay"]
    return {name: round(value, 4) for name, value in shown.items()}


def timed(modes: dict[str, Callable[[], object]], wait: Callable[[], None]) -> dict[str, float]:
    """Return seconds per call by mode, medians over rounds in which the modes take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in modes}
    for _ in range(ROUNDS):
        for name, call in modes.items():
            wait()
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            wait()
            seconds[name].append((time.perf_counter() - start) / CALLS)
    return {name: median(values) for name, values in seconds.items()}


if __name__ == "__main__":
    main()
