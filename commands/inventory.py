"""The command `list`: workloads, presets, frameworks and modes, and those that this machine can run."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

import frameworks
import workloads
from analysis import modes
from environments import environments
from launchers import local
from measurement import machine, programs
from measurement.places import CACHE, SUITE
from measurement.refusals import UsageError
from measurement.text import make_command
from plan import sweep
from plan.options import Option, chosen, variable
from reports import terminal

PROBE_SECONDS = 120
ANSWERS = CACHE / "inventory"
SELECTED = (
    "MODE=all selects every mode except those marked (ladder), which make ladder measures, and (by name), which "
    "MODE=<name> selects; MODE=graph selects those marked (graph). `no` gives the reason why a mode cannot run here.\n"
)
NOT_MEASURED = "a reference, not a framework: measured only if FRAMEWORK names it"


def options() -> list[Option]:
    """Return the options of `list`."""
    return [
        *chosen(sweep.all_options(), "framework workload", help="only these"),
        Option("python", "use this interpreter instead of the locked environments"),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Print what runs here: workloads, presets and modes, or those that FRAMEWORK or WORKLOAD names.

    Frameworks are asked in their own environments where these exist, or in PYTHON.
    """
    console = terminal.console()
    named = [sweep.resolve({"framework": arguments.framework}).axes["framework"]] if arguments.framework else []
    models = sweep.resolve({"workload": arguments.workload}).axes["workload"] if arguments.workload else []
    if models or not named:
        console.print(_workloads(models or workloads.names()))
    if not models and not named:
        console.print(_presets())
    if named or not models:
        console.print(_machine())
        console.print(SELECTED)
        for name in named[0] if named else frameworks.NAMES:
            for device in ("cpu", *(f"gpu:{gpu['index']}" for gpu in machine.gpus())):
                with console.status(f"asking {name} about {device} …"):
                    answer = ask(name, device, arguments.python)
                _show_modes(frameworks.describe(name), device, answer, console)
    return 0


def _machine() -> str:
    facts = machine.facts()
    gpus = [f"{gpu['name']} ({gpu['memory.total']}, compute capability {gpu['compute_cap']})" for gpu in facts["gpus"]]
    return f"{facts['cpu']}, {facts['cpus_usable']} CPUs usable; GPUs: {', '.join(gpus) or 'none'}\n"


def _workloads(names) -> Table:
    """Return a table with a row for workloads that are alike but for their size."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for name in names:
        workload = workloads.get(name)
        of_passes = (workloads.get(name, pass_name).parameters for pass_name in workload.passes)
        declared = {parameter.name: parameter for parameters in of_passes for parameter in parameters}.values()
        # Spaces within a parameter would let it be broken in two.
        parameters = " ".join(f"{variable(p.flag)}={'|'.join(p.choices) or p.default}" for p in declared)
        alike.setdefault((parameters, "\n".join(workload.implementations), "\n".join(workload.passes)), []).append(name)
    table = Table("WORKLOAD", "IMPL", "PASS", Column("parameters, default first", overflow="fold"), show_lines=True)
    for (parameters, implementations, passes), members in alike.items():
        table.add_row("\n".join(members), implementations, passes, parameters)
    return table


def _presets() -> Table:
    table = Table("PRESET", "what it answers", "what it sets")
    for name, path in sweep.presets().items():
        flags = sweep.from_file(str(path))
        texts = (f"{variable(flag)}={','.join(sweep.split_words(value))}" for flag, value in flags.items())
        table.add_row(name, sweep.question_of(path), " ".join(texts))
    return table


def _show_modes(description, device: str, answer: dict | str, console: Console) -> None:
    """Print a framework's modes on a device, each with its description, or why it cannot run."""
    versions = {} if isinstance(answer, str) else answer["versions"]
    version = frameworks.own_version(description.distributions, versions) or ""
    title = Text(f"{description.name} {version}".strip() + f" on {device}", style="bold")
    console.print(title.append(f": {NOT_MEASURED}" if description.is_reference else "", style="not bold"))
    if isinstance(answer, str):
        console.print(f"  {answer}")
    table = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2, 0, 0))
    for mode, text in _answers(description, device, answer):
        words = modes.words_for(description.name, mode.name)
        reached = "graph" if "graph" in words else "" if "all" in words else "ladder" if words else "by name"
        name = f"  {mode.name}{f' ({reached})' if reached else ''}"
        table.add_row(name, Text(text, style="dim" if text.startswith("no: ") else ""))
    console.print(table)


def _answers(description, device: str, answer: dict | str) -> Iterator[tuple]:
    for mode in description.modes:
        if device.split(":")[0] not in mode.devices:
            yield mode, f"no: needs a {' or '.join(mode.devices).upper()}"
        elif not isinstance(answer, str) and (reason := answer["obstacle"] or answer["modes"].get(mode.name)):
            yield mode, f"no: {reason}"
        else:
            yield mode, mode.summary


def ask(name: str, device: str, python: str | None) -> dict | str:
    """Return the answer of `worker.probe`, or a sentence on why it cannot run. Install nothing.

    Asking imports the framework, so answers are kept until something changes that they may depend on. Raises UsageError
    for a PYTHON that does not run.
    """
    kind = device.split(":")[0]
    if python or frameworks.describe(name).is_reference:
        try:
            interpreter = environments.ensure(
                name, kind, python=None if frameworks.describe(name).is_reference else python
            )
        except environments.SetupError as error:
            raise UsageError(f"PYTHON={python}: {error}") from None
    else:
        interpreter = environments.path(name, kind) / "bin" / "python"
        if not interpreter.exists():
            return f"not installed: {make_command('setup', {'FRAMEWORK': name, 'DEVICE': kind})}"
    kept, key = ANSWERS / f"{name}-{device.replace(':', '-')}.json", _fingerprint(interpreter)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # none yet, or truncated
        if (entry := json.loads(kept.read_text()))["key"] == key:
            return entry["answer"]
    answer = _probe(name, device, interpreter)
    if isinstance(answer, dict):
        with contextlib.suppress(OSError):  # a cache that cannot be written: asked again the next time
            ANSWERS.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps({"key": key, "answer": answer}))
    return answer


def _fingerprint(interpreter: Path) -> str:
    """Return a digest of the environment, the suite's adapters, GPUs and CPUs, on which an answer depends."""
    home = interpreter.parent.parent
    stamp = home / ".stamp"
    places = [interpreter.resolve(), *sorted(home.glob("lib*/python*/*-packages"))]
    code = sorted((SUITE / "frameworks").rglob("*.py"))
    parts = [
        str(interpreter),
        stamp.read_text() if stamp.is_file() else None,
        [(str(place), place.stat().st_mtime_ns) for place in places],
        [hashlib.sha256(path.read_bytes()).hexdigest() for path in code],
        [machine.gpus(), os.environ.get("CUDA_VISIBLE_DEVICES"), machine.usable_cpus()],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _probe(name: str, device: str, interpreter: Path) -> dict | str:
    additions = frameworks.describe(name).environment(machine.usable_cpus(), device.split(":")[0])
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "probe.json"
        command = [str(interpreter), "-m", "worker.probe", name, device, str(results)]
        variables = local.environment(additions)
        done = programs.run(command, PROBE_SECONDS, programs.MUCH, cwd=SUITE, env=variables)
        if done.problem:
            return f"no: {done.problem}"
        if not results.exists():
            last = (done.errors.strip().splitlines() or [f"exit code {done.code}"])[-1]
            return f"no: {last}"
        return json.loads(results.read_text())
