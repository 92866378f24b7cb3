"""Slurm's commands as one script, for a cluster that is not there: put links to it on PATH, named srun, sinfo, ….

srun plays the worker too: it says of every cell of the job what a worker would, after SECONDS for each, and computes
nothing. `install` makes the folder of links; the variables that it returns tell how many nodes there are and how fast.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

COMMANDS = ("srun", "sbatch", "sinfo", "squeue", "scontrol", "scancel")
STEPS = "steps"  # a file beside the commands: of each step the seconds that it was to take, and that it took
NOISE = dict.fromkeys(("other_load_cores", "steal_share", "involuntary_switches_per_s", "frequency_change"), 0.0)
FACTS = {
    "machine_id": "of-one-node", "kind": "of-all-nodes", "cpu": "Pretended", "cpus": 64, "cpus_usable": 64,
    "memory_bytes": 256 << 30, "gpus": [],
}  # fmt: skip


def install(folder: Path, nodes: int, seconds: float, start: float, outputs: dict[str, str]) -> dict[str, str]:
    """Variables of a process in a job on so many nodes, whose cells take `seconds` and whose workers `start` more.

    `outputs` are the files of right outputs by `place_of`.
    """
    folder.mkdir(parents=True)
    for name in COMMANDS:
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{Path(__file__).resolve()}" {name} "$@"\n')
        script.chmod(0o755)
    (folder / "outputs.json").write_text(json.dumps(outputs))
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": f"n[1-{nodes}]", "SLURM_JOB_CPUS_PER_NODE": f"64(x{nodes})"}
    speed = {"PRETENDED_NODES": str(nodes), "PRETENDED_SECONDS": str(seconds), "PRETENDED_START": str(start)}
    speed["PRETENDED_OUTPUTS"] = str(folder / "outputs.json")
    return {**os.environ, **job, **speed, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def say(**message) -> None:
    sys.stdout.write(f"\n{json.dumps(message)}\n")
    sys.stdout.flush()


def work(node: str, folder: Path) -> None:
    """What a worker on a node says of its job."""
    job, seconds = json.loads((folder / "job.json").read_text()), float(os.environ["PRETENDED_SECONDS"])
    outputs = json.loads(Path(os.environ["PRETENDED_OUTPUTS"]).read_text())
    say(type="where", node=node, job="7", step=folder.name)
    time.sleep(float(os.environ["PRETENDED_START"]))
    say(type="hello", versions={"numpy": "1"}, effective={"threads": 1})
    asked = float(os.environ["PRETENDED_START"])
    for group in [*job["groups"], *job["peak_benchmarks"]]:
        for number, cell in enumerate(group["cells"]):
            time.sleep(wait := seconds if group in job["groups"] else 0)
            asked += wait
            say(**report(name_of(cell), number, outputs.get(place_of(cell), "")))
    say(type="done")
    say(type="guard", words="exit 0")
    with open(Path(os.environ["PRETENDED_OUTPUTS"]).with_name(STEPS), "a") as file:
        file.write(f"{asked} {age()}\n")


def age() -> float:
    """Seconds since this process was started."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return float(Path("/proc/uptime").read_text().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")


def place_of(cell: dict) -> str:
    """Under which name the file of a cell's right outputs is known."""
    return f"{cell['dtype']} {shape_of(cell)}"


def shape_of(cell: dict) -> str:
    return ",".join(f"{name}={value}" for name, value in cell["parameters"].items())


def report(cell: str, number: int, outputs: str) -> dict:
    """A report in which eager mode, the first of its group, takes twice as long as the others."""
    latency = 2e-3 if number == 0 else 1e-3
    samples = [latency * (1 + 0.01 * (index % 3)) for index in range(20)]
    return {
        "type": "cell", "cell": cell, "status": "measured", "samples": samples, "prepare_s": 0.1, "first_call_s": 0.1,
        "timed_s": 1.0, "warmup_calls": 9, "calls_per_sample": 9, "steady": True, "position": 1, "cpu_per_wall": 1.0,
        "capture": {"whole": True, "graphs": number}, "host_loop_s": [2e-4] * 20,
        "noise": {"seconds": 1.0, "load_average": 1.0, **NOISE}, "outputs": outputs,
    }  # fmt: skip


def name_of(cell: dict) -> str:
    """A cell's name, as `measurement.cells` makes it, whose modules this process does not load."""
    where = f"{cell['device']}/{cell['dtype']}/threads={cell['threads']}"
    parts = (
        cell["framework"],
        cell["workload"],
        cell["implementation"],
        cell["pass_name"],
        where,
        shape_of(cell),
        cell["mode"],
    )
    return "/".join(parts)


def main(command: str, words: list[str]) -> None:
    """Be one of Slurm's commands."""
    options = dict(word[2:].split("=", 1) for word in words if word.startswith("--") and "=" in word)
    if command == "srun":
        if "measurement.machine" in words:
            print(json.dumps(FACTS))
        else:
            work(options["nodelist"], Path(words[-1]))
    elif command == "scontrol" and words[:2] == ["show", "hostnames"]:
        print("\n".join(f"n{number}" for number in range(1, int(os.environ["PRETENDED_NODES"]) + 1)))
    elif command == "sbatch":
        print("7")
    elif command == "sinfo":
        print("allocated")
    elif command == "squeue":
        print("RUNNING")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
