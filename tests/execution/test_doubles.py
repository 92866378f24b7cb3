"""A fifth framework whose modes misbehave, through the real command line and real workers.

Whatever a mode does, it costs its own cell and nothing else, and every planned cell ends in exactly one record.
"""

from __future__ import annotations

import csv
import filecmp
import json
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.suite import APPENDED, CODE, REGISTERED, SILENCE, TINY, Finished, processes_naming

from measurement.profiles import PROFILES
from records import record as schema

pytestmark = pytest.mark.slow

MEASURED = schema.MEASURED

# mode -> its status, what its reason says, and what the end of the worker's output shows.
EXPECTED = {
    "eager": (MEASURED, "", ""),
    "graph": (MEASURED, "", ""),
    "ahead-of-time": (MEASURED, "", ""),
    "prints": (MEASURED, "", ""),
    "wrong-weight": (("mismatch",), "Outputs differ from numpy's by up to", ""),
    "constant": (("mismatch",), "Outputs differ from numpy's by up to", ""),
    "unsynchronized": (("error",), "synchronize returned before", ""),
    "two-threads": (MEASURED, "", ""),
    "recompiles": (MEASURED, "", ""),
    "another-program": (MEASURED, "", ""),
    "unlistable": (MEASURED, "", ""),
    "silent-fallback": (("unsupported",), "silent-fallback did not capture the whole model", ""),
    "disguised": (("unsupported",), "disguised reports a whole graph but captured or compiled nothing", ""),
    "unsupported": (("unsupported",), "Fake has no such mode on this machine.", ""),
    "oom": (("oom",), "MemoryError: cannot allocate 1 TiB", "MemoryError: cannot allocate 1 TiB"),
    "raises": (("error",), "RuntimeError: kernel launch failed", "the framework's own last words"),
    "poisons": (("error",), "RuntimeError: an illegal memory access", "RuntimeError: an illegal memory access"),
    "rubbish": (MEASURED, "", ""),  # it stands in the worker's log
    "half-message": (("error",), "with wrong content: cell is missing", "half-message: first call"),
    "crash": (("crash",), "killed by SIGKILL", "terminate called without an active exception"),
    "hang": (("timeout",), f"was silent for {SILENCE} s", "waiting for a lock"),
}


@pytest.fixture(scope="session")
def everything(run) -> Finished:
    """All modes of the fake in one group, with NumPy after it."""
    return run("--framework", "fake,numpy", "--mode", ",".join(EXPECTED), "--timeout", SILENCE)


def test_loading_is_timed_apart_from_the_first_call(everything):
    record = everything.record("ahead-of-time")
    assert record["load_s"] >= 0.05
    assert everything.record("graph")["load_s"] is None


def test_a_fifth_framework_is_one_folder_and_one_line(suite):
    """What the fixture did, but for what saves time, is all that it takes; the other tests here show that it works."""
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
    assert set(changed) == set(APPENDED)
    before, after = ((folder / "frameworks/__init__.py").read_text() for folder in (ROOT, suite.folder))
    assert after == f"{before}{REGISTERED}\n"


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
    assert everything.code == 3  # not all that was planned was measured
    assert everything.complete()
    for record in (everything.record("eager"), everything.record("graph"), everything.record("eager", "numpy")):
        assert record["latency_ms_median"] > 0
        # The very code of the reference; BLAS may sum in another order on another number of threads.
        assert record["parity_max_abs_err"] < 1e-6
        assert record["parity_reference"] == "numpy"
    # Measured in one process with the eager mode, although the workers of both were killed again and again.
    assert everything.record("graph")["speedup_ci_low"] > 0
    assert everything.record("graph")["break_even_calls"] is None or everything.record("graph")["break_even_calls"] >= 0


def test_compiling_while_sampled_is_flagged(everything):
    assert "recompiled" in everything.record("recompiles")["flags"].split(";")
    assert "recompiled" not in (everything.record("eager")["flags"] or "").split(";")


def test_a_second_thread_is_flagged(everything):
    assert "threads_exceeded" in everything.record("two-threads")["flags"].split(";")
    assert "threads_exceeded" not in (everything.record("eager")["flags"] or "").split(";")


@pytest.mark.parametrize("mode", ["wrong-weight", "constant"])
def test_wrong_outputs_are_not_compared(everything, mode):
    """`constant` would be the fastest mode of all."""
    record = everything.record(mode)
    assert record["latency_ms_median"] > 0
    assert record["speedup_vs_eager"] is record["speedup_ci_low"] is record["break_even_calls"] is None


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
        for log in everything.folder.glob("processes/*/worker.log")
    )


