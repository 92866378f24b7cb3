"""Runs in the formats of other tools, against the schemas that these publish."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pandas
import pyarrow.parquet
import pytest
from conftest import ROOT

import runner
from records import recordfile

RUN = ROOT / "tests/runs/two-cores"
SCHEMAS = Path(__file__).parent / "schemas"


def exported(name: str, capsys) -> list | dict:
    """Return what `export` prints of the committed run."""
    assert runner.main(["export", str(RUN), f"FORMAT={name}"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def included():
    return {r.cell: r for r in recordfile.load(RUN / "records.jsonl").records if r.median_ms and not r.excluded}


@pytest.mark.parametrize("name", ["bmf", "github-action-benchmark", "pytorch-oss-v3"])
def test_a_format_keeps_to_its_published_schema(name, capsys, included):
    content = exported(name, capsys)
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    jsonschema.validate(content, schema)
    assert len(content) == len(included) > 3
    broken = {"x": {"latency": {}}} if name == "bmf" else [{}]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)


def test_bencher_gets_nanoseconds_with_both_ends(capsys, included):
    content = exported("bmf", capsys)
    for cell, record in included.items():
        latency = content[cell]["latency"]
        assert latency["value"] == pytest.approx(record.median_ms * 1e6)
        assert latency["lower_value"] <= latency["value"] <= latency["upper_value"]


def test_pytorch_gets_every_sample(capsys, included):
    for entry, record in zip(exported("pytorch-oss-v3", capsys), included.values(), strict=True):
        assert len(entry["metric"]["benchmark_values"]) >= record.samples
        assert min(entry["metric"]["benchmark_values"]) == pytest.approx(record.latency_ms_min, rel=0.5)


def test_parquet_holds_the_columns_of_the_csv_with_their_units(tmp_path):
    tables = {name: tmp_path / f"table.{name}" for name in ("csv", "parquet")}
    for name, path in tables.items():
        assert runner.main(["export", str(RUN), f"FORMAT={name}", f"OUT={path}"]) == 0
    table = pyarrow.parquet.read_table(tables["parquet"])
    csv = pandas.read_csv(tables["csv"])
    assert table.column_names == list(csv.columns)
    assert table.column("latency_ms_median").to_pylist() == pytest.approx(csv.latency_ms_median.tolist(), nan_ok=True)
    assert table.schema.field("latency_ms_median").metadata[b"unit"] == b"ms"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Name a format: FORMAT=bmf|github-action-benchmark"),
        (["FORMAT=jsn"], "There is no format 'jsn'; did you mean 'json'?"),
        (["FORMAT=parquet"], "name it, such as OUT=results.parquet"),
        (["FORMAT=bmf", "RUN=/nowhere"], "contains no run"),
    ],
)
def test_a_wrong_use_is_one_sentence(words, sentence, capsys):
    run = [] if any(word.startswith("RUN=") for word in words) else [str(RUN)]
    assert runner.main(["export", *run, *words]) == 2
    printed = capsys.readouterr().err
    assert sentence in printed and printed.count("\n") == 1
