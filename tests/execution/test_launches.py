"""Which launches of a cell count, and which are still to be made."""

from __future__ import annotations

import compileall
import contextlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from doubles.executing import executor_in

from execution import artefacts, bounds, execute, turns
from execution.execute import Executor
from execution.launcher import Launcher
from execution.stopping import lacks, unfinished
from launchers.local import Launch
from measurement.cells import Effective
from measurement.profiles import PROFILES
from measurement.protocol import MEASURE, Hello, Job, Phase, Profiled
from plan.plan import Bundle, Group, Plan
from plan.sweep import resolve
from records import foreign
from records.cell_result import CellResult, Failure, Kept
from records.runs import Run

pytestmark = pytest.mark.slow

RIGOROUS = PROFILES["rigorous"]
STEADY = (0.002,) * RIGOROUS.minimum_processes
WILD = (0.002, 0.008, 0.002)
DRIFTING = tuple(0.002 * 1.1**number for number in range(RIGOROUS.minimum_processes))


@pytest.mark.parametrize(
    ("eager", "graph", "another"),
    [
        (STEADY, None, False),
        (DRIFTING, None, True),  # eager was asked for alone
        (None, STEADY, False),  # the graph was asked for alone
        (None, DRIFTING, True),
        (Failure("oom", "Out of memory."), STEADY, False),
        (Failure("oom", "Out of memory."), DRIFTING, True),
        (STEADY, Failure("oom", "Out of memory."), False),
        (DRIFTING, Failure("oom", "Out of memory."), True),
        (DRIFTING, DRIFTING, False),  # both bore the same: the speedup is known
        (STEADY, DRIFTING, True),
        (STEADY, WILD, False),  # twenty processes that scatter so give no narrow interval either
    ],
)
def test_launches_are_added_until_the_speedup_or_latency_is_known(cell, report, eager, graph, another):
    results = {}
    for mode, told in (("eager", eager), ("inductor", graph)):
        result = CellResult(cell(mode=mode), failure=told if isinstance(told, Failure) else None)
        for launch, seconds in enumerate(told if isinstance(told, tuple) else ()):
            result.reports.append(report((seconds,) * 10, process=launch, worker=f"{launch}"))
        if told:
            results[result.cell.id] = result
    group = Group(tuple(result.cell for result in results.values()), frozenset(results))
    assert bool(unfinished(group, results, RIGOROUS.minimum_processes, RIGOROUS)) is another
    assert unfinished(group, results, RIGOROUS.minimum_processes - 1, RIGOROUS) is None  # it has a report


@pytest.mark.parametrize(
    ("device", "busy", "before", "ready"),
    [
        ("gpu:0", False, ["waits", "waits", "profile", "ready"], True),
        ("gpu:0", False, ["waits", "waits", "profile", "ready"], False),
        ("gpu:0", True, ["ready"], True),
        ("cpu", False, ["ready"], True),
    ],
)
def test_no_worker_gets_its_whole_job_before_the_device_is_prepared(
    cell, report, tmp_path, monkeypatch, device, busy, before, ready
):
    """Cover, with CPUs to spare, a profile to be made, one of an interrupted run, and cells that it does not bound.

    If a worker ends before it waits, all end, and fresh ones measure.
    """
    cells, events, begun = [cell(mode=mode, device=device) for mode in ("eager", "inductor")], [], []

    class Noting(Executor):
        def find_bounds(self, groups):
            events.append("profile")
            self.tried |= {group.cells[0].id for group in groups}

    def job(*given, waits=False):
        events.append("waits" if waits else "whole")
        return Job(MEASURE, "torch", (), None, str(tmp_path), 0, 0, waits=waits)

    def messages(*given):
        yield Hello({}, Effective()).to_json()
        if given[-1].waits:
            begun.append(given[-1])
            if not ready and len(begun) == 2:
                return
            yield Phase(None, "wait").to_json()
        for one in cells:
            yield report(cell=one.id).to_json()

    start = Launch(Path(), tmp_path, {}, [], 1.0)
    for name, replaced in {"job": staticmethod(job), "start_of": lambda *given: start, "messages": messages}.items():
        monkeypatch.setattr(Launcher, name, replaced)
    executor = executor_in(tmp_path / "run", kind=Noting)
    executor.early, executor.ready = 2, lambda: events.append("ready")
    executor.recorder.busy = {cells[0].id: 0.001} if busy else {}
    executor.recorder.finish = lambda *given: None
    group = Group(tuple(cells), frozenset(one.id for one in cells))
    executor.run_processes(Bundle((group,)), {one.id: CellResult(one) for one in cells})
    assert events == [*before, *["whole"] * PROFILES["quick"].minimum_processes]
    assert (tmp_path / "complete.json").exists() is ("waits" in before and ready)


