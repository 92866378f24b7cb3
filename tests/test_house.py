"""The house rules: who may import whom, the same files for every framework."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from conftest import ROOMS, ROOT, listed_files

import frameworks

PARTS = ("measurement", "workloads", "frameworks", "worker", "launchers", "reports", "experiments", "runner", *ROOMS)
CLOCKS = {"time", "datetime", "timeit", "calendar"}
SWEPT = [name for name in frameworks.NAMES if not frameworks.describe(name).is_reference]


FILES = listed_files()
PYTHON = [path for path in FILES if path.suffix == ".py"]


@functools.cache
def nodes(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


@functools.cache
def imported(source: str) -> list[str]:
    """Every module that the source imports anywhere, functions included; `from a import b` may give `a.b`."""
    found: list[str] = []
    for node in nodes(source):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            found += (_imported_from(node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and _text(node.args[0]):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                found.append(_text(node.args[0]))
    return found


@functools.cache
def _imported_from(module: str, name: str) -> str:
    """`module.name` where that is a module of this project, else `module`."""
    path = ROOT.joinpath(*module.split("."), name)
    return f"{module}.{name}" if path.is_dir() or path.with_suffix(".py").exists() else module


def _text(node: ast.expr) -> str:
    """A constant string, or the constant beginning of a formatted one."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def within(module: str, allowed: set[str]) -> bool:
    """Whether `module` is one of `allowed`, or inside one whose name ends in a dot and a star."""
    return any(module == a or (a.endswith(".*") and f"{module}.".startswith(a[:-1])) for a in allowed)


def modules_of(framework: str) -> set[str]:
    """The modules that a framework's folder may import besides the project's."""
    description = frameworks.describe(framework)
    names = {framework, *description.distributions, "numpy"}
    others = set(frameworks.NAMES) - {framework, "numpy"}
    of_modes = {package for mode in description.modes for package in mode.packages}
    return {name.replace("-", "_") for name in names} - others | of_modes


BOUNDARY = {"frameworks", "frameworks.traces.*"}
BOUNDARY |= {
    f"frameworks.{name}"
    for name in (
        "adapter",
        "copies",
        "smoke_test",
        "spellings",
        "description",
        "generating",
        "obstacles",
        "program",
        "ranks",
        "user_file",
        "user_model",
        "values",
        "start",
        "stream",
    )
}


# What each part of the runner may import: all that is below, the parts before it, and these of others.
BELOW = {"measurement.*", "launchers.*", "workloads", "frameworks", "frameworks.description"}
BELOW |= {"frameworks.policies", "numpy"} | {
    f"workloads.{name}" for name in ("user_model", "signature", "spec", "rounding", "lengths")
}
TYPES = {f"records.{name}" for name in ("process", "record", "shapes", "statuses")}
REPORTS = {"reports", "reports.*"}
OUTSIDE = {
    "plan": set(),
    "records": {"pandas.*", "scipy.special"},
    "analysis": {"scipy.special"},
    "execution": {*REPORTS, "rich.*", "safetensors.*", "huggingface_hub.*"},
    "commands": {*REPORTS, "experiments", "experiments.*", "pyarrow.*", "rich.*", "shtab"},
    "publish": {*REPORTS, "experiments", "experiments.*", "rich.*"},
}


