"""A framework written with NumPy whose modes misbehave in chosen ways; see the adapter. Only tests register it.

`FAKE_REPLAYS` names a mode that replays eager's kernels, as far as its description says.
"""

from __future__ import annotations

import os

from frameworks.description import Framework, Mode, openmp_environment

# name -> what is wrong with it
MODES = {
    "graph": "nothing",
    "ahead-of-time": "nothing; it is loaded before its first call, and raises where it is not",
    "prints": "rubbish on stdout and stderr",
    "wrong-weight": "a square weight is transposed",
    "constant": "every output is that of the first input",
    "unsynchronized": "it computes on a thread that nothing waits for",
    "two-threads": "it keeps twice as many threads busy as it was told",
    "recompiles": "it compiles again while it is sampled",
    "another-program": "a graph whose attention has a mask that eager mode's has not; the numbers agree",
    "unlistable": "its operators cannot be listed",
    "silent-fallback": "a graph that holds only a part of the model",
    "disguised": "eager mode that says it captured the whole model",
    "unsupported": "it says that it cannot run here",
    "oom": "it has no memory for the model",
    "raises": "an exception while it is sampled",
    "poisons": "an exception after which the device computes zeros",
    "rubbish": "a line on the results pipe that is no message",
    "half-message": "a message without its content",
    "nan-sample": "a report of itself with a sample that is no number",
    "infinite-sample": "a report of itself with an infinite sample",
    "zero-sample": "a report of itself with a sample of no time",
    "negative-sample": "a report of itself with a sample of less than no time",
    "no-fields": "a report of itself as measured, without figures",
    "unknown-status": "a status that there is none of",
    "no-reason": "a failure whose reason is null",
    "silent-refusal": "it cannot run here and does not say why",
    "long-refusal": "it cannot run here and does not stop saying why",
    "null-hello": "a greeting of nulls",
    "list-of-seconds": "progress whose seconds are a list",
    "deep-message": "a message of lists in lists in lists",
    "twice": "a report of a cell that is done already",
    "torn-outputs": "a file of outputs that ends in the middle",
    "crash": "the process is killed while it is sampled",
    "hang": "it never returns from a sample",
}

if os.environ.get("FAKE_MISCHIEF"):
    from frameworks.fake.mischief import MISCHIEF

    MODES |= dict.fromkeys(MISCHIEF, "see mischief.py")

FRAMEWORK = Framework(
    name="fake",
    title="Fake",
    distributions=("numpy",),
    modes=(
        Mode("eager", graph=False, summary="as the NumPy oracle", devices=("cpu", "gpu"), passes=("inference",)),
        *(
            Mode(
                name,
                graph=True,
                summary=wrong,
                devices=("cpu", "gpu"),
                passes=("inference",),
                cuda_graphs=name == os.environ.get("FAKE_REPLAYS"),
            )
            for name, wrong in MODES.items()
        ),
    ),
    default_graph=("graph",),
    models={"plain": ("mlp", "stream")},  # of which it lacks the second
    environment=lambda threads, device_kind: openmp_environment(threads),
    cache_variables=("FAKE_CACHE_DIR",),
)