@pytest.mark.parametrize(
    ("forbidden", "folder", "compiled", "kept"),
    [
        ("1", "bytecode", False, True),
        ("", "bytecode", False, False),
        ("1", "", False, False),
        ("1", "bytecode", True, False),
    ],
)
def test_workers_keep_compiled_modules_in_the_run_where_there_are_none_and_the_shell_forbids_others(
    tmp_path, forbidden, folder, compiled, kept
):
    """Include the modules of the process's children."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("import torch.more\n")
    (tmp_path / "torch/more.py").write_text("")
    if compiled:
        compileall.compile_dir(tmp_path / "torch", quiet=2)
    bytecode = str(tmp_path / folder) if folder else ""
    code = (
        "import subprocess, sys; from measurement.protocol import Job; from worker.__main__ import keep_bytecode; "
        f"keep_bytecode(Job('measure', 'torch', (), None, '', 0, bytecode={bytecode!r})); import torch; "
        "subprocess.run([sys.executable, '-c', 'import json.tool'], check=True)"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": forbidden}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    names = {path.name.partition(".")[0] for path in (tmp_path / "bytecode").rglob("*.pyc")}
    assert ({"more", "tool"} <= names) is kept and (not names or kept)


def test_a_job_that_waits_has_no_peak_benchmarks_whose_data_may_not_exist_yet(cell, tmp_path):
    launcher, group = executor_in(tmp_path).launcher, Group((cell(),), frozenset())
    peaks = Group((cell(workload="matmul", parameters=(("size", 8),)),), frozenset())
    whole, waiting = (launcher.job(MEASURE, [group], tmp_path, 0, [peaks], waits=waits) for waits in (False, True))
    assert whole.peak_benchmarks and not waiting.peak_benchmarks
    assert replace(waiting, waits=False, peak_benchmarks=whole.peak_benchmarks) == whole


@pytest.mark.parametrize(("eager", "another"), [(STEADY, False), (DRIFTING, True)])
def test_a_graph_with_another_program_asks_for_no_process(cell, report, eager, another):
    results = {}
    for mode, values in (("eager", eager), ("inductor", DRIFTING[::-1])):
        result = CellResult(cell(mode=mode))
        for number, seconds in enumerate(values):
            program = None if mode == "eager" else "differs"
            result.add(report((seconds,) * 10, process=number, worker=f"{number}", program=program))
        results[result.cell.id] = result
    group = Group(tuple(result.cell for result in results.values()), frozenset(results))
    assert bool(unfinished(group, results, RIGOROUS.minimum_processes, RIGOROUS)) is another


@pytest.mark.parametrize(("at_full_speed", "another"), [(0, False), (1, True), (2, True)])
def test_launches_are_added_where_the_host_may_recover(cell, report, at_full_speed, another):
    """Their spread is narrow, and is of turns on a slow host; without one at full speed more are in vain."""
    result = CellResult(cell())
    for launch in range(RIGOROUS.minimum_processes):
        slow = (0.001,) if launch < at_full_speed else (0.002,)
        result.add(report((0.002,) * 10, process=launch, worker=f"{launch}", host_loop_s=slow * 10, full_speed_s=0.001))
    group = Group((result.cell,), frozenset({result.cell.id}))
    assert bool(unfinished(group, {result.cell.id: result}, RIGOROUS.minimum_processes, RIGOROUS)) is another


@pytest.mark.parametrize(
    ("at_full_speed", "spare", "launches"), [(2, 0, 3), (2, 2, 4), (3, 2, 3), (1, 2, 5), (0, 2, 3)]
)
def test_spare_processes_replace_those_on_a_slow_host(cell, report, at_full_speed, spare, launches):
    """With one of three on a slow host the fourth gives the third value; without any two are too few."""
    result, profile = CellResult(cell()), replace(RIGOROUS, maximum_processes=3, spare_processes=spare)
    group = Group((result.cell,), frozenset({result.cell.id}))
    while unfinished(group, {result.cell.id: result}, len(result.reports), profile):
        number = len(result.reports)
        loop = 0.002 if at_full_speed <= number < 3 else 0.001
        samples = (0.002 * 1.5**number,) * 10  # far from the target
        result.add(report(samples, process=number, worker=f"{number}", host_loop_s=(loop,) * 10, full_speed_s=0.001))
    assert len(result.reports) == launches


def test_how_far_processes_narrow_is_judged_by_those_that_give_a_value():
    fast, slow = [True] * 10, [False] * 10
    assert lacks(0.2, [fast] * 3 + [slow] * 5, RIGOROUS)
    assert not lacks(0.2, [fast] * 8, RIGOROUS)


@pytest.mark.parametrize(("growth", "launches"), [(1.0, 3), (1.03, 5)])
def test_a_group_is_written_after_the_launch_that_settles_it(cell, report, tmp_path, growth, launches):
    executor, result, written = executor_in(tmp_path, "rigorous"), CellResult(cell()), []
    profile = replace(RIGOROUS, minimum_processes=3, maximum_processes=5)
    executor.launcher = replace(executor.launcher, profile=profile)
    executor.recorder.finish = lambda group, results: written.append(len(result.reports))
    bundle = Bundle((Group((result.cell,), frozenset({result.cell.id})),))
    for launch in range(5):
        result.add(report((0.002 * growth**launch,) * 10, process=launch, worker=f"{launch}"))
        executor.finish_settled(bundle, {result.cell.id: result})
    assert written[0] == launches


def test_a_launch_that_is_known_whole_does_not_end_the_launches(cell, report, tmp_path):
    """A run that was interrupted in its last launch makes that one, though the first has nothing left to measure."""
    made = []

    class Noting(Executor):
        def process(self, bundle, groups, results, kind, number=0, waiting=()):
            made.append(number)

    result = CellResult(cell())
    result.reports.append(report(process=0, worker="0001"))
    bundle = Bundle((Group((result.cell,), frozenset({result.cell.id})),))
    announced = list(executor_in(tmp_path, kind=Noting).processes(bundle, {result.cell.id: result}))
    assert announced == made == list(range(1, PROFILES["quick"].minimum_processes))


@pytest.mark.parametrize(
    ("seconds", "sizes"),
    [(0, [1, 1, 1, 1, 1]), (299, [2, 1, 1, 1]), (300, [2, 1, 2]), (301, [2, 1, 2]), (9000, [5])],
)
def test_bundles_take_turns_for_as_long_as_a_profile_allows(cell, seconds, sizes):
    """One that takes longer by itself is measured alone, and none is left out or changes places."""
    bundles = [Bundle((Group((cell(threads=n),), frozenset()),)) for n in range(5)]
    estimates = dict(zip((b.first.id for b in bundles), (100, 150, 400, 100, 200), strict=True))
    windows = turns.windows(bundles, estimates, seconds)
    assert [bundle for together in windows for bundle in together] == bundles
    assert [len(together) for together in windows] == sizes
    assert all(sum(estimates[b.first.id] for b in together) <= seconds for together in windows if len(together) > 1)


@pytest.mark.parametrize(("profile", "finished"), [("quick", [1, 2, 3]), ("standard", [3])])
def test_the_table_is_made_once_for_bundles_that_take_turns(cell, tmp_path, monkeypatch, profile, finished):
    bundles = [Bundle((Group((cell(threads=n),), frozenset()),)) for n in range(3)]
    done, written = [], []

    class Noting(Executor):
        def steps(self, bundle):
            yield 0
            done.append(bundle)

    monkeypatch.setattr(Run, "write_csv", lambda run: written.append(len(done)))
    executor_in(tmp_path, profile, Noting).run_in_turn(bundles)
    assert written == finished


@pytest.mark.parametrize("profile", ["quick", "standard"])
def test_launches_of_two_frameworks_take_turns_where_repeats_count(run, profile):
    """So that a cell's launches lie further apart than its own last; each framework compiles and loads its own."""
    done = run("--framework", "fake,numpy", "--mode", "eager", "--profile", profile)
    assert done.complete()
    peaks = [e for e in Run(done.folder).samples() if e["cell"].startswith("peak")]
    order = [(e["cell"].split("/")[0], e["launch"]) for e in Run(done.folder).samples() if e not in peaks]
    launches = range(PROFILES[profile].minimum_processes)
    if profile == "quick":
        assert order == [(name, n) for name in ("fake", "numpy") for n in launches]
    else:
        assert order == [(name, n) for n in launches for name in ("fake", "numpy")]


