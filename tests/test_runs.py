"""A run's folder: append-only records, a CSV that says missing by leaving empty, survival of torn lines."""

from __future__ import annotations

import csv

import pandas as pd
import pytest

from harness.runs import Run, git_revision
from measurement import schema


@pytest.fixture
def run(tmp_path) -> Run:
    return Run.create(str(tmp_path / "run"))


def test_records_are_appended_and_checked(run, record):
    run.append_record(record(mode="eager"))
    before = run.records_path.read_bytes()
    run.append_record(record(mode="graph"))
    assert run.records_path.read_bytes().startswith(before)
    assert [r["mode"] for r in run.records()] == ["eager", "graph"]
    assert set(run.records()[0]) == set(schema.NAMES)
    for wrong in ({"colour": "red"}, {"status": "fine"}, {"threads": "two"}, {"threads": True}, {"status": "crash"}):
        with pytest.raises(ValueError):
            run.append_record(record(**wrong))
    assert len(run.records()) == 2


def test_missing_is_empty_never_zero(run, record):
    run.append_record(record(speedup_vs_eager=None, steal_share=0.0, tf32=False))
    run.write_csv()
    with open(run.csv_path, newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["speedup_vs_eager"] == ""
    assert row["steal_share"] == "0.0"
    assert row["tf32"] == "false"
    assert tuple(row) == schema.NAMES


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


def test_a_torn_last_line_spoils_itself_alone(run, record):
    run.append_record(record(mode="eager"))
    whole = run.records_path.read_bytes()
    with open(run.records_path, "ab") as file:
        file.write(whole[: len(whole) // 2])
    assert [r["mode"] for r in run.records()] == ["eager"]
    run.append_record(record(mode="graph"))
    assert [r["mode"] for r in run.records()] == ["eager", "graph"]
    assert run.finished() == {r["cell"] for r in run.records()}


def test_an_existing_run_is_opened_not_made(run):
    run.write("plan.json", {"given": {"batch": "1"}})
    assert Run.open(str(run.folder)).read("plan.json") == {"given": {"batch": "1"}}
    assert run.read("peaks.json") == {}


def test_the_revision_is_the_checkout_s():
    assert git_revision()
