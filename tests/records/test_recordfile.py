"""Files of records: read by name, torn lines said, old versions read or refused; the Table Schema fits real tables."""

from __future__ import annotations

import csv
import json
from operator import attrgetter

import pytest
from conftest import ROOT
from doubles.reported import lines, rows_of, small_set

from records import record as schema
from records import recordfile
from records.recordfile import Unreadable, load, schema_path, write_csv


@pytest.fixture
def table(tmp_path):
    """A CSV of the small set."""
    write_csv(small_set(), tmp_path / "results.csv")
    return tmp_path / "results.csv"


def rewrite(path, change, **how) -> None:
    """Read a CSV, change its rows (lists of texts, the header first), write it again as a spreadsheet would."""
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    with open(path, "w", newline="", encoding=how.pop("encoding", "utf-8")) as file:
        csv.writer(file, **how).writerows(change(rows))


def test_a_table_is_read_as_it_was_written(table):
    assert rows_of(load(table).records) == rows_of(small_set())
    assert load(table).remarks == []


def test_columns_may_stand_in_another_order_and_be_missing(table):
    rewrite(table, lambda rows: [list(reversed(row))[:-3] + row[:1] for row in rows])
    records = [r | dict.fromkeys(schema.NAMES[1:3]) for r in small_set()]
    assert rows_of(load(table).records) == rows_of(records)


def test_a_spreadsheet_s_semicolons_decimal_commas_and_byte_order_mark_are_understood(table):
    def european(rows):
        numbers = {n for n, c in enumerate(schema.COLUMNS) if c.kind == "float"}
        return [[t.replace(".", ",") if n in numbers else t for n, t in enumerate(row)] for row in rows]

    rewrite(table, european, delimiter=";", encoding="utf-8-sig")
    assert rows_of(load(table).records) == rows_of(small_set())


def test_rows_may_end_early_and_be_empty(table):
    def shortened(rows):
        return [rows[0], [], rows[1][:-1], [""] * len(rows[0]), *rows[2:]]

    rewrite(table, shortened)
    assert rows_of(load(table).records) == rows_of([small_set()[0] | {schema.NAMES[-1]: None}, *small_set()[1:]])


def test_a_part_of_the_columns_is_read_from_both_kinds_of_file(table):
    table.with_suffix(".jsonl").write_bytes(lines(small_set()))
    always = ("cell", "bytes", "framework", "mode", "workload", "status", "schema_version")
    always += ("run_id", "machine_id", "started_at")
    get = attrgetter(*always)
    for path in (table, table.with_suffix(".jsonl")):
        read = load(path, ("cell", "bytes")).records
        assert list(map(get, read)) == list(map(get, small_set()))
        with pytest.raises(AttributeError):  # no empty value: it was not read
            _ = read[0].latency_ms_median


def test_an_unknown_column_is_ignored_and_said(table):
    rewrite(table, lambda rows: [[*row, "note" if n == 0 else "x"] for n, row in enumerate(rows)])
    loaded = load(table)
    assert rows_of(loaded.records) == rows_of(small_set())
    assert "are ignored: note" in loaded.remarks[0]


def test_a_number_that_is_none_is_refused_with_its_place(table):
    rewrite(table, lambda rows: [rows[0], [t if rows[0][n] != "batch_size" else "few" for n, t in enumerate(rows[1])]])
    with pytest.raises(Unreadable, match="line 2: batch_size holds 'few', which is not of type int"):
        load(table)


def test_a_table_that_ends_within_a_quotation_is_refused(table):
    table.write_text(table.read_text() + 'torch,"')
    with pytest.raises(Unreadable, match="not a complete CSV file"):
        load(table)


def test_another_table_is_refused(tmp_path):
    (tmp_path / "other.csv").write_text("name,value\na,1\n")
    with pytest.raises(Unreadable, match="no column 'schema_version'"):
        load(tmp_path / "other.csv")


