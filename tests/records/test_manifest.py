"""What a run that is gone on with is believed: its plan whole and unchanged, its records judged as by a report.

One small run is made; each test changes a copy of its folder and goes on with it through the command line.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from doubles.suite import TINY, Finished

import runner
from execution.recorder import Recorder
from measurement.peaks import Peaks
from measurement.refusals import UsageError
from records import runs

pytestmark = pytest.mark.slow

NUMPY = (*TINY, "--framework", "numpy", "--batch", "1,2")


@pytest.fixture(scope="module")
def original(suite, tmp_path_factory) -> Path:
    """The folder of a finished run of two cells."""
    out = tmp_path_factory.mktemp("original") / "run"
    done = suite.bench(out, *NUMPY, "--python", sys.executable, "--out", str(out))
    assert done.code == 0 and done.complete()
    return out


@pytest.fixture
def folder(original, tmp_path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(original, tmp_path / "run"))


def changed(folder: Path, **changes) -> None:
    """Change the plan, in good JSON."""
    plan = json.loads((folder / "plan.json").read_text())
    for name, value in changes.items():
        plan[name] = value(plan[name]) if callable(value) else value
    (folder / "plan.json").write_text(json.dumps(plan))


def text(content: str | bytes):
    """Put something else in the plan's place."""
    return lambda folder: (folder / "plan.json").write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )


