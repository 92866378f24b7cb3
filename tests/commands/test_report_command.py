"""The command `report`: what it reads, what it refuses, where it writes."""

from __future__ import annotations

import ast
import json
import os
import re

import pytest
from conftest import ROOT
from doubles.reported import elsewhere, profile, record, small_set, write_run

import runner
from analysis import facts, select
from analysis.points import COLUMNS_READ, Points
from plan.sweep import DTYPES
from records import figures, jsonfiles, manifest, recordfile
from records.record import FIELDS
from records.recordfile import write_csv
from records.runs import Run


def run(capsys, *words) -> tuple[int, str, str]:
    code = runner.main(["report", *map(str, words)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_filters_of_the_command_line(tmp_path, capsys):
    folder = write_run(tmp_path / "run", small_set())
    code, _, _ = run(capsys, folder, "--framework", "beta", "--out", tmp_path / "other")
    assert (code, (folder / "report.md").exists()) == (0, False)
    text = (tmp_path / "other" / "report.md").read_text()
    assert "beta graph" in text and "alpha" not in text and "(FRAMEWORK=beta)" in text.splitlines()[0]
    for words, sentence in (
        (("--framework", "betta"), "There is no framework in these records 'betta'; did you mean 'beta'?"),
        (("--device", "gpu"), "There is no device in these records 'gpu'"),
        (("--filter", "nothing"), "No cell of a-run matches FILTER=nothing"),
        (("--out", __file__), "cannot be written"),
    ):
        code, _, err = run(capsys, folder, *words)
        assert code == 2 and sentence in err and err.count("\n") == 1


def test_profiles_are_filtered_by_pass_as_records_are(tmp_path, capsys):
    folder = write_run(tmp_path / "run", small_set(), [profile("eager", 0.02), profile("graph", 0.016)])
    assert run(capsys, folder, "--pass", "inference")[0] == 0
    assert "Time by class of kernel" in (folder / "report.md").read_text()
    assert 'name="pass"' not in (folder / "report.html").read_text()


def test_220_cells_of_h200s_make_a_page_of_less_than_400_kb(tmp_path, capsys):
    folders = []
    for name in ("c-short", "c-long", "tensorflow"):
        records = recordfile.load(ROOT / f"tests/runs/h200-{name}" / "records.jsonl").records
        folders += [
            write_run(tmp_path / str(n) / name, [row | {"machine_id": f"{n}abcdef"} for row in records])
            for n in range(5)
        ]
    run(capsys, *folders, "--out", tmp_path)
    page = (tmp_path / "report.html").read_bytes()
    assert b" 220 cells " in page and len(page) < 400 * 1024
    # Runs of one name are named once.
    assert re.search(rb"220 cells .*torch-short, torch-long, tf-long", page)


def test_bad_runs_are_one_sentence(tmp_path, capsys):
    for folder in ("empty", "started"):
        (tmp_path / folder).mkdir()
    (tmp_path / "started" / "start.json").touch()
    (tmp_path / "place" / "table").mkdir(parents=True)
    (tmp_path / "place" / "table" / "start.json").touch()
    (tmp_path / "place" / "README.md").touch()
    (tmp_path / "later.csv").write_text("schema_version,framework,mode,workload,status,cell\n99,a,eager,w,ok,c\n")
    for name, sentence in (
        (tmp_path / "nowhere", "contains no run"),
        (tmp_path / "empty", "contains no run"),
        (tmp_path / "started", "is a run of `make start`: read starts.html"),
        (tmp_path / "place" / "table", f"is a run of `make start`: read {tmp_path}/place/README.md"),
        (tmp_path / "later.csv", "has schema version 99"),
    ):
        code, _, err = run(capsys, name)
        assert code == 2 and sentence in err and "Traceback" not in err


def test_of_a_cell_measured_twice_the_figures_are_over_both_runs(tmp_path, capsys):
    later = record("alpha", "eager", latency=44.0, started_at="2026-02-02T00:00:00Z", run_id="b-run")
    paths = [write_run(tmp_path / "a", [record("alpha", "eager", latency=11.0)]), write_run(tmp_path / "b", [later])]
    code, out, _ = run(capsys, ",".join(map(str, reversed(paths))))
    remark = "1 repeated cell: speedups and latencies combine runs under equal conditions"
    assert code == 0 and remark in " ".join(out.split())
    assert "22" in out  # the geometric mean
    assert (tmp_path / "b" / "report.html").exists() and not (tmp_path / "a" / "report.html").exists()


def test_excluded_runs_and_runs_under_other_conditions_stay_out_of_the_figures_of_a_cell():
    newest = record("alpha", "graph", latency=16.0, started_at="2026-02-02T00:00:00Z")
    newest |= {
        "tf32": False,
        "settings": '{"policies": {"idle": "spin"}, "file": "one"}',
        "versions": '{"triton": "3"}',
    }
    for changes in (
        {"status": "mismatch", "reason": "wrong"},
        {"program": "differs"},
        {"framework_version": "0.9"},
        {"flags": "host_slowed"},
        {"settings": '{"policies": {"idle": "sleep"}, "file": "one"}'},
        {"settings": '{"policies": {"idle": "spin"}, "file": "two"}'},
        {"versions": '{"triton": "4"}'},
        {"versions": None},
        {"tf32": True},
        {"launches": 2},
    ):
        other = newest | {"started_at": "2026-01-01T00:00:00Z"}
        (kept,) = select.combined([newest, other | changes])
        assert kept is newest
        assert select.combined([newest, other])[0] is not newest
    (kept,) = select.combined([newest | {"program": "differs"}, record("alpha", "graph", latency=99.0)])
    assert kept.excluded and kept.median_ms == 16.0


def test_the_interval_of_a_break_even_follows_from_the_combined_figures():
    """The newest run's own does not contain the calls that follow from the figures of both."""
    pair = record("alpha", "eager"), record("alpha", "graph") | {"break_even_low": 1.0, "break_even_high": 2.0}
    later = [one | {"started_at": "2026-02-02T00:00:00Z"} for one in pair]
    (combined,) = facts.pairs(Points(select.combined([*pair, *later])).all)
    low, high = combined.break_even
    assert low < combined.pays_after < high
    (single,) = facts.pairs(Points(select.combined(pair)).all)
    assert single.break_even == (1.0, 2.0)


def test_the_sides_of_a_pair_are_reported_one_by_one(tmp_path, capsys):
    sides = [write_run(tmp_path / "pair" / f"pair-{letter}", small_set()) for letter in "ab"]
    manifest.write(tmp_path / "pair" / manifest.PAIR, {"sides": [None, "python3"], "given": {}})
    for words in ([tmp_path / "pair"], sides):
        code, _, err = run(capsys, *words)
        assert code == 2 and "is a pair of runs (`make ab`), and a report shows one of them: name a side" in err
        assert f"RUN={sides[0]}" in err and err.count("\n") == 1
    assert run(capsys, sides[1])[0] == 0


def test_the_table_is_read_only_where_it_has_all_records(tmp_path, capsys):
    folder = write_run(tmp_path / "run", small_set())
    for rows in (small_set(), small_set()[:-4]):
        write_csv(rows, folder / "results.csv")
        assert run(capsys, folder)[0] == 0
        assert f"{len(small_set())} cells" in (folder / "report.html").read_text()
    (folder / "results.csv").write_text("spoilt by an editor")
    assert run(capsys, folder)[0] == 0
    old = (folder / "records.jsonl").stat().st_mtime - 10
    write_csv([row | {"framework_version": "old"} for row in small_set()], folder / "results.csv")
    os.utime(folder / "results.csv", (old, old))
    assert run(capsys, folder)[0] == 0
    assert "alpha 1.2" in (folder / "report.html").read_text()


def test_a_report_reads_every_column_that_it_looks_at():
    """A column that is not read is no empty value but an error, in whatever report first asks for it."""
    others = {"compare.py", "run_headings.py", "columns.py", "explanation.py"}
    others |= {"starts.py", "streams.py", "rounds.py"}  # of records of their own
    paths = [path for path in (ROOT / "reports").rglob("*.py") if path.name not in others]
    paths += [ROOT / "analysis" / f"{name}.py" for name in ("points", "facts", "settings", "rules")]
    trees = [ast.parse(path.read_text()) for path in (ROOT / "records/record.py", *paths)]
    used = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {node.value for tree in trees[1:] for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    used |= {column for name, columns in figures.COLUMNS.items() if name in used for column in columns}
    asked_for = {name for name, field in FIELDS.items() if field in used}
    assert asked_for - set(COLUMNS_READ) - set(DTYPES) == set()  # a column has the name of a data type
    assert set(COLUMNS_READ) - asked_for - {"run_id"} == set()


def test_gathering_merges_and_its_table_is_reported(tmp_path, capsys):
    rows = small_set()
    a, b = write_run(tmp_path / "a", rows), write_run(tmp_path / "b", elsewhere(rows[:4]))
    Run(a).append_samples({"cell": "x", "launch": 0, "seconds_per_call": [0.1]})
    Run(a).compress_samples()
    Run(b).append_samples({"cell": "y", "launch": 0, "seconds_per_call": [0.2]})  # not finished
    out = tmp_path / "all.csv"
    assert runner.main(["report", str(a), str(b), str(a), "--gather", str(out)]) == 0
    assert f"{len(rows) + 4} records of 2 runs and 2 machines" in capsys.readouterr().out
    assert (tmp_path / "all.schema.json").exists()
    samples = jsonfiles.lines(tmp_path / "all.samples.jsonl.gz")
    assert [(entry["cell"], entry["seconds_per_call"]) for entry in samples] == [("x", [0.1]), ("y", [0.2])]
    assert run(capsys, out)[0] == 0
    assert "Several machines" in (tmp_path / "report.md").read_text()
    assert runner.main(["report", str(a), "--gather", str(tmp_path / "all.txt")]) == 2
    table, torn = out.read_bytes(), a / "samples.jsonl.gz"
    torn.write_bytes(torn.read_bytes()[:-9])
    assert runner.main(["report", str(a), "--gather", str(out)]) == 2
    assert f"{torn} is truncated or was changed" in capsys.readouterr().err and out.read_bytes() == table


@pytest.mark.parametrize(
    ("given", "command"), [({}, "`make bench` · "), ({"batch": "1,8"}, "`make bench BATCH=1,8` · ")]
)
def test_the_summary_begins_with_the_command_also_of_a_run_without_flags(tmp_path, capsys, given, command):
    folder = write_run(tmp_path / "run", small_set())
    assert run(capsys, folder)[0] == 0
    assert "make bench" not in (folder / "summary.md").read_text()
    (folder / "plan.json").write_text(json.dumps({"given": given}))
    assert run(capsys, folder)[0] == 0
    assert (folder / "summary.md").read_text().splitlines()[2].startswith(command)