def test_a_torn_last_line_is_said_and_skipped(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(lines(small_set()))
    path.write_bytes(path.read_bytes()[:-40])
    loaded = load(path)
    assert rows_of(loaded.records) == rows_of(small_set()[:-1])
    assert f"line {len(small_set())} is truncated" in loaded.remarks[0]


@pytest.mark.parametrize("value", [-1.0, 0.0, "nan", "inf"])
@pytest.mark.parametrize("column", ["latency_ms_median", "latency_ms_ci_low", "latency_call_ms_p50"])
def test_a_latency_that_is_no_time_is_refused(table, tmp_path, column, value):
    """Its logarithm would be asked for."""
    first, *others = small_set()
    write_csv([first | {column: value}, *others], table)
    with pytest.raises(Unreadable, match=rf"results.csv, line 2: {column} holds .*, which is no.* remove that line"):
        load(table)
    (tmp_path / "records.jsonl").write_bytes(lines([first | {column: float(value)}, *others]))
    with pytest.raises(Unreadable, match=rf"records.jsonl, line 1: {column} holds .*, which is no"):
        load(tmp_path / "records.jsonl")


def test_a_measured_cell_without_a_time_is_refused(tmp_path):
    """What is left of a line out of whose middle a piece was cut may be an object all the same."""
    first, *others = small_set()
    row = {k: v for k, v in first.to_row().items() if k != "latency_ms_median"}
    (tmp_path / "records.jsonl").write_bytes(lines([row, *others]))
    with pytest.raises(Unreadable, match="line 1: the cell is measured and has no latency_ms_median; remove that line"):
        load(tmp_path / "records.jsonl")


@pytest.mark.parametrize("version", range(1, schema.SCHEMA_VERSION + 1))
def test_more_than_the_peak_is_flagged_in_every_version(table, tmp_path, version):
    first, second = (row | {"schema_version": version, "flags": "drift"} for row in small_set()[:2])
    (tmp_path / "records.jsonl").write_bytes(lines([first | {"mfu_pct": 137.4}, second | {"mfu_pct": 100.0}]))
    write_csv([first | {"mfu_pct": 137.4}, second | {"mfu_pct": 100.0}], table)
    expected = ["drift;roofline_exceeded", "drift"]
    assert load(table).columns["flags"] == load(tmp_path / "records.jsonl").columns["flags"] == expected


def test_an_earlier_version_is_read_and_a_later_one_refused(tmp_path):
    path = tmp_path / "records.jsonl"
    row = {k: v for k, v in small_set()[0].to_row().items() if k not in ("shapes", "bytes")}
    path.write_bytes(lines([row | {"schema_version": 1}]))
    loaded = load(path)
    assert loaded.records[0].bytes is None
    assert "1 record with an earlier schema" in loaded.remarks[0]
    path.write_bytes(lines([small_set()[0] | {"schema_version": schema.SCHEMA_VERSION + 1}]))
    with pytest.raises(Unreadable, match=f"this suite reads 1 to {schema.SCHEMA_VERSION}"):
        load(path)
    path.write_bytes(lines([{"framework": "a", "mode": "b", "workload": "c", "status": "ok"}]))
    with pytest.raises(Unreadable, match="line 1: there is no schema_version, which every record"):
        load(path)


# What a text has to look like to be of a type of the Table Schema, and how it is tried.
TYPES = {"string": str, "integer": int, "number": float, "boolean": {"true": True, "false": False}.__getitem__}


def invalid(table, description: dict) -> list[str]:
    """What is wrong with a CSV under its Table Schema."""
    fields, problems = description["fields"], []
    with open(table, newline="") as file:
        header, *rows = list(csv.reader(file))
    if header != [field["name"] for field in fields]:
        return ["the header's names or their order"]
    for number, row in enumerate(rows, 2):
        for field, text in zip(fields, row, strict=True):
            rules = field.get("constraints", {})
            if text in description["missingValues"]:
                problems += [f"{number}: {field['name']} is required"] if rules.get("required") else []
                continue
            try:
                TYPES[field["type"]](text)
            except (ValueError, KeyError):
                problems.append(f"{number}: {field['name']} holds {text!r}")
            if text not in rules.get("enum", [text]):
                problems.append(f"{number}: {field['name']} may not be {text!r}")
    return problems


@pytest.mark.parametrize("path", sorted(ROOT.glob("tests/runs/*/records.jsonl")), ids=lambda path: path.parent.name)
def test_tables_of_every_version_fit_the_one_schema(path, tmp_path):
    out = tmp_path / "results.csv"
    recordfile.write_csv(recordfile.load(path).records, out)
    assert invalid(out, json.loads((ROOT / "results/results.schema.json").read_text())) == []


def test_what_does_not_fit_is_found(table):
    description = json.loads(schema_path(table).read_text())
    assert invalid(table, description) == []
    for column, text in (("status", "fine"), ("batch_size", "1.5"), ("tf32", "maybe"), ("framework", "")):
        place = schema.NAMES.index(column)
        good = table.read_bytes()
        rewrite(table, lambda rows, n=place, t=text: [rows[0], [*rows[1][:n], t, *rows[1][n + 1 :]]])
        assert len(invalid(table, description)) == 1
        table.write_bytes(good)
    rewrite(table, lambda rows: [list(reversed(row)) for row in rows])
    assert invalid(table, description) == ["the header's names or their order"]


def test_the_schema_says_what_the_columns_say():
    fields = {field["name"]: field for field in schema.table_schema()["fields"]}
    assert tuple(fields) == schema.NAMES
    assert fields["latency_ms_median"]["type"] == "number"
    assert fields["latency_ms_median"]["unit"] == "ms"
    assert fields["status"]["constraints"]["enum"] == [*schema.STATUSES, "noisy", "disturbed", "partial"]
    assert recordfile.schema_path(ROOT / "a" / "results.csv").name == "results.schema.json"
