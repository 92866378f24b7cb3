"""A fifth framework whose modes misbehave, through the real command line and real workers.

Whatever a mode does, it costs its own cell and nothing else, and every planned cell ends in exactly one record.
"""

from __future__ import annotations

import csv
import filecmp
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.suite import CODE, TINY, Finished, Suite, copy_with_fake, processes_naming

from measurement import schema

pytestmark = pytest.mark.xdist_group("doubles")
MEASURED = schema.MEASURED
SILENCE = "8"  # seconds; more than a worker needs to start on a busy machine
# mode -> its status, what its reason says, and what the end of the worker's output shows.
EXPECTED = {
    "eager": (MEASURED, "", ""),
    "graph": (MEASURED, "", ""),
    "prints": (MEASURED, "", ""),
    "wrong-weight": (("mismatch",), "Outputs differ from numpy's by up to", ""),
    "constant": (("mismatch",), "Outputs differ from numpy's by up to", ""),
    "silent-fallback": (("unsupported",), "silent-fallback did not capture the whole model", ""),
    "unsupported": (("unsupported",), "Fake has no such mode on this machine.", ""),
    "oom": (("oom",), "MemoryError: cannot allocate 1 TiB", "MemoryError: cannot allocate 1 TiB"),
    "raises": (("error",), "RuntimeError: kernel launch failed", "the framework's own last words"),
    "poisons": (("error",), "RuntimeError: an illegal memory access", "RuntimeError: an illegal memory access"),
    "rubbish": (("crash",), "no message on its results pipe: b'Compiling 3 kernels...'", "rubbish: first call"),
    "half-message": (("crash",), "half a message", "half-message: first call"),
    "crash": (("crash",), "killed by SIGKILL", "terminate called without an active exception"),
    "hang": (("timeout",), f"no sign of life for {SILENCE} s", "waiting for a lock"),
}


@pytest.fixture(scope="session")
def suite(tmp_path_factory) -> Suite:
    """The suite with the fake registered."""
    return copy_with_fake(tmp_path_factory.mktemp("suite"))


@pytest.fixture(scope="session")
def run(suite, tmp_path_factory):
    """Run `bench` over tiny cells in this interpreter, in a folder of its own."""

    def bench(*words: str, environment: dict[str, str] | None = None) -> Finished:
        out = tmp_path_factory.mktemp("runs") / "run"
        words = (*TINY, "--python", sys.executable, "--timeout", SILENCE, "--out", str(out), *words)
        return suite.bench(out, *words, environment=environment)

    return bench


@pytest.fixture(scope="session")
def everything(run) -> Finished:
    """All modes of the fake in one group, with NumPy after it."""
    return run("--framework", "fake,numpy", "--mode", "all")


def complete(finished: Finished) -> bool:
    """Whether every planned cell has exactly one record, each fits the schema, and the CSV holds the same."""
    names = [record["cell"] for record in finished.records]
    assert sorted(names) == sorted(finished.planned), finished.output
    assert [schema.problem(record) for record in finished.records] == [None] * len(names)
    assert [row["cell"] for row in finished.rows()] == names
    return True


def test_a_fifth_framework_is_one_folder_and_one_line(suite):
    """What the fixture did is all that it takes; the other tests here show that it works."""
    new, changed = [], []
    for path in suite.folder.rglob("*"):
        part = path.relative_to(suite.folder)
        if path.is_dir() or part.parts[0] not in CODE or "__pycache__" in part.parts:
            continue
        if not (ROOT / part).exists():
            new.append(part.parts[:2])
        elif not filecmp.cmp(path, ROOT / part, shallow=False):
            changed.append(str(part))
    assert set(new) == {("frameworks", "fake")}
    assert changed == ["frameworks/__init__.py"]
    before, after = ((folder / "frameworks/__init__.py").read_text().splitlines() for folder in (ROOT, suite.folder))
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_command_line_knows_the_fifth_framework(run):
    for words, hint in ((("--framework", "fakee"), "'fake'"), (("--mode", "silent-fallbak"), "'silent-fallback'")):
        refused = run(*words)
        assert refused.code == 2
        assert f"did you mean {hint}?" in refused.output
        assert not refused.folder.exists()


def test_doubles_cover_every_mode(everything):
    assert {record["mode"] for record in everything.records if record["framework"] == "fake"} == set(EXPECTED)