def allowed_to(path: Path) -> set[str] | None:
    """What the file may import besides the standard library; None where the rules say nothing of it."""
    part, rest = path.parts[0], path.parts[1:]
    if part == "frameworks" and rest[0] == "traces":
        return {"frameworks.adapter", "frameworks.traces", "frameworks.traces.*", "measurement.kernels"}
    if part == "frameworks" and len(rest) > 1:
        modules = {f"{module}.*" for module in modules_of(rest[0])}
        below = {"measurement.cells", "measurement.programs", "workloads.*"}
        return modules | BOUNDARY | below | {f"frameworks.{rest[0]}.*"}
    if part == "frameworks":
        return {
            "smoke_test.py": {"numpy", "frameworks.adapter"},
            "user_file.py": {"numpy", "frameworks.user_imports"},
            "user_imports.py": {"measurement.places"},
            "user_model.py": {
                "numpy",
                "frameworks.program",
                "frameworks.user_file",
                "frameworks.values",
                "workloads.spec",
                "workloads.user_model",
            },
            "values.py": {"numpy"},
            "copies.py": {"frameworks.values"},
            "start.py": {"frameworks", "frameworks.", "frameworks.adapter"}
            | {"frameworks.user_file", "frameworks.user_imports"}
            | {"measurement.cells", "measurement.starts", "workloads.spec"},
            "stream.py": {"numpy", "frameworks", "frameworks.", "frameworks.adapter", "frameworks.user_model"}
            | {"measurement.cells", "measurement.streams", "workloads.spec"},
            "generating.py": {"frameworks.adapter", "frameworks.program"},
            "adapter.py": {
                "frameworks.program",
                "frameworks.ranks",
                "frameworks.user_model",
                "frameworks.values",
                "measurement.cells",
                "workloads.passes",
                "workloads.spec",
            },
            # The registry: the rest of the name is formatted.
            "__init__.py": {"frameworks.description", "frameworks.", "measurement.cells"},
        }.get(rest[0], set())
    if part == "environments":
        return {
            "environments",
            "environments.*",
            "measurement.places",
            "measurement.programs",
        }  # they make what the others need
    if part in ROOMS:
        return BELOW | {room for name in ROOMS[: ROOMS.index(part) + 1] for room in (name, f"{name}.*")} | OUTSIDE[part]
    return {
        "measurement": {"numpy", "measurement.*"},
        "workloads": {"numpy", "workloads", "workloads.*", "workloads.", "measurement.files", "measurement.places"},
        "launchers": {"launchers.*", *(f"measurement.{name}" for name in ("machine", "places", "programs"))},
        "worker": {"numpy", *BOUNDARY, "worker", "worker.*", "measurement.*", "workloads", "workloads.*"},
        "experiments": {
            "experiments",
            "experiments.*",
            "measurement.*",
            *(f"analysis.{name}" for name in ("significance", "rounds", "starts", "streams")),
            *(f"records.{name}" for name in ("starts", "streams")),
            *TYPES,
            "numpy",
            "reports.numbers",
            "rich.*",
            "scipy.stats",
        },
        "reports": {
            "analysis.*",
            "reports",
            "reports.*",
            "measurement.*",
            *TYPES,
            "numpy",
            "pandas.*",
            "rich.*",
        },
        "runner.py": {"measurement.*", "launchers.*", "reports.*", "workloads", "frameworks"}
        | {f"{room}.*" for room in ROOMS},
    }.get(part)


def forbidden_imports(path: Path, source: str) -> list[str]:
    """The imports that the rules do not allow to this file."""
    allowed = allowed_to(path)
    if allowed is None:
        return []
    is_adapter = path.parts[0] == "frameworks" and len(path.parts) > 2 and path.parts[1] != "traces"
    stdlib = sys.stdlib_module_names - (CLOCKS if is_adapter else set())
    return [name for name in imported(source) if name.split(".")[0] not in stdlib and not within(name, allowed)]


def by_folder(*parts: str) -> dict[str, list[Path]]:
    """Python's files of these parts by their part, those of a framework by its folder."""
    folders: dict[str, list[Path]] = {}
    for path in PYTHON:
        if path.parts[0].removesuffix(".py") in parts:
            of_framework = path.parts[0] == "frameworks" and len(path.parts) > 2
            folders.setdefault("/".join(path.parts[: 1 + of_framework]), []).append(path)
    return folders


@pytest.mark.parametrize("paths", [pytest.param(some, id=name) for name, some in by_folder(*PARTS).items()])
def test_imports_keep_to_the_rules(paths):
    assert [(str(p), found) for p in paths if (found := forbidden_imports(p, (ROOT / p).read_text()))] == []


NAMELESS = {"of", "told", "whole", "words"}


SAYING = by_folder("frameworks", "workloads", "worker")


@pytest.mark.parametrize("paths", [pytest.param(some, id=name) for name, some in SAYING.items()])
def test_functions_say_what_they_do(paths):
    for path in paths:
        names = {node.name for node in nodes((ROOT / path).read_text()) if isinstance(node, ast.FunctionDef)}
        assert names & NAMELESS == set(), path


FOUR = ("torch", "jax", "tensorflow", "paddle")
MODE = {"prepare": ["adapter", "workload", "cell", "weights", "inputs"]}
# By file: its functions with their first arguments, its classes with their public methods.
DOORS = {
    "modes/inference.py": MODE,
    "modes/training.py": MODE | {"Trainer": []},
    "modes/generation.py": MODE,
    "user_model/model.py": {"prepare": ["model", "cell"], "Model": []},
    "user_model/training.py": {"prepare": ["model", "cell"], "Training": []},
    "inspect/program.py": {"executed": ["call", "inputs"], "captured": ["graph"]},
    "inspect/profiler.py": {"Profiler": ["profile"]},
}


