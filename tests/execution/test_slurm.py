"""LAUNCHER=slurm on a real cluster of four nodes on this machine, started once; and its parts without one."""

from __future__ import annotations

import json
import random
import threading

import numpy as np
import pytest
from conftest import ROOT
from doubles import gpus
from doubles.environment import QUICKLY, bench
from doubles.gpus import two_cpus
from doubles.one_box import why_not
from doubles.suite import WAITS

from execution import cluster, slots
from launchers import slurm
from launchers.local import SlotFailure
from measurement import machine
from measurement.refusals import UsageError
from plan import hosts, sweep
from plan.plan import plan
from records import manifest
from records.cell_result import CellResult, Kept
from studies.faults import campaign, nodes
from studies.faults.trial import DONE, FAKE, REFUSED, Trial

pytestmark = pytest.mark.slow

PLANTED = ROOT / "tests/doubles/planted_ranks"
WORDS = (*FAKE, "--launcher", "slurm", "--timeout", WAITS)


@pytest.fixture(scope="module")
def box():
    if why := why_not():
        pytest.skip(why)
    yield nodes.box(4)
    nodes._BOX.pop().stop()


@pytest.fixture
def trial(suite, tmp_path) -> Trial:
    return Trial(suite, tmp_path / "trial", random.Random(21))


def test_four_nodes_serve_a_plan_and_every_record_tells_where(box, trial):
    """Modes that crash and that leave children among them; the report names the nodes and shows the control cell."""
    variables = box.allocate()
    words = ("--mode", "eager,graph,crash,orphan-ok", "--batch", "1..4..1", "--out", str(trial.out))
    trial.run(*WORDS, *words, environment=variables)
    trial.complete(trial.planned(), {"crash": ("crash",)})
    nodes.check(trial, box, variables | {"kept": "1"})
    assert trial.violations == []
    records = list(trial.records())
    assert {record["node"] for record in records} == set(box.nodes)
    assert {record["side_by_side"] for record in records} == {1}
    told = json.loads((trial.out / "machine.json").read_text())
    assert {record["machine_id"] for record in records} == {told["machine_id"]} == {told["kind"]}
    assert list(told["nodes"]) == box.nodes
    controls = [json.loads(line) for line in (trial.out / manifest.NODES).read_text().splitlines()]
    assert sorted(entry["node"] for entry in controls) == box.nodes
    assert all(entry["latency_ms"] > 0 for entry in controls)
    assert {entry["cell"].rpartition("/")[2] for entry in controls} == {"eager"}
    trial.report()
    page = (trial.out / "report.md").read_text()
    assert "Nodes" in page and all(f"| {node} |" in page for node in box.nodes)


def test_a_node_that_dies_costs_no_cell_and_two_runs_in_one_folder_are_refused(box, trial):
    process, variables = nodes.begun(trial, box, *nodes.WORDS, longest=1)
    second = trial.end(trial.begin("--resume", str(trial.out), environment=variables), REFUSED, left=False)
    assert "is being measured by" in second.output
    box.down("n2")
    nodes.whole(trial, box, process, variables, DONE)
    assert trial.violations == []
    assert "n1" in {record["node"] for record in trial.records()}


def test_a_job_submits_itself_is_watched_and_is_gone_on_with_after_its_time_limit(box, trial):
    nodes.job(trial, "time limit")
    assert trial.violations == []
    told = trial.run(
        str(trial.out), "--watch", command="report", codes=frozenset({0}), environment=box.environment
    ).output
    assert "8 of 8 cells" in told and "by node: " in told
    log = "".join(path.read_text() for path in trial.out.glob("slurm-*.out"))
    assert "Stopped." in log  # else nothing was interrupted


def test_a_runner_that_is_killed_breaks_no_promise(box, suite, tmp_path):
    """`python studies/faults --group nodes` is the long campaign."""
    fault = campaign.Fault(0, campaign.CLUSTER, "KILL")
    finding = campaign.attempt(fault, suite, tmp_path, seed=21)
    assert (finding.violations, finding.skipped) == ([], "")


@pytest.mark.parametrize(("fault", "status", "reason"), [("", "ok", ""), ("killed", "crash", "Rank 1 was killed")])
def test_two_ranks_train_on_two_nodes(box, tmp_path, monkeypatch, fault, status, reason):
    box.heal()
    variables = box.allocate(2) | ({"PYTHONPATH": str(PLANTED), "FAULT": fault} if fault else {})
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    words = ("FRAMEWORK=torch", "PASS=training", "WORKLOAD=gpt-tiny", "BATCH=2", "SEQ=8", "RANKS=2", "MODE=eager")
    ended = bench(tmp_path / "run", *words, "LAUNCHER=slurm", *QUICKLY)
    (line,) = ended.records
    assert line["status"] == status, ended
    assert reason in (line["reason"] or "")
    assert list((tmp_path / "run").rglob("rank-1/step.json"))
    assert fault or line["parity_reference"] == "numpy"
    box.wait(lambda: not box.steps())
    box.ask("scancel", "--user=root")


