"""One process a run, none that changes an environment under another: real processes, and locks that die with them."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.suite import PATIENCE, TINY, Finished, wait_for

import runner
from environments import environments, locks, uv
from environments.environments import Recipe

pytestmark = pytest.mark.slow

NUMPY = (*TINY, "--framework", "numpy", "--batch", "1,2")
HELD = re.compile(
    r"is being measured by process (\d+) since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC; wait for it, or stop it"
)


def state(folder: Path) -> dict[str, bytes]:
    """What a run's folder holds, but for what the run at work writes meanwhile."""
    names = ("plan.json", "machine.json", "records.jsonl")
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


def interrupted(suite, out: Path):
    """A run that lost its records, and a process that goes on with it and has begun to sample."""
    assert suite.bench(out, *NUMPY, "--budget", "1", "--out", str(out)).code == 0
    (out / "records.jsonl").unlink()
    process = suite.begin("--resume", str(out))
    wait_for((out / "samples.jsonl").exists, process)
    return process


def test_of_two_that_go_on_with_a_run_one_does(suite, tmp_path):
    """Else each measures the cells that the other has not yet finished, and the table holds them twice."""
    out = tmp_path / "run"
    first = interrupted(suite, out)
    before = state(out)
    second = suite.bench(out, "--resume", str(out))
    assert second.code == 2 and second.output.count("\n") == 1
    assert HELD.search(second.output)[1] == str(first.pid)
    assert {name: content for name, content in state(out).items() if name in before} == before
    output, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0, output
    assert Finished(0, output, out).complete()
    assert not (out / "processes/lock").exists()


def test_a_run_at_work_can_be_read(suite, tmp_path):
    out = tmp_path / "run"
    process = suite.begin(*NUMPY, "--budget", "1.5", "--out", str(out))
    wait_for((out / "records.jsonl").exists, process)
    command = [sys.executable, "runner.py"]
    for words in (["report", out, "--out", tmp_path / "report"], ["report", out, "--gather", tmp_path / "all.csv"]):
        done = subprocess.run([*command, *words], cwd=suite.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert process.wait(PATIENCE) == 0


def test_a_lock_dies_with_its_process(suite, tmp_path):
    out = tmp_path / "run"
    process = suite.begin(*NUMPY, "--budget", "1", "--out", str(out))
    wait_for((out / "samples.jsonl").exists, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (out / "processes/lock").exists()
    again = suite.bench(out, "--resume", str(out))
    assert again.code == 0, again.output
    assert again.complete()


def test_of_six_that_begin_in_one_folder_one_does(suite, tmp_path):
    out = tmp_path / "run"
    started = [suite.begin(*NUMPY, "--out", str(out)) for _ in range(6)]
    outputs = [process.communicate(timeout=PATIENCE)[0] for process in started]
    codes = sorted(process.returncode for process in started)
    assert codes == [0, 2, 2, 2, 2, 2], outputs
    for process, output in zip(started, outputs, strict=True):
        refused = HELD.search(output) or "already contains a run" in output
        assert refused if process.returncode else not refused
        assert "Traceback" not in output
    assert Finished(0, "", out).complete()


def test_a_run_that_does_not_begin_leaves_nothing(tmp_path, capsys):
    """Its folder is made and locked before the weights are, which may take minutes, and may not be had."""
    for out in (tmp_path / "new", tmp_path / "existing"):
        existed = out.name == "existing"
        if existed:
            out.mkdir()
        assert runner.main(["bench", *NUMPY, "--weights", str(tmp_path / "nowhere"), "--out", str(out)]) == 2
        assert "There is no checkpoint" in capsys.readouterr().err
        assert out.exists() == existed and not (existed and list(out.iterdir()))


def test_an_environment_in_use_is_not_made_anew_meanwhile(tmp_path, monkeypatch):
    """A run's later launches would have other packages than its first, or none at all."""
    monkeypatch.setattr(uv, "VENVS", tmp_path)
    home = tmp_path / "alpha-cpu"
    (home / "bin").mkdir(parents=True)
    (home / "bin/python").touch()
    recipe = Recipe(home, tmp_path / "requirements.txt", "alpha==1", (), {})
    (home / ".stamp").write_text(recipe.fingerprint)
    environments.make(recipe, print)  # in use until this process ends

    code = "import sys; from pathlib import Path; from environments import uv\nuv.VENVS = Path(sys.argv[1])\n"
    code += "with uv.exclusive(uv.VENVS / 'alpha-cpu', lambda text: print(text, flush=True)): print('mine', flush=True)"
    how = dict(cwd=ROOT, stdout=subprocess.PIPE, text=True)
    other = subprocess.Popen([sys.executable, "-c", code, tmp_path], **how)
    assert "another process is using it, waiting until it is done" in other.stdout.readline()
    assert other.poll() is None
    locks.release(tmp_path / ".alpha-cpu.lock")
    assert other.stdout.readline() == "mine\n"
    assert other.wait(PATIENCE) == 0
    beside = [subprocess.Popen([sys.executable, "-c", code, tmp_path], **how) for _ in range(2)]
    assert [process.communicate(timeout=PATIENCE)[0].splitlines()[-1] for process in beside] == ["mine", "mine"]


def test_the_lock_s_file_may_be_removed_while_another_waits_to_open_it(tmp_path):
    """Who gets a file that is gone from its place tries again: two would else hold two files of one name."""
    path = tmp_path / "lock"
    with locks.alone(path):
        code = "import sys; from pathlib import Path; from environments import locks\n"
        code += "try:\n    with locks.alone(Path(sys.argv[1])): print('held')\nexcept locks.Busy as held: print(held)"
        done = subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, capture_output=True, text=True, check=True)
        assert re.fullmatch(r"process \d+ since .* UTC\n", done.stdout)
    assert not path.exists()
    stale = path.open("w")
    path.unlink()
    assert not locks._is_at(stale.fileno(), path)
    stale.close()


def test_who_lets_go_removes_no_other_s_lock(tmp_path):
    """A folder that was cleared and begun in again has a lock of another process."""
    path = tmp_path / "lock"
    with locks.alone(path):
        path.unlink()
        other = path.open("w")
    assert path.exists() and locks._is_at(other.fileno(), path)
    other.close()


def test_the_runner_s_own_environment_is_in_use_while_it_measures(tmp_path, monkeypatch):
    """It imports more as it goes on, and NumPy's workers run in it."""
    for module in (uv, environments):
        monkeypatch.setattr(module, "VENVS", tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "runner"))
    environments.ensure("numpy", "cpu")
    code = "import fcntl, sys\nfcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    command = [sys.executable, "-c", code, tmp_path / ".runner.lock"]
    assert b"BlockingIOError" in subprocess.run(command, capture_output=True).stderr
    locks.release(tmp_path / ".runner.lock")
    assert subprocess.run(command, capture_output=True).returncode == 0


def test_a_lock_whose_file_cannot_be_removed_is_let_go_all_the_same(tmp_path, monkeypatch):
    """The run was whole, and its exit code would be that of a refusal."""

    def refused(self, missing_ok=False):
        raise PermissionError(13, "Permission denied", str(self))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refused)
        with locks.alone(tmp_path / "lock"):
            pass
    with locks.alone(tmp_path / "lock"):
        assert (tmp_path / "lock").exists()
    assert not (tmp_path / "lock").exists()
