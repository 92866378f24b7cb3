"""The house rules: who may import whom, file sizes, the same files for every framework, nothing of one machine."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

import frameworks

PARTS = ("measurement", "workloads", "frameworks", "harness", "launchers", "reports", "experiments", "runner")
CLOCKS = {"time", "datetime", "timeit", "calendar"}
SWEPT = [name for name in frameworks.NAMES if not frameworks.describe(name).oracle]


def listed_files() -> list[Path]:
    """Every file of the project that exists: tracked, or new and not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in output.split("\0") if name and (ROOT / name).is_file()]


FILES = listed_files()
PYTHON = [path for path in FILES if path.suffix == ".py"]


def imported(source: str) -> Iterator[str]:
    """Every module that the source imports anywhere, functions included; `from a import b` may give `a.b`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield from (_imported_from(node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and _text(node.args[0]):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                yield _text(node.args[0])


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
    names = {framework, *description.distributions, *description.modules, "numpy"}
    others = set(frameworks.NAMES) - {framework, "numpy"}
    return {name.replace("-", "_") for name in names} - others


def allowed_to(path: Path) -> set[str] | None:
    """What the file may import besides the standard library; None where the rules say nothing of it."""
    part, rest = path.parts[0], path.parts[1:]
    if part == "frameworks" and len(rest) == 2:
        own = {f"{module}.*" for module in modules_of(rest[0])}
        boundary = {"frameworks", "frameworks.adapter", "frameworks.description", "frameworks.canary"}
        boundary |= {
            "frameworks.profile",
            "frameworks.program",
            "frameworks.xplane",
            "frameworks.hlo",
            "frameworks.fatbin",
        }
        boundary |= {"frameworks.obstacles"}
        return own | boundary | {f"frameworks.{rest[0]}.*", "measurement.cells", "workloads.*"}
    if part == "frameworks":
        boundary = {"frameworks", "frameworks.adapter", "frameworks.description", "frameworks.canary"}
        boundary |= {
            "frameworks.worker",
            "frameworks.contest",
            "frameworks.channel",
            "frameworks.gpu_figures",
            "frameworks.program",
            "frameworks.group",
        }
        boundary |= {"frameworks.explanation", "frameworks.profile", "frameworks.hlo", "frameworks.obstacles"}
        boundary |= {"frameworks.program"}
        boundary |= {"frameworks.attribution"}
        return {
            "description.py": set(),
            "policies.py": set(),
            "canary.py": {"numpy", "frameworks.adapter"},
            "obstacles.py": set(),
            "program.py": set(),
            "adapter.py": {"frameworks.program", "measurement.cells", "workloads.spec"},
            # The registry: the rest of the name is formatted.
            "__init__.py": {"frameworks.description", "frameworks.", "measurement.cells"},
        }.get(rest[0], {"numpy", *boundary, "measurement.*", "workloads.*"})
    if path.name in ("environments.py", "uv.py", "offline.py") and part == "harness":
        return {"harness.uv", "harness.offline"}  # they make the environments that the others need
    return {
        "measurement": {"numpy", "measurement.*"},
        "workloads": {"numpy", "workloads", "workloads.*", "workloads."},
        "launchers": {"launchers.*"},
        "experiments": {"experiments", "experiments.*", "measurement.*", "numpy", "rich.*", "reports.charts"},
        "reports": {"reports", "reports.*", "measurement.*", "numpy", "pandas.*", "rich.*", "vl_convert"},
        "runner.py": {"harness.*", "measurement.*", "launchers.*", "reports.*", "workloads", "frameworks"},
        "harness": {
            *("experiments", "experiments.*", "harness.*", "measurement.*", "launchers.*", "reports.*", "workloads"),
            *(
                "workloads.spec",
                "workloads.rounding",
                "frameworks",
                "frameworks.policies",
                "numpy",
                "scipy.stats",
                "pandas.*",
                "rich.*",
                "safetensors.*",
                "huggingface_hub.*",
            ),
        },
    }.get(part)


def forbidden_imports(path: Path, source: str) -> list[str]:
    """The imports that the rules do not allow to this file."""
    allowed = allowed_to(path)
    if allowed is None:
        return []
    is_adapter = path.parts[0] == "frameworks" and len(path.parts) == 3
    stdlib = sys.stdlib_module_names - (CLOCKS if is_adapter else set())
    return [name for name in imported(source) if name.split(".")[0] not in stdlib and not within(name, allowed)]


@pytest.mark.parametrize("path", [p for p in PYTHON if p.parts[0].removesuffix(".py") in PARTS], ids=str)
def test_imports_keep_to_the_rules(path):
    assert forbidden_imports(path, (ROOT / path).read_text()) == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("measurement/x.py", "import workloads"),
        ("measurement/x.py", "from frameworks import adapter"),
        ("measurement/x.py", "from scipy import stats"),
        ("workloads/x.py", "from measurement.cells import Cell"),
        ("reports/x.py", "import frameworks"),
        ("launchers/x.py", "from harness import runs"),
        ("experiments/x.py", "import workloads"),
        ("experiments/x.py", "from harness import runs"),
        ("harness/x.py", "def f():\n    import torch"),
        ("harness/x.py", "import frameworks.numpy.adapter"),
        ("harness/x.py", "import importlib\nimportlib.import_module('torch')"),
        ("harness/environments.py", "import rich"),
        ("runner.py", "import numpy"),
        ("runner.py", "from frameworks import torch"),
        ("frameworks/worker.py", "import torch"),
        ("frameworks/worker.py", "from frameworks import jax"),
        ("frameworks/worker.py", "from harness import runs"),
        ("frameworks/adapter.py", "import numpy"),
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


def mentions(source: str, names: list[str]) -> list[str]:
    """Identifiers and strings of the code, docstrings apart, that contain one of `names`."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {id(n.body[0].value) for n in ast.walk(tree) if isinstance(n, documented) and ast.get_docstring(n)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            found.append(node.value)
        found += [str(getattr(node, field)) for field in ("id", "attr", "name", "arg") if hasattr(node, field)]
    return [text for text in found if any(name in text.lower() for name in names)]


