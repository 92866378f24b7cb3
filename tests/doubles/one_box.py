"""A real Slurm cluster on one machine: munge, a controller, and a slurmd per node, all listening on 127.0.0.1 alone.

Every daemon runs below the suite's own guard, so none outlives the process that started it, and what a node ran dies
with the node. Needs Debian's `slurm-wlm` and root; `why_not` says what is missing. It has no accounting and no cgroups,
and each node claims one CPU, 4 GB and two GPUs whatever the machine has.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from launchers.local import GUARD

TOOLS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo", "scontrol")
PATIENCE = 200.0  # seconds for the cluster to come up, and for a node to be seen dead
GPUS = 2  # that a node claims
_CONF = """\
ClusterName=onebox
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout={silence}
KillWait=5
MinJobAge=300
MessageTimeout=2
TCPTimeout=1
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=1,sched_interval=2
GresTypes=gpu
NodeName=DEFAULT CPUs=1 RealMemory=4000 Gres=gpu:{gpus} State=UNKNOWN
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}]
PartitionName=bench Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str | None:
    """Why no cluster can be started here; None where one can."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        return f"no Slurm: {', '.join(missing)} not installed (apt install slurm-wlm)"
    return None if os.getuid() == 0 else "a cluster on one machine needs root"


@dataclass
class _Daemon:
    """A daemon below its guard; whoever closes the lifeline ends it and all that it started."""

    guard: subprocess.Popen
    lifeline: int

    def kill(self) -> None:
        os.close(self.lifeline)
        self.guard.wait()


class OneBox:
    """The cluster; its nodes are n1, n2, …  `silence` is after how many seconds a node without an answer is down."""

    def __init__(self, folder: Path, nodes: int = 2, silence: int = 3):
        self.folder, self.nodes = folder, [f"n{number}" for number in range(1, nodes + 1)]
        self.conf = folder / "slurm.conf"
        self._daemons: dict[str, _Daemon] = {}
        self.came_back = False  # whether a daemon was started again since all nodes were idle
        for name in ("munge", "state", *(f"spool.{node}" for node in self.nodes)):
            (folder / name).mkdir(parents=True)
        (folder / "munge").chmod(0o700)
        key = folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        first = _free_ports(nodes + 1)
        ports = dict(controller=first, first=first + 1, last=first + nodes)
        host = socket.gethostname().partition(".")[0]
        self.conf.write_text(_CONF.format(folder=folder, host=host, nodes=nodes, gpus=GPUS, silence=silence, **ports))
        for number in range(GPUS):
            (folder / f"gpu{number}").touch()
        (folder / "gres.conf").write_text(f"AutoDetect=off\nName=gpu File={folder}/gpu[0-{GPUS - 1}]\n")

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which Slurm's commands find this cluster, and no job that this process may be in."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
        return {**kept, "SLURM_CONF": str(self.conf)}

    def start(self) -> None:
        """Bring everything up. Raises RuntimeError."""
        munge = self.folder / "munge"
        words = {name: str(munge / name) for name in ("socket", "pid-file", "log-file", "seed-file")}
        options = [f"--{name}={path}" for name, path in words.items()]
        self._begin("munge", "munged", "--foreground", "--force", f"--key-file={munge}/key", *options)
        self.wait((munge / "socket").exists)
        self.controller_up()
        for node in self.nodes:
            self.up(node)
        self.wait(lambda: self.states() == dict.fromkeys(self.nodes, "idle"))
        self.came_back = False

    def stop(self) -> None:
        """Kill everything, what the nodes run included."""
        for name in list(self._daemons):
            self._daemons.pop(name).kill()

    def up(self, node: str) -> None:
        """Start a node, or bring it back."""
        self.came_back = True
        self._begin(node, "slurmd", "-D", "-N", node, "-f", str(self.conf))

    def down(self, node: str) -> None:
        """Kill a node and all that it runs at once, as when its power fails."""
        self._daemons.pop(node).kill()

    def controller_up(self) -> None:
        self.came_back = True
        self._begin("controller", "slurmctld", "-D", "-f", str(self.conf))

    def controller_down(self) -> None:
        """Kill the controller; jobs go on."""
        self._daemons.pop("controller").kill()

    def ask(self, *command: str) -> str:
        """What one of Slurm's commands prints, its errors included."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        return (done.stdout + done.stderr).strip()

    def allocate(self, nodes: int | None = None, *options: str) -> dict[str, str]:
        """A job of so many nodes (all) that survives the death of one: the variables of a process inside of it."""
        words = ("--no-shell", "--no-kill", f"--nodes={nodes or len(self.nodes)}", *options)
        said = self.ask("salloc", *words)
        (number,) = re.findall(r"Granted job allocation (\d+)", said) or [said]
        told: dict[str, str] = {}
        self.wait(lambda: told.update(self.job(number)) or told.get("JobState") == "RUNNING")
        job = {"SLURM_JOB_ID": number, "SLURM_JOB_NODELIST": told["NodeList"]}
        return {**self.environment, **job, "SLURM_JOB_CPUS_PER_NODE": f"1(x{nodes or len(self.nodes)})"}

    def job(self, number: str) -> dict[str, str]:
        """What Slurm says of a job."""
        words = self.ask("scontrol", "--oneliner", "show", "job", number).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def is_over(self, number: str) -> bool:
        """Whether a job has ended for good. A controller that does not answer in time says neither."""
        return self.job(number).get("JobState") in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")

    def start_again(self, number: str) -> None:
        """Let a job that was put in the queue again start soon, not in two minutes, unless it is over before that.

        Not at once: nodes take a job that begins in the second in which it was ended for the one that was ended.
        """
        self.wait(lambda: self.job(number).get("Restarts", "0") != "0" or self.is_over(number))
        self.wait(lambda: self.job(number).get("JobState", "COMPLETING") != "COMPLETING")
        self.ask("scontrol", "update", f"jobid={number}", "starttime=now+2")

    def steps(self) -> list[str]:
        """The steps that are under way, <job>.<number>; of a dead node's Slurm knows until the node is back."""
        alive = {node for node, state in self.states().items() if not state.startswith(("down", "unknown"))}
        pairs = [line.split() for line in self.ask("squeue", "--steps", "--noheader", "--format=%i %N").splitlines()]
        steps = [pair[0] for pair in pairs if len(pair) == 2 and pair[1] in alive]
        return [step for step in steps if step.partition(".")[2].isdigit()]

    def states(self) -> dict[str, str]:
        """The nodes' states as sinfo tells them; empty while nobody answers."""
        lines = self.ask("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        return dict(line.split() for line in lines if len(line.split()) == 2)

    def heal(self) -> None:
        """Bring back whatever is down, end all jobs, and wait until every node is idle."""
        for name in ("controller", *self.nodes):
            if name not in self._daemons:
                self.controller_up() if name == "controller" else self.up(name)
        self.wait(lambda: bool(self.states()))
        self.ask("scancel", "--user=root")
        for node in self.nodes:
            self.ask("scontrol", "update", f"nodename={node}", "state=resume")
        # On a busy machine nodes were `completing` for a minute after the controller had been restarted.
        self.wait(lambda: self.states() == dict.fromkeys(self.nodes, "idle"))
        self.came_back = False

    def wait(self, condition, seconds: float = PATIENCE) -> None:
        """Wait for a condition. Raises RuntimeError, with what the controller said last."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                log = self.folder / "slurmctld.log"
                said = log.read_text()[-2000:] if log.exists() else ""
                raise RuntimeError(f"the cluster is not as it should be: {self.states()}\n{said}")
            time.sleep(0.1)

    def _begin(self, name: str, *command: str) -> None:
        lifeline, alive = os.pipe()
        status, told = os.pipe()
        cpus = ",".join(map(str, os.sched_getaffinity(0)))
        with open(self.folder / f"{name}.out", "ab") as log:
            kept = os.dup(log.fileno())
            words = [*map(str, (lifeline, told, kept)), str(self.folder / f"{name}.out"), cpus, *command]
            guard = subprocess.Popen(
                [sys.executable, "-IS", str(GUARD), *words],
                env={**self.environment, "SLURM_CONF": str(self.conf)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lifeline, told, kept),
                start_new_session=True,
            )
        for descriptor in (lifeline, told, kept, status):
            os.close(descriptor)
        self._daemons[name] = _Daemon(guard, alive)


def _free_ports(count: int) -> int:
    """The first of `count` free ports in a row."""
    first = 20_000 + os.getpid() * 16 % 30_000
    while True:
        taken = []
        try:
            for port in range(first, first + count):
                one = socket.socket()
                taken.append(one)
                one.bind(("127.0.0.1", port))
            return first
        except OSError:
            first += count
        finally:
            for one in taken:
                one.close()
