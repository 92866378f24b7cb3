"""Steps of a Slurm job, their surroundings and the job's script, with a pretended srun."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from doubles import pretended_slurm
from doubles.suite import PATIENCE, TINY

from execution import cluster, submission, surroundings
from launchers import scratch, slurm
from launchers.local import Launch, SlotFailure, WorkerFailure
from measurement.refusals import UsageError
from plan import sweep
from plan.plan import plan
from records import manifest

pytestmark = pytest.mark.slow


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


def attempted(tmp_path, monkeypatch, body: str, timeout: float = PATIENCE) -> tuple[list[str], WorkerFailure | None]:
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
        (BEGUN + SAID.format("error: Node failure on n2"), SlotFailure, "crash", "lost: .*Node failure on n2"),
        (BEGUN + 'say(type="guard", words="signal 15")', SlotFailure, "crash", "was lost"),
        (BEGUN + CANCELLED + 'say(type="guard", words="signal 9")', SlotFailure, "crash", "CANCELLED"),
        (BEGUN + SAID.format("Detected 1 oom-kill event(s)"), WorkerFailure, "oom", "exceeded the job's memory"),
        (SAID.format("error: Unable to create step"), SlotFailure, "crash", "Unable to create step"),
    ],
)  # fmt: skip
def test_how_a_step_ended_compares_from_how_its_worker_did(tmp_path, monkeypatch, body, kind, status, words):
    seen, failure = attempted(tmp_path, monkeypatch, body)
    assert type(failure) is (kind or type(None))
    assert "guard" not in seen
    if kind:
        assert failure.status == status
        assert re.search(words, str(failure))
    if kind is SlotFailure:
        assert failure.began == ("where" in seen)


def test_a_silent_worker_compares_from_a_silent_node(tmp_path, monkeypatch):
    heeds = BEGUN + 'sys.stdin.read(1); say(type="guard", words="signal 15")'
    _, failure = attempted(tmp_path, monkeypatch, heeds, timeout=1)
    assert (type(failure), failure.status) == (WorkerFailure, "timeout")
    monkeypatch.setattr(slurm, "KILL_SECONDS", 0.2)
    _, failure = attempted(tmp_path, monkeypatch, BEGUN + "import time; time.sleep(60)", timeout=1)
    assert isinstance(failure, SlotFailure)


@pytest.mark.parametrize(
    ("known", "told", "count"),
    [("4", "exit 1", 4), ("", "echo Welcome to n1; echo GPUs: 2", 2), ("", "echo GPUs: 0", 0), ("", "exit 1", None)],
)
def test_the_gpus_of_a_job_are_slurm_s_to_tell_to_scripts_and_steps(tmp_path, monkeypatch, known, told, count):
    """In the shell that salloc starts the variable is not set, and a step is asked."""
    srun = tmp_path / "srun"
    srun.write_text(f"#!/bin/sh\n{told}\n")
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv(slurm.GPUS, known)
    job = slurm.Allocation("7", ("n1", "n2"), 4)
    if count is None:
        with pytest.raises(OSError, match="does not report the job's GPUs"):
            slurm.gpus_on_node(job)
    else:
        assert slurm.gpus_on_node(job) == count


@pytest.mark.parametrize(
    ("states", "why"),
    [
        (["allocated*", None, "allocated"], None),
        (["unknown", "unknown*", "allocated"], None),
        (["unknown", "down"], "since Slurm says that it is down"),
        (["allocated*", "down*"], "since Slurm says that it is down*"),
        (["draining"], "since Slurm says that it is draining"),
        (["mixed"], None),
    ],
)
def test_a_node_that_does_not_answer_is_given_up_once_slurm_does(monkeypatch, states, why):
    told = iter(states)
    monkeypatch.setattr(slurm, "PAUSE", 0.0)
    monkeypatch.setattr(slurm, "output_of", lambda command, *words: next(told) if command == "sinfo" else "RUNNING")
    assert slurm.why_gone("7", "n2", last=False) == why
    assert list(told) == []


def test_a_container_and_a_scratch_disk_stand_before_a_worker_s_command(tmp_path):
    around = surroundings.resolve("/scratch", "apptainer:image.sif", "/opt/python")
    root = str(slurm.SUITE)
    assert list(around.prefix([Path("/run")], True, "/opt/python")) == [
        *("apptainer", "exec", "--nv", "--bind", root, "--bind", "/run", "--bind", "/scratch", "image.sif"),
        *("/opt/python", "-IS", str(surroundings.SCRATCH), "/scratch"),
    ]
    assert around.options([]) == () and around.relay("/opt/python") == sys.executable
    pyxis = surroundings.resolve(None, "pyxis:nvcr.io#nvidia/pytorch:25.01-py3", "python3")
    assert pyxis.prefix([], True, "python3") == ()
    assert pyxis.options([Path("/run")])[0] == "--container-image=nvcr.io#nvidia/pytorch:25.01-py3"
    assert f"--container-mounts={root}:{root},/run:/run" in pyxis.options([Path("/run")])
    assert pyxis.relay("python3") == "python3"
    words = slurm.local.worker_command(launch(tmp_path, prefix=("apptainer", "exec")), "{results}")
    assert words[:3] == ["apptainer", "exec", "/p"]
    for wrong in (("tmp", None, None), (None, "image.sif", "p"), (None, "docker:x", "p"), (None, "pyxis:x", None)):
        with pytest.raises(UsageError):
            surroundings.resolve(*wrong)


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
    with pytest.raises(UsageError, match="PARTITION holds a line break"):
        submission.script(out, [], [], 1, {"partition": "a\n#SBATCH --nodes=9"})


def test_a_job_is_queued_again_however_soon_its_runner_ends(tmp_path, monkeypatch):
    """Here the runner has ended before the script gets on: what `wait` says of a signal is not the runner's end."""
    out, tools, requeued = tmp_path / "run", tmp_path / "bin", tmp_path / "asked"
    for folder in (out, tools):
        folder.mkdir()
    begins = f"trap 'exit 130' TERM; echo >> '{out}/records.jsonl'; while :; do kill -USR1 $PPID; sleep 0.05; done"
    for name, body in (("python", begins), ("scontrol", f'echo "$@" > "{requeued}"')):
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    lines = tmp_path / "lines"
    lines.write_text('trap : USR1\nkill() { command kill "$@" && sleep 0.3; }\n')
    text = submission.script(out, [], [], 1, {"lines": str(lines)}).replace(sys.executable, str(tools / "python"))
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert subprocess.run(["bash"], input=text, text=True, capture_output=True, timeout=PATIENCE).returncode == 130
    assert requeued.read_text() == "requeue 7\n"


