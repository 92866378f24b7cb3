"""What the suite cannot write is never a cell's result: the run ends in a sentence, and RESUME measures the cell."""

from __future__ import annotations

import ast
import errno
import io
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, listed_files
from doubles.disks import disk
from doubles.suite import TINY, WAITS

from execution import reference_data
from measurement import durable
from measurement.protocol import Refused
from worker import writing

pytestmark = pytest.mark.slow

WORDS = (*TINY, "--framework", "fake", "--mode", "eager", "--python", sys.executable, "--timeout", WAITS)
WORDS += ("--width", "128", "--batch", "64")  # outputs that are larger than what is left of the disk
HARM = {
    "fills": "outputs/0.npz: No space left on device",  # as the worker saves what the cell computed
    "fails": "processes/0001: No space left on device",
    "refuses": "processes/0001: No space left on device",
    "dies": "processes/0001: No space left on device",
    "removes": "outputs: No such file or directory",
}


@pytest.mark.parametrize("harm", HARM)
def test_a_cell_that_a_disk_failed_is_measured_once_there_is_room(suite, tmp_path, harm):
    with disk(tmp_path / "disk", "size=4m") as place:
        out = place / "run"
        stopped = suite.bench(out, *WORDS, "--out", str(out), environment={"FAKE_HARM": harm})
        assert stopped.code == 2 and "Traceback" not in stopped.output, stopped.output
        last = stopped.output.splitlines()[-1]
        assert ("If one cell fills the disk, start a new run that selects the others" in last) == (harm != "removes")
        assert HARM[harm] in last and f"resume with: make bench RESUME={out}" in last
        assert not (out / "records.jsonl").exists() and not (out / "processes/reports.jsonl").exists()
        (place / "filler").unlink(missing_ok=True)
        again = suite.bench(out, "--resume", str(out), "--python", sys.executable)
        assert (again.code, again.complete()) == (0, True), again.output


def test_a_disk_without_room_is_named(tmp_path):
    durable.check_room(tmp_path, {"TMPDIR": str(tmp_path / "missing")})
    with pytest.raises(FileNotFoundError):
        durable.check_room(tmp_path / "missing", {})
    with disk(tmp_path / "disk", "size=64k") as place:
        for folder, variables in ((place, {}), (tmp_path, {"TMPDIR": str(place)})):
            with pytest.raises(OSError, match="No space left") as refused:
                durable.check_room(folder, variables)
            assert refused.value.filename == str(place)
        assert not list(place.iterdir())


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOMEM, errno.EBADF])
def test_what_a_cell_did_to_its_process_is_its_own_failure(tmp_path, number):
    with pytest.raises(OSError), writing.suite_file(tmp_path):
        raise OSError(number, "as a leak of descriptors ends")


@pytest.mark.parametrize("limited", [False, True])
def test_a_limit_on_files_is_the_user_s_unless_the_cell_set_it(tmp_path, limited):
    code = f"""
import resource, signal
def limit(): resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
if not {limited}: limit()
from pathlib import Path
from worker import writing
limit()
import numpy as np
try: writing.save(Path({str(tmp_path)!r}, "a.npz"), {{"a": np.zeros(99)}})
except BaseException as error: print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == ("OSError" if limited else "Unwritten"), done.stderr


def test_arrays_that_cannot_be_packed_are_the_cell_s_failure(tmp_path):
    class Unpacked:
        def __array__(self, *_, **__):
            raise ValueError("no array")

    with pytest.raises(ValueError, match="no array"):
        writing.save(tmp_path / "a.npz", {"a": Unpacked()})
    assert dict(np.load(writing.save(tmp_path / "b.npz", {"b": np.ones(2)})))["b"].tolist() == [1, 1]


def test_a_refused_file_crosses_the_pipe():
    sent = json.loads(json.dumps(Refused("/a/b", errno.EROFS).to_json()))
    error = Refused.error_of(sent)
    assert (error.errno, error.filename) == (errno.EROFS, "/a/b")
    assert isinstance(Refused.error_of(sent | {"number": "many"}), OSError)


def test_a_cache_on_a_full_disk_is_named(suite, tmp_path):
    """NumPy's own words were "65536 requested and 16352 written"."""
    out, cache = tmp_path / "run", suite.folder / ".cache/reference"
    with disk(cache, "size=64k"):
        refused = suite.bench(out, *WORDS, "--width", "256", "--out", str(out))
    assert (refused.code, out.exists()) == (2, False)
    last = refused.output.splitlines()[-1]
    assert f"cannot be written. {cache}: No space left on device; free space there, then try again." in last
    assert last.endswith("Run the same command again.")


def test_a_cache_that_is_deleted_while_it_is_filled_is_one_sentence(tmp_path, monkeypatch, capsys):
    def delete():
        shutil.rmtree(tmp_path / "cache")
        return {"weight": np.ones(2)}

    request = {"workload": "mlp", "pass": "inference", "source": None, "seed": 3, "storage": "fp32"}
    parameters = {"parameters": {"batch_size": 1, "width": 8, "depth": 1}}
    monkeypatch.setattr(reference_data, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(reference_data, "_weights_source", lambda *_: ("deleted", delete))
    asked = {"requests": [request | parameters], "seals": {}}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(asked)))
    assert reference_data.main() == reference_data.UNKEPT
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{tmp_path}/cache" in said and "No such file or directory" in said


WRITES = {"open", "write", "pwrite", "save", "savez", "savez_compressed", "tofile", "write_text", "write_bytes"}
WRITES |= {
    "mkdir",
    "makedirs",
    "touch",
    "rename",
    "unlink",
    "rmtree",
    "rmdir",
    "symlink_to",
    "copy",
    "copytree",
    "move",
}
WRITES |= {"mkdtemp", "mkstemp", "TemporaryFile", "TemporaryDirectory", "NamedTemporaryFile", "print", "print_exc"}
EXEMPT = {"writing.py": "writes for the others", "probe.py": "answers `make list` and measures nothing"}


def unguarded(source: str) -> list[int]:
    """Lines that write outside of `with writing.suite_file(…)` and `contextlib.suppress(OSError)`, which a log has."""
    tree = ast.parse(source)
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.With) and any(is_guard(item.context_expr) for item in node.items)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and id(node) not in guarded]
    return [node.lineno for node in calls if name_of(node) in WRITES and not is_harmless(node)]


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def is_guard(expression: ast.expr) -> bool:
    return ast.unparse(expression).startswith(("writing.suite_file(", "suite_file(", "contextlib.suppress(OSError"))


def is_harmless(call: ast.Call) -> bool:
    return ast.unparse(call.func) == "writing.save" or "os.devnull" in ast.unparse(call)


@pytest.mark.parametrize("path", [p for p in listed_files() if p.parts[0] == "worker" and p.suffix == ".py"], ids=str)
def test_a_worker_writes_in_one_way(path):
    assert path.name in EXEMPT or unguarded((ROOT / path).read_text()) == []


def test_a_bare_write_is_found():
    assert unguarded(
        "np.savez(path, a=1)\nPath(p).write_text('')\nos.open(p, 1)\nwith suite_file(p):\n    p.mkdir()"
    ) == [
        1,
        2,
        3,
    ]
