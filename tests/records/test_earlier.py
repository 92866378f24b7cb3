"""Records of earlier schema versions are judged at reading by the rules of the newest."""

from __future__ import annotations

import json

import pytest
from conftest import listed_files
from doubles.reported import record

from records import earlier, recordfile
from records.record import NAMES, Record
from records.statuses import STATUSES


def read(tmp_path, row: Record, only=NAMES, **changes) -> Record:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(row.to_row() | changes) + "\n")
    (found,) = recordfile.load(path, only).records
    return found


@pytest.mark.parametrize("status", ["ok", "noisy", "disturbed", "partial"])
def test_a_measured_cell_is_ok_and_its_precision_a_number(tmp_path, status):
    old = record(
        "alpha", "graph", status=status, flags="few_rounds;drift;wide_interval;preempted", target_half_width=None
    )
    new = read(tmp_path, old, schema_version=8, latency_status="noisy", ratio_status="disturbed")
    assert (new.status, new.sign, new.target_half_width) == ("ok", "faster", 0.1)
    assert new.flags == ("drift;partial" if status == "partial" else "drift")
    assert (new.latency_half_width, new.speedup_half_width) == (pytest.approx(0.01), pytest.approx(0.02))


@pytest.mark.parametrize("status", sorted(STATUSES.keys() - {"ok"}))
def test_what_failed_then_fails_now(tmp_path, status):
    assert read(tmp_path, record("alpha", "graph", status=status, reason="x"), schema_version=4).status == status


def test_eager_has_no_sign_and_no_interval_no_width(tmp_path):
    assert read(tmp_path, record("alpha", "eager"), schema_version=8).sign is None
    bare = read(tmp_path, record("alpha", "graph", speedup_ci_low=None), schema_version=8)
    assert (bare.sign, bare.speedup_half_width) == ("inconclusive", None)


def test_columns_that_follow_from_others_are_made_of_those_alone(tmp_path):
    assert read(tmp_path, record("alpha", "graph"), ("sign",), schema_version=7).sign == "faster"


def test_records_of_the_newest_version_are_left_as_they_are(tmp_path):
    assert read(tmp_path, record("alpha", "graph", sign="slower", flags="partial")).sign == "slower"


def test_a_table_of_an_earlier_version_is_read_without_a_word_on_retired_columns(tmp_path):
    path = tmp_path / "results.csv"
    recordfile.write_csv([record("alpha", "graph") | {"schema_version": 8, "status": "noisy"}], path)
    header, row = path.read_text().splitlines()
    path.write_text(f"{header},latency_status\n{row},noisy\n")
    loaded = recordfile.load(path)
    assert [made.status for made in loaded.records] == ["ok"]
    assert not any("latency_status" in remark for remark in loaded.remarks)


def test_every_committed_record_is_valid_by_the_newest_rules():
    for path in (path for path in listed_files() if path.name == "records.jsonl"):
        for made in recordfile.load(path).records:
            assert made.status in STATUSES
            assert not earlier.RETIRED_FLAGS & {*(made.flags or "").split(";")}
            assert made.is_measured == (made.status == "ok")
