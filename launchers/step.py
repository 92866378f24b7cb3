"""Run a worker on the node of a Slurm step: `srun … python -IS step.py FOLDER`.

FOLDER/step.json has the command and the CPUs of the step. The worker runs below a guard (`guard.py`), which is below
srun: the step's stdin is its lifeline, and srun closes that when the runner, or srun itself, is gone. The step's stdout
carries messages alone: first the node, then the worker's own, last its end. FOLDER/worker.log has the output of the
framework.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from launchers import guard
from measurement import machine

WHERE, ENDED = "where", "guard"  # types of the first and the last message


def main(folder: Path) -> None:
    """Guard the worker of this step until it has ended."""
    step = json.loads((folder / "step.json").read_text())
    lifeline, results = os.dup(0), os.dup(1)
    ended, status = os.pipe()
    log = os.open(folder / "worker.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for ours, theirs in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(ours, theirs)
    number, of = step["share"]
    share = take_share(number, of, step["own_gpu"])
    os.environ |= step["environment"] | share
    job = json.loads((folder / "job.json").read_text())
    (folder / "job.json").write_text(json.dumps(job | {"own_cpus": machine.allotted_cpus()}))
    variables = {"node": "SLURMD_NODENAME", "job": "SLURM_JOB_ID", "step": "SLURM_STEP_ID"}
    place = {name: os.environ.get(variable, "") for name, variable in variables.items()}
    served_by = {**share, "cpus": sorted(os.sched_getaffinity(0))} if of > 1 else {}
    _say(results, {"type": WHERE, **place, "served_by": served_by})
    kept = os.dup(results)
    os.set_inheritable(kept, True)
    cpus = ",".join(map(str, machine.cpu_assignment(step["threads"], exactly=step["pinned"])))
    command = [word.replace("{results}", f"/dev/fd/{kept}") for word in step["command"]]
    guard.main([str(lifeline), str(status), str(kept), str(folder / "worker.log"), cpus, *command])
    _say(results, {"type": ENDED, "words": os.read(ended, 1 << 10).decode(errors="replace").partition("\n")[0]})


def take_share(number: int, of: int, own_gpu: bool) -> dict[str, str]:
    """Restrict this process to one of `of` shares of the CPUs; return variables for its GPU, if each share has one."""
    if of > 1:
        os.sched_setaffinity(0, machine.cpu_shares(of)[number])
    if not own_gpu:
        return {}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": machine.visible_gpus()[number]["uuid"]}


def _say(results: int, message: Mapping[str, object]) -> None:
    """Write a message; the line end before it ends any text of a framework on the pipe."""
    os.write(results, f"\n{json.dumps(message)}\n".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