@pytest.mark.parametrize("mode", EXPECTED)
def test_every_mode_ends_as_it_should(everything, mode):
    statuses, reason, tail = EXPECTED[mode]
    record = everything.record(mode)
    assert record["status"] in statuses
    assert reason in (record["reason"] or "")
    assert tail in (record["stderr_tail"] or "")
    assert record["status"] not in MEASURED or record["reason"] is None


def test_everything_else_is_measured(everything):
    assert everything.code == 0
    assert complete(everything)
    for record in (everything.record("eager"), everything.record("graph"), everything.record("eager", "numpy")):
        assert record["latency_ms_median"] > 0
        assert record["parity_max_abs_err"] == 0  # the very code of the oracle
        assert record["parity_reference"] == "numpy"
    # Measured in one process with the eager mode, although the workers of both were killed again and again.
    assert everything.record("graph")["speedup_ci_low"] > 0
    assert everything.record("graph")["break_even_calls"] is None or everything.record("graph")["break_even_calls"] >= 0


def test_missing_is_empty_in_the_csv(everything):
    with open(everything.folder / "results.csv", newline="") as file:
        assert next(csv.reader(file)) == list(schema.NAMES)
    for record, row in zip(everything.records, everything.rows(), strict=True):
        for name, value in record.items():
            assert (row[name] == "") == (value is None)
        if record["status"] in ("crash", "timeout", "error", "oom", "unsupported"):
            assert row["latency_ms_median"] == row["speedup_vs_eager"] == row["graphs"] == ""


def test_what_workers_print_stays_in_their_log(everything):
    assert "a warning that nobody asked for" not in everything.output
    assert any(
        b"a warning that nobody asked for" in log.read_bytes()
        for log in everything.folder.glob("launches/*/worker.log")
    )


def test_no_process_is_left(everything):
    assert processes_naming(str(everything.folder)) == []


def test_compile_caches_are_private_empty_and_removed(everything):
    settings = [json.loads(record["settings"]) for record in everything.records if record["settings"]]
    fake = [entry for entry in settings if "cache" in entry]
    assert fake
    for entry in fake:
        assert Path(entry["cache"]).is_relative_to(everything.folder)
        assert not Path(entry["cache"]).exists()
        assert entry["found_in_cache"] == []  # though workers that died before had left something there


def test_warm_cache_is_filled_beforehand_and_removed(run):
    warm = run("--framework", "fake", "--mode", "eager,graph", "--compile-cache", "warm")
    assert complete(warm)
    settings = json.loads(warm.record("graph")["settings"])
    assert settings["found_in_cache"] == ["graph"]
    assert not Path(settings["cache"]).exists()


def test_a_crash_leaves_other_shapes_alone(run):
    crashed = run("--framework", "fake", "--mode", "eager,graph,crash", "--batch", "1,2")
    assert complete(crashed)
    for record in crashed.records:
        assert record["status"] in (("crash",) if record["mode"] == "crash" else MEASURED)


def test_launches_of_a_longer_profile_are_fresh_processes(run):
    standard = run("--framework", "fake", "--mode", "eager,graph,crash", "--profile", "standard", "--budget", "0.3")
    assert complete(standard)
    assert standard.record("graph")["launches"] == standard.record("eager")["launches"] == 3
    assert standard.record("graph")["speedup_ci_low"] > 0
    assert standard.record("crash")["status"] == "crash"


@pytest.mark.parametrize(
    ("environment", "status", "reason"),
    [
        ({"FAKE_IMPORT": "raises"}, "error", "ImportError: libfake.so.1: cannot open shared object file"),
        ({"FAKE_IMPORT": "dies"}, "crash", "killed by SIGSEGV"),
        ({"FAKE_CANARY": "broken"}, "unsupported", "the canary operator 'ones' returned wrong values"),
    ],
)
def test_a_framework_that_cannot_start_costs_its_own_cells(run, environment, status, reason):
    broken = run("--framework", "fake,numpy", "--mode", "eager,graph", environment=environment)
    assert broken.code == 0
    assert complete(broken)
    for mode in ("eager", "graph"):
        assert broken.record(mode)["status"] == status
        assert reason in broken.record(mode)["reason"]
    assert broken.record("eager", "numpy")["status"] in MEASURED


def test_force_measures_in_spite_of_the_canary(run):
    forced = run("--framework", "fake", "--mode", "graph", "--force", environment={"FAKE_CANARY": "broken"})
    assert forced.record("graph")["status"] in MEASURED


