"""A wheelhouse of one tiny wheel: collected by the real pip, installed by the real uv, with no index in reach."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from commands import wheelhouse
from environments import environments, offline, uv
from environments.environments import Recipe
from environments.uv import SetupError

WHEEL, BUILT = "tinything-1.0-py3-none-any.whl", "tinysource-1.0-py3-none-any.whl"
OF_A_MODE = "tinymode-1.0-py3-none-any.whl"


def write_wheel(folder: Path, text: str = "ANSWER = 42\n", name: str = WHEEL) -> str:
    """Write a tiny wheel into `folder`; its SHA-256."""
    module = name.partition("-")[0]
    files = {
        f"{module}.py": text,
        f"{module}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n",
        f"{module}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digest = lambda t: base64.urlsafe_b64encode(hashlib.sha256(t.encode()).digest()).rstrip(b"=").decode()  # noqa: E731
    rows = [f"{name},sha256={digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{module}-1.0.dist-info/RECORD"] = "\n".join([*rows, f"{module}-1.0.dist-info/RECORD,,"]) + "\n"
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return hashlib.sha256((folder / name).read_bytes()).hexdigest()


def write_source(folder: Path, scratch: Path) -> str:
    """Write the source of a tiny package that needs nothing to be built; its SHA-256."""
    write_wheel(scratch, "ANSWER = 7\n", BUILT)
    backend = (
        "import pathlib, shutil\n"
        "def build_wheel(folder, config_settings=None, metadata_directory=None):\n"
        f"    return pathlib.Path(shutil.copy(pathlib.Path(__file__).with_name('{BUILT}'), folder)).name\n"
    )
    files = {
        "PKG-INFO": b"Metadata-Version: 2.1\nName: tinysource\nVersion: 1.0\n",
        "pyproject.toml": b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": backend.encode(),
        BUILT: (scratch / BUILT).read_bytes(),
    }
    path = folder / "tinysource-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"tinysource-1.0/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="session")
def collected(tmp_path_factory) -> Path:
    """A checkout with one framework whose lock names the tiny wheel, and the wheelhouse that was collected for it."""
    home = tmp_path_factory.mktemp("house")
    for folder in (home / "links", home / "frameworks/tiny"):
        folder.mkdir(parents=True)
    lock = f"tinything==1.0 \\\n    --hash=sha256:{write_wheel(home / 'links')}\n    # via -r requirements-cpu.in\n"
    for name in ("requirements.txt", "requirements-uv.txt"):
        (home / name).write_text(lock)
    source = f"tinysource==1.0 ; python_version > '3' \\\n    --hash=sha256:{write_source(home / 'links', home)}\n"
    (home / "frameworks/tiny/requirements-cpu.txt").write_text(source + lock)
    (home / "frameworks/tiny/requirements-cpu.in").write_text("# check: import tinything\ntinything==1.0\n")
    of_mode = f"tinymode==1.0 --hash=sha256:{write_wheel(home / 'links', name=OF_A_MODE)}\n"
    (home / "frameworks/tiny/requirements-cpu-form.txt").write_text(of_mode)
    with pytest.MonkeyPatch.context() as patch:
        for module in (environments, wheelhouse):
            patch.setattr(module, "SUITE", home)
        only_links = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(home / "links"), "PIP_CONFIG_FILE": "/dev/null"}
        for name, value in only_links.items():
            patch.setenv(name, value)
        recipes = [environments.recipe("tiny", "cpu", mode) for mode in ("", "form", "eager")]
        wheelhouse.collect(recipes, home / "wheels", report=lambda text: None)
    return home


@pytest.fixture
def house(collected, tmp_path, monkeypatch) -> Path:
    """A copy of it on a machine where WHEELHOUSE names the folder, and no index is in reach."""
    home, venvs = tmp_path / "house", tmp_path / "house/venvs"
    shutil.copytree(collected, home)
    shutil.rmtree(home / "links")
    venvs.mkdir()
    if (uv.VENVS / "uv").exists():
        (venvs / "uv").symlink_to(uv.VENVS / "uv")
    monkeypatch.setattr(environments, "SUITE", home)
    for module in (environments, uv):
        monkeypatch.setattr(module, "VENVS", venvs)
    for name in ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_INDEX"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/nothing")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("WHEELHOUSE", str(home / "wheels"))
    return home


@pytest.mark.slow
def test_an_environment_is_made_from_the_wheelhouse_alone(house):
    assert {path.name for path in (house / "wheels").iterdir()} == {BUILT, WHEEL, OF_A_MODE, offline.MANIFEST}
    said: list[str] = []
    python = environments.ensure("tiny", "cpu", report=said.append)
    code = "import tinything, tinysource; print(tinything.ANSWER, tinysource.ANSWER)"
    assert subprocess.run([python, "-c", code], capture_output=True, text=True).stdout == "42 7\n"
    assert any(str(house / "wheels") in line for line in said)
    modes = ["eager", "form"]
    assert environments.existing("tiny", "cpu") == python and environments.existing("tiny", "cpu", modes) is None
    assert environments.main(["setup", "tiny"]) == 0  # as `make test` does, before workers hold the environment
    assert subprocess.run([python, "-c", f"import tinymode; {code}"], capture_output=True, text=True).stdout == "42 7\n"
    assert environments.existing("tiny", "cpu", modes) == python


def test_a_wheelhouse_without_a_modes_packages_says_how_to_collect_them(house):
    change(house, environments={"tiny-cpu": {}})
    with pytest.raises(SetupError, match="not tiny-cpu-form: make setup FRAMEWORK=tiny DEVICE=cpu MODE=form COLLECT="):
        environments._install(environments.recipe("tiny", "cpu", "form"), Path(sys.executable), print)


@pytest.mark.parametrize("name", [WHEEL, BUILT])
def test_a_file_that_is_not_the_locked_one_is_refused(house, name):
    write_wheel(house / "wheels", "ANSWER = 43\n", name)
    with pytest.raises(SetupError, match="A file's hash is not the locked one"):
        environments.ensure("tiny", "cpu", report=lambda text: None)
    assert not (house / "venvs/tiny-cpu/.stamp").exists()


def test_without_a_manifest_uv_tells_what_is_missing(house):
    for path in (house / "wheels").iterdir():
        path.unlink()
    with pytest.raises(SetupError, match=r"(?s)no version of tiny.*Only the wheelhouse \S+ was searched\."):
        environments.ensure("tiny", "cpu", report=lambda text: None)


def change(house: Path, **changes) -> None:
    manifest = house / "wheels" / offline.MANIFEST
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **changes}))


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda house: (house / "wheels" / WHEEL).unlink(), f"lacks {WHEEL}, which tiny-cpu needs: copy it again"),
        (lambda house: change(house, python="3.9"), r"is for Python 3\.9 on .*, this is Python 3\.\d+ on .*: collect"),
        (lambda house: change(house, platform="win-arm64"), "for Python .* on win-arm64, this is"),
        (lambda house: change(house, environments={"runner": {}}), "has runner, but not tiny-cpu: make setup FRA"),
        (lambda house: (house / "frameworks/tiny/requirements-cpu.txt").write_text(""), "has other requirements of ti"),
        (lambda house: (house / "wheels").rename(house / "elsewhere"), "there is no folder .*wheels; `make setup"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence_before_anything_is_made(house, harm, sentence):
    harm(house)
    with pytest.raises(SetupError, match=sentence) as caught:
        environments.ensure("tiny", "cpu", report=lambda text: None)
    assert "\n" not in str(caught.value)
    assert not (house / "venvs/tiny-cpu").exists()


def test_uv_too_comes_from_the_wheelhouse(house, monkeypatch):
    commands = []
    monkeypatch.setattr(uv, "run", lambda command, env, failed, stdin=None: commands.append((command, env)))
    uv._install_uv(house / "venvs/uv", offline.read(house / "wheels")["environments"]["uv"]["wanted"])
    (_, (pip, env)) = commands
    assert pip[pip.index("--no-index") :][1:3] == ["--find-links", str(house / "wheels")]
    assert "--require-hashes" in pip
    assert "PIP_INDEX_URL" not in env
    with pytest.raises(SetupError, match="has other requirements of uv"):
        uv._install_uv(house / "venvs/uv", "another")


def test_another_c_library_is_named_after_a_failure(house):
    change(house, libc="glibc 9.99")
    assert "collected on a machine with glibc 9.99; this one has" in offline.hint(house / "wheels")
    change(house, libc=offline.machine()["libc"])
    assert "collected" not in offline.hint(house / "wheels")
    assert offline.hint(None) == ""


@pytest.mark.slow
def test_a_file_that_is_nowhere_is_named_when_collecting(collected, tmp_path, monkeypatch):
    monkeypatch.setattr(wheelhouse, "SUITE", collected)
    for name, value in {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null", "PIP_FIND_LINKS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SetupError) as caught:
        wheelhouse.collect([], tmp_path / "wheels", report=lambda text: None)
    assert "tinything==1.0" in str(caught.value)
    assert "No package file fits Python" in str(caught.value).splitlines()[-1]
    assert list((tmp_path / "wheels").iterdir()) == []


@pytest.fixture
def downloads(monkeypatch) -> list[list[str]]:
    """pip's commands for downloading, none of which is run; there are no find-links unless asked for."""
    commands: list[list[str]] = []

    def record(command, env, failed, stdin=None):
        if "download" in command:
            commands.append(command)
        return env.get("LINKS", "")

    monkeypatch.setattr(wheelhouse.uv, "run", record)
    return commands


