"""Code that runs in a framework's own environment, as the tests' has no framework."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pytest
from doubles.suite import Finished

import frameworks
from environments import environments
from frameworks.description import Framework
from measurement.refusals import DONE, INCOMPLETE

ROOT = Path(__file__).resolve().parent.parent.parent
REAL = [name for name in frameworks.NAMES if not frameworks.describe(name).is_reference]
# On PYTHONPATH: brief profiles of one process a bundle in place of 3 to 5.
FEW_PROCESSES = str(ROOT / "tests/doubles/few_processes")
RARELY = str(ROOT / "tests/doubles/rare_collections")
BRIEFLY = os.environ | {"PYTHONPATH": FEW_PROCESSES}
QUICKLY = ("--threads", "1", "--budget", "0.01")


def interpreter(framework: str) -> Path:
    """The framework's locked environment, which `make test` makes."""
    python = environments.path(framework, "cpu") / "bin" / "python"
    assert python.exists(), f"the environment of {framework} is missing: make setup FRAMEWORK={framework}"
    return python


def bench(out: Path, *words: str, launches: int = 1, also: Iterable[Path] = ()) -> Finished:
    """Run `bench` briefly in so many processes; `also` are sweep files whose cells share them."""
    double = ["tests/doubles/launches.py", str(launches), *map(str, also)]
    command = [sys.executable, *double, "bench", "--out", str(out), *words]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return Finished(done.returncode, done.stdout, out)


def modes_apart(framework: str) -> list[str]:
    """Every mode that users deploy, and eager: no rung, nor what is another one on a CPU, with no CUDA graphs.

    Forms that are built into a file have tests of their own.
    """
    modes = [mode for mode in frameworks.describe(framework).modes if not mode.is_rung and not mode.artefact]
    return [mode.name for mode in modes if not (mode.cuda_graphs and "cpu" in mode.devices)]


def run_sweep(framework: str, folder: Path, *texts: str, launches: int = 1) -> tuple[Framework, list[dict]]:
    """The framework with the records of sweep files' cells, one for each that was planned, all of one run.

    Modes that are `all` in a text are those that users deploy: `default` eager mode, the graphs that are measured where
    none is named, and what a CPU lacks; `others` the rest beside eager mode, whose program it is compared with.
    """
    interpreter(framework)
    description, modes, files = frameworks.describe(framework), modes_apart(framework), []
    first = [description.baseline.name, *description.default_graph]
    default = [mode for mode in modes if mode in first or "cpu" not in description.mode(mode).devices]
    others = [mode for mode in modes if mode not in default]
    kinds = {"all": modes, "default": default, "others": [first[0], *others] if others else []}
    for number, text in enumerate(texts):
        kind = next((kind for kind in kinds if f'mode = "{kind}"' in text), None)
        if kind and not kinds[kind]:
            continue
        text = text.replace(f'"{kind}"', json.dumps(kinds[kind])) if kind else text
        files.append(folder / f"tiny-{number}.toml")
        files[-1].write_text(text)
    words = ("--sweep", str(files[0]), "--framework", framework)
    done = bench(folder / "run", *words, launches=launches, also=files[1:])
    assert done.code in (DONE, INCOMPLETE), done.output  # a gap that is known may be a mismatch
    assert sorted(record["cell"] for record in done.records) == sorted(done.planned)
    return description, done.records


def answers_of(framework: str, check: str, *words: str) -> dict:
    """What a file of `checks` finds in the framework's environment."""
    python = environments.path(framework, "cpu") / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{framework}'s environment is not made")
    paths = os.pathsep.join([str(ROOT), RARELY])
    variables = {"PYTHONPATH": paths, **frameworks.describe(framework).environment(1, "cpu")}
    command = [python, ROOT / "tests/checks" / check, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **variables})
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def run_in(framework: str, *pieces: str, **variables: str) -> None:
    """Run code in the framework's environment, with the variables of its workers; what the code asserts is the test.

    Each call is a process of its own, forked from one that has imported the framework and run nothing. `variables` are
    of the environment in which it was imported.
    """
    server = _importer(framework, **variables)
    with tempfile.NamedTemporaryFile() as output:
        server.stdin.write(json.dumps([_joined(pieces), output.name]).encode() + b"\n")
        server.stdin.flush()
        status = server.stdout.readline().decode().strip()
        assert status == "0", f"it ended with {status or 'the process that imports'}: {output.read().decode()}"