@pytest.mark.parametrize("path", [p for p in PYTHON if p.parts[0] in ("measurement", "reports")], ids=str)
def test_measurement_and_reports_know_no_framework_by_name(path):
    assert mentions((ROOT / path).read_text(), SWEPT) == []


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


@pytest.mark.parametrize("path", PYTHON, ids=str)
def test_files_stay_short(path):
    lines = (ROOT / path).read_text().count("\n")
    assert lines < 200 if path.name == "adapter.py" else lines <= 300


def test_every_folder_of_a_framework_is_in_the_registry():
    folders = {path.parts[1] for path in FILES if path.parts[0] == "frameworks" and len(path.parts) > 2}
    assert folders == set(frameworks.NAMES)


@pytest.mark.parametrize("name", SWEPT)
def test_every_framework_has_the_same_files(name):
    """Those that its description says it has; what is optional, `CONTRIBUTING.md` says."""
    description = frameworks.describe(name)
    devices = {device for mode in description.modes for device in mode.devices}
    locks = {f"requirements-{device}.{kind}" for device in devices for kind in ("in", "txt")}
    expected = {"__init__.py", "adapter.py"} | {f"{implementation}.py" for implementation in description.models} | locks
    there = {path.name for path in FILES if path.parent == Path("frameworks", name)}
    assert expected - there == set()
    spare = {"library.py", *(f"requirements-{device}.in" for device in ("cpu", "gpu"))} - expected
    assert there & spare == set()


# Written so that this file does not match itself.
PRIVATE = {
    "an index address": re.compile(r"://[^\s'\"`]*(?:/sim" r"ple|/whl\b|/packa" r"ges/|pyp" r"i)|index-ur" r"l\s*[= ]"),
    "the plan beside the checkout": re.compile(r"\.\./sha" r"red"),
    "a path of one machine": re.compile(r"(?<![\w.])/(?:wo" r"rk|ro" r"ot|ho" r"me|Us" r"ers|m" r"nt)/[\w.]"),
}


def private_in(path: Path, text: str) -> list[str]:
    """What the text says that belongs to one machine. A framework's own index may be named where users need it."""
    text = re.sub(r"https://(?:www\.paddlepaddle\.org\.cn|download\.pytorch\.org)/\S*", "", text)
    if path.suffix == ".in":
        text = re.sub(r"(?m)^#.*$", "", text)
    return [what for what, pattern in PRIVATE.items() if pattern.search(text)]


@pytest.mark.parametrize("path", FILES, ids=str)
def test_nothing_belongs_to_one_machine(path):
    assert private_in(path, (ROOT / path).read_bytes().decode(errors="replace")) == []


@pytest.mark.parametrize(
    "text",
    [
        "--index-ur" "l https://example.org/",
        "https://example.org/sim" "ple",
        "see ../sha" "red/DESIGN.md",
        "/ro" "ot/.cache",
        "open('/ho" "me/someone/x')",
    ],
)  # fmt: skip
def test_what_belongs_to_one_machine_is_found(text):
    assert len(private_in(Path("x.txt"), text)) == 1
