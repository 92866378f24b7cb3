"""How long reports take on many records, and how large the page is: `python studies/reports_at_scale.py [N]`.

Wants, for 100,000 records: a report in under 10 s and 500 MB, from a table and from JSONL alone, a page under 5 MB, a
comparison in under 5 s. Prints what it took; the exit code is 1 where a want is not met. No test asserts this: times on
a shared machine fail for its neighbours.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import islice, product
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from records.record import NAMES, SCHEMA_VERSION, Record  # noqa: E402
from records.recordfile import write_csv  # noqa: E402

# Seconds, and MB of memory, that a command may take.
WANTED = {
    "report": (10.0, 500.0),
    "report of JSONL alone": (10.0, 500.0),
    "compare": (5.0, None),
    "gather": (None, None),
}
PAGE_MB = 5.0
# About as long as the settings that a framework reads back.
SETTINGS = json.dumps({f"switch_{number}": "a value as it was read back" for number in range(12)})


def records(count: int, seed: int):
    """Records of a sweep over frameworks, modes, workloads and shapes; some noisy, some failed."""
    draw = random.Random(seed)
    modes = [(framework, mode) for framework in ("alpha", "beta", "gamma", "delta") for mode in ("eager", "graph")]
    axes = product(range(10_000), (1, 2, 4, 8, 16), (32, 128, 512), ("fp32", "bf16"), (1, 2), modes)
    for workload, batch, length, dtype, threads, (framework, mode) in islice(axes, count):
        name = f"model-{workload}"
        shape = f"batch_size={batch},seq_len={length}"
        row = dict.fromkeys(NAMES) | {
            "schema_version": SCHEMA_VERSION, "run_id": f"run-{seed}", "started_at": "2026-01-01T00:00:00Z",
            "machine_id": "0123456789ab", "framework": framework, "framework_version": "1.0", "mode": mode,
            "cell": f"{framework}/{name}/plain/inference/cpu/{dtype}/threads={threads}/{shape}/{mode}",
            "workload": name, "implementation": "plain", "pass": "inference", "batch_size": batch, "seq_len": length,
            "shapes": "static", "weights": "seed:0", "dtype": dtype, "device": "cpu", "device_name": "A processor",
            "threads": threads, "profile": "quick", "compile_cache": "cold", "settings": SETTINGS, "status": "ok",
        }  # fmt: skip
        if draw.random() < 0.01:
            yield row | {"status": "crash", "reason": "The worker died.", "stderr_tail": "some last words"}
            continue
        latency = draw.lognormvariate(0, 0.1) * batch * length / 100
        speedup = 1.0 if mode == "eager" else draw.lognormvariate(0.2, 0.2)
        yield row | {
            "first_call_s": draw.random() * (1 if mode == "eager" else 10), "launches": 3, "samples": 100,
            "latency_ms_median": latency, "latency_ms_ci_low": latency * 0.98, "latency_ms_ci_high": latency * 1.02,
            "speedup_vs_eager": speedup, "speedup_ci_low": speedup * 0.97 if mode != "eager" else None,
            "speedup_ci_high": speedup * 1.03 if mode != "eager" else None, "items_per_s": 1e3 / latency * batch,
            "break_even_calls": draw.random() * 1e4 if mode != "eager" and speedup > 1 else None,
            "achieved_tflops": 1 / latency, "peak_tflops": 2.0, "peak_gb_per_s": 20.0, "mfu_pct": 50 / latency,
            "intensity": draw.random() * 100, "regime": draw.choice(("overhead", "compute", "mixed")),
            "flags": draw.choice((None, None, "drift", "wide_interval;drift")), "cpu_per_wall": threads * 0.97,
        }  # fmt: skip


def write(folder: Path, count: int, seed: int) -> Path:
    """A run's folder with that many records."""
    folder.mkdir()
    with open(folder / "records.jsonl", "w") as file:
        file.writelines(json.dumps(record) + "\n" for record in records(count, seed))
    write_csv(map(Record.from_row, records(count, seed)), folder / "results.csv")
    return folder


def taken(*words: str) -> tuple[float, float, float]:
    """Return what a command of the runner takes: seconds by the clock and of the processor, and MB at most."""
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        command = [sys.executable, "runner.py", *words]
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode()
    if process.returncode not in (0, 1, 3) or "Traceback" in said:
        sys.exit(said)
    return time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> int:
    """Make the records, run the commands, print what they took."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name:
        a, b = (write(Path(name, side), count, seed) for seed, side in enumerate("ab"))
        print(f"{count:,} records, {(a / 'records.jsonl').stat().st_size / 1e6:.0f} MB as JSONL")
        alone = Path(name, "alone")
        alone.mkdir()
        shutil.copy(a / "records.jsonl", alone)
        took = {
            "report": taken("report", str(a)),
            "report of JSONL alone": taken("report", str(alone)),
            "compare": taken("compare", str(a), str(b)),
            "gather": taken("gather", str(a), str(b), "--out", str(Path(name, "all.csv"))),
        }
        size = (a / "report.html").stat().st_size / 1e6
    missed = [size > PAGE_MB]
    for command, (seconds, worked, memory) in took.items():
        print(f"{command}: {seconds:.1f} s, {worked:.1f} of the processor, {memory:.0f} MB{wanted(*WANTED[command])}")
        missed += [
            most is not None and value > most for value, most in zip((seconds, memory), WANTED[command], strict=True)
        ]
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    print(f"page: {size:.1f} MB (wanted: under {PAGE_MB:g} MB)")
    return int(any(missed))


def wanted(seconds: float | None, memory: float | None) -> str:
    """Return what a command may take, in words."""
    parts = [f"{value:g} {unit}" for value, unit in ((seconds, "s"), (memory, "MB")) if value is not None]
    return f" (wanted: under {' and '.join(parts)})" if parts else ""


if __name__ == "__main__":
    sys.exit(main())
