"""What is committed under `results/`: whole, of one header whatever the device, and without the machine's own names."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from conftest import ROOT

from harness import recordfile
from measurement.schema import COLUMNS, SCHEMA_VERSION

# What runs on this machine have left is not committed, and may be of any version.
FILES = [p for p in sorted((ROOT / "results").glob("**/*")) if p.is_file() and p.relative_to(ROOT).parts[1] != "runs"]
RUNS = [path for path in FILES if path.name == "records.jsonl"]
# Folders of users and of the system's own software, and a GPU's serial number.
PRIVATE = re.compile(r"/(?:root|home|opt|work|mnt|tmp)/|GPU-[0-9a-f]{8}-")


def test_there_are_runs_of_cpus_and_of_gpus():
    kinds = {record["device"].split(":")[0] for path in RUNS for record in recordfile.json_lines(path)}
    assert kinds == {"cpu", "gpu"}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_a_committed_run_has_columns_of_the_schema_and_all_its_records(path: Path):
    with (path.parent / "results.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    names = [column.name for column in COLUMNS]
    newest = all(record["schema_version"] == SCHEMA_VERSION for record in recordfile.json_lines(path))
    assert header == names if newest else set(header) <= set(names)  # versions add columns
    cells = [record["cell"] for record in recordfile.json_lines(path)]
    assert [row[header.index("cell")] for row in rows] == cells
    assert len(set(cells)) == len(cells)
    assert (path.parent / "results.schema.json").exists()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_committed_results_name_no_private_places(path: Path):
    if path.suffix in (".json", ".jsonl", ".csv", ".md"):
        assert not PRIVATE.search(path.read_text()), path
