"""Why Paddle's `to_static` loses to eager mode on several CPU threads: its executor's threads, OpenMP's, or both.

An encoder of BERT-base's size on one sequence of 32 tokens, written as a user would, in fresh processes that have as
many CPUs as threads were asked for. Two things are varied, each alone and both together: whether the executor runs
operators on threads of its own (`parallel`, the users' default) or on one (`serial`), and how many threads OpenMP may
start for each of them (one, or as many as were asked for). Each process tells milliseconds a call, how many threads it
has, and how many of them were busy for more than 5 % of the time (`/proc/self/task`).

.venvs/paddle-cpu/bin/python studies/paddle_threads.py [--threads 2,4] [--processes 3]   # a line of JSON each
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

EAGER, PARALLEL, SERIAL = "eager", "to_static, parallel", "to_static, serial"
SECONDS, CALLS = 4.0, 5
TICKS = os.sysconf("SC_CLK_TCK")


def encoder():
    """Twelve layers of 768 values, as BERT-base has them."""
    import paddle
    from paddle import nn

    class Layer(nn.Layer):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(768, 768) for _ in range(4))
            self.first, self.second = nn.LayerNorm(768), nn.LayerNorm(768)
            self.wide, self.narrow = nn.Linear(768, 3072), nn.Linear(3072, 768)

        def heads(self, x):
            return x.reshape([x.shape[0], x.shape[1], 12, 64]).transpose([0, 2, 1, 3])

        def forward(self, x):
            query, key, value = (self.heads(part(x)) for part in (self.query, self.key, self.value))
            scores = nn.functional.softmax(paddle.matmul(query, key, transpose_y=True) * 0.125, axis=-1)
            mixed = paddle.matmul(scores, value).transpose([0, 2, 1, 3]).reshape(x.shape)
            x = self.first(x + self.out(mixed))
            return self.second(x + self.narrow(nn.functional.gelu(self.wide(x))))

    model = nn.Sequential(*[Layer() for _ in range(12)])
    model.eval()
    return model


def ticks() -> dict[str, int]:
    """Processor time of each thread of this process."""
    told = {}
    for task in Path("/proc/self/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        told[task.name] = int(fields[11]) + int(fields[12])
    return told


def timed(form: str, threads: int) -> dict:
    """What one process, which this is, measures."""
    import paddle

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    paddle.base.core.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    model, x = encoder(), paddle.randn([1, 32, 768])
    if form != EAGER:
        model = paddle.jit.to_static(model, full_graph=True)
    milliseconds = []
    with paddle.no_grad():
        for _ in range(CALLS):
            model(x).numpy()
        before, begun = ticks(), time.perf_counter()
        while time.perf_counter() - begun < SECONDS:
            since = time.perf_counter()
            for _ in range(CALLS):
                y = model(x)
            y.numpy()
            milliseconds.append((time.perf_counter() - since) / CALLS * 1e3)
        after, wall = ticks(), time.perf_counter() - begun
    busy = sum((now - before.get(task, 0)) / TICKS > 0.05 * wall for task, now in after.items())
    return {"ms": median(milliseconds), "of_process": len(after), "busy": busy}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="2,4", help="thread counts, and of CPUs (default: 2,4)")
    parser.add_argument("--processes", type=int, default=3, help="of each kind, taken in turn (default: 3)")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # what a process of its own is asked for
    options = parser.parse_args()
    if options.one:
        print(json.dumps(timed(options.one, int(options.threads))))
        return 0
    for process in range(options.processes):
        for threads in map(int, options.threads.split(",")):
            for form, openmp in [(form, n) for n in (1, threads) for form in (EAGER, PARALLEL, SERIAL)]:
                counts = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(openmp))
                serial = {"FLAGS_new_executor_serial_run": str(int(form == SERIAL))}
                command = [sys.executable, __file__, "--one", form, "--threads", str(threads)]
                done = subprocess.run(command, env={**os.environ, **counts, **serial}, capture_output=True, text=True)
                if done.returncode:
                    sys.exit(done.stderr[-2000:])
                told = {"process": process, "cpus": threads, "form": form, "openmp": openmp}
                print(json.dumps(told | json.loads(done.stdout.splitlines()[-1])), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