@pytest.mark.parametrize("modes", [("graph",), ("graph", "crash")])
def test_outputs_are_compared_once_by_the_first_process_that_measures_the_whole_group(run, modes):
    """A process that dies over one mode leaves the comparison to the next one."""
    done = run("--framework", "fake", "--mode", ",".join(("eager", *modes)))
    jobs = [json.loads(path.read_text()) for path in sorted(done.folder.glob("processes/*/job.json"))]
    first = len(modes)  # attempts until one measures all that is left
    assert [group["settled"] for job in jobs for group in job["groups"]] == [False] * first + [True] * 2
    outputs = [len(list(path.iterdir())) for path in sorted(done.folder.glob("processes/*/outputs"))]
    assert outputs == [0] * (first - 1) + [2, 0, 0]
    record = done.record("graph")
    assert (record["launches"], record["program"], record["status"]) == (3, "same", "ok")


KEEP = """
import frameworks
from execution import peak_benchmarks
from measurement import machine
from measurement.cells import Cell
from measurement.peaks import Peaks
from measurement.cells import Effective
from measurement.protocol import Hello
from records.cell_result import CellResult

cell = Cell("numpy", "mlp", "plain", "inference", "cpu", "fp32", 1, (), "eager")
hello = Hello({versions}, Effective())
told, peaks = [CellResult(cell, hello=hello)], Peaks(2e12, 1e10, "an earlier run")
peak_benchmarks.keep(cell, machine.facts()["machine_id"], {{}}, told, peaks)
"""