def test_without_slurm_a_job_cannot_be_submitted(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="sbatch could not be started"):
        submission.submit(tmp_path, "")


def test_a_dry_run_tells_node_hours(capsys):
    import runner

    words = ["--framework", "torch", "--workload", "mlp", "--batch", "1..64", "--launcher", "slurm", "--nodes", "3"]
    assert runner.main(["bench", "--dry-run", *words]) == 0
    assert "on 3 nodes: " in (told := capsys.readouterr().out) and "node-hours, excluding installation" in told


def test_the_control_cell_is_the_smallest_eager_one():
    resolved = sweep.resolve({"framework": "torch,jax", "workload": "mlp", "batch": "4,1,2", "mode": "eager,graph"})
    group = cluster.control_of([group for bundle in plan(resolved).bundles for group in bundle.groups])
    assert [(c.framework, c.mode, c.parameter("batch_size")) for c in group.cells] == [("torch", "eager", 1)]


def test_many_nodes_serve_a_plan_whose_steps_are_pretended(suite, tmp_path):
    shapes = ("--mode", "eager,graph", "--batch", "1..3..1")
    out = tmp_path / "run"
    variables = pretended_slurm.install(tmp_path / "bin", 3, 0.0, 0.0, {})
    words = (*TINY, *shapes, "--framework", "fake", "--launcher", "slurm", "--python", sys.executable)
    done = suite.bench(out, *words, "--out", str(out), environment=variables)
    assert done.code == 3 and done.complete(), done.output  # it has no outputs that could be compared
    served = {record["node"] for record in done.records}
    assert served <= {f"n{number}" for number in range(1, 4)} and len(served) > 1
    assert {record["machine_id"] for record in done.records} == {"of-all-nodes"}
    controls = [json.loads(line) for line in (out / manifest.NODES).read_text().splitlines()]
    assert sorted(entry["node"] for entry in controls) == sorted(served)