@functools.cache
def _importer(framework: str, **variables: str) -> subprocess.Popen:
    """The process that calls of `run_in` are forked from; it ends with the tests, as its stdin does."""
    code = f"import frameworks.{framework}.adapter\n{FORKING}"
    return _started(framework, code, variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


FORKING = """
import gc, json, os, sys, traceback
if "paddle" not in sys.modules:  # whose list of operators asks the collector who refers to functions
    gc.freeze()  # else each collection goes through all that the import left
for line in sys.stdin:
    code, output = json.loads(line)
    if child := os.fork():
        print(os.waitpid(child, 0)[1], flush=True)
        continue
    for descriptor in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_APPEND), descriptor)
    status = 1
    try:
        exec(compile(code, "<test>", "exec"), {"__name__": "__main__"})
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)
"""


def _started(framework: str, code: str, more: dict[str, str], **pipes) -> subprocess.Popen:
    by_conftest = ("TORCHINDUCTOR_VEC_ISA_OK", "CXX", "XLA_FLAGS")
    known = {name: os.environ[name] for name in by_conftest if name in os.environ}
    known |= {"PATH": "/usr/bin:/bin", "PYTHONPATH": RARELY}
    variables = {**known, **frameworks.describe(framework).environment(2, "cpu"), **more}
    return subprocess.Popen([str(interpreter(framework)), "-c", code], cwd=ROOT, env=variables, **pipes)


def _joined(pieces: Iterable[str]) -> str:
    return "\n".join(textwrap.dedent(piece) for piece in pieces)


# The reason for which a call is refused, or None.
REFUSED = """
from frameworks.adapter import Unsupported

def refused(call, *arguments):
    try:
        call(*arguments)
    except Unsupported as error:
        return str(error)
"""
# Steps and programs of small models, as a worker makes them.
MODELS = """
from importlib import import_module
import workloads
from frameworks import program as compared
from measurement.cells import Cell

SHAPE = {"batch_size": 2, "seq_len": 8, "mask": "none", "attention": "explicit", "width": 16, "depth": 2}
# Those that no sweep of tests/frameworks/test_every_framework.py compares with eager mode.
CELLS = [
    ("bert-tiny", "library", "inference", {}),
    ("bert-tiny", "plain", "training", {"batch_size": 1}),
    ("mlp", "plain", "training", {"batch_size": 1}),
    ("mlp", "plain", "training", {"accumulate": 3}),
]
adapter = None

def step_of(framework, mode, name, implementation, pass_name, changes):
    global adapter
    adapter = adapter or import_module(f"frameworks.{framework}.adapter").Adapter()
    workload = workloads.get(name, pass_name)
    shape = {**SHAPE, "accumulate": 1, **changes}
    cell = Cell(framework, name, implementation, pass_name, "cpu", "fp32", 2, tuple(shape.items()), mode)
    adapter.configure(cell)
    return adapter.prepare(workload, cell, workload.seeded_weights(shape, 0), [workload.inputs(shape, 0)])

def program_of(*cell):
    step = step_of(*cell)
    if step.load:
        step.load()
    step()
    return step.program()
"""


class Served:
    """A framework's interpreter that stays: imports and configures once, then runs pieces of code one after the other.

    Each piece has names of its own, on top of the preamble's; what it changes in modules it puts back.
    """

    def __init__(self, framework: str, preamble: str):
        self._process = _started(framework, SERVER, {}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.run(preamble, keep=True)

    def run(self, *pieces: str, keep: bool = False) -> None:
        """Run code; what it asserts is the test. `keep` its names for all that follow."""
        self._process.stdin.write(json.dumps([_joined(pieces), keep]).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the interpreter ended with code {self._process.wait()}"
        problem = json.loads(answer)
        assert problem is None, problem

    def end(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def served(framework: str, head: str):
    """A fixture to run code in one process of the framework, which a worker's adapter has set up, after `head`."""

    @pytest.fixture(scope="module")
    def run():
        one = Served(framework, f'{MODELS}step_of("{framework}", "eager", "mlp", "plain", "inference", {{}})\n{head}')
        yield one.run
        one.end()

    return run


SERVER = """
import json, os, sys, traceback
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a framework prints is no answer
shared = {"__name__": "served"}
for line in sys.stdin:
    code, keep = json.loads(line)
    try:
        exec(compile(code, "<test>", "exec"), shared if keep else dict(shared))
        problem = None
    except BaseException:
        problem = traceback.format_exc()
    print(json.dumps(problem), file=answers, flush=True)
"""
