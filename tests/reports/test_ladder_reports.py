"""What a report shows of a run's ladders: each folder's own, and no rung among what is advised."""

from __future__ import annotations

import json

from doubles.ladders import samples
from doubles.reported import record, write_run

import runner
from analysis import ladders, modes, select
from analysis.points import Points
from commands import report
from records import jsonfiles
from reports import brief, sections
from reports.ladder import table
from reports.report_data import ReportData


def jax_run(folder, scale=1.0, **columns):
    """A run of JAX's rungs, of which one that nobody deploys is the fastest."""
    times = {"eager": 8.0 * scale, "jit-blocks": 4.0, "jit-unfused": 0.5, "jit": 2.0}
    of_jax = {"framework": "jax", "run_id": "a-run", **columns}

    def renamed(row: dict) -> dict:
        return row | of_jax | {"cell": row.cell.replace("alpha/", "jax/")}

    rows = [renamed(record("alpha", mode, latency=ms, baseline=mode == "eager")) for mode, ms in times.items()]
    write_run(folder, rows)
    entries = [entry | {"cell": entry["cell"].replace("alpha/", "jax/")} for entry in samples(times, noise=0.01)]
    (folder / "samples.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return rows


def test_a_report_shows_the_ladder_and_advises_no_rung(tmp_path, capsys):
    rows = jax_run(tmp_path / "run")
    assert runner.main(["report", str(tmp_path / "run")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "From eager to jit: 8 to 2 ms, 4.0" in printed and "jax jax.jit(function) 2 1 %" in printed
    for name in ("report.md", "report.html", "summary.md"):
        text = (tmp_path / "run" / name).read_text()
        assert "jit-unfused" in text and "The largest step is jit-unfused" in text, name
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.count("<rect") == len(rows) and "What each step brings" in page
    summary = (tmp_path / "run" / "summary.md").read_text()
    assert len(summary.splitlines()) <= brief.MOST_LINES


def tops(*folders) -> list[tuple]:
    """Eager's milliseconds, and what all rungs bring together, by the ladders of a report on these folders."""
    source = report.read(list(map(str, folders)))
    found = list(source.ladders(select.combined(source.records)))
    return [(ladder.rungs[0].median_ms, round(ladder.end_to_end.value, 1)) for ladder in found]


def test_a_ladder_takes_its_own_folder_s_records_and_samples_whatever_runs_are_called(tmp_path):
    """As of two reproductions of one table, whose parts have the same names."""
    for name, scale in (("a", 1.0), ("b", 3.0)):
        jax_run(tmp_path / name / "gpu", scale, machine_id=name)
    assert tops(tmp_path / "a", tmp_path / "b") == [(8.0, 4.0), (24.0, 12.0)]
    assert tops(tmp_path / "b", tmp_path / "a") == [(24.0, 12.0), (8.0, 4.0)]


def test_a_folder_that_was_put_together_of_two_runs_keeps_its_ladder(tmp_path):
    run = tmp_path / "run"
    rows = jax_run(run)
    rows = [*rows[:2], *(row | {"run_id": "later"} for row in rows[2:])]
    (run / "records.jsonl").write_text("".join(json.dumps(row.to_row()) + "\n" for row in rows))
    assert tops(run) == [(8.0, 4.0)]
    runner.main(["report", str(run), "--gather", str(tmp_path / "all.csv")])
    gathered = jsonfiles.lines(tmp_path / "all.samples.jsonl.gz")
    whose = {entry["cell"].rpartition("/")[2]: entry["run_id"] for entry in gathered}
    assert whose == {"eager": "a-run", "jit-blocks": "a-run", "jit-unfused": "later", "jit": "later"}


def test_without_rungs_or_samples_there_is_no_ladder(tmp_path):
    jax_run(tmp_path / "run")
    (tmp_path / "run" / "samples.jsonl").unlink()
    records = ladders.Run(tmp_path / "run").records()
    (bare,) = ladders.of_run(tmp_path / "run", records)
    assert [step.ratio for step in bare.steps] == [None] * 3 and len(table(bare).rows) == 4
    usual = [row for row in records if row.mode in ("eager", "jit")]
    assert ladders.of_run(tmp_path / "run", usual) == []
    rung, arm = (usual[0] | {"framework": "torch", "mode": mode} for mode in ("dynamo", "cudagraphs"))
    assert ladders.is_rung(rung)
    assert not ladders.is_rung(arm)  # an experiment's, in no ladder
    data = ReportData(Points(usual), known=modes.labels())
    assert "ladder" not in [section.key for section in sections.build(data)]
