"""DEVICE=gpu:all: what it means, how a plan is shared out, and real workers side by side on pretended GPUs."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from doubles import gpus
from doubles.executing import Silent
from doubles.gpus import two_cpus
from doubles.suite import PATIENCE, SILENCE, TINY, WAITS, Finished, alive, wait_for

from execution import slots, time_breakdown
from execution.recorder import Recorder
from measurement import machine
from measurement.profiles import PROFILES
from measurement.refusals import UsageError
from plan import hosts, plan, sweep
from records.cell_result import Context
from records.runs import Run
from records.statuses import MEASURED

pytestmark = pytest.mark.slow

ASKED = {"framework": "torch", "workload": "mlp", "mode": "eager,graph"}


def gpu(index: int, name: str = "Some GPU") -> dict[str, str]:
    return {"index": str(index), "name": name, "memory.total": "1024 MiB", "uuid": f"GPU-{index}", "pci.bus_id": ""}


@pytest.fixture
def host(monkeypatch):
    """Pretend GPUs of these numbers, and so many CPUs for each; returns what a sweep of these words becomes."""

    def resolve(*numbers: int, cpus_each: int = 4, **flags):
        gpus = tuple(map(gpu, numbers))
        monkeypatch.setattr(hosts, "visible_gpus", lambda: gpus)
        monkeypatch.setattr(sweep, "gpus", lambda: gpus)
        monkeypatch.setattr(hosts, "cpu_shares", lambda count: [list(range(cpus_each))] * count)
        monkeypatch.setattr(hosts, "usable_cpus", lambda: cpus_each * max(1, len(numbers)))
        return sweep.resolve({**ASKED, "device": "gpu:all", **flags})

    return resolve


def test_every_gpu_serves_with_its_share_of_the_threads(host):
    resolved = host(0, 1)
    assert resolved.places.gpus == ("0", "1")
    assert resolved.axes["device"] == ["gpu:0"]
    assert resolved.axes["threads"] == [4]
    assert host(0, 1, threads="1,3").axes["threads"] == [1, 3]
    assert host(0, device="gpu").places.gpus == ()


@pytest.mark.parametrize(
    ("numbers", "flags", "sentence"),
    [
        ((0, 1), {"device": "gpu:all,cpu"}, "cannot be combined with other devices"),
        ((), {}, "There is no GPU for gpu:all: nvidia-smi lists none"),
        ((0, 1), {"threads": "5"}, "THREADS can be at most 4 on each of 2 GPUs side by side, not 5"),
        ((0, 1), {"device": "gpu:2"}, "There is no gpu:2: this machine has 2 GPUs, from gpu:0"),
        ((0, 1), {"device": "gpu:every"}, "DEVICE must be cpu, gpu, gpu:<index> or gpu:all"),
    ],
)
def test_what_makes_no_sense_is_refused(host, numbers, flags, sentence):
    with pytest.raises(UsageError, match=sentence):
        host(*numbers, **flags)


def test_gpus_of_two_kinds_do_not_stand_in_for_each_other(monkeypatch):
    monkeypatch.setattr(hosts, "visible_gpus", lambda: (gpu(0), gpu(1, "Another GPU")))
    with pytest.raises(UsageError, match="Another GPU of 1024 MiB, Some GPU of 1024 MiB: select"):
        sweep.resolve({**ASKED, "device": "gpu:all"})


def test_too_few_cores_are_refused(monkeypatch):
    monkeypatch.setattr(hosts, "visible_gpus", lambda: tuple(map(gpu, range(10_000))))
    with pytest.raises(UsageError, match="a CPU core for each of 10000 GPUs"):
        sweep.resolve({**ASKED, "device": "gpu:all"})


def test_a_cell_s_name_does_not_tell_which_gpu_serves_it(host):
    shapes = {"width": "8,16,32", "batch": "1,2"}
    names = [
        [cell.id for cell in plan.plan(resolved).cells]
        for resolved in (
            host(0, 1, **shapes),
            host(3, 5, **shapes),
            host(2, **shapes),
            host(0, device="gpu", threads="4", **shapes),
        )
    ]
    assert names[0] == names[1] == names[2] == names[3]
    assert len(set(names[0])) == 12


def bundles(resolved) -> list[list[tuple]]:
    return [
        [(group.parameters["width"], group.parameters["batch_size"]) for group in bundle.groups]
        for bundle in plan.plan(resolved).bundles
    ]


def test_shapes_are_shared_out_with_their_batches_together(host):
    assert bundles(host(0, 1, width="8,16", batch="1,2")) == [[(8, 2), (8, 1)], [(16, 2), (16, 1)]]
    assert bundles(host(0, 1, 2, width="8", batch="1,2,4,8")) == [[(8, 8)], [(8, 4)], [(8, 2), (8, 1)]]
    assert bundles(host(0, 1, 2, width="8", batch="1")) == [[(8, 1)]]
    assert bundles(host(0, 1, device="gpu", width="8,16", batch="1")) == [[(8, 1), (16, 1)]]


@pytest.mark.parametrize(
    ("variable", "left"), [(None, "0123"), ("2,0", "02"), ("GPU-3", "3"), ("", ""), ("-1", ""), (" 1 , 2 ", "12")]
)
def test_cuda_visible_devices_chooses_among_the_gpus(monkeypatch, variable, left):
    monkeypatch.setattr(machine, "gpus", lambda: tuple(map(gpu, range(4))))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if variable is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    assert "".join(card["index"] for card in machine.visible_gpus()) == left


SIBLINGS = {0: 0, 1: 1, 2: 2, 3: 3, 4: 0, 5: 1, 6: 2, 7: 3}  # CPU -> the first CPU of its core


def test_cores_are_shared_out_whole(monkeypatch):
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda process: set(SIBLINGS))
    monkeypatch.setattr(machine, "first_sibling", SIBLINGS.get)
    assert machine.cpu_shares(1) == [list(range(8))]
    assert machine.cpu_shares(2) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert machine.cpu_shares(3) == [[0, 4], [1, 5], [2, 3, 6, 7]]
    with pytest.raises(ValueError, match="4 cores cannot be shared by 5"):
        machine.cpu_shares(5)


def test_the_load_of_some_cpus_is_at_most_that_of_all():
    one = machine.cpu_ticks([min(os.sched_getaffinity(0))])
    every = machine.cpu_ticks()
    assert 0 < one[0] <= every[0]
    assert machine.cpu_ticks([1 << 20]) is None


def serve(work, count: int = 5) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    service = slots.Service(work, lambda bundle: bundle, lambda slot, bundle, why: None)
    slots.serve(list(range(count)), slots.of_gpus(("0", "1"), [cpus, cpus]), service)


def test_every_bundle_is_served_once_and_one_slot_works_at_a_time():
    served, working = [], []

    def work(slot, bundle):
        working.append(slot)
        assert len(working) == 1
        served.append(bundle)
        working.remove(slot)

    serve(work)
    assert sorted(served) == list(range(5))


def test_what_a_slot_fails_with_ends_the_run():
    def work(slot, bundle):
        raise ValueError(f"bundle {bundle}")

    with pytest.raises(ValueError, match="bundle 0"):
        serve(work)


def test_slots_book_their_own_time():
    now = [0.0]
    whole, other = time_breakdown.TimeBreakdown(lambda: now[0]), time_breakdown.TimeBreakdown(lambda: now[0])
    other.enter("sampling")
    now[0] = 5.0
    whole.absorb([other])
    now[0] = 6.0
    whole.enter("done")
    assert whole.seconds["sampling"] == 5
    assert sum(whole.seconds.values()) == 6  # the five seconds in which it waited are not its own as well


@pytest.fixture
def pretended(tmp_path) -> dict[str, str]:
    """The environment of a machine with two GPUs, as far as nvidia-smi tells."""
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    path = gpus.install(tmp_path / "bin")
    return {**os.environ, "PATH": path, "FAKE_MEETING": str(meeting), "FAKE_NOTES": f"{tmp_path}/notes-{{gpu}}"}


WORDS = (*TINY, "--framework", "fake", "--device", "gpu:all", "--python", sys.executable, "--timeout", WAITS)


@two_cpus
def test_workers_run_side_by_side_on_cpus_and_a_gpu_of_their_own(suite, pretended, tmp_path):
    """Each of the first two workers waits for the other; one at a time, they would wait in vain."""
    modes = ("--mode", "eager,graph,crash,unsupported", "--batch", "1,2,3", "--threads", "")
    done = suite.bench(tmp_path / "run", *WORDS, *modes, "--out", str(tmp_path / "run"), environment=pretended)
    assert done.code == 3, done.output  # one mode crashes
    assert done.complete()
    shares: dict[str, set[int]] = {}
    for record in done.records:
        assert record["device"] == "gpu:0"
        assert record["side_by_side"] == 2
        assert record["status"] in {"crash": ("crash",), "unsupported": ("unsupported",)}.get(record["mode"], MEASURED)
        if record["status"] == "crash":  # its worker told nothing
            continue
        settings = json.loads(record["settings"])
        assert settings["served_by"]["CUDA_VISIBLE_DEVICES"] == settings["gpu"]
        assert set(settings["affinity"]) <= set(settings["served_by"]["cpus"])
        assert shares.setdefault(settings["gpu"], set(settings["affinity"])) == set(settings["affinity"])
    assert set(shares) == {"0", "1"}
    assert shares["0"] & shares["1"] == set()
    assert not list((tmp_path / "run/launches").glob("cache*"))
    # A resumed run names its cells alike, also where it finds another number of GPUs.
    given = json.loads((tmp_path / "run/plan.json").read_text())["given"]
    assert given["threads"] == [done.records[0]["threads"]]


@two_cpus
def test_ctrl_c_stops_every_slot_and_what_is_finished_is_kept(suite, pretended, tmp_path):
    """Both slots hang, deaf to polite signals, when Ctrl-C comes; NumPy's cells, which need a CPU, are finished."""
    out, notes = tmp_path / "run", [tmp_path / f"notes-{index}" for index in (0, 1)]
    words = (*WORDS, "--framework", "fake,numpy", "--mode", "eager,hang", "--batch", "1,2", "--out", str(out))
    process = suite.begin(*words, environment=pretended)
    wait_for(lambda: all(path.exists() for path in notes), process)
    workers = [int(number) for path in notes for number in path.read_text().split()]
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    wait_for(lambda: not any(map(alive, workers)))
    stopped = Finished(130, output, out)
    kept = stopped.lines
    assert [record["framework"] for record in stopped.records] == ["numpy", "numpy"]

    meeting = Path(pretended["FAKE_MEETING"])
    assert len(list(meeting.iterdir())) == 2  # no slot began a launch after Ctrl-C
    environment = {name: value for name, value in pretended.items() if name != "FAKE_NOTES"}
    again = suite.bench(
        out, "--resume", str(out), "--python", sys.executable, "--timeout", SILENCE, environment=environment
    )
    assert again.code == 3, again.output  # some modes hang
    assert again.lines[: len(kept)] == kept
    assert again.complete()
    assert {record["status"] for record in again.records if record["mode"] == "hang"} == {"timeout"}


def test_other_slots_go_on_while_a_record_is_put_on_disk(cell, tmp_path, monkeypatch):
    """Else nodes that finish at once would wait for the disk one after the other."""
    turn, held, sync = threading.Lock(), [], os.fsync
    run = Run.create(str(tmp_path / "run"))
    context = Context("run", "", "", None, PROFILES["quick"], "cold", {"torch": ()})

    class Watching(Silent):
        def record(self, row) -> None:
            held.append(turn.locked())

    recorder = Recorder(run, context, Watching(), None)
    monkeypatch.setattr(os, "fsync", lambda descriptor: (held.append(turn.locked()), sync(descriptor)))
    planned = plan.Plan((cell(),), (), {cell().id: "It cannot run here."})
    with turn:
        recorder.in_slot(slots.Slot(turn=turn)).write_impossible(planned, frozenset(), "seed:0")
    assert held == [False, True]
    assert [record.status for record in run.records()] == ["unsupported"]
