"""The `list` command: frameworks, modes, workloads, and what of it this machine can run."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

import frameworks
import workloads
from harness import environments
from launchers import local
from measurement import machine

PROBE_SECONDS = 120


def show(python: str | None) -> int:
    """Print the inventory; frameworks are asked in their own environments where these exist, or in `python`."""
    console = Console()
    facts = machine.facts()
    gpus = [f"{gpu['name']} ({gpu['memory.total']}, compute capability {gpu['compute_cap']})" for gpu in facts["gpus"]]
    console.print(
        f"{facts['cpu']}, {facts['cpus_usable']} CPUs usable; GPUs: {', '.join(gpus) or 'none'}", highlight=False
    )
    console.print(_workloads())
    devices = ["cpu"] + [f"gpu:{gpu['index']}" for gpu in facts["gpus"]]
    mode = Column("mode", no_wrap=True)  # a name that is cut cannot be typed
    table = Table("framework", "device", mode, "can it run here?", title="Frameworks and modes", title_justify="left")
    for name in frameworks.NAMES:
        for device in devices:
            found = ask(name, device, python)
            for row in _rows(name, device, found):
                table.add_row(*row)
    console.print(table)
    return 0


def _workloads() -> Table:
    table = Table(
        "workload",
        "implementations",
        "passes",
        Column("parameters (defaults)", overflow="fold"),
        title="Workloads",
        title_justify="left",
    )
    for name in workloads.names():
        workload = workloads.get(name)
        parameters = ", ".join(f"{p.flag}={p.default}" for p in workloads.get(name, workload.passes[-1]).parameters)
        table.add_row(name, ", ".join(workload.implementations), ", ".join(workload.passes), parameters)
    return table


def _rows(name: str, device: str, found: dict | str) -> list[tuple[str, str, str, str]]:
    description = frameworks.describe(name)
    rows = []
    for mode in description.modes:
        if device.split(":")[0] not in mode.devices:
            answer = f"no: needs a {' or '.join(mode.devices).upper()}"
        elif isinstance(found, str):
            answer = found
        else:
            reason = found["obstacle"] or found["modes"].get(mode.name)
            answer = f"no: {reason}" if reason else "yes"
        default = " (graph)" if mode.name in description.default_graph else ""
        rows.append((_title(description, found), device, mode.name + default, answer))
    return rows


def _title(description, found: dict | str) -> str:
    versions = {} if isinstance(found, str) else found["versions"]
    version = next((versions[name] for name in description.distributions if name in versions), "")
    return f"{description.name} {version}".strip()


def ask(name: str, device: str, python: str | None) -> dict | str:
    """What `worker.probe` finds, or a sentence on why it cannot be asked. Installs nothing."""
    kind = device.split(":")[0]
    if python or frameworks.describe(name).oracle:
        interpreter = environments.ensure(name, kind, python=None if frameworks.describe(name).oracle else python)
    else:
        interpreter = environments.path(name, kind) / "bin" / "python"
        if not interpreter.exists():
            return f"not installed: make setup FRAMEWORK={name} DEVICE={kind}"
    additions = frameworks.describe(name).environment(machine.usable_cpus(), kind)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "probe.json"
        try:
            done = subprocess.run(
                [str(interpreter), "-m", "worker.probe", name, device, str(results)],
                env=local.environment(additions), cwd=local.ROOT, capture_output=True, text=True, timeout=PROBE_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no: it did not answer within {PROBE_SECONDS} s"
        if not results.exists():
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            return f"no: {last}"
        return json.loads(results.read_text())
