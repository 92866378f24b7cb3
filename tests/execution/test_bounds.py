"""What a profile of eager mode bounds, by a framework whose GPU runs two streams for 3 µs of a call."""

from __future__ import annotations

import json
import signal
import sys
from types import SimpleNamespace

import pytest
from doubles import gpus
from doubles.suite import PATIENCE, TINY, processes_naming, wait_for

from execution import bounds
from execution.campaign import Campaign
from measurement import machine
from measurement.peaks import Peaks
from measurement.protocol import Failed, Profiled
from plan import plan, sweep
from plan.plan import Group, profiled

pytestmark = pytest.mark.slow

BUSY_MS = 3e-3


WORDS = (*TINY, "--framework", "fake", "--mode", "eager,graph", "--device", "gpu", "--python", sys.executable)


@pytest.fixture(scope="module")
def measured(suite, tmp_path_factory):
    """Measure eager mode and a graph on the fake's GPU."""

    def bench(compute_mode: str = "Default", **environment: str):
        out = tmp_path_factory.mktemp("runs") / "run"
        path = gpus.install(tmp_path_factory.mktemp("gpus") / "bin", compute_mode)
        environment.setdefault("FAKE_CPUS_FOR_BOTH", "1000")
        return suite.bench(out, *WORDS, "--out", str(out), environment={"PATH": path, **environment})

    return bench


def test_a_replay_is_bounded_by_the_time_in_which_eager_s_device_is_busy(measured):
    """Kernels at work at once count once; the profile's process gives no other figure."""
    run = measured(FAKE_REPLAYS="graph")
    assert run.complete()
    eager, graph = run.record("eager"), run.record("graph")
    assert graph["bound_replay"] == eager["bound_replay"] == pytest.approx(eager["latency_ms_median"] / BUSY_MS)
    assert graph["launches"] == 3
    assert len(list(run.folder.glob("processes/*/job.json"))) == 4
    assert run.output.index("the GPU is idle") < run.output.index(" ms")


def test_a_profile_that_fails_costs_its_bound_alone(measured):
    run = measured(FAKE_REPLAYS="graph", FAKE_PROFILER="raises")
    assert run.complete()
    assert [record["bound_replay"] for record in run.records] == [None, None]
    assert {record["launches"] for record in run.records} == {3}
    assert "no bound: RuntimeError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" in run.output


@pytest.mark.parametrize("profiler", ["", "raises"])
def test_workers_start_while_eager_mode_is_profiled_and_then_get_their_whole_jobs(measured, profiler):
    run = measured(FAKE_REPLAYS="graph", FAKE_PROFILER=profiler, FAKE_CPUS_FOR_BOTH="1")
    assert run.complete()
    files = sorted(run.folder.glob("processes/*/job.json"), key=lambda path: path.stat().st_mtime)
    jobs = [json.loads(path.read_text()) for path in files]
    assert [(job["kind"], job["waits"]) for job in jobs] == [*[("measure", True)] * 3, ("profile", False)]
    profiled = files[3].with_name("worker.log").stat().st_mtime
    given = [path.with_name("complete.json") for path in files[:3]]
    for number, path in enumerate(given):
        whole, waits = json.loads(path.read_text()), jobs[number]
        assert [group.pop("settled") for group in whole["groups"]] == [number > 0]
        assert [group.pop("settled") for group in waits["groups"]] == [False]
        assert (whole["full_speed_s"] is None) == (number == 0)
        assert whole == waits | {"waits": False, "full_speed_s": whole["full_speed_s"]} and whole["process"] == number
        assert profiled <= path.stat().st_mtime < path.with_name("worker.log").stat().st_mtime
    assert ("no bound" in run.output) == bool(profiler)


@pytest.mark.parametrize("failing", ["oom", "crash"])
def test_a_mode_that_fails_while_other_workers_wait_is_tried_again_alone(suite, tmp_path, failing):
    """Those that wait have memory of the device."""
    words = [word.replace("eager,graph", f"eager,graph,{failing}") for word in WORDS]
    environment = {"PATH": gpus.install(tmp_path / "bin"), "FAKE_REPLAYS": "graph", "FAKE_CPUS_FOR_BOTH": "1"}
    run = suite.bench(tmp_path / "run", *words, "--out", str(tmp_path / "run"), environment=environment)
    assert {mode: run.record(mode)["status"] for mode in ("eager", "graph", failing)} == {
        "eager": "ok", "graph": "ok", failing: failing
    }  # fmt: skip
    assert len(list(run.folder.glob("processes/*/complete.json"))) == 1  # then the others ended
    jobs = [json.loads(path.read_text()) for path in sorted(run.folder.glob("processes/*/job.json"))]
    measured = [job for job in jobs if job["kind"] == "measure" and not job["waits"]]
    modes = [[cell["mode"] for group in job["groups"] for cell in group["cells"]] for job in measured]
    every, sound = ["eager", "graph", failing], ["eager", "graph"]
    assert modes == ([every, sound, sound] if failing == "oom" else [every, sound, sound, sound])


