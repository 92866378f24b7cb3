"""The loop that anybody would write: warm up, time some calls, synchronize once, take the median. Uses no suite."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

# bert-tiny: google/bert_uncased_L-2_H-128_A-2, small enough for the host to decide.
CONFIGS = {
    "bert-base": {},
    "bert-tiny": {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 512},
}
WARM_UP_CALLS = 5
MOST_CALLS, SHORTEST_S = 50, 0.2  # between two synchronizations: so many calls, or more if they last less than that


@dataclass
class Script:
    """Script of a framework: for each mode a function that makes its call, inputs, and how to wait for an output.

    Calls take `inputs` in turn; the latest `alive` outputs are held while the next one is made.
    """

    modes: Mapping[str, Callable[[], Callable]]
    inputs: Sequence
    synchronize: Callable
    context: Callable = contextlib.nullcontext  # entered around a whole loop
    each_call: bool = False  # on a CPU every call is waited for, as the suite does; JAX alone would continue meanwhile
    alive: int | None = 1  # None: all

    def seconds(self, call: Callable, calls: int) -> float:
        """Return seconds per call, over so many calls; one synchronization, unless each call has its own."""
        inputs, outputs = itertools.cycle(self.inputs), deque(maxlen=self.alive)
        with self.context():
            start = time.perf_counter()
            for _ in range(calls):
                outputs.append(call(next(inputs)))
                if self.each_call:
                    self.synchronize(outputs[-1])
            self.synchronize(outputs[-1])
            return (time.perf_counter() - start) / calls


def arguments(**how) -> argparse.ArgumentParser:
    """Return a parser of the options of a measurement: the library's BERT with random weights."""
    parser = argparse.ArgumentParser(**how)
    parser.add_argument("--workload", choices=CONFIGS, default="bert-base")
    parser.add_argument("--mode", type=lambda text: text.split(","), help="modes separated by commas (default: all)")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="of samples for each mode")
    parser.add_argument("--inputs", type=int, default=4, help="token arrays taken in turn (default: 4)")
    return parser


def measure(script: Script, call: Callable, seconds: float) -> dict:
    """Return milliseconds per call: median and range of samples, the samples, their number, and calls per sample."""
    script.seconds(call, WARM_UP_CALLS)
    one = script.seconds(call, 1)
    calls = max(1, int(min(max(MOST_CALLS, SHORTEST_S / one), seconds / 4 / one)))
    samples, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples) < 3:
        samples.append(1e3 * script.seconds(call, calls))
    whole = {"ms": median(samples), "low": min(samples), "high": max(samples), "samples": len(samples), "calls": calls}
    return whole | {"samples_ms": samples}


def built(build: Callable[[argparse.Namespace], Script], options: argparse.Namespace) -> Script:
    """Return a framework's script with the given options."""
    script = build(options)
    script.each_call = options.device == "cpu"
    return script


def main(build: Callable[[argparse.Namespace], Script]) -> None:
    """Measure the requested modes in sequence, and print a line of JSON for each."""
    options = arguments().parse_args()
    script = built(build, options)
    for mode in options.mode or script.modes:
        print(json.dumps({"mode": mode, **measure(script, script.modes[mode](), options.seconds)}), flush=True)
