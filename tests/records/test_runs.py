"""A run's folder: append-only records, a CSV that says missing by leaving empty, survival of torn lines."""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys

import pandas as pd
import pytest
from conftest import ROOT

from measurement.refusals import UsageError
from records import jsonfiles, runs
from records import record as schema
from records.runs import Run, git_revision, measuring_code


@pytest.fixture
def run(tmp_path) -> Run:
    return Run.create(str(tmp_path / "run"))


def test_records_are_appended_and_checked(run, record):
    run.append_record(record(mode="eager"))
    before = run.records_path.read_bytes()
    run.append_record(record(mode="graph"))
    assert run.records_path.read_bytes().startswith(before)
    assert [r.mode for r in run.records()] == ["eager", "graph"]
    run.append_record(record(mode="another", sign="faster"))
    wrongs = [{"colour": "red"}, {"status": "fine"}, {"threads": "two"}, {"threads": True}, {"status": "crash"}]
    for wrong in (*wrongs, {"status": "noisy"}, {"sign": "better"}):
        with pytest.raises(ValueError):
            run.append_record(record(**wrong))
    assert len(run.records()) == 3


def test_missing_is_empty_never_zero(run, record):
    run.append_record(record(speedup_vs_eager=None, steal_share=0.0, tf32=False))
    run.write_csv()
    with open(run.csv_path, newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["speedup_vs_eager"] == ""
    assert row["steal_share"] == "0.0"
    assert row["tf32"] == "false"
    assert tuple(row) == schema.NAMES


def test_rewritten_records_are_on_disk_before_they_take_the_place_of_the_old(run, record, monkeypatch):
    """A machine that stops must find either the old records or the new ones, whole."""
    run.append_record(record())
    events, replace, sync = [], os.replace, os.fsync

    def noted_sync(descriptor):
        events.append(("synced", os.fstat(descriptor).st_ino, os.fstat(descriptor).st_size))
        sync(descriptor)

    def noted_replace(source, target):
        events.append(("replaced", os.stat(source).st_ino, os.stat(source).st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    jsonfiles.amend(run.records_path, {run.records()[0].cell: {"reason": "another"}})
    assert [name for name, *_ in events] == ["synced", "replaced"]
    assert events[0][1:] == events[1][1:]  # the same file, whole
    assert run.records()[0].reason == "another"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_figure_that_is_no_number_is_refused(run, record, value):
    with pytest.raises(ValueError, match="leave unknown values empty"):
        run.append_record(record(latency_ms_median=value))
    assert run.records() == []


def test_the_header_is_the_same_without_records(run):
    run.write_csv()
    assert run.csv_path.read_text().splitlines() == [",".join(schema.NAMES)]


def test_pandas_reads_it_back(run, record):
    reason = 'said "no", twice;\nthen stopped'
    run.append_record(record(status="error", reason=reason, latency_ms_median=None))
    run.append_record(record(latency_ms_median=1 / 3))
    run.write_csv()
    frame = pd.read_csv(run.csv_path)
    assert frame["reason"][0] == reason
    assert pd.isna(frame["latency_ms_median"][0])
    assert frame["latency_ms_median"][1] == 1 / 3


@pytest.mark.parametrize("text", ["a\r\nb", "a\rb", "a;b,c", "  spaces ", '"', "\x1b[31mred", "nul\x00", "ü × \u2028"])
def test_any_text_survives_the_table(run, record, text):
    run.append_record(record(status="crash", reason=text))
    run.write_csv()
    assert pd.read_csv(run.csv_path)["reason"][0] == text


def test_the_table_is_utf8_whatever_the_locale_and_stands_broken_names(run, record):
    script = "import sys; from records.runs import Run; from pathlib import Path; Run(Path(sys.argv[1])).write_csv()"
    run.append_record(record(status="crash", reason="ü in \udce4.so"))
    latin = {**os.environ, "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", script, run.folder], cwd=ROOT, env=latin, check=True)
    assert pd.read_csv(run.csv_path)["reason"][0] == "ü in \\udce4.so"


def test_a_torn_last_line_spoils_itself_alone(run, record):
    run.append_record(record(mode="eager"))
    whole = run.records_path.read_bytes()
    with open(run.records_path, "ab") as file:
        file.write(whole[: len(whole) // 2])
    assert [r.mode for r in run.records()] == ["eager"]
    run.append_record(record(mode="graph"))
    assert [r.mode for r in run.records()] == ["eager", "graph"]
    assert run.finished() == {r.cell for r in run.records()}


def test_an_existing_run_is_opened_not_made(run):
    run.write("plan.json", {"given": {"batch": "1"}})
    assert Run.open(str(run.folder)).read("plan.json") == {"given": {"batch": "1"}}
    assert run.read("peaks.json") == {}


@pytest.mark.parametrize("content", [b"\xff\x00\xfe", b'{"a": ', b"[]"], ids=ascii)
def test_a_file_of_the_run_that_is_no_json_is_to_be_removed(run, content):
    (run.folder / "references.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"references\.json is truncated or was changed.*; remove it, then try again"):
        run.read("references.json")


def test_two_runs_of_one_second_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "RUNS", tmp_path / "results" / "runs")
    made = [Run.create(None).folder for _ in range(5)]
    assert len(set(made)) == 5
    assert all(folder.parent == tmp_path / "results" / "runs" for folder in made)


@pytest.mark.parametrize("file", ["records.jsonl", "plan.json"])
def test_a_folder_with_a_run_is_refused_and_left_alone(tmp_path, file):
    (tmp_path / file).write_text("kept")
    with pytest.raises(UsageError, match="already contains a run"):
        Run.create(str(tmp_path))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(file, "kept")]


def test_the_newest_run_is_the_last_by_name_with_a_plan(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "RUNS", tmp_path)
    monkeypatch.setattr(runs, "SUITE", tmp_path)
    with pytest.raises(UsageError, match="There is no run"):
        Run.open("newest")
    for name in ("20260101-000000", "20260102-000000", "20260103-000000"):
        (tmp_path / name).mkdir()
    for name in ("20260101-000000", "20260102-000000"):
        (tmp_path / name / "plan.json").write_text("{}")
    assert Run.open(None).id == Run.open("newest").id == "20260102-000000"
    assert Run.open("20260101-000000").id == "20260101-000000"
    with pytest.raises(UsageError, match="contains no run"):
        Run.open("20260103-000000")


@pytest.fixture
def git(tmp_path, monkeypatch):
    """Run git in the folder that stands for the suite's, which is no checkout yet."""
    monkeypatch.setattr(runs, "SUITE", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    def git(*words: str) -> str:
        identity = ["-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false"]
        command = ["git", *identity, "-c", f"core.hooksPath={tmp_path}", *words]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    return git


def test_the_code_that_measures_is_the_same_whatever_else_is_committed(git, tmp_path, monkeypatch):
    assert measuring_code() is None
    git("init", "-q")
    for name in (*runs.MEASURING, "results"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("one")

    def committed() -> str | None:
        git("add", "-A")
        git("commit", "-qm", "one")
        return measuring_code()

    before = committed()
    (tmp_path / "results" / "file").write_text("two")
    assert before == measuring_code() == committed()
    (tmp_path / "worker" / "file").write_text("two")
    assert measuring_code() is None
    assert committed() not in (None, before)
    (tmp_path / "frameworks" / "new").write_text("one")
    assert measuring_code() is None
    monkeypatch.setenv("PATH", "")
    assert measuring_code() is None


def test_the_revision_is_the_checkout_s_with_a_plus_for_changes(git, tmp_path, monkeypatch):
    assert git_revision() is None  # no checkout
    git("init", "-q")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-qm", "one")
    git("tag", "v1")  # a revision, not a tag's name
    assert git_revision() == git("rev-parse", "--short=10", "HEAD")
    (tmp_path / "file").write_text("two")
    assert git_revision() == git("rev-parse", "--short=10", "HEAD") + "+"
    monkeypatch.setenv("PATH", "")
    assert git_revision() is None  # no git


def test_samples_are_compressed_at_the_end_and_a_resumed_run_adds_to_them(run):
    first, second = ({"cell": name, "launch": 0, "seconds_per_call": [0.1, 0.2]} for name in "ab")
    run.append_samples(first)
    assert run.samples() == [first]
    run.compress_samples()
    assert not (run.folder / "samples.jsonl").exists()
    run.append_samples(second)
    assert run.samples() == [first, second]
    run.compress_samples()
    run.compress_samples()  # nothing new
    assert run.samples() == [first, second]
    lines = gzip.decompress((run.folder / "samples.jsonl.gz").read_bytes()).splitlines()
    assert list(map(json.loads, lines)) == [first, second]


def test_a_run_stopped_amid_compressing_holds_no_sample_twice(run):
    entry = {"cell": "a", "launch": 0, "seconds_per_call": [0.1]}
    run.append_samples(entry)
    plain = (run.folder / "samples.jsonl").read_bytes()
    run.compress_samples()
    (run.folder / "samples.jsonl").write_bytes(plain)
    assert run.samples() == [entry]
    run.compress_samples()
    assert run.samples() == [entry]


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"{}\n" * 99)[:-20]], ids=("other", "cut"))
def test_torn_samples_are_told_of_before_anything_is_measured(run, content):
    (run.folder / "samples.jsonl.gz").write_bytes(content)
    for look in (run.judged, run.samples, run.compress_samples):
        run.append_samples({"cell": "a"})
        with pytest.raises(
            UsageError, match=r"samples\.jsonl\.gz is truncated or was changed.*move it away, then try again"
        ):
            look()
    assert (run.folder / "samples.jsonl").read_bytes() == 3 * b'{"cell": "a"}\n'


def test_a_kept_report_that_was_changed_is_left_out(run):
    """A digit may change and leave valid JSON: nothing else would tell."""
    for number in range(3):
        run.keep_report({"cell": "a", "report": {"samples": [0.25, number]}})
    path = run.folder / "processes/reports.jsonl"
    first, second, third = path.read_bytes().splitlines(keepends=True)
    changed = second.replace(b"0.25", b"0.26")
    path.write_bytes(first + changed + b'{"cell": "a"}\n' + third[:30] + b"\n" + third)
    assert [kept["report"]["samples"] for kept in run.kept_reports()] == [[0.25, 0], [0.25, 2]]


def moved(run: Run) -> None:
    run.folder.rename(run.folder.with_name("moved"))


def replaced(run: Run) -> None:
    """The folder has another name, and another run is begun where it was."""
    moved(run)
    other = Run.create(str(run.folder))
    (other.folder / "processes/lock").write_text("another's")


def unlocked(run: Run) -> None:
    (run.folder / "processes/lock").unlink()


@pytest.mark.parametrize("change", [moved, replaced, unlocked])
def test_nothing_is_written_where_a_run_no_longer_lies(run, record, change):
    """Else its records end in two folders, or in another run's table, of which each cell is then there twice."""
    writes = [
        lambda: run.append_record(record()),
        lambda: run.append_samples({"cell": "a"}),
        lambda: run.keep_report({"cell": "a"}),
        lambda: run.append_profile({"cell": "a"}),
        lambda: run.write("peaks.json", {}),
        run.new_process_folder,
        run.write_csv,
        run.compress_samples,
    ]
    with run.held():
        run.append_record(record())
        change(run)
        before = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
        for write in writes:
            with pytest.raises(UsageError, match="was moved, or its processes/lock removed, while it was measured"):
                write()
    assert {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()} == before
    if change is unlocked:  # held no more: it can be gone on with
        run.append_record(record(mode="graph"))
        assert len(run.records()) == 2


def test_a_run_that_is_begun_removes_only_its_own_folder(tmp_path):
    """It ends before it has a plan, and another one has its place."""
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt), Run.begin(str(out)) as run:
        replaced(run)
        raise KeyboardInterrupt
    assert (out / "processes/lock").read_text() == "another's"