@pytest.mark.parametrize("versions", ["frameworks.versions('numpy')", "{'numpy': '0.1'}"])
def test_kept_peaks_spare_the_measurement_under_the_same_version_alone(run, suite, versions):
    subprocess.run([sys.executable, "-c", KEEP.format(versions=versions)], cwd=suite.folder, check=True)
    done = run("--framework", "numpy")
    peaks = {entry["cell"] for entry in Run(done.folder).samples() if entry["cell"].startswith("peak")}
    assert len(peaks) == (0 if "frameworks" in versions else 5)
    told = done.record("eager", "numpy")["framework_peak_source"]
    assert (told == "an earlier run") == (not peaks)


def test_a_launch_that_two_interruptions_left_twice_counts_once(cell, report, tmp_path):
    """Half a group was kept, measured again by the resumed run, and kept again when that was interrupted too."""
    result = CellResult(cell())
    outputs = tmp_path / "outputs.npz"
    np.savez(outputs, a=np.arange(3.0))
    for launch, worker in ((0, "0001"), (1, "0001"), (1, "0002")):
        one = report(process=launch, worker=worker, outputs=str(outputs))
        result.take_over(Kept(one.cell, "2026-01-01T00:00:00Z", hello=Hello({}, Effective()), report=one))
    assert [(one.process, one.worker) for one in result.reports] == [(0, "0001"), (1, "0002")]


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"", lambda data: bytes(len(data)), None])
def test_a_launch_whose_outputs_are_torn_is_measured_again(cell, report, tmp_path, damage):
    """The report is on disk for certain, and what the worker wrote beside it is not after a power loss."""
    result, outputs = CellResult(cell()), tmp_path / "outputs.npz"
    np.savez(outputs, a=np.arange(100.0))
    kept = Kept(
        "", "2026-01-01T00:00:00Z", hello=Hello({}, Effective()), report=report(process=0, outputs=str(outputs))
    )
    if damage:
        outputs.write_bytes(damage(outputs.read_bytes()))
    else:
        outputs.unlink()
    result.take_over(kept)
    assert result.reports == []


def test_a_cell_that_failed_keeps_its_versions_and_device_when_the_run_is_resumed(cell):
    hello = Hello({"torch": "2.13.0"}, Effective(device_name="a GPU"))
    result = CellResult(cell())
    result.take_over(Kept(result.cell.id, failure=Failure("oom", "no memory"), hello=hello))
    assert (result.failure, result.hello) == (Failure("oom", "no memory"), hello)