def doors_of(source: str) -> dict[str, list[str]]:
    """By name a module's functions with their arguments, and its classes with their methods."""
    body = ast.parse(source).body
    functions = {node.name: [a.arg for a in node.args.args] for node in body if isinstance(node, ast.FunctionDef)}
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    return functions | {node.name: [n.name for n in node.body if isinstance(n, ast.FunctionDef)] for node in classes}


@pytest.mark.parametrize("path", DOORS)
@pytest.mark.parametrize("framework", FOUR)
def test_the_four_frameworks_have_the_same_doors(framework, path):
    found = doors_of(ROOT.joinpath("frameworks", framework, path).read_text())
    for name, wanted in DOORS[path].items():
        assert name in found
        assert set(wanted) <= set(found[name]) if name[0].isupper() else found[name][: len(wanted)] == wanted, name


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("measurement/x.py", "import workloads"),
        ("measurement/x.py", "from frameworks import adapter"),
        ("measurement/x.py", "from scipy import stats"),
        ("workloads/x.py", "from measurement.cells import Cell"),
        ("reports/x.py", "import frameworks"),
        ("launchers/x.py", "from records import runs"),
        ("experiments/x.py", "import workloads"),
        ("experiments/x.py", "from records import runs"),
        ("execution/x.py", "def f():\n    import torch"),
        ("plan/x.py", "import frameworks.numpy.adapter"),
        ("commands/x.py", "import importlib\nimportlib.import_module('torch')"),
        ("environments/environments.py", "import rich"),
        ("runner.py", "import numpy"),
        ("runner.py", "from frameworks import torch"),
        ("worker/x.py", "import torch"),
        ("worker/x.py", "from frameworks import jax"),
        ("worker/x.py", "from records import runs"),
        ("frameworks/adapter.py", "import numpy"),
        ("frameworks/policies.py", "from frameworks import adapter"),
        ("frameworks/torch/x.py", "from worker import channel"),
        ("frameworks/traces/x.py", "from frameworks import torch"),
        ("execution/x.py", "from worker import channel"),
        ("records/x.py", "from execution import execute"),
        ("analysis/x.py", "from commands import report"),
        ("analysis/x.py", "from reports import numbers"),
        ("records/x.py", "from analysis import pairs"),
        ("plan/x.py", "from reports import names"),
        ("reports/x.py", "from records import runs"),
        ("reports/x.py", "from execution import campaign"),
        ("frameworks/torch/x.py", "import time"),
        ("frameworks/torch/x.py", "from time import perf_counter"),
        ("frameworks/torch/x.py", "from datetime import datetime"),
        ("frameworks/torch/x.py", "import jax.numpy"),
        ("frameworks/torch/x.py", "from frameworks.jax import plain"),
        ("frameworks/torch/x.py", "from measurement.sampling import Clocks"),
        ("frameworks/jax/x.py", "import tensorflow as tf"),
        ("frameworks/torch/x.py", "import safetensors_evil"),
    ],
)
def test_a_forbidden_import_is_found(path, line):
    assert forbidden_imports(Path(path), line) != []


def circles(sources: dict[str, str]) -> list[list[str]]:
    """Groups of modules each of which imports, straight or through others, every other; `sources` by module.

    An import that only a type checker follows counts: it is knowledge as well.
    """
    arrows = {name: {other for other in imported(source) if other in sources} for name, source in sources.items()}
    order = TopologicalSorter(arrows)
    try:
        order.prepare()
    except CycleError as error:
        circle = error.args[1]
        rest = {name: source for name, source in sources.items() if name not in circle}
        return [sorted(set(circle)), *circles(rest)]
    return []