def torn(folder: Path) -> None:
    content = (folder / "plan.json").read_bytes()
    (folder / "plan.json").write_bytes(content[: len(content) // 2])


PLANS = {
    "empty": text(""),
    "torn": torn,
    "list": text("[]"),
    "deep": text("[" * 100_000),
    "latin": text(b'{"given": "\xe9"}'),
    "given-missing": text('{"cells": []}'),
    "given-list": lambda folder: changed(folder, given=[]),
    "cells-number": lambda folder: changed(folder, cells=3),
    "python-list": lambda folder: changed(folder, python=["sh", "-c"]),
    "budget": lambda folder: changed(folder, given=lambda given: given | {"budget": "3"}),
    "batch": lambda folder: changed(folder, given=lambda given: given | {"batch": "1,2,3"}),
    "cell-left-out": lambda folder: changed(folder, cells=lambda cells: cells[:1]),
    "python": lambda folder: changed(folder, python="/bin/false"),
}


def refused(folder: Path, capsys) -> str:
    """The sentence with which nothing goes on."""
    code = runner.main(["bench", "--resume", str(folder), "--python", sys.executable])
    output = "".join(capsys.readouterr())
    assert code == 2 and output.count("\n") == 1, output
    return output


@pytest.mark.parametrize("change", PLANS)
def test_a_plan_that_was_changed_is_refused_in_a_sentence(folder, change, capsys):
    PLANS[change](folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    output = refused(folder, capsys)
    assert "start a new" in output or "UTF-8" in output
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("name", ["machine.json", "peaks.json", "references.json"])
def test_another_torn_file_is_a_sentence(suite, folder, name):
    (folder / "records.jsonl").unlink()
    (folder / name).write_text('{"a": ')
    done = suite.bench(folder, "--resume", str(folder), "--python", sys.executable)
    assert "Traceback" not in done.output
    assert done.code == 0 if name == "machine.json" else f"{name} is truncated or was changed" in done.output


PEAKS = {"flops_per_s": 1e12, "bytes_per_s": 1e11, "source": "a test"}
NO_PEAKS = {
    "another name": {"flops": 1.0},
    "a number": 3,
    "a list": [1, 2],
    "negative": {**PEAKS, "bytes_per_s": -1},
    "a text": {**PEAKS, "flops_per_s": "fast"},
    "no number": {**PEAKS, "cached_bytes_per_s": float("nan")},
}


@pytest.mark.parametrize("values", NO_PEAKS.values(), ids=NO_PEAKS)
def test_peaks_that_are_none_are_a_sentence(tmp_path, values):
    """Good JSON, and not what the suite wrote; the command line prints the sentence and ends with 2."""
    run = runs.Run(tmp_path)
    run.write("peaks.json", {"numpy/cpu/fp32/threads=1": PEAKS})
    assert Recorder(run, None, None, None).peaks == {"numpy/cpu/fp32/threads=1": Peaks(**PEAKS)}
    run.write("peaks.json", {"numpy/cpu/fp32/threads=1": values})
    with pytest.raises(UsageError, match=f"{tmp_path}/peaks.json was changed.* remove the file, then try again"):
        Recorder(run, None, None, None)


def test_the_interpreter_is_in_the_plan_and_needs_no_second_file(suite, folder):
    """A run that was killed before its machine was noted would else go on with other packages."""
    place = suite.folder / "results/runs/a second file"
    shutil.copytree(folder, place)
    folder = place
    (folder / "machine.json").unlink()
    (folder / "records.jsonl").unlink()
    done = suite.bench(folder, "--resume", folder.name)
    assert done.code == 0, done.output
    assert json.loads((folder / "machine.json").read_text())["python"] == sys.executable


def records(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def put(folder: Path, entries: list) -> None:
    (folder / "records.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def test_a_cell_twice_and_a_foreign_one_are_left_out_and_told(suite, folder):
    first, second = records(folder)
    foreign = first | {"cell": first["cell"].replace("batch_size=2", "batch_size=64")}
    put(folder, [first, second, first | {"latency_ms_median": 9e9}, foreign])
    done = suite.bench(folder, "--resume", str(folder), "--python", sys.executable)
    assert done.code == 0, done.output
    assert "ignored 1 record of cells with an earlier record." in done.output
    assert "run: ignored 1 record of cells outside the run's plan." in done.output
    assert "Trust: " in done.output and "without figures" not in done.output
    rows = Finished(0, "", folder).rows()
    assert [row["cell"] for row in rows] == [first["cell"], second["cell"]]
    assert all(float(row["latency_ms_median"]) < 9e9 for row in rows)


LINES = {
    "without a cell": lambda record: {name: value for name, value in record.items() if name != "cell"},
    "a list as cell": lambda record: record | {"cell": [1]},
    "text as latency": lambda record: record | {"latency_ms_median": "fast"},
    "not a number": lambda record: record | {"latency_ms_median": float("nan")},
    "a later schema": lambda record: record | {"schema_version": 99},
    "no schema": lambda record: record | {"schema_version": None},
    "an unknown status": lambda record: record | {"status": "splendid"},
}


@pytest.mark.parametrize("odd", LINES)
def test_resume_and_report_judge_a_line_alike(folder, odd, capsys):
    first, second = records(folder)
    put(folder, [first, LINES[odd](second)])
    output = refused(folder, capsys)
    (folder / "results.csv").unlink()  # which has what the records had
    assert runner.main(["report", str(folder)]) == 2
    assert capsys.readouterr().err.strip() == output.strip()


def test_lines_that_hold_no_record_are_measured_again(suite, folder):
    first, _second = records(folder)
    lines = [json.dumps(first), "[1, 2]", "[" * 100_000, "9" * 5000, '{"cell": "half']
    (folder / "records.jsonl").write_text("\n".join(lines))
    done = suite.bench(folder, "--resume", str(folder), "--python", sys.executable)
    assert done.code == 0, done.output
    assert len(Finished(0, "", folder).rows()) == 2


@pytest.mark.parametrize("name", ["0001.bak", "0001 copy", "1st", "000²"])
def test_what_else_lies_among_the_launches_is_no_launch(tmp_path, name):
    run = runs.Run.create(str(tmp_path / "run"))
    for folder in (name, "0007"):
        (run.folder / "processes" / folder).mkdir()
    assert run.new_process_folder().name == "0008"


def test_the_newest_run_is_the_one_begun_last_whatever_the_clock_says(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "RUNS", tmp_path)
    for name in ("20261122-100000", "20261122-090000", "19700101-000000"):  # the clock went back, twice
        (tmp_path / name).mkdir()
        runs.Run(tmp_path / name).begin_with({"given": {}, "cells": []})
        (tmp_path / name / "records.jsonl").touch()
        assert runs.Run.open("newest").id == name

        from commands.report import places

        assert [path.name for path in places("newest")] == [name]