class Compiling(Executor):
    """An executor whose processes compile what their cache lacks, and of which one is interrupted."""

    interrupted_in = 1

    def process(self, bundle, groups, results, kind, number=0, waiting=()):
        cache = self.launcher.cache_of(bundle.first)
        self.found.append(sorted(path.name for path in cache.glob("*") if path.name != artefacts.MANIFEST))
        cache.mkdir(exist_ok=True)
        if number == self.interrupted_in:
            (cache / "half a file").touch()
            raise KeyboardInterrupt
        (cache / "kernel").write_text("code")
        for result in results.values() if kind == MEASURE else ():
            result.add(self.report(process=number))


@pytest.fixture
def interrupted(cell, report, tmp_path, monkeypatch):
    """Return a function that makes an executor for the same run, and its results after an interruption."""
    monkeypatch.setattr(foreign, "RESULTS", tmp_path)

    def made(*, code="abc", machine="m", interrupted_in=None, cache="cold"):
        executor = executor_in(tmp_path, kind=Compiling)
        context = replace(executor.recorder.context, code=code, machine_id=machine)
        executor.recorder.context, executor.interrupted_in = context, interrupted_in
        executor.launcher = replace(executor.launcher, sweep=resolve({"compile-cache": cache}))
        executor.found, executor.report = [], report
        return executor

    (tmp_path / "processes").mkdir()
    result = CellResult(cell())
    bundle = Bundle((Group((result.cell,), frozenset({result.cell.id})),))

    def run(executor):
        executor.begin(Plan((), (bundle,), {}), frozenset())
        with contextlib.suppress(KeyboardInterrupt):
            executor.run_processes(bundle, {result.cell.id: result})
        return executor.found

    return made, run, result, tmp_path / "processes"


@pytest.mark.parametrize(("cache", "primed"), [("cold", []), ("warm", [["kernel"]])])
def test_a_resumed_run_finds_what_whole_processes_compiled_and_nothing_else(interrupted, cache, primed):
    made, run, _, processes = interrupted
    assert run(made(interrupted_in=1, cache=cache)) == [[], ["kernel"], *primed]
    assert run(made(interrupted_in=2, cache=cache)) == [["kernel"], ["kernel"]]
    assert run(made(cache=cache)) == [["kernel"]]
    assert not list(processes.glob("cache*"))


def forget_the_first(result, processes):
    result.forget(0)


def truncate(result, processes):
    (path,) = processes.glob("cache*/kernel")
    path.write_text("co")


@pytest.mark.parametrize(
    ("changed", "meanwhile"),
    [
        ({"code": "def"}, None),
        ({"code": None}, None),
        ({"machine": "n"}, None),
        ({}, truncate),
        ({}, forget_the_first),
    ],
)
def test_compiled_code_that_may_not_fit_is_compiled_again(interrupted, changed, meanwhile):
    """A first process that finds compiled code would have no time of compiling."""
    made, run, result, processes = interrupted
    run(made(interrupted_in=1))
    if meanwhile:
        meanwhile(result, processes)
    assert run(made(**changed))[0] == []


@pytest.mark.parametrize(
    ("before", "outside"), [({"code": None}, False), ({}, True)], ids=["changed checkout", "outside results"]
)
def test_nothing_is_kept_that_nobody_can_vouch_for(interrupted, monkeypatch, tmp_path, before, outside):
    made, run, _, processes = interrupted
    if outside:
        monkeypatch.setattr(foreign, "RESULTS", tmp_path / "results")
    run(made(interrupted_in=1, **before))
    assert not list(processes.glob("cache*"))


@pytest.mark.parametrize(("code", "profiled"), [("abc", False), ("def", True)])
def test_a_resumed_run_keeps_the_profile_of_eager_mode(interrupted, monkeypatch, cell, code, profiled):
    made, run, _, _ = interrupted
    asked, eager = [], cell(mode="eager")
    monkeypatch.setattr(execute, "profiled", lambda groups: [Group((eager,), frozenset())])
    monkeypatch.setattr(
        bounds, "answers", lambda launcher, groups: asked.append(1) or [(eager, Profiled(eager.id, 2e-3, 1e-3), None)]
    )
    monkeypatch.setattr(bounds, "sentence", lambda *facts: "")
    run(made(interrupted_in=1))
    again = made(code=code)
    run(again)
    assert len(asked) == 1 + profiled
    assert again.recorder.busy == {eager.id: 1e-3}
