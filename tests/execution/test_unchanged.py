"""What is another when a run goes on is never measured under its name: users' files, packages, the machine."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from doubles.executing import executor_in

import workloads
from execution.launcher import Launcher
from execution.unchanged import leave_out_another_machine, note_versions
from launchers.local import Launch
from measurement.cells import Effective
from measurement.protocol import MEASURE, Hello, Job
from measurement.refusals import UsageError
from plan.plan import Bundle, Group
from records.cell_result import CellResult
from records.runs import COMPRESSED_SAMPLES, SAMPLES, Run

pytestmark = pytest.mark.slow

NET = "def model():\n    return None\n\n\ndef inputs(batch_size):\n    return None\n"


@pytest.fixture
def launched(cell, report, tmp_path, monkeypatch):
    """Make one launch of a user's model; what happens to its file while each of the workers measures, in turn."""
    file = tmp_path / "net.py"
    file.write_text(NET)
    workloads.add({"net.py": str(file)})
    result = CellResult(cell(workload="net.py"))
    group = Group((result.cell,), frozenset({result.cell.id}))

    def launch(*happens) -> tuple[CellResult, int]:
        left = list(happens)

        def messages(*given):
            yield Hello({}, Effective()).to_json()
            left.pop(0)(file)
            yield report(cell=result.cell.id).to_json()

        job = Job(MEASURE, "torch", (), None, str(tmp_path), 0, 0, user_models={"net.py": str(file)})
        start = Launch(Path(), tmp_path, {}, [], 1.0)
        for name, replaced in {"job": lambda *given, **more: job, "start_of": lambda *given: start}.items():
            monkeypatch.setattr(Launcher, name, replaced)
        monkeypatch.setattr(Launcher, "messages", messages)
        executor = executor_in(tmp_path / "run")
        executor.process(Bundle((group,)), [group], {result.cell.id: result}, MEASURE)
        return result, len(left)

    return launch


def stays(file) -> None:
    """Nothing happens to it."""


def test_a_user_s_file_that_stays_is_measured(launched):
    result, left = launched(stays, stays)
    assert (len(result.reports), result.failure, left) == (1, None, 1)


@pytest.mark.parametrize("happens", [lambda file: file.write_text(NET + "# other\n"), lambda file: file.unlink()])
def test_a_user_s_file_that_is_saved_while_it_is_measured_ends_the_run(launched, happens):
    with pytest.raises(UsageError, match=r"net\.py was changed since the run was started: restore it and resume"):
        launched(happens, stays)


def test_what_ran_while_a_file_was_another_for_a_while_is_measured_again(launched):
    """Saved and put back: which of the two its worker read is unknown."""
    result, left = launched(lambda file: (file.write_text("other"), file.write_text(NET)), stays, stays)
    assert (len(result.reports), result.failure, left) == (1, None, 1)


def test_one_version_is_measured_in_a_run(cell, tmp_path):
    run, installed = Run(tmp_path), {"python": "3.11.7", "torch": "2.12.0", "triton": "3.3", "pytest": "8"}
    note_versions(run, cell(), installed)
    note_versions(run, cell(), installed | {"pytest": "9"})  # which decides nothing
    assert run.read("versions.json")["torch-cpu"]["pytest"] == "9"
    for other in ({"torch": "2.13.0"}, {"python": "3.12.1"}, {"nvidia-cudnn-cu12": "9"}):
        with pytest.raises(UsageError, match=f"{next(iter(other))} was .* when this run was started and is .* now"):
            note_versions(run, cell(), installed | other)
    with pytest.raises(UsageError, match=r"triton was 3.3 when this run was started and is not installed now"):
        note_versions(run, cell(), {name: version for name, version in installed.items() if name != "triton"})
    note_versions(run, cell(framework="jax"), {"python": "3.11.7", "jax": "0.6"})
    assert run.read("versions.json").keys() == {"torch-cpu", "jax-cpu"}


def test_launches_of_another_machine_are_left_out_and_finished_cells_stay(tmp_path, record):
    run = Run(tmp_path)
    (tmp_path / "processes").mkdir()
    run.write("machine.json", {"machine_id": "a"})
    run.write("peaks.json", {})
    run.append_record(record(mode="eager"))
    for mode in ("eager", "graph"):
        run.append_samples({"cell": record(mode=mode).cell, "seconds_per_call": [1.0]})
        run.keep_report({"cell": record(mode=mode).cell})
    before = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert not leave_out_another_machine(run, "a")
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    (tmp_path / "machine.json").write_text('{"a": ')
    assert not leave_out_another_machine(run, "b")
    run.write("machine.json", {"machine_id": "a"})
    assert leave_out_another_machine(run, "b")
    assert [entry["cell"] for entry in run.samples()] == [record(mode="eager").cell]
    assert run.kept_reports() == [] and len(run.records()) == 1
    assert not (tmp_path / "peaks.json").exists() and not (tmp_path / SAMPLES).exists()
    assert (tmp_path / COMPRESSED_SAMPLES).exists()


def test_a_run_goes_on_with_its_own_versions_and_tells_of_another_machine(run, suite, tmp_path):
    first = run("--framework", "fake", "--mode", "eager")
    folder = tmp_path / "run"
    shutil.copytree(first.folder, folder)
    (folder / "records.jsonl").unlink()
    for name, edit in (
        ("machine.json", lambda content: content | {"machine_id": "another"}),
        ("versions.json", lambda content: {"fake-cpu": content["fake-cpu"] | {"numpy": "0.1"}}),
    ):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(edit(content)))
    again = suite.bench(folder, "--resume", str(folder), "--python", sys.executable)
    assert again.code == 2, again.output
    assert "This run was started on another machine" in again.output
    assert "numpy was 0.1 when this run was started and is" in again.output and "Traceback" not in again.output
    assert not (folder / "records.jsonl").exists()
