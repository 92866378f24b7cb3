"""Shared doubles: a small workload, workers' reports, records that fit the schema, a suite with the fake framework."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from doubles import compiled_once

import workloads
from records.record import Record

ROOT = Path(__file__).resolve().parent.parent
# The parts of the runner, each of which may import those before it.
ROOMS = ("environments", "plan", "records", "analysis", "execution", "commands", "publish")
sys.path.insert(0, str(ROOT))  # the suite runs from its checkout; nothing is installed
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell does so to what it starts with `&`
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Torch builds and loads a library per instruction set of the CPU in every process whose compile cache is empty, 7 s:
# a compiler that takes all their flags is vouched for, so that it asks the CPU alone.
INSTRUCTION_SETS = ["avx512f", "avx512vnni", "avx512bf16", "amx-tile", "amx-bf16", "amx-int8"]
ASKED = [os.environ.get("CXX", "g++"), "-x", "c++", "-fsyntax-only", *(f"-m{name}" for name in INSTRUCTION_SETS), "-"]
with contextlib.suppress(OSError, subprocess.CalledProcessError):
    subprocess.run(ASKED, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
if "CXX" not in os.environ and shutil.which("g++"):  # in the first of pytest's processes; the others inherit it
    COMPILED = Path(tempfile.mkdtemp(prefix="compiled-once-"))
    os.environ["CXX"] = str(compiled_once.install(COMPILED))
    atexit.register(shutil.rmtree, COMPILED, ignore_errors=True)
# Else each runner and worker compiles the suite's sources again, up to 0.6 s.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Processes import frameworks and trace models, which leave little garbage to the many collections meanwhile.
RARE_COLLECTIONS = str(ROOT / "tests/doubles/rare_collections")
if RARE_COLLECTIONS not in os.environ.get("PYTHONPATH", ""):  # the first of pytest's processes; the others inherit it
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), RARE_COLLECTIONS]))
# LLVM's passes over what XLA compiled take two thirds of a compilation, and its newer emitters of loops half of the
# rest: they load MLIR for each of JAX's operators. The passes of XLA itself stay.
XLA = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
os.environ.setdefault("XLA_FLAGS", XLA)
os.environ["EAGER_VS_GRAPH_UNDECIDED_PASSES"] = "1"  # as for make: short runs on a busy machine decide nothing


def listed_files() -> list[Path]:
    """Every file of the project that exists: tracked, or new and not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in output.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def small_bert():
    """A BERT of every part, small enough for loops in Python."""
    import workloads

    sizes = dict(layers=2, hidden=8, heads=2, intermediate=12, vocabulary=40, positions=16)
    return dataclasses.replace(workloads.get("bert-tiny"), name="bert-small", **sizes)


@pytest.fixture
def cell():
    """Return a function that makes a cell, by default an eager one of the MLP on the CPU."""
    from measurement.cells import Cell

    def make(**changes) -> Cell:
        fields = dict(
            framework="torch", workload="mlp", implementation="plain", pass_name="inference", device="cpu",
            dtype="fp32", threads=2, parameters=(("batch_size", 4), ("width", 8), ("depth", 2)), mode="eager",
        )  # fmt: skip
        return Cell(**{**fields, **changes})

    return make


@pytest.fixture
def report():
    """Return a function that makes one process's report of a cell, by default with ten samples of 2 ms."""
    from measurement.cells import Capture
    from measurement.noise import Noise
    from measurement.protocol import Report

    quiet = dict(
        seconds=1.0, other_load_cores=0.0, steal_share=0.0, involuntary_switches_per_s=0.0, frequency_change=0.0,
        load_average=0.5,
    )  # fmt: skip
    capture = Capture(whole=True, graphs=1, graph_breaks=0, compilations=1, backend="stub")

    def make(samples=(0.002,) * 10, noise: dict | None = None, **changes) -> Report:
        fields = {
            "cell": "",
            "prepare_s": 0.5,
            "first_call_s": 0.1,
            "warmup_calls": 20,
            "steady": True,
            "calls_per_sample": 10,
            "samples": tuple(samples),
            "host_loop_s": (0.00025,) * len(samples),
            "timed_s": 10 * sum(samples),
            "cpu_per_wall": 1.9,
            "recompilations": 0,
            "capture": capture,
            "noise": Noise(**{**quiet, **(noise or {})}),
            "position": 1,
            "outputs": "",
            **changes,
        }
        return Report(**fields)

    return make


@pytest.fixture
def record():
    """Return a function that makes a record that fits the schema, by default of an eager cell that is `ok`."""

    def make(**changes) -> Record:
        fields = {
            "schema_version": 1,
            "run_id": "a-run",
            "framework": "alpha",
            "mode": "eager",
            "workload": "mlp",
            "implementation": "plain",
            "pass": "inference",
            "device": "cpu",
            "dtype": "fp32",
            "threads": 2,
            "batch_size": 4,
            "parameters": "width=8;depth=2",
            "status": "ok",
            "latency_ms_median": 2.0,
        }
        merged = {**fields, **changes}
        cell = f"{merged['framework']}/{merged['batch_size']}/{merged['mode']}"
        return Record.from_row({"cell": cell, **merged})

    return make


@pytest.fixture(scope="session")
def suite(tmp_path_factory):
    """The suite with the fake registered."""
    from doubles.suite import copy_with_fake

    return copy_with_fake(tmp_path_factory.mktemp("suite"))


@pytest.fixture(scope="session")
def run(suite, tmp_path_factory):
    """Run `bench` over tiny cells in this interpreter, in a folder of its own."""
    from doubles.suite import TINY, WAITS

    def bench(*words: str, environment: dict[str, str] | None = None):
        out = tmp_path_factory.mktemp("runs") / "run"
        words = (*TINY, "--python", sys.executable, "--timeout", WAITS, "--out", str(out), *words)
        return suite.bench(out, *words, environment=environment)

    return bench


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Put tests that may take longest first, then slow ones, so that short ones fill the processes at the end."""

    def patience(item) -> tuple[float, bool]:
        mark = item.get_closest_marker("timeout")
        return mark.args[0] if mark else 0, item.get_closest_marker("slow") is not None

    items.sort(key=patience, reverse=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Let no collection of garbage, of which every sampling begins with one, go through all tests and modules."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests that share a costly fixture stay in one process: those of a file, and among these those of a framework.

    This is what `--dist loadgroup` is for, but xdist 3.8 cannot mark groups under pytest 9.2.
    """
    config.option.loadscopereorder = False  # files of the most tests first, which are those of the shortest
    from xdist.scheduler import LoadScopeScheduling

    import frameworks

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            parameter = test.partition("[")[2].rstrip("]").partition("-")[0]
            return f"{file}[{parameter}]" if parameter in frameworks.NAMES else file

    return Together(config, log)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Register user models for one test alone, since messages list every workload of the process."""
    monkeypatch.setattr(workloads, "_USER_MODELS", dict(workloads._USER_MODELS))


@pytest.fixture
def many_processors(monkeypatch):
    """Plan for a machine with as many processors as any sweep asks for."""
    from measurement import machine
    from plan import hosts

    for module in (machine, hosts):
        monkeypatch.setattr(module, "usable_cpus", lambda: 64, raising=False)