def recipe_of(text: str, from_index=(), **directives: str) -> Recipe:
    return Recipe(Path("x-cpu"), Path("x.txt"), text, from_index, directives)


@pytest.mark.parametrize("links", [False, True])
def test_what_is_locked_by_version_alone_comes_from_its_own_index_or_from_find_links(
    downloads, tmp_path, monkeypatch, links
):
    monkeypatch.setenv("LINKS", "global.find-links='/somewhere'" if links else "")
    lock = "# a comment\nnumpy==2.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n    # via torch\ntorch==2.13.0\n"
    recipe = recipe_of(lock, **{"unhashed-index": "https://download.pytorch.org/whl/cpu"})
    wheelhouse.files_of(recipe, wheelhouse.Pip(tmp_path, tmp_path / "out"))
    hashed, unhashed = downloads
    assert "--require-hashes" in hashed
    assert (tmp_path / "requirements.txt").read_text() == "numpy==2.0      --hash=sha256:00      --hash=sha256:11"
    assert unhashed[-2:] == ["--no-deps", "torch==2.13.0"]
    assert ("https://download.pytorch.org/whl/cpu" in unhashed) is not links


def test_a_package_from_an_index_of_its_own_brings_its_dependencies(downloads, tmp_path):
    recipe = recipe_of("a==1 --hash=sha256:00", ("https://www.paddlepaddle.org.cn/packages/x", "paddle-gpu==3"))
    wheelhouse.files_of(recipe, wheelhouse.Pip(tmp_path, tmp_path / "out"))
    assert downloads[-1][-1] == "paddle-gpu==3"
    assert "--no-deps" not in downloads[-1]
    assert recipe.from_index[0] in downloads[-1]