def test_what_is_no_message_stays_in_their_log(everything):
    assert any(
        b"no message on the results pipe: b'Compiling 3 kernels...'" in log.read_bytes()
        for log in everything.folder.glob("processes/*/worker.log")
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
    assert warm.complete()
    settings = json.loads(warm.record("graph")["settings"])
    assert settings["found_in_cache"] == ["graph"]
    assert not Path(settings["cache"]).exists()


def test_later_launches_load_what_the_first_compiled(everything):
    graph, eager = everything.record("graph"), everything.record("eager")
    assert graph["launches"] == 3
    assert graph["first_call_s"] > 0  # of the launch that compiled
    assert graph["first_call_loaded_s"] > 0  # of those after it
    assert eager["first_call_loaded_s"] in (None, "")  # which compiles nothing


def test_a_crash_leaves_other_shapes_alone(run):
    crashed = run("--framework", "fake", "--mode", "eager,graph,crash", "--batch", "1,2")
    assert crashed.complete()
    for record in crashed.records:
        assert record["status"] in (("crash",) if record["mode"] == "crash" else MEASURED)


def test_launches_of_a_longer_profile_are_fresh_processes(run):
    standard = run("--framework", "fake", "--mode", "eager,graph,crash", "--profile", "standard", "--budget", "0.3")
    assert standard.complete()
    assert (
        standard.record("graph")["launches"]
        == standard.record("eager")["launches"]
        == PROFILES["standard"].minimum_processes
    )
    assert standard.record("graph")["speedup_ci_low"] > 0
    assert standard.record("crash")["status"] == "crash"


@pytest.mark.parametrize(
    ("environment", "status", "reason"),
    [
        ({"FAKE_IMPORT": "raises"}, "error", "ImportError: libfake.so.1: cannot open shared object file"),
        ({"FAKE_IMPORT": "dies"}, "crash", "killed by SIGSEGV"),
        ({"FAKE_CANARY": "broken"}, "unsupported", "the smoke test's 'ones' returned wrong values"),
        ({"FAKE_THREADS": "2"}, "unsupported", "set to 1 intra-op threads but reports 2"),
        ({"FAKE_CANARY": "broken"}, "unsupported", ": this fake has kernels for sm_1; a fake for this device is on"),
    ],
)
def test_a_framework_that_cannot_start_costs_its_own_cells(run, environment, status, reason):
    broken = run("--framework", "fake,numpy", "--mode", "eager,graph", environment=environment)
    assert broken.code == (0 if status == "unsupported" else 3)
    assert broken.complete()
    for mode in ("eager", "graph"):
        assert broken.record(mode)["status"] == status
        assert reason in broken.record(mode)["reason"]
    assert broken.record("eager", "numpy")["status"] in MEASURED


def test_a_family_that_is_promised_and_not_there_compares_in_a_sentence(suite, tmp_path):
    out = tmp_path / "run"
    words = (
        "--framework",
        "fake",
        "--workload",
        "stream",
        "--elements",
        "8",
        "--mode",
        "eager,graph",
        "--threads",
        "1",
    )
    finished = suite.bench(out, *words, "--budget", "0.1", "--python", sys.executable, "--out", str(out))
    assert finished.code == 3  # nothing was measured
    assert finished.complete()
    for mode in ("eager", "graph"):
        assert finished.record(mode)["status"] == "unsupported"
        assert finished.record(mode)["reason"].startswith("Fake has no plain model of the family stream")


def test_force_measures_in_spite_of_the_canary(run):
    forced = run("--framework", "fake", "--mode", "graph", "--force", environment={"FAKE_CANARY": "broken"})
    assert forced.record("graph")["latency_ms_median"] > 0
    assert forced.record("graph")["status"] == "mismatch"  # and parity sees what the smoke test saw


def test_a_framework_without_an_environment_costs_its_own_cells(suite, tmp_path):
    """The fake has no locked requirements, and here no interpreter is named."""
    out = tmp_path / "run"
    finished = suite.bench(out, *TINY, "--framework", "fake,numpy", "--mode", "eager", "--out", str(out))
    assert finished.code == 3
    assert finished.complete()
    assert finished.record("eager")["status"] == "error"
    assert "no locked requirements for 'fake'" in finished.record("eager")["reason"]
    assert finished.record("eager", "numpy")["status"] in MEASURED