def test_no_worker_waits_where_bundles_take_turns(suite, tmp_path):
    """It would measure another bundle's cells."""
    words = [*WORDS, "--threads", "1,2", "--profile", "standard"]
    environment = {"PATH": gpus.install(tmp_path / "bin"), "FAKE_REPLAYS": "graph", "FAKE_CPUS_FOR_BOTH": "1"}
    run = suite.bench(tmp_path / "run", *words, "--out", str(tmp_path / "run"), environment=environment)
    assert run.complete() and len(run.records) == 4
    assert not list(run.folder.glob("processes/*/complete.json"))


@pytest.mark.parametrize(("ranks", "early"), [("1", 3), ("2", 0)])
def test_no_worker_waits_for_a_device_that_the_ranks_of_another_hold(monkeypatch, ranks, early):
    monkeypatch.setattr(machine, "usable_cpus", lambda: 64)
    flags = {"framework": "torch", "workload": "mlp", "pass": "training", "device": "gpu", "strategy": "ddp"}
    resolved = sweep.resolve(flags | {"ranks": ranks, "profile": "standard"})
    planned, profile = plan.plan(resolved), plan.profile_of(resolved)
    groups = [group for bundle in planned.bundles for group in bundle.groups]
    assert groups and len(planned.bundles) == 1
    campaign = SimpleNamespace(has_spare_cpus=True, plan=planned, groups=groups, sweep=resolved, profile=profile)
    assert Campaign.early_workers.fget(campaign) == early


def test_a_stop_during_the_profile_ends_the_waiting_worker_too(suite, tmp_path):
    out, path = tmp_path / "run", gpus.install(tmp_path / "bin")
    environment = {"PATH": path, "FAKE_REPLAYS": "graph", "FAKE_PROFILER": "hangs", "FAKE_CPUS_FOR_BOTH": "1"}
    process = suite.begin(*WORDS, "--out", str(out), environment=environment)
    wait_for(lambda: list(out.glob("processes/*/traces/*/*/begun")), process)
    assert len(list(out.glob("processes/*/job.json"))) == 4
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and f"RESUME={out}" in output
    assert processes_naming(str(out / "processes")) == []


def test_a_gpu_that_takes_one_process_at_a_time_is_profiled_first(measured):
    run = measured("Exclusive_Process", FAKE_REPLAYS="graph", FAKE_CPUS_FOR_BOTH="1")
    assert run.complete()
    jobs = [json.loads(path.read_text()) for path in sorted(run.folder.glob("processes/*/job.json"))]
    assert [job["kind"] for job in jobs] == ["profile", "measure", "measure", "measure"]
    assert not any(job["waits"] for job in jobs)


@pytest.mark.parametrize(
    ("framework", "device", "modes", "expected"),
    [
        ("torch", "gpu:0", ("eager", "inductor"), ["eager"]),
        ("torch", "gpu:0", ("eager",), []),
        ("torch", "gpu:0", ("inductor", "cuda-graph"), []),
        ("torch", "cpu", ("eager", "inductor"), []),
        ("jax", "gpu:0", ("eager", "jit"), []),  # nothing there replays eager's kernels
    ],
)
def test_eager_mode_is_profiled_where_its_kernels_can_be_replayed(cell, framework, device, modes, expected):
    cells = tuple(cell(framework=framework, device=device, mode=mode) for mode in modes)
    groups = profiled([Group(cells, frozenset())])
    assert [member.mode for group in groups for member in group.cells] == expected


def test_the_sentence_says_what_replaying_and_what_the_device_allow(cell):
    large = cell(device="gpu:0", parameters=(("batch_size", 4096), ("width", 4096), ("depth", 2)))
    flops = 2 * 2 * 4096**3  # of two products
    answer = Profiled("", latency_s=76e-3, busy_s=10e-3)
    said = bounds.sentence(large, answer, None, None)
    assert said == "the GPU is idle for 87 % of a call, so replaying these kernels brings at most 7.6×"
    beside = bounds.sentence(large, answer, None, Peaks(flops / 8e-3, 1e15, ""))
    assert beside.startswith(f"{said}; no implementation beats 9.") and beside.endswith("× on this device (roofline)")
    assert "at most 1×" in bounds.sentence(large, Profiled("", latency_s=1e-3, busy_s=2e-3), None, None)
    assert bounds.sentence(large, Failed("", "error", "it broke"), None, None) == "no bound: it broke"
