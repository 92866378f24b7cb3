"""The suite's own steps and a script's calls in turn, in one process: what the suite adds to a call.

Run by `against_by_hand.py --paired` with the framework's interpreter; prints a line of JSON for each mode.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
from functools import partial
from importlib import import_module
from statistics import median

import loop

import workloads
from measurement.cells import Cell
from measurement.cores import Cores
from measurement.host import loop_seconds
from measurement.profiles import Profile
from measurement.sampling import Clocks, Variant, first_call, good_rounds, take_rounds
from measurement.statistics import batch_interval, log_ratios
from measurement.warm_up import warm_up


def use_same_code(framework: str, mode: str) -> None:
    """Let a script load the code that the suite compiled for the mode.

    Two compilations by Inductor may tune a kernel differently: BERT's `reduce-overhead` at 1 x 128 differed by up to
    6 % on an H100, and by 0.1 % with the same code.
    """
    if framework == "torch":
        import_module("frameworks.torch.modes.graphs").use_own_caches(mode)


def main() -> None:
    """Pair the requested modes, with all variants interleaved in the same rounds."""
    parser = loop.arguments()
    parser.add_argument("--framework", required=True)
    options = parser.parse_args()
    adapter = import_module(f"frameworks.{options.framework}.adapter").Adapter()
    workload, clocks = workloads.get(options.workload), Clocks()
    shape = {"batch_size": options.batch, "seq_len": options.seq, "mask": "none"}
    device = "gpu:0" if options.device == "gpu" else "cpu"
    cell = partial(
        Cell, framework=options.framework, workload=options.workload, implementation="library", pass_name="inference",
        device=device, dtype=options.dtype, threads=options.threads, parameters=tuple(shape.items()),
    )  # fmt: skip
    adapter.configure(cell(mode="eager"))
    script = loop.built(import_module(f"bert_{options.framework}").build, options)
    modes = options.mode or list(script.modes)
    weights, inputs = workload.seeded_weights(shape, 0), [workload.inputs(shape, seed) for seed in range(4)]
    pairs = {}
    for mode in modes:
        adapter.start_compiler(cell(mode=mode))
        step = adapter.prepare(workload, cell(mode=mode), weights, inputs)
        if step.load:
            step.load()
        ours = Variant(mode, step, adapter.synchronize, synchronize_each_call=device == "cpu")
        first_call(ours, clocks)
        with script.context():
            call = script.modes[mode]()
        use_same_code(options.framework, mode)
        script.seconds(call, loop.WARM_UP_CALLS)  # compiles, which is no part of the warm-up that sizes a sample
        theirs = Variant(f"{mode} by hand", call, script.synchronize, synchronize_each_call=device == "cpu")
        theirs.timer = partial(script.seconds, call)
        pairs[mode] = ours, theirs
    profile = Profile(
        "paired", 1, 1, options.seconds, 4 * options.seconds, 10, 0.0, stop_early=False, warmup_seconds=2.0
    )
    variants = [variant for pair in pairs.values() for variant in pair]
    for variant in variants:
        warm_up(variant, profile, clocks)
    cores = Cores(clocks.wall, sorted(os.sched_getaffinity(0)))
    settle = (lambda: (cores.settle(),)) if device != "cpu" and cores.movable else None
    full_s = take_rounds(
        variants, profile, clocks, random.Random(0), control=lambda: (loop_seconds(clocks.wall),), settle=settle
    )
    for mode, pair in pairs.items():
        good = good_rounds(pair, full_s)[0]
        ours, theirs = ([variant.samples[place] for place in good] for variant in pair)
        interval = batch_interval(log_ratios(ours, theirs))
        if interval is None:
            sys.exit(f"{mode}: {len(good)} rounds at full speed are too few for an interval; ask for more --seconds.")
        figures = {
            "suite_ms": 1e3 * median(ours),
            "hand_ms": 1e3 * median(theirs),
            "ratio": tuple(interval.map(math.exp)),
            "rounds": len(good),
        }
        print(json.dumps({"mode": mode, **figures}), flush=True)


if __name__ == "__main__":
    main()
