"""LAUNCHER=slurm on a real cluster of two nodes on this machine, started once; and its parts without one."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from benchmarks.faults import campaign, nodes
from benchmarks.faults.trial import DONE, FAKE, REFUSED, Trial
from doubles.one_box import why_not

from harness import begun, cluster, hosts, lanes, submission, surroundings, sweep
from harness.outcomes import Kept, Outcome
from harness.plan import plan
from harness.refusals import UsageError
from launchers import scratch, slurm
from launchers.local import LaneFailure, Launch, WorkerFailure
from measurement import machine

WORDS = (*FAKE, "--launcher", "slurm", "--timeout", "30")


@pytest.fixture(scope="module")
def box():
    if why := why_not():
        pytest.skip(why)
    yield nodes.box()
    nodes._BOX.pop().stop()


@pytest.fixture
def trial(suite, tmp_path) -> Trial:
    return Trial(suite, tmp_path / "trial", random.Random(21))


def test_two_nodes_serve_a_plan_and_every_record_tells_where(box, trial):
    """Modes that crash and that leave children among them; the report names the nodes and shows the control cell."""
    variables = box.allocate()
    words = ("--mode", "eager,graph,crash,orphan-ok", "--batch", "1,2,4", "--out", str(trial.out))
    trial.run(*WORDS, *words, environment=variables)
    trial.complete(trial.planned(), {"crash": ("crash",)})
    nodes.check(trial, box, variables | {"kept": "1"})
    assert trial.violations == []
    records = list(trial.records())
    assert {record["node"] for record in records} == {"n1", "n2"}
    assert {record["side_by_side"] for record in records} == {1}
    told = json.loads((trial.out / "machine.json").read_text())
    assert {record["machine_id"] for record in records} == {told["machine_id"]} == {told["kind"]}
    assert list(told["nodes"]) == ["n1", "n2"]
    controls = [json.loads(line) for line in (trial.out / begun.NODES).read_text().splitlines()]
    assert sorted(entry["node"] for entry in controls) == ["n1", "n2"]
    assert all(entry["latency_ms"] > 0 for entry in controls)
    assert {entry["cell"].rpartition("/")[2] for entry in controls} == {"eager"}
    trial.report()
    page = (trial.out / "report.md").read_text()
    assert "Nodes" in page and "| n1 |" in page and "| n2 |" in page


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
    told = trial.run(str(trial.out), command="watch", codes=frozenset({0}), environment=box.environment).output
    assert "8 of 8 cells" in told and "by node: " in told
    log = "".join(path.read_text() for path in trial.out.glob("slurm-*.out"))
    assert "Stopped." in log  # else nothing was interrupted


@pytest.mark.parametrize("name", ["KILL", "cancelled", "drained"])
def test_no_fault_of_a_cluster_breaks_a_promise(box, suite, tmp_path, name):
    """`python tests/benchmarks/faults --group nodes` is the long campaign."""
    fault = campaign.Fault(0, campaign.CLUSTER, name)
    finding = campaign.attempt(fault, suite, tmp_path, seed=21)
    assert (finding.violations, finding.skipped) == ([], "")


# Without a cluster


LANES = tuple(lanes.Lane(number, node=f"n{number + 1}") for number in range(3))


def served(work, unfit=lambda last, stop: None, count: int = 6, of=LANES):
    """What `work(lane, bundle)` was asked for, what was given up, and why the run ended early."""
    done, given_up = [], []

    def note(lane, bundle):
        done.append((lane.node, bundle))
        work(lane, bundle)

    service = lanes.Service(note, lambda bundle: bundle, lambda lane, bundle, why: given_up.append((bundle, why)))
    try:
        lanes.serve(list(range(1, count + 1)), [lanes.replace(lane, unfit=unfit) for lane in of], service)
    except (lanes.NoLaneLeft, OSError) as error:
        return done, given_up, error
    return done, given_up, None


def test_what_a_node_loses_goes_to_another_one_once():
    def work(lane, bundle):
        if bundle == 3:
            raise LaneFailure(f"{lane.node} died.", began=True)

    done, given_up, error = served(work)
    tried = [node for node, bundle in done if bundle == 3]
    assert len(tried) == 2 and len(set(tried)) == 2
    assert sorted(bundle for _, bundle in done) == [1, 2, 3, 3, 4, 5, 6]
    assert given_up == [(3, f"It was lost on {tried[0]}, and again: {tried[1]} died.")]
    assert error is None


def test_a_node_that_slurm_gives_up_serves_no_more_and_the_others_do_all():
    gone = threading.Event()

    def work(lane, bundle):
        if lane.node == "n1":
            gone.set()
            raise LaneFailure("n1 died.", began=True)

    done, given_up, error = served(work, lambda last, stop: "since it is down" if gone.is_set() and not last else None)
    assert given_up == [] and error is None
    assert {bundle for node, bundle in done if node != "n1"} == set(range(1, 7))


def test_without_a_node_left_the_run_ends_and_nothing_is_called_a_crash():
    def work(lane, bundle):
        raise LaneFailure("srun could not be started.", began=False)

    _, given_up, error = served(work)
    assert given_up == []
    assert "was given up, since 3 bundles in a row were lost there" in str(error)


def test_a_job_that_is_over_is_no_fault_of_a_cell():
    def over(last, stop):
        raise OSError(0, "it is over", "Slurm job 1")

    _, given_up, error = served(lambda lane, bundle: (_ for _ in ()).throw(LaneFailure("x", True)), over)
    assert given_up == [] and "it is over" in str(error)


def test_what_another_node_reported_is_measured_again(cell, report, tmp_path):
    outputs = tmp_path / "outputs.npz"
    outputs.touch()
    kept = Kept("a", report=report(cell="a", outputs=str(outputs), node="n1"))
    for node, count in (("n1", 1), ("n2", 0), ("", 0)):
        outcome = Outcome(cell())
        outcome.take_over(kept, node)
        assert len(outcome.reports) == count


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
    found = cluster.Cluster.found()
    assert list(found.serving) == ["n1", "n3"]
    assert found.left_out == {"n2": "it is of another kind: A, 64 CPUs, 234 GiB"}
    assert found.described["machine_id"] == "x"
    assert list(cluster.Cluster.found("y").serving) == ["n2"]
    with pytest.raises(UsageError, match=r"No node of job 7 can serve \(.*CONSTRAINT="):
        cluster.Cluster.found("z")


def job_of(monkeypatch, cpus: int = 8, gpus: str = "") -> None:
    monkeypatch.setattr(hosts.slurm, "allocation", lambda: slurm.Allocation("7", ("n1", "n2"), cpus))
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", gpus)


def test_a_job_s_nodes_and_their_gpus_are_lanes(monkeypatch):
    job_of(monkeypatch)
    asked = {"framework": "torch", "workload": "mlp", "launcher": "slurm"}
    assert sweep.resolve(asked).axes["threads"] == [8]
    with pytest.raises(UsageError, match="THREADS is at most 8 on each node of the job, not 9"):
        sweep.resolve({**asked, "threads": "9"})
    with pytest.raises(UsageError, match="The job has no GPUs for gpu:all"):
        sweep.resolve({**asked, "device": "gpu:all"})
    job_of(monkeypatch, gpus="4")
    places = sweep.resolve({**asked, "device": "gpu:all"}).places
    assert (places.lanes, places.each, places.cpus) == (8, 4, 2)
    nodes_ = {name: FACTS for name in ("n1", "n2")}
    found = cluster.Cluster("7", FACTS, nodes_).lanes(places, True, (), "python3")
    assert [(lane.node, lane.of, lane.number) for lane in found[:3]] == [("n1", 4, 0), ("n2", 4, 1), ("n1", 4, 2)]


def test_the_plan_of_a_job_is_divided_as_that_of_as_many_gpus(monkeypatch):
    """On a host with GPUs and on nodes the same groups share their workers."""
    job_of(monkeypatch)
    shapes = {"framework": "torch", "workload": "mlp", "batch": "1,2,4", "width": "8,16", "threads": "1"}

    def divided(**asked):
        return [[group.parameters for group in bundle.groups] for bundle in plan(sweep.resolve(shapes | asked)).bundles]

    gpu = {"index": "0", "name": "X", "memory.total": "8 GiB"}
    monkeypatch.setattr(hosts, "visible_gpus", lambda: (gpu, gpu | {"index": "1"}))
    monkeypatch.setattr(hosts, "cpu_shares", lambda count: [list(range(4))] * count)
    assert divided(launcher="slurm") == divided(device="gpu:all") != divided()


def launch(folder: Path, **changes) -> Launch:
    fields = dict(interpreter=Path("/p"), folder=folder, environment=dict(os.environ), cpus=[0], timeout_s=5)
    return Launch(**{**fields, **changes})


def test_a_step_asks_for_what_its_launch_needs(tmp_path):
    alone = slurm.Step("7", "n2", python="py").command(4, tmp_path)
    assert alone[0] == "srun" and alone[-4:] == ["py", "-IS", str(slurm.STEP), str(tmp_path)]
    assert {"--jobid=7", "--nodelist=n2", "--nodes=1", "--ntasks=1", "--cpus-per-task=4", "--exact"} <= set(alone)
    assert {"--cpu-bind=cores", "--mem=0", "--kill-on-bad-exit=1"} <= set(alone)
    beside = slurm.Step("7", "n2", (1, 4), own_gpu=True).command(4, tmp_path)
    assert "--overlap" in beside and "--exact" not in beside


def test_slurm_s_variables_of_the_runner_s_own_step_do_not_become_options(monkeypatch):
    monkeypatch.setenv("SLURM_CONF", "/conf")
    environment = {"SLURM_MEM_PER_CPU": "1", "SLURM_CONF": "/conf", "CUDA_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "4"}
    assert slurm.of_srun(environment) == {"OMP_NUM_THREADS": "4", "SLURM_CONF": "/conf"}


SRUN = """#!{python}
import json, sys
from pathlib import Path
say = lambda **message: print(json.dumps(message), flush=True)
{body}
"""


def attempted(tmp_path, monkeypatch, body: str, timeout: float = 5) -> tuple[list[str], WorkerFailure | None]:
    """The types of the messages that come through a pretended srun, and what the launch fails with."""
    srun = tmp_path / "bin" / "srun"
    srun.parent.mkdir(exist_ok=True)
    srun.write_text(SRUN.format(python=sys.executable, body=body))
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{srun.parent}:/usr/bin:/bin")
    seen: list[str] = []
    folder = tmp_path / "launch"
    folder.mkdir(exist_ok=True)
    (folder / "srun.log").unlink(missing_ok=True)
    try:
        for message in slurm.run(slurm.Step("7", "n2"), launch(folder, timeout_s=timeout), {}):
            seen.append(message["type"])
    except WorkerFailure as failure:
        return seen, failure
    return seen, None


BEGUN = 'say(type="where", node="n2", job="7", step="1"); '
SAID = 'print("{}", file=sys.stderr, flush=True); '
CANCELLED = SAID.format("STEP 7.1 ON n2 CANCELLED AT x")


@pytest.mark.parametrize(
    ("body", "kind", "status", "words"),
    [
        (BEGUN + 'say(type="done"); say(type="guard", words="exit 0")', None, "", ""),
        (BEGUN + 'say(type="guard", words="exit 3")', WorkerFailure, "crash", "exited with code 3"),
        (BEGUN + 'say(type="guard", words="signal 9")', WorkerFailure, "crash", "SIGKILL"),
        (BEGUN + SAID.format("error: Node failure on n2"), LaneFailure, "crash", "lost: .*Node failure on n2"),
        (BEGUN + 'say(type="guard", words="signal 15")', LaneFailure, "crash", "was lost"),
        (BEGUN + CANCELLED + 'say(type="guard", words="signal 9")', LaneFailure, "crash", "CANCELLED"),
        (BEGUN + SAID.format("Detected 1 oom-kill event(s)"), WorkerFailure, "oom", "ran out of the memory"),
        (SAID.format("error: Unable to create step"), LaneFailure, "crash", "Unable to create step"),
    ],
)  # fmt: skip
def test_how_a_step_ended_is_told_from_how_its_worker_did(tmp_path, monkeypatch, body, kind, status, words):
    seen, failure = attempted(tmp_path, monkeypatch, body)
    assert type(failure) is (kind or type(None))
    assert "guard" not in seen
    if kind:
        assert failure.status == status
        assert re.search(words, str(failure))
    if kind is LaneFailure:
        assert failure.began == ("where" in seen)


def test_a_silent_worker_is_told_from_a_silent_node(tmp_path, monkeypatch):
    heeds = BEGUN + 'sys.stdin.read(1); say(type="guard", words="signal 15")'
    _, failure = attempted(tmp_path, monkeypatch, heeds, timeout=1)
    assert (type(failure), failure.status) == (WorkerFailure, "timeout")
    monkeypatch.setattr(slurm, "KILL_SECONDS", 0.2)
    _, failure = attempted(tmp_path, monkeypatch, BEGUN + "import time; time.sleep(60)", timeout=1)
    assert isinstance(failure, LaneFailure)


def test_a_container_and_a_scratch_disk_stand_before_a_worker_s_command(tmp_path):
    around = surroundings.of("/scratch", "apptainer:image.sif", "/opt/python")
    root = str(slurm.local.ROOT)
    assert list(around.prefix([Path("/run")], True, "/opt/python")) == [
        *("apptainer", "exec", "--nv", "--bind", root, "--bind", "/run", "--bind", "/scratch", "image.sif"),
        *("/opt/python", "-IS", str(surroundings.SCRATCH), "/scratch"),
    ]
    assert around.options([]) == () and around.relay("/opt/python") == sys.executable
    pyxis = surroundings.of(None, "pyxis:nvcr.io#nvidia/pytorch:25.01-py3", "python3")
    assert pyxis.prefix([], True, "python3") == ()
    assert pyxis.options([Path("/run")])[0] == "--container-image=nvcr.io#nvidia/pytorch:25.01-py3"
    assert f"--container-mounts={root}:{root},/run:/run" in pyxis.options([Path("/run")])
    assert pyxis.relay("python3") == "python3"
    words = slurm.local.worker_command(launch(tmp_path, prefix=("apptainer", "exec")), "{results}")
    assert words[:3] == ["apptainer", "exec", "/p"]
    for wrong in (("tmp", None, None), (None, "image.sif", "p"), (None, "docker:x", "p"), (None, "pyxis:x", None)):
        with pytest.raises(UsageError):
            surroundings.of(*wrong)


def test_a_copy_on_the_node_s_disk_runs(tmp_path):
    home = tmp_path / "shared/env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    command = [sys.executable, "-IS", scratch.__file__, tmp_path / "disk", home / "bin/python", "-c"]
    shown = "import sys, tempfile; print(sys.prefix, tempfile.gettempdir())"
    told = [subprocess.run([*command, shown], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert told[0] == told[1]
    assert all(path.startswith(str(tmp_path / "disk")) for path in told[0].split())


GIVEN = {"partition": "gpu", "time": "2:00:00", "gres": "gpu:4", "constraint": "a&b c"}


def test_a_job_s_script_is_one_that_bash_reads_and_that_goes_on(tmp_path):
    out = tmp_path / "a run"
    out.mkdir()
    lines = tmp_path / "lines"
    lines.write_text("#SBATCH --mail-type=END\nmodule load cuda\n")
    words = ["--mode", "eager", "--filter", "it's"]
    text = submission.script(out, words, ["--python", "/p y"], 3, GIVEN | {"lines": str(lines)})
    assert subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True).stderr == ""
    told = [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH")]
    assert {"--nodes=3", "--no-kill", "--requeue", "--partition=gpu", "--gres=gpu:4", "--mail-type=END"} <= set(told)
    assert "'--constraint=a&b c'" in told
    assert text.index("module load cuda") > text.index("--mail-type")
    # What it runs: the words that begin the run, and once there is a plan, those that go on with it.
    runner = tmp_path / "python"
    runner.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    runner.chmod(0o755)
    text = text.replace(sys.executable, str(runner)).replace("module load cuda", "")

    def ran() -> list[str]:
        return subprocess.run(["bash"], input=text, text=True, capture_output=True).stdout.split("|")[2:-1]

    assert ran() == ["--mode", "eager", "--filter", "it's", "--out", str(out)]
    (out / "plan.json").touch()
    assert ran() == ["--resume", str(out), "--python", "/p y"]
    with pytest.raises(UsageError, match="PARTITION holds a line end"):
        submission.script(out, [], [], 1, {"partition": "a\n#SBATCH --nodes=9"})


def test_without_slurm_a_job_cannot_be_submitted(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="sbatch could not be started"):
        submission.submit(tmp_path, "")


def test_a_dry_run_tells_node_hours(capsys):
    import runner

    words = ["--framework", "torch", "--workload", "mlp", "--batch", "1..64", "--launcher", "slurm", "--nodes", "3"]
    assert runner.main(["bench", "--dry-run", *words]) == 0
    assert "on 3 nodes: " in (told := capsys.readouterr().out) and "node-hours, environments apart" in told


def test_the_control_cell_is_the_smallest_eager_one():
    resolved = sweep.resolve({"framework": "torch,jax", "workload": "mlp", "batch": "4,1,2", "mode": "eager,graph"})
    group = cluster.control_of([group for bundle in plan(resolved).bundles for group in bundle.groups])
    assert [(c.framework, c.mode, c.parameter("batch_size")) for c in group.cells] == [("torch", "eager", 1)]
