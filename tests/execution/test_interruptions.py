"""Resumed, interrupted and killed runs, through the real command line and real workers of the fake framework.

What was finished is kept as it is, no worker goes on, and the run can be completed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from doubles.suite import PATIENCE, SILENCE, TINY, Finished, alive, processes_naming, wait_for

import runner
from execution.worker_run import WorkerRun
from measurement.cells import Effective
from measurement.checked import data_of
from measurement.protocol import Hello
from plan.plan import Group
from records.cell_result import Kept
from records.runs import Run
from records.statuses import MEASURED

pytestmark = pytest.mark.slow


def test_resume_runs_what_is_missing_and_touches_nothing_else(run, suite):
    first = run("--framework", "fake,numpy", "--mode", "eager,graph,unsupported")
    assert first.complete()
    kept = first.lines[:2]  # the fake's eager and graph; its third cell and NumPy's are lost
    torn = first.lines[2][:100]
    (first.folder / "records.jsonl").write_bytes(b"".join(kept) + torn)

    words = ("--resume", str(first.folder), "--python", sys.executable)
    planned = suite.bench(first.folder, *words, "--dry-run")
    assert "4 cells, 2 of them finished" in planned.output
    again = suite.bench(first.folder, *words)
    assert again.code == 0
    assert again.lines[:2] == kept
    assert again.lines[2] == torn + b"\n"  # spoils itself alone
    records = [json.loads(line) for line in (*again.lines[:2], *again.lines[3:])]
    assert sorted(record["cell"] for record in records) == sorted(again.planned)
    assert len(again.rows()) == 4
    measured = [record["cell"] for record in records if record["status"] in MEASURED]
    samples = [entry["cell"] for entry in Run(first.folder).samples()]
    assert not (first.folder / "samples.jsonl").exists()
    assert set(samples) >= set(measured)  # and the peak benchmarks'
    assert samples.count(measured[0]) > records[0]["launches"]  # eager again, for what was lost to be compared with

    nothing = suite.bench(first.folder, *words)
    assert nothing.code == 0
    assert nothing.lines == again.lines


def test_resume_takes_no_other_values_than_the_run_was_begun_with(run, capsys):
    """Else a run would hold cells of two plans, or of two interpreters."""
    first = run("--framework", "numpy", "--mode", "eager", "--dtype", "fp32")
    lines, again = first.lines, ["bench", "--resume", str(first.folder), "--python"]
    for flag, value in (("--batch", "64"), ("--mode", "eager,graph")):
        assert runner.main([*again, sys.executable, flag, value]) == 2
        assert f"omit {flag.strip('-').upper()}, or start a new run" in capsys.readouterr().err
    assert runner.main([*again, "/usr/bin/another"]) == 2
    assert f"PYTHON={sys.executable}" in capsys.readouterr().err
    assert runner.main([*again, sys.executable, "--framework", "numpy"]) == 0
    assert first.lines == lines


def test_resume_goes_on_with_the_run_s_own_interpreter(run, suite):
    folder = suite.folder / "results/runs/own interpreter"
    run("--framework", "fake", "--mode", "eager,graph", "--out", str(folder))
    (folder / "records.jsonl").write_bytes(Finished(0, "", folder).lines[0])
    again = suite.bench(folder, "--resume", folder.name)
    assert again.code == 0, again.output
    again = Finished(again.code, again.output, folder)
    assert again.complete()
    assert json.loads((folder / "machine.json").read_text())["python"] == sys.executable


def test_interrupted_run_stops_its_workers_and_can_be_resumed(suite, tmp_path):
    """Ctrl-C while a worker samples and ignores the polite signal; a cell before it is finished."""
    notes = tmp_path / "notes"
    words = (*TINY, "--framework", "numpy,fake", "--mode", "eager,hang")
    process = suite.begin(*words, "--python", sys.executable, environment={"FAKE_NOTES": str(notes)})
    wait_for(notes.exists, process)
    worker, child = map(int, notes.read_text().split())
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)

    assert process.returncode == 130, output
    assert "Traceback" not in output
    wait_for(lambda: not alive(worker) and not alive(child))
    (advice,) = [line for line in output.splitlines() if "RESUME=" in line]
    name = advice.partition("RESUME=")[2].split()[0]
    folder = suite.folder / "results/runs" / name
    stopped = Finished(process.returncode, output, folder)
    assert [(r["framework"], r["status"] in MEASURED) for r in stopped.records] == [("numpy", True)]
    assert len(stopped.rows()) == 1
    kept = stopped.lines
    assert not list((folder / "processes").glob("cache*"))

    resumed = suite.bench(folder, "--resume", name, "--python", sys.executable, "--timeout", SILENCE)
    assert resumed.code == 3  # of a run with a cell that hangs
    assert resumed.lines[:1] == kept
    assert resumed.complete()
    assert resumed.record("hang")["status"] == "timeout"


def kept_batches(folder: Path) -> list[int]:
    """The batch sizes whose first launch was finished, in order."""
    lines = (folder / "processes/reports.jsonl").read_text().splitlines()
    cells = [json.loads(line)["cell"] for line in lines]
    return [int(cell.partition("batch_size=")[2].split(",")[0]) for cell in cells if "batch_size=" in cell]


def assert_no_launch_is_measured_twice(suite, folder: Path) -> None:
    """Go on with the run: it completes, and takes over the launches that were done."""
    before = Run(folder).samples()
    resumed = suite.bench(folder, "--resume", str(folder))
    assert resumed.code == 0, resumed.output
    assert resumed.complete()
    after = Run(folder).samples()
    assert after[: len(before)] == before
    launches = [(entry["cell"], entry["launch"]) for entry in after]
    assert len(set(launches)) == len(launches)
    assert not (folder / "processes/reports.jsonl").exists()


@pytest.mark.parametrize(("trap", "handler"), [("trap '' HUP; ", "1"), ("", "interrupt")])
def test_a_hang_up_interrupts_unless_nohup_ignores_it(root, trap, handler):
    command = f'{trap}exec "$0" -c \'import runner, signal; runner.stop_politely(); '
    command += 'print(*(getattr(signal.getsignal(s), "__name__", 1) for s in (signal.SIGHUP, signal.SIGTERM)))\''
    heard = lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)  # noqa: E731 - the tests themselves may run under nohup
    words = ["sh", "-c", command, sys.executable]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True, preexec_fn=heard)
    assert done.stdout.split() == [handler, "interrupt"]


def test_finished_shapes_are_kept_and_a_signal_that_comes_twice_loses_nothing(suite, tmp_path):
    """NumPy's worker goes on with its second shape, and with the peaks after it, when the first signal comes.

    Job schedulers send SIGTERM when a job's time is up. The second comes while records are
    written, as where a scheduler signals a whole group and make passes it on.
    """
    out = tmp_path / "run"
    words = (*TINY, "--framework", "numpy", "--batch", "1,2", "--budget", "1.5", "--out", str(out))
    process = suite.begin(*words)
    wait_for((out / "samples.jsonl").exists, process)
    while process.poll() is None:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.01)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert kept_batches(out)[:1] == [2]  # the larger batch goes first
    finished, begun = len(Run(out).records()), len(set(kept_batches(out)))
    assert f"Stopped. {finished} of 2 cells, and processes of {begun} more, kept in {out}." in output
    samples = out / "samples.jsonl"
    whole = samples.read_bytes()
    assert whole
    samples.write_bytes(whole[:-20])  # as if killed within the line, after the report was kept
    assert_no_launch_is_measured_twice(suite, out)
    assert all(json.loads(line) in Run(out).samples() for line in whole.splitlines())


def test_half_a_group_is_measured_again(run, suite, report):
    """Its modes must be timed alternately in one process, so what one of them has of a launch is of no use."""
    first = run("--framework", "fake", "--mode", "eager,graph")
    records = first.folder / "records.jsonl"
    eager, graph = (json.loads(line)["cell"] for line in first.lines)
    outputs = next(first.folder.glob("processes/*/outputs/*.npz"))
    second = report([1e3] * 10, cell=eager, process=0, worker="0001", outputs=str(outputs))
    kept = Kept(eager, "2000-01-01T00:00:00Z", hello=Hello({}, Effective()), report=second)
    (first.folder / "processes/reports.jsonl").write_text(json.dumps(data_of(kept)) + "\n")
    records.write_bytes(b"")
    again = suite.bench(first.folder, "--resume", str(first.folder), "--python", sys.executable)
    assert again.code == 0, again.output
    assert {record["cell"] for record in again.records} == {eager, graph}
    for record in again.records:
        assert record["launches"] == 3
        assert record["latency_ms_median"] < 1e3  # not the kept report's


def test_killed_runner_leaves_finished_records_and_no_worker(suite, tmp_path):
    """A record is on disk as soon as its shape is finished; a worker whose parent is gone ends by itself."""
    out = tmp_path / "run"
    words = (*TINY, "--framework", "fake", "--mode", "eager", "--batch", "1,2", "--isolate", "--out", str(out))
    process = suite.begin(*words, "--python", sys.executable)
    records = out / "records.jsonl"
    wait_for(lambda: records.exists() and records.stat().st_size, process)
    process.kill()
    process.communicate()
    kept = Finished(-9, "", out).lines
    assert kept
    wait_for(lambda: not processes_naming(str(out)))

    resumed = suite.bench(out, "--resume", str(out), "--python", sys.executable)
    assert resumed.code == 0
    first = json.loads(kept[0])  # judged again by the speed that the host's core had over the whole run
    assert [first["started_at"]] == [row["started_at"] for row in resumed.records if row["cell"] == first["cell"]]
    assert resumed.complete()


def test_a_worker_that_dies_while_it_imports_is_tried_once_more(run, tmp_path):
    """As where the system ran out of memory for a moment; a framework that cannot be imported dies again."""
    words = ("--framework", "fake", "--mode", "eager,graph")
    once = run(*words, environment={"FAKE_IMPORT": str(tmp_path / "died")})
    assert once.complete()
    assert (tmp_path / "died").exists()
    assert {record["status"] for record in once.records} <= set(MEASURED)
    always = run(*words, environment={"FAKE_IMPORT": "dies"})
    assert {record["status"] for record in always.records} == {"crash"}
    assert len(list(always.folder.glob("processes/0*"))) == 2


@pytest.mark.parametrize(
    ("greeted", "at_work", "blamed"),
    [(False, "", {"a", "b"}), (True, "", {"a", "b"}), (True, "b", {"b"})],
    ids=["importing", "imported", "at work"],
)
def test_whom_a_death_before_any_result_is_blamed_on(greeted, at_work, blamed, cell, tmp_path):
    """A worker that was killed after it told what it runs on and before it began a cell has tried none of them."""
    cells = tuple(cell(mode=mode) for mode in ("a", "b"))
    names = {one.id: one.mode for one in cells}
    (tmp_path / "marker").write_text("".join(name for name, mode in names.items() if mode == at_work).ljust(512))
    worker_run = WorkerRun(tmp_path, 0, {}, hello=Hello({}, Effective(), {}, None) if greeted else None)
    assert worker_run.died_at_start == (not at_work)
    assert {names[one] for one in worker_run.culprits([Group(cells, frozenset(names))])} == blamed