@two_cpus
def test_every_gpu_of_two_nodes_serves_a_plan_that_is_begun_in_salloc_s_shell(box, trial, tmp_path):
    """Slurm tells that shell of no GPUs; each record tells which GPU and CPUs its launches had."""
    variables = box.allocate(2, "--gres=gpu:2")
    assert slurm.GPUS not in variables
    variables |= {"PATH": gpus.install(tmp_path / "bin"), "SLURM_JOB_CPUS_PER_NODE": "2(x2)"}
    words = ("--device", "gpu:all", "--mode", "eager,graph", "--batch", "1..4..1", "--out", str(trial.out))
    trial.run(*WORDS, *words, environment=variables)
    trial.complete(trial.planned(), {})
    nodes.check(trial, box, variables)
    assert trial.violations == []
    for record in trial.records():
        settings = json.loads(record["settings"])
        assert (record["side_by_side"], record["device"]) == (2, "gpu:0")
        assert settings["gpu"] == settings["served_by"]["CUDA_VISIBLE_DEVICES"]
        assert settings["gpu"] in ("GPU-0", "GPU-1")
        assert settings["affinity"] == settings["served_by"]["cpus"] == machine.cpu_shares(2)[int(settings["gpu"][-1])]


# Without a cluster


LANES = tuple(slots.Slot(number, node=f"n{number + 1}") for number in range(3))


def served(work, unfit=lambda last, stop: None, count: int = 6, of=LANES):
    """What `work(slot, bundle)` was asked for, what was given up, and why the run ended early."""
    done, given_up = [], []

    def note(slot, bundle):
        done.append((slot.node, bundle))
        work(slot, bundle)

    service = slots.Service(note, lambda bundle: bundle, lambda slot, bundle, why: given_up.append((bundle, why)))
    try:
        slots.serve(list(range(1, count + 1)), [slots.replace(slot, unfit=unfit) for slot in of], service)
    except (slots.NoSlotLeft, OSError) as error:
        return done, given_up, error
    return done, given_up, None


def test_what_a_node_loses_goes_to_another_one_once():
    def work(slot, bundle):
        if bundle == 3:
            raise SlotFailure(f"{slot.node} died.", began=True)

    done, given_up, error = served(work)
    tried = [node for node, bundle in done if bundle == 3]
    assert len(tried) == 2 and len(set(tried)) == 2
    assert sorted(bundle for _, bundle in done) == [1, 2, 3, 3, 4, 5, 6]
    assert given_up == [(3, f"It was lost on {tried[0]}, and then again: {tried[1]} died.")]
    assert error is None


def test_a_node_that_slurm_gives_up_serves_no_more_and_the_others_do_all():
    gone = threading.Event()

    def work(slot, bundle):
        if slot.node == "n1":
            gone.set()
            raise SlotFailure("n1 died.", began=True)

    done, given_up, error = served(work, lambda last, stop: "since it is down" if gone.is_set() and not last else None)
    assert given_up == [] and error is None
    assert {bundle for node, bundle in done if node != "n1"} == set(range(1, 7))


def test_without_a_node_left_the_run_ends_and_nothing_is_called_a_crash():
    def work(slot, bundle):
        raise SlotFailure("srun could not be started.", began=False)

    _, given_up, error = served(work)
    assert given_up == []
    assert "was given up, because 3 bundles in a row were lost there" in str(error)


def test_a_job_that_is_over_is_no_fault_of_a_cell():
    def over(last, stop):
        raise OSError(0, "it is over", "Slurm job 1")

    _, given_up, error = served(lambda slot, bundle: (_ for _ in ()).throw(SlotFailure("x", True)), over)
    assert given_up == [] and "it is over" in str(error)


def test_what_another_node_reported_is_measured_again(cell, report, tmp_path):
    outputs = tmp_path / "outputs.npz"
    np.savez(outputs, a=np.arange(3.0))
    kept = Kept("a", report=report(cell="a", outputs=str(outputs), node="n1"))
    for node, count in (("n1", 1), ("n2", 0), ("", 0)):
        result = CellResult(cell())
        result.take_over(kept, node)
        assert len(result.reports) == count


FACTS = {"cpu": "A", "cpus": 64, "memory_bytes": 251_400_000_000, "gpus": []}
H200 = {"name": "H200", "memory.total": "143 GB", "driver_version": "1", "uuid": "GPU-1"}


