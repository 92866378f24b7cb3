"""The wheel: one name in site-packages, all of the suite inside, and its commands by their own name."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT, listed_files
from doubles import pretended_slurm

NOT_SHIPPED = ("tests", "studies", "examples", "results", "eager_vs_graph")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site-packages")
    wheel.extractall(folder)
    return folder


def test_site_packages_get_one_name(wheel):
    assert {name.partition("/")[0] for name in wheel.namelist()} == {
        "eager_vs_graph",
        "eager_vs_graph-0.1.0.dist-info",
    }


def test_every_module_of_the_suite_is_inside(wheel):
    modules = [path for path in listed_files() if path.suffix == ".py" and path.parts[0] not in NOT_SHIPPED]
    assert len(modules) > 300
    assert {f"eager_vs_graph/{path}" for path in modules} <= set(wheel.namelist())


def run(installed: Path, folder: Path, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "eager_vs_graph", *words]
    environment = {"PYTHONPATH": str(installed), "HOME": str(folder), "PATH": f"{path}/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_its_commands_go_by_their_own_name(installed, tmp_path):
    done = run(installed, tmp_path, "--help")
    assert done.returncode == 0 and "egvg bench" in done.stdout and "make bench" not in done.stdout
    assert "usage: egvg bench [options]" in run(installed, tmp_path, "bench", "--help").stdout
    done = run(installed, tmp_path, "report")
    assert done.returncode == 2 and done.stderr.startswith("eager-vs-graph: There is no run under egvg-runs yet; ")
    assert done.stderr.endswith("`egvg bench` makes one.\n")
    done = run(installed, tmp_path, "bench", "TABLE=x", "--python", "locked")
    assert done.returncode == 2 and "egvg bench" in done.stderr and "make" not in done.stderr
    assert run(installed, tmp_path, "new", "NAME=net").returncode == 0
    assert "`egvg bench WORKLOAD=net.py`" in (tmp_path / "net.py").read_text()


WORKER = """
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({blocked}))
import frameworks, measurement.refusals, worker.__main__, workloads
for package in (worker, frameworks, workloads):
    for module in pkgutil.iter_modules(package.__path__):
        if not module.ispkg:
            importlib.import_module(f"{{package.__name__}}.{{module.name}}")
"""


def test_a_worker_needs_numpy_alone_of_what_the_wheel_depends_on(installed):
    """An interpreter that `--python` names has a framework and nothing of the wheel's own."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    blocked = {re.split(r"\W", name.replace("-", "_"))[0] for name in dependencies} - {"numpy"}
    assert "rich" in blocked and "pandas" in blocked
    code = WORKER.format(blocked=sorted(blocked))
    environment = {"PYTHONPATH": str(installed / "eager_vs_graph")}
    command = [sys.executable, "-P", "-c", code]  # else it would be the checkout's modules
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_text_of_the_wheel_names_a_page_that_it_lacks(wheel):
    """Docstrings of the suite's own modules are for who reads its code; those of `eager_vs_graph` are help()."""
    for name in wheel.namelist():
        if not name.endswith(".py") or name.startswith("eager_vs_graph/publish/"):
            continue
        public = (ROOT / name).is_file() or name.endswith("/skeleton.py")
        texts = texts_of(ast.parse(wheel.read(name)), public)
        assert not [text for text in texts if re.search(r"\bdocs/\w|CONTRIBUTING", text)], name


def texts_of(tree: ast.AST, public: bool) -> list[str]:
    """A module's texts, docstrings only of a public one."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented)
                  and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [text.value for text in texts if public or id(text) not in docstrings]


def test_nothing_is_written_into_the_installation(installed, tmp_path):
    def files() -> set[Path]:
        return {path for path in installed.rglob("*") if "__pycache__" not in path.parts}

    before = files()
    words = ("bench", "--python", "locked", "--framework", "torch", "--workload", "mlp", "--dry-run")
    assert "Measuring in the suite's own environments" in run(installed, tmp_path, *words).stderr
    assert "_shtab_egvg()" in run(installed, tmp_path, "--print-completion", "bash").stdout
    assert files() == before


def test_a_run_is_exported_from_anywhere(installed, tmp_path):
    done = run(installed, tmp_path, "export", str(ROOT / "tests/runs/two-cores"), "--format", "bmf")
    assert done.returncode == 0 and '"latency"' in done.stdout


def test_a_submitted_job_finds_the_installed_runner(installed, tmp_path):
    pretended_slurm.install(tmp_path / "bin", 1, 0.0, 0.0, {})
    words = ("bench", "--framework", "numpy", "--workload", "mlp", "--launcher", "slurm", "--python", "locked")
    done = run(installed, tmp_path, *words, path=f"{tmp_path}/bin:")
    assert done.returncode == 0, done.stderr
    (script,) = tmp_path.glob("egvg-runs/*/job.sh")
    variables = {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    done = subprocess.run(["bash", script], env=variables, capture_output=True, text=True)  # outside of a job: submits
    assert done.returncode == 0 and "submitted as job 7" in done.stdout, done.stderr