def test_a_framework_without_an_environment_costs_its_own_cells(suite, tmp_path):
    """The fake has no locked requirements, and here no interpreter is named."""
    out = tmp_path / "run"
    finished = suite.bench(out, *TINY, "--framework", "fake,numpy", "--mode", "eager", "--out", str(out))
    assert finished.code == 0
    assert complete(finished)
    assert finished.record("eager")["status"] == "error"
    assert "no locked requirements for 'fake'" in finished.record("eager")["reason"]
    assert finished.record("eager", "numpy")["status"] in MEASURED


def test_budget_must_be_a_time(run):
    refused = run("--budget", "0")
    assert refused.code == 2
    assert "BUDGET is a number of seconds above 0" in refused.output


def test_resume_runs_what_is_missing_and_touches_nothing_else(run, suite):
    first = run("--framework", "fake,numpy", "--mode", "eager,graph,unsupported")
    assert complete(first)
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

    nothing = suite.bench(first.folder, *words)
    assert nothing.code == 0
    assert nothing.lines == again.lines


def test_interrupted_run_stops_its_workers_and_can_be_resumed(suite, tmp_path):
    """Ctrl-C while a worker samples and ignores the polite signal; two cells before it are finished."""
    notes = tmp_path / "notes"
    words = (*TINY, "--framework", "numpy,fake", "--mode", "eager,hang", "--batch", "1,2")
    process = subprocess.Popen(
        suite.command(*words, "--python", sys.executable),
        cwd=suite.folder,
        env={**os.environ, "FAKE_NOTES": str(notes)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
    wait_for(notes.exists, process)
    worker, child = map(int, notes.read_text().split())
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=30)

    assert process.returncode == 130, output
    assert "Traceback" not in output
    wait_for(lambda: not alive(worker) and not alive(child))
    (advice,) = [line for line in output.splitlines() if "RESUME=" in line]
    name = advice.partition("RESUME=")[2].split()[0]
    folder = suite.folder / "results/runs" / name
    stopped = Finished(process.returncode, output, folder)
    assert [(r["framework"], r["status"] in MEASURED) for r in stopped.records] == [("numpy", True)] * 2
    assert len(stopped.rows()) == 2
    kept = stopped.lines
    assert not (folder / "launches/cache").exists()

    resumed = suite.bench(folder, "--resume", name, "--python", sys.executable, "--timeout", SILENCE)
    assert resumed.code == 0
    assert resumed.lines[:2] == kept
    assert complete(resumed)
    assert {r["status"] for r in resumed.records if r["mode"] == "hang"} == {"timeout"}


def test_finished_shapes_of_an_interrupted_worker_are_kept(suite, tmp_path):
    """NumPy's worker goes on with its second shape, and with the peaks after it, when Ctrl-C comes."""
    out = tmp_path / "run"
    words = (*TINY, "--framework", "numpy", "--batch", "1,2", "--budget", "3", "--out", str(out))
    process = subprocess.Popen(
        suite.command(*words), cwd=suite.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        process_group=0,
    )  # fmt: skip
    wait_for((out / "samples.jsonl").exists, process)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    assert [record["batch_size"] for record in Finished(130, output, out).records] == [1]


def test_killed_runner_leaves_finished_records_and_no_worker(suite, tmp_path):
    """A record is on disk as soon as its shape is finished; a worker whose parent is gone ends by itself."""
    out = tmp_path / "run"
    words = (*TINY, "--framework", "fake", "--mode", "eager", "--batch", "1,2", "--budget", "3", "--out", str(out))
    process = subprocess.Popen(
        suite.command(*words, "--python", sys.executable), cwd=suite.folder, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    wait_for((out / "records.jsonl").exists, process)
    process.kill()
    process.communicate()
    kept = Finished(-9, "", out).lines
    assert len(kept) == 1
    wait_for(lambda: not processes_naming(str(out)))

    resumed = suite.bench(out, "--resume", str(out), "--python", sys.executable)
    assert resumed.code == 0
    assert resumed.lines[:1] == kept
    assert complete(resumed)


def wait_for(condition, process: subprocess.Popen | None = None, seconds: float = 60) -> None:
    """Return once `condition()` holds; fail when it does not in time, or when `process` has ended before."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def alive(process_id: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