def module_of(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def test_no_files_know_each_other():
    sources = {module_of(p): (ROOT / p).read_text() for p in PYTHON if p.parts[0].removesuffix(".py") in PARTS}
    assert circles(sources) == []


def test_a_circle_of_files_is_found():
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from execution.slots import Slot"
    straight = {"execution.slots": "from execution import execute", "execution.execute": typed, "plan.plan": ""}
    assert circles(straight) == [["execution.execute", "execution.slots"]]
    around = {"worker.a": "import worker.b", "worker.b": "import worker.c", "worker.c": "def f():\n    import worker.a"}
    assert circles(around) == [["worker.a", "worker.b", "worker.c"]]
    assert circles({"worker.a": "import worker.b", "worker.b": ""}) == []


# What starts a process by itself, and why; all else asks through `measurement.programs`, which has limits.
STARTERS = {
    "measurement/programs.py": "has the limits",
    "launchers/local.py": "starts the guard, whose pipes it reads within TIMEOUT",
    "launchers/slurm.py": "starts a worker's step, whose pipe it reads within TIMEOUT",
    "launchers/guard.py": "becomes the worker",
    "launchers/scratch.py": "becomes the worker",
    "frameworks/ranks.py": "starts the other ranks, which end with rank 0",
    "worker/started.py": "notes the programs that a framework starts, and starts none",
    "frameworks/torch/inspect/counting.py": "notes the work of a user's threads, and starts none",
}


STARTING = ("os.exec", "os.spawn", "os.posix_spawn", "os.popen", "os.system", "os.fork")


def starts_processes(source: str) -> bool:
    """Whether the source starts another program by itself, or becomes one."""
    if any(name.split(".")[0] in ("subprocess", "multiprocessing", "pty") for name in imported(source)):
        return True
    attributes = (node for node in nodes(source) if isinstance(node, ast.Attribute))
    names = (f"os.{node.attr}" for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "os")
    return any(name.startswith(STARTING) for name in names)


def test_programs_are_asked_within_limits():
    code = [path for path in PYTHON if path.parts[0].removesuffix(".py") in PARTS]
    assert {str(path) for path in code if starts_processes((ROOT / path).read_text())} == set(STARTERS)


@pytest.mark.parametrize(
    "line", ["import subprocess", "from subprocess import run", "os.system('x')", "os.execvp('a', [])", "os.fork()"]
)
def test_a_bare_start_of_a_program_is_found(line):
    assert starts_processes(line)
    assert not starts_processes("from measurement import programs\nprograms.run(['git'], 3)")


def mentions(source: str, names: list[str]) -> list[str]:
    """Identifiers and strings of the code, docstrings apart, that contain one of `names`."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {id(n.body[0].value) for n in ast.walk(tree) if isinstance(n, documented) and ast.get_docstring(n)}
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            texts.append(node.value)
        texts += [str(getattr(node, field)) for field in ("id", "attr", "name", "arg") if hasattr(node, field)]
    return [text for text in texts if any(name in text.lower() for name in names)]


@pytest.mark.parametrize("part", ["measurement", "reports"])
def test_measurement_and_reports_know_no_framework_by_name(part):
    paths = [path for path in PYTHON if path.parts[0] == part]
    assert [(str(p), found) for p in paths if (found := mentions((ROOT / p).read_text(), SWEPT))] == []


def test_a_framework_s_name_in_code_is_found():
    assert mentions("if framework == 'torch':\n    pass", SWEPT) == ["torch"]
    assert mentions("def for_jax(): ...", SWEPT) == ["for_jax"]
    assert mentions('"""Why torch is mentioned here."""', SWEPT) == []


def loaded_after(code: str) -> set[str]:
    """Top-level modules in sys.modules of a fresh process after `code`."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()}


def test_importing_the_runner_loads_nothing_heavy():
    heavy = {"numpy", "pandas", "rich", "safetensors", "huggingface_hub", *SWEPT}
    assert loaded_after("import runner") & heavy == set()
    assert "numpy" in loaded_after("import numpy")  # else this test could not fail


def test_planning_loads_no_framework():
    command = f"import runner; runner.main(['bench', '--dry-run', '--framework', '{','.join(SWEPT)}', '--mode', 'all'])"
    assert loaded_after(command) & {module for name in SWEPT for module in modules_of(name) - {"numpy"}} == set()


def test_every_folder_of_a_framework_is_in_the_registry():
    folders = {path.parts[1] for path in FILES if path.parts[0] == "frameworks" and len(path.parts) > 2}
    assert folders - {"traces"} == set(frameworks.NAMES)


@pytest.mark.parametrize("name", SWEPT)
def test_every_framework_has_the_same_files(name):
    """Those that its description says it has; what is optional, `CONTRIBUTING.md` says."""
    description = frameworks.describe(name)
    devices = {device for mode in description.modes for device in mode.devices}
    locks = {f"requirements-{device}.{kind}" for device in devices for kind in ("in", "txt")}
    expected = {"__init__.py", "adapter.py"} | {f"{implementation}.py" for implementation in description.models} | locks
    folder = Path("frameworks", name)
    there = {path.name for path in FILES if path.parent in (folder, folder / "models")}
    assert expected - there == set()
    spare = {"library.py", *(f"requirements-{device}.in" for device in ("cpu", "gpu"))} - expected
    assert there & spare == set()
