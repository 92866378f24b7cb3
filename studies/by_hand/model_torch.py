"""A torch model file timed by hand: eager mode and torch.compile in turn. Knows no suite.

`python studies/by_hand/model_torch.py FILE --device gpu` prints a line of JSON: samples in milliseconds a call
by mode, one of each mode a round, in random order.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
import time

import loop
import torch
from torch.utils import _pytree as pytree

SAMPLE_S = 0.02  # a sample is as many calls as last so long


def arguments() -> argparse.ArgumentParser:
    """Return the parser of what is measured and where."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0, help="of samples for both modes together")
    return parser


def loaded(options: argparse.Namespace) -> tuple[torch.nn.Module, list[tuple]]:
    """Return the file's model in inference mode and four input sets, on the device in float32."""
    spec = importlib.util.spec_from_file_location("by_hand_model", options.file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where torch.compile looks up a function's globals
    spec.loader.exec_module(module)
    device = "cuda" if options.device == "gpu" else "cpu"
    torch.manual_seed(0)
    model = module.model().eval().to(device)
    return model, [
        pytree.tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf, given)
        for given in (module.inputs(batch_size=options.batch) for _ in range(4))
    ]


def called(model: torch.nn.Module, given) -> object:
    """Call the model with what its file's `inputs` returned."""
    if isinstance(given, dict):
        return model(**given)
    return model(*given) if isinstance(given, tuple) else model(given)


def main() -> None:
    """Time both modes in turn and print the samples."""
    options = arguments().parse_args()
    torch.set_num_threads(options.threads)
    torch.backends.cudnn.allow_tf32 = False  # as matrix products: strict float32
    model, inputs = loaded(options)
    compiled = torch.compile(model)
    synchronize = torch.cuda.synchronize if options.device == "gpu" else None
    script = loop.Script({}, inputs, lambda _: synchronize and synchronize(), torch.inference_mode)
    calls = {"eager": lambda given: called(model, given), "inductor": lambda given: called(compiled, given)}
    counts, first = {}, {}
    for mode, call in calls.items():
        start = time.perf_counter()
        script.seconds(call, loop.WARM_UP_CALLS)
        first[mode] = time.perf_counter() - start
        script.seconds(call, loop.WARM_UP_CALLS)
        counts[mode] = max(1, round(SAMPLE_S / script.seconds(call, loop.WARM_UP_CALLS)))
    samples, end = {mode: [] for mode in calls}, time.perf_counter() + options.seconds
    while time.perf_counter() < end or len(samples["eager"]) < 10:
        for mode in random.sample(list(calls), len(calls)):
            samples[mode].append(1e3 * script.seconds(calls[mode], counts[mode]))
    print(json.dumps({"samples_ms": samples, "calls": counts, "first_s": first, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
