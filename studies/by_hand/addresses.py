"""Does it matter where inputs and outputs lie? `python studies/by_hand/addresses.py jax --device gpu`.

Run with the framework's interpreter. Times one compiled mode of the script by hand in one process, with one input and
with four in turn, and with the last output, the last three or all of them alive; variants in random order, round by
round. Prints a line of JSON for each: milliseconds a call, and the ratio to one input and one output, round by round.
What it found stands in docs/methodology.md and decides `OUTPUTS_KEPT`. With
`XLA_FLAGS=--xla_gpu_enable_command_buffer=` XLA records no CUDA graphs, whose memory this is about.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from importlib import import_module
from statistics import median

import loop

MODES = {"torch": "inductor-reduce-overhead", "tensorflow": "function-xla", "jax": "jit"}
VARIANTS = [(1, 1), (1, 3), (1, None), (4, 1), (4, 3), (4, None)]  # inputs, outputs alive (None: all)
ROUNDS, CALLS, LEAD_IN = 15, 100, 25


def main() -> None:
    """Time the variants in turn and print what they took."""
    parser = loop.arguments(description=__doc__)
    parser.add_argument("framework", choices=MODES)
    options = parser.parse_args()
    script = loop.built(import_module(f"bert_{options.framework}").build, options)
    with script.context():
        call = script.modes[MODES[options.framework]]()
    script.seconds(call, loop.WARM_UP_CALLS)
    samples = {variant: [] for variant in VARIANTS}
    for _ in range(ROUNDS):
        for variant in random.sample(VARIANTS, len(VARIANTS)):
            inputs, alive = variant
            varied = replace(script, inputs=script.inputs[:inputs], alive=alive)
            varied.seconds(call, LEAD_IN)
            samples[variant].append(1e3 * varied.seconds(call, CALLS))
    plain = samples[VARIANTS[0]]
    for (inputs, alive), taken in samples.items():
        ratio = median(mine / first for mine, first in zip(taken, plain, strict=True))
        figures = {"ms": median(taken), "low": min(taken), "high": max(taken), "ratio": ratio}
        print(json.dumps({"inputs": inputs, "outputs_alive": alive or "all", **figures}), flush=True)


if __name__ == "__main__":
    main()