def test_a_built_wheel_is_accepted_beside_what_is_locked(tmp_path):
    offline.note(tmp_path, "x-cpu", "", [], {"tiny-source==1.0": "ab"})
    lock = "tiny-source==1.0 ; python_version > '3' \\\n    --hash=sha256:00\n"
    lock += "tiny-source==1.0.1 \\\n    --hash=sha256:11\n"
    changed = offline.with_built(tmp_path, "x-cpu", lock)
    assert changed.replace("    --hash=sha256:ab \\\n", "", 1) == lock
    assert changed.index("sha256:ab") < changed.index("sha256:00")
    assert offline.with_built(tmp_path, "y-cpu", lock) == offline.with_built(None, "x-cpu", lock) == lock


@pytest.mark.parametrize(
    ("name", "pin"),
    [
        ("antlr4_python3_runtime-4.9.3-py3-none-any.whl", "antlr4-python3-runtime==4.9.3"),
        ("Seq.Eval-1.2.2-cp311-cp311-linux_x86_64.whl", "seq-eval==1.2.2"),
    ],
)
def test_wheels_are_named_as_locks_name_them(name, pin):
    assert wheelhouse.pin_of(Path(name)) == pin


def test_locks_of_this_checkout_split_into_hashed_and_unhashed():
    hashed, unhashed = offline.split(environments.recipe("torch", "cpu").requirements)
    assert len(unhashed) == 1 and unhashed[0].startswith("torch==")
    assert all("==" in line and "--hash=" in line for line in hashed.splitlines())


def test_no_package_is_the_best_match_of_several_indexes(monkeypatch):
    """Whoever serves the version on any of them could have it installed where the lock has no hash."""
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://example.org/another")
    settings = uv.environment()
    assert settings["UV_INDEX"] == "https://example.org/another"
    assert settings.get("UV_INDEX_STRATEGY", "first-index") == "first-index"


@pytest.mark.parametrize("several", [False, True])
def test_of_several_indexes_any_may_serve_what_a_hash_names_and_the_first_alone_the_rest(
    several, monkeypatch, tmp_path
):
    calls = []

    def noted(command, env, failed, stdin=None, report=print):
        calls.append((command[:2], env.get("UV_INDEX_STRATEGY"), stdin, [word for word in command if "==" in word]))

    settings = {"UV_INDEX": "https://example.org/a https://example.org/b"} if several else {}
    monkeypatch.setattr(environments, "uv", noted)
    monkeypatch.setattr(environments, "run", lambda *_: "")
    monkeypatch.setattr(environments, "environment", lambda: dict(settings))
    lock, said = tmp_path / "versions.txt", []  # in the user's cache where the suite is installed
    recipe = replace(environments.recipe("torch", "cpu"), home=tmp_path / "torch-cpu", lock_file=lock)
    environments._install(recipe, tmp_path / "python", said.append)
    assert said == [f"torch-cpu: installing {lock} …"]
    (sync, *apart) = [call for call in calls if call[0][0] == "pip"]
    assert sync[0] == ["pip", "sync"] and "numpy==" in sync[2]
    assert sync[1] == ("unsafe-best-match" if several else None)
    assert ("\ntorch==" in sync[2]) is not several
    if several:
        ((command, strategy, _, packages),) = apart
        assert command == ["pip", "install"] and strategy is None
        assert [package.partition("==")[0] for package in packages] == ["torch"]


def test_a_build_for_cuda_in_an_environment_for_the_cpu_is_named_with_the_way_out():
    """Seen where pip's find-links have one version's CPU build and the package index has another's for CUDA alone."""
    code = "raise ImportError('libcudnn.so.9: cannot open shared object file: No such file or directory')"
    with pytest.raises(SetupError, match=r"a CUDA build.*download\.pytorch\.org/whl/cpu") as error:
        uv.run([sys.executable, "-c", code], dict(os.environ), "environment torch-cpu could not be installed")
    assert "libcudnn.so.9" in str(error.value)