def test_a_kind_of_node_is_its_processors_memory_gpus_and_driver():
    def kind(**changes):
        return machine.kind(FACTS | {"gpus": [H200]} | changes)

    assert kind() == kind(memory_bytes=251_000_000_000) == kind(gpus=[H200 | {"uuid": "GPU-2"}])
    others = [dict(cpu="B"), dict(cpus=32), dict(memory_bytes=503_000_000_000), dict(gpus=[])]
    others += [dict(gpus=[H200 | {"driver_version": "2"}]), dict(gpus=[H200 | {"name": "H100"}])]
    assert len({kind(), *(kind(**other) for other in others)}) == 1 + len(others)


def test_nodes_of_another_kind_do_not_serve(monkeypatch):
    def answer(kind):
        return FACTS | {"kind": kind, "machine_id": kind}

    monkeypatch.setattr(cluster.slurm, "allocation", lambda: slurm.Allocation("7", ("n1", "n2", "n3"), 4))
    monkeypatch.setattr(cluster, "probed", lambda job: {"n1": answer("x"), "n2": answer("y"), "n3": answer("x")})
    nodes = cluster.Cluster.of_job()
    assert list(nodes.serving) == ["n1", "n3"]
    assert nodes.left_out == {"n2": "its hardware differs: A, 64 CPUs, 234 GiB"}
    assert nodes.described["machine_id"] == "x"
    assert list(cluster.Cluster.of_job("y").serving) == ["n2"]
    with pytest.raises(UsageError, match=r"No node of job 7 can be used \(.*CONSTRAINT="):
        cluster.Cluster.of_job("z")


def job_of(monkeypatch, cpus: int = 8, gpus: int = 0) -> None:
    monkeypatch.setattr(hosts.slurm, "allocation", lambda: slurm.Allocation("7", ("n1", "n2"), cpus))
    monkeypatch.setattr(hosts.slurm, "gpus_on_node", lambda job: gpus)


def test_a_job_s_nodes_and_their_gpus_are_slots(monkeypatch):
    job_of(monkeypatch)
    flags = {"framework": "torch", "workload": "mlp", "launcher": "slurm"}
    assert sweep.resolve(flags).axes["threads"] == [8]
    with pytest.raises(UsageError, match="THREADS can be at most 8 on each node of the job, not 9"):
        sweep.resolve({**flags, "threads": "9"})
    with pytest.raises(UsageError, match="The job has no GPUs for gpu:all"):
        sweep.resolve({**flags, "device": "gpu:all"})
    job_of(monkeypatch, gpus=4)
    places = sweep.resolve({**flags, "device": "gpu:all"}).places
    assert (places.slots, places.each, places.cpus) == (8, 4, 2)
    nodes_ = {name: FACTS for name in ("n1", "n2")}
    of_nodes = cluster.Cluster("7", FACTS, nodes_).slots(places, True, (), "python3")
    assert [(slot.node, slot.of, slot.number) for slot in of_nodes[:3]] == [("n1", 4, 0), ("n2", 4, 1), ("n1", 4, 2)]


def test_ranks_take_a_node_each_where_the_framework_and_the_job_have_them(monkeypatch):
    job_of(monkeypatch)
    flags = {"framework": "torch", "workload": "mlp", "pass": "training", "launcher": "slurm", "ranks": "1,2"}
    places = sweep.resolve(flags).places
    assert (places.slots, places.spread) == (1, 2)
    (slot,) = cluster.Cluster("7", FACTS, {name: FACTS for name in ("n1", "n2")}).slots(places, False, (), "python3")
    assert (slot.node, slot.start.args[0].others) == ("n1", ("n2",))
    for other in ({"framework": "torch,jax"}, {"ranks": "4"}):
        assert sweep.resolve(flags | other).places.spread == 1


def test_the_plan_of_a_job_is_divided_as_that_of_as_many_gpus(monkeypatch):
    """On a host with GPUs and on nodes the same groups share their workers."""
    job_of(monkeypatch)
    shapes = {"framework": "torch", "workload": "mlp", "batch": "1,2,4", "width": "8,16", "threads": "1"}

    def divided(**flags):
        return [[group.parameters for group in bundle.groups] for bundle in plan(sweep.resolve(shapes | flags)).bundles]

    gpu = {"index": "0", "name": "X", "memory.total": "8 GiB"}
    monkeypatch.setattr(hosts, "visible_gpus", lambda: (gpu, gpu | {"index": "1"}))
    monkeypatch.setattr(hosts, "cpu_shares", lambda count: [list(range(4))] * count)
    assert divided(launcher="slurm") == divided(device="gpu:all") != divided()
