"""What is committed under `results/`: whole, of one header whatever the device, and without the machine's own names."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.streams import stream

import runner
from commands import published
from execution.streams import figures
from measurement.flags import ROUNDING
from measurement.streams import PARTS, STRATEGIES, StreamJob, padded
from publish import committed
from publish.place import EDITION, KEPT
from records import jsonfiles, recordfile, streams
from records.statuses import STATUSES
from workloads import lengths

# What runs on this machine have left is not committed, and may be of any version.
FILES = [p for p in sorted((ROOT / "results").glob("**/*")) if p.is_file() and p.relative_to(ROOT).parts[1] != "runs"]
RUNS = [path for path in FILES if path.name == "records.jsonl"]
STREAMS = [path for path in FILES if path.name == streams.JOURNAL.lines]
OF_CALLS = ("total_s", "p50_ms", "p99_ms", "longest_ms", "later_ms", "new_shapes_s", "unseen_s", "padded_share")
EARLIER = sorted((ROOT / "tests/runs").glob("*/records.jsonl"))
# Folders of users and of the system's own software, and a GPU's serial number.
PRIVATE = re.compile(r"/(?:root|home|opt|work|mnt|tmp)/|GPU-[0-9a-f]{8}-")


def test_there_are_runs_of_cpus_and_of_gpus():
    kinds = {record["device"].split(":")[0] for path in RUNS for record in jsonfiles.lines(path)}
    assert kinds == {"cpu", "gpu"}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_a_committed_run_has_one_record_a_cell(path: Path):
    cells = [record["cell"] for record in jsonfiles.lines(path)]
    assert len(set(cells)) == len(cells)


def test_every_committed_run_has_its_report(tmp_path):
    """The table on the terminal, `report.md` and `report.html`."""
    for path in (*RUNS, *EARLIER):
        assert runner.main(["report", str(path.parent), "--out", str(tmp_path)]) == 0, path
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize("version", range(2, 8))
def test_records_of_an_earlier_schema_version_are_read(version: int):
    records = recordfile.load(ROOT / f"tests/runs/schema-{version}/records.jsonl").records
    assert records and {record.schema_version for record in records} == {version}
    assert {record.status for record in records} <= set(STATUSES)
    assert all(record.sign for record in records if record.speedup and not record.is_baseline)


def test_the_site_has_a_page_for_every_run_of_the_edition(tmp_path):
    assert runner.main(["report", "--site", str(tmp_path)]) == 0
    pages = {page.parent.relative_to(tmp_path) for page in tmp_path.glob("*/**/index.html")}
    folders = {path.parent.relative_to(recordfile.RESULTS) for path in RUNS}
    assert pages == {folder for folder in folders if folder.parts[0] == EDITION}


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_figures_of_a_committed_stream_are_those_of_its_calls(path: Path):
    for record in (one for one in streams.JOURNAL.read(path.parent) if one.calls):
        shape = dict(pair.split("=", 1) for pair in record.cell.rpartition("/")[2].split(","))
        drawn = lengths.read(record.lengths).clipped(int(shape["seq_len"]))
        tokens, batches = zip(*drawn.stream(record.number, 0, int(shape["batch_size"])), strict=True)
        to = padded(STRATEGIES[record.strategy], tokens, drawn.longest, drawn.quantiles(PARTS))
        job = StreamJob(record.strategy, tokens, to, batches, drawn.shortest, drawn.longest)
        every = padded(STRATEGIES[record.strategy], drawn.shapes()[0], drawn.longest, drawn.quantiles(PARTS))
        unseen = len(set(every) - set(to))
        found = figures(stream(record.calls, setup_s=record.setup_s), job, unseen)
        own = {name: getattr(record, name) for name in OF_CALLS}
        assert {name: found[name] for name in OF_CALLS} == pytest.approx(own, rel=1e-6), record.strategy


def test_results_stay_small_and_a_table_of_the_edition_has_no_files_but_its_own():
    assert len(FILES) <= 250 and sum(path.stat().st_size for path in FILES) <= 12e6
    tables = [path for path in FILES if path.relative_to(ROOT / "results").parts[0] == EDITION]
    assert {path.name for path in tables} <= {*KEPT, "README.md"}


def test_one_schema_file_describes_every_table():
    assert [path for path in FILES if path.name.endswith(".schema.json")] == [recordfile.PUBLISHED_SCHEMA]


def test_a_published_table_has_no_schema_of_its_own(record, tmp_path, monkeypatch):
    results = tmp_path / "results"
    monkeypatch.setattr(recordfile, "RESULTS", results)
    monkeypatch.setattr(recordfile, "PUBLISHED_SCHEMA", results / "results.schema.json")
    for folder, has in (("h200/new", False), ("runs/today", True), ("../elsewhere", True)):
        (results / folder).mkdir(parents=True)
        recordfile.write_csv([record()], results / folder / "results.csv")
        assert (results / folder / "results.schema.json").exists() == has


def test_every_committed_run_is_listed():
    assert {path.parent for path in RUNS} <= set(published.folders(ROOT / "results"))


def test_a_published_folder_s_row(tmp_path):
    folder = tmp_path / "h200" / "torch"
    folder.mkdir(parents=True)
    given = {
        "framework": ["torch", "jax"],
        "filter": "a b",
        "isolate": True,
        "force": False,
        "unseen-seq": 64,
        "seed": 0,
    }
    (folder / "plan.json").write_text(json.dumps({"given": given, "started_at": "2026-01-02T03:04:05Z"}))
    gpus = [{"name": "NVIDIA H200"}] * 2
    facts = {"cpu": "A processor", "cpus_usable": 2, "gpus": gpus, "machine_id": "abcd"}
    (folder / "machine.json").write_text(json.dumps(facts))
    (folder / "records.jsonl").write_text(json.dumps({"git_revision": "0123+"}) + "\n")
    (tmp_path / "runs/today").mkdir(parents=True)
    (tmp_path / "runs/today/plan.json").write_text("{}")
    (row,) = [line for line in committed.page(tmp_path).splitlines() if "h200/torch" in line]
    command = "make bench FRAMEWORK=torch,jax FILTER='a b' ISOLATE=1 UNSEEN_SEQ=64 SEED=0"
    machine = "A processor, 2 CPUs; 2 × NVIDIA H200; abcd"
    cells = ["[h200/torch](h200/torch)", machine, f"`{command}`", "2026-01-02 03:04:05", "0123+", "1", "no"]
    assert row == f"| {' | '.join(cells)} |"
    assert "today" not in committed.page(tmp_path)


def test_a_row_of_joined_runs_has_the_command_of_each(tmp_path):
    folder = tmp_path / "h200"
    folder.mkdir()
    joined = [
        {"by": by, "given": {"batch": batch}, "started_at": f"2026-01-0{batch}T03:04:05Z"}
        for by, batch in (("bench", 2), ("explain", 1))
    ]
    (folder / "joined.json").write_text(json.dumps({"runs": joined}))
    for name in ("records.jsonl", "explained.jsonl"):
        shutil.copy(ROOT / "results/h200" / name, folder)
    (row,) = [line for line in committed.page(tmp_path).splitlines() if line.startswith("| [h200](h200) |")]
    count = sum(len((folder / name).read_text().splitlines()) for name in ("records.jsonl", "explained.jsonl"))
    assert "| `make bench BATCH=2`<br>`make explain BATCH=1` | 2026-01-01 03:04:05 | " in row
    assert row.endswith(f" | {count} | no |")


# They have kernels of their own, which reach more than torch's matrix product, the measured peak.
OTHER_KERNELS = ("onnx-runtime", "openvino")


def beyond_the_roofline(records) -> list[str]:
    """Cells with a term of the roofline above their time; records before version 4 know no peak of the machine."""
    of_framework = [record for record in records if record.get("mode") not in OTHER_KERNELS]
    return [record["cell"] for record in of_framework if (record.get("explained_share") or 0) > 1 + ROUNDING]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_no_committed_cell_is_faster_than_its_roofline(path: Path):
    records = list(jsonfiles.lines(path))
    assert beyond_the_roofline(records) == []
    for record in records:
        assert record["schema_version"] < 4 or record.get("latency_ms_median") is None or record["moved_bytes"]


def test_a_cell_faster_than_its_roofline_would_be_found():
    """As 24 of the first runs were: 38.6 ms of traffic in a call of 14.66 ms."""
    record = {"cell": "torch/bert-base", "explained_share": 38.6 / 14.66}
    assert beyond_the_roofline([record, {**record, "explained_share": 1.0}, {"cell": "old"}]) == ["torch/bert-base"]


def test_committed_results_name_no_private_places():
    for path in FILES:
        if path.suffix in (".json", ".jsonl", ".csv", ".md"):
            assert not PRIVATE.search(path.read_text()), path
        if path.suffix == ".gz":
            assert not PRIVATE.search(gzip.decompress(path.read_bytes()).decode()), path
