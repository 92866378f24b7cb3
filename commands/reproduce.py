"""The command `reproduce`: measure a published table again, print it with the figures, and answer its claims."""

from __future__ import annotations

import argparse
import contextlib
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

import experiments
from analysis.ladders import Series
from analysis.paired import baselines, speedups_by_process
from commands import bench, explain, start, stream
from commands.rounds import Form
from execution import campaign, preparation
from execution.campaign import Request
from execution.progress import duration
from experiments.evidence import Evidence, Records
from experiments.spec import Experiment, Sweep
from measurement.places import shown
from measurement.refusals import INTERRUPTED, UsageError
from measurement.statistics import Interval
from measurement.text import make_word
from plan import plan, sweep
from plan.aliases import choose
from plan.options import Option, chosen
from records import foreign, recordfile, runs
from records import manifest as files
from records.record import Record
from records.shapes import SampleLine
from reports import explanation, terminal

FILE = runs.REPRODUCTION
# The flags of bench that change how a table is reproduced, or how much of it, and not what it is.
OVERRIDES = ("framework", "mode", "threads", "profile", "budget", "isolate", "force", "compile-cache")


def options() -> list[Option]:
    """Return the options of `reproduce`."""
    of_bench, changed = campaign.all_options(), "as in bench; replaces the sweep files' value"
    return [
        Option("table", "name of the table; without it all tables are listed"),
        Option("device", "cpu (default), gpu, gpu:<index>"),
        *chosen(of_bench, "out resume"),
        Option("from", "measure nothing, but answer the claims from this folder", "RUN"),
        *chosen(of_bench, " ".join(OVERRIDES), help=changed),
        *chosen(of_bench, "timeout python dry-run"),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Measure a published table again and answer its claims; without a table, list them.

    Raises UsageError before anything is started.
    """
    console = terminal.console()
    if arguments.table is None and arguments.resume is None and from_folder(arguments) is None:
        return show_all(console)
    if arguments.resume is not None and (arguments.out is not None or from_folder(arguments) is not None):
        raise UsageError("RESUME continues in the run's folder: omit OUT and FROM.")
    existing = arguments.resume if arguments.resume is not None else from_folder(arguments)
    folder = open_folder(existing) if existing is not None else None
    if arguments.resume is not None and folder is not None and is_joined(folder):
        word = make_word("FROM", str(folder))
        raise UsageError(
            f"The runs in {shown(folder)} were joined and cannot be resumed; answer the claims with {word}."
        )
    request, python = existing_request(folder, arguments) if folder else (given_by(arguments), arguments.python)
    if request["table"] is None:
        raise UsageError(f"Name a table: TABLE={'|'.join(experiments.names())}.")
    experiment = experiments.get(choose(request["table"], experiments.names(), "table"))
    chosen = chosen_sweeps(experiment, request)
    codes: list[int] = []
    if from_folder(arguments) is None:
        check(chosen)
        folder = folder or new_folder(arguments, request)
        with contextlib.nullcontext() if folder is None else runs.Run(folder).held():
            for part in chosen:
                codes.append(measure(part, folder, python, arguments, console))
                if codes[-1] == INTERRUPTED:
                    return INTERRUPTED
    if folder is not None and not arguments.dry_run:
        report(experiment, chosen, folder, page_folder(arguments, folder), console)
    return max(codes, default=0)


def show_all(console: Console) -> int:
    """Print the tables with their contents and about how long each takes."""
    grid = Grid("table", "subject", "device", "cells", "time", title="Published tables", title_justify="left")
    for name in experiments.names():
        experiment = experiments.get(name)
        for kind in ("cpu", "gpu"):
            chosen = experiment.sweeps(kind)
            if chosen:
                grid.add_row(name, experiment.title, kind, *size_text(chosen))
        grid.add_section()
    console.print(grid)
    console.print("make reproduce TABLE=… DEVICE=cpu|gpu [OUT=…] [RESUME=…] [FROM=…]")
    return 0


def size_text(chosen: list[Sweep]) -> tuple[str, str]:
    """Return how many cells the sweeps hold and how long they take, or why they cannot be planned."""
    try:
        cells, seconds = size(chosen)
    except UsageError as error:
        return "", str(error)
    return str(cells), f"about {duration(seconds)}"


def size(chosen: list[Sweep]) -> tuple[int, float]:
    """Return the sweeps' number of cells and seconds: as noted in their files, or estimated."""
    cells, seconds = 0, 0.0
    for part in chosen:
        # Threads change no estimate of a GPU's sweep, and this machine may have fewer CPUs.
        flags = {name: value for name, value in part.flags.items() if name != "threads" or part.device == "cpu"}
        resolved = sweep.resolve(flags)
        planned = plan.plan(resolved)
        cells += len(planned.cells)
        noted = part.about.get("minutes")
        seconds += 60 * noted if noted else sum(preparation.estimate(planned, resolved).values())
    return cells, seconds


def from_folder(arguments: argparse.Namespace) -> str | None:
    """Return the folder that FROM names."""
    folder: str | None = getattr(arguments, "from")  # a keyword of Python's
    return folder


def given_by(arguments: argparse.Namespace) -> dict:
    """Return the options of the command line, as the run's folder keeps them."""
    flags = {name: value for name in OVERRIDES if (value := getattr(arguments, name.replace("-", "_"))) is not None}
    request = {"table": arguments.table, "device": arguments.device or "cpu", "flags": flags}
    return {**request, "python": arguments.python, "command": sys.argv}


def existing_request(folder: Path, arguments: argparse.Namespace) -> tuple[dict, str | None]:
    """Return the options of an existing reproduction, and its interpreter. Raises UsageError for changes."""
    asked = files.read(folder / FILE)
    python = campaign.interpreter_in(asked, arguments.python)
    if from_folder(arguments) is None:
        named = foreign.programs(folder, {}, PYTHON=python)
        foreign.check_named("reproduce", folder, named, {"PYTHON": arguments.python})
    words = {**given_by(arguments)["flags"], "table": arguments.table, "device": arguments.device}
    known = {**asked["flags"], "table": asked["table"], "device": asked["device"]}
    changed = [name for name, value in words.items() if value is not None and value != known.get(name)]
    campaign.check_same(python, changed, folder.name, arguments.python)
    return asked, python


def chosen_sweeps(experiment: Experiment, request: dict) -> list[Sweep]:
    """Return the experiment's sweeps for the device, with the flags of the command line in them. Raises UsageError.

    FRAMEWORK chooses among a sweep's frameworks; a sweep with none of them is skipped. Other flags replace.
    """
    device = request["device"]
    kind = choose(device.partition(":")[0], ("cpu", "gpu"), "device")
    sweeps = []
    for part in experiment.sweeps(kind):
        flags = part.flags | request["flags"]
        if ":" in device and part.flags.get("device") == "gpu":
            flags["device"] = device
        if "framework" in request["flags"]:
            in_file = sweep.resolve({"framework": part.flags.get("framework")}).axes["framework"]
            chosen_names = sweep.resolve({"framework": request["flags"]["framework"]}).axes["framework"]
            flags["framework"] = [name for name in in_file if name in chosen_names]
        if flags.get("framework", True):
            sweeps.append(replace(part, flags=flags))
    if not sweeps:
        raise UsageError(f"{experiment.name} has no such sweep for {kind}; `make reproduce` lists all tables.")
    return sweeps


def check(chosen: list[Sweep]) -> None:
    """Raise UsageError for flags that make no sense, before anything is written."""
    for part in chosen:
        plan.plan(sweep.resolve(part.flags))


def new_folder(arguments: argparse.Namespace, request: dict) -> Path | None:
    """Make the folder of a new reproduction, with its options in it; None for a dry run."""
    runs.check_free(arguments.out)
    if arguments.dry_run:
        return None
    folder = Path(arguments.out) if arguments.out else runs.new_folder(runs.RUNS)
    folder.mkdir(parents=True, exist_ok=True)
    number = runs.next_number(folder.resolve())
    files.write(folder / FILE, request | {"started_at": runs.utc_now(), "number": number})
    return folder.resolve()


def open_folder(name: str) -> Path:
    """Return the folder of an existing reproduction; `newest` is the last one. Raises UsageError."""
    if folder := runs.found(name, FILE):
        return folder
    lacks = "There is no reproduction yet" if name in ("", "newest") else f"{name} contains no {FILE}"
    raise UsageError(f"{lacks}; `make reproduce TABLE=…` makes one.")


def page_folder(arguments: argparse.Namespace, folder: Path) -> Path:
    """Return the folder of the tables: the run's own, or OUT where a run is read. Raises UsageError."""
    if from_folder(arguments) is None or arguments.out is None:
        return folder
    runs.check_free(arguments.out)
    return Path(arguments.out).resolve()


def measure(
    part: Sweep, folder: Path | None, python: str | None, arguments: argparse.Namespace, console: Console
) -> int:
    """Run one sweep with the command that measures it, or resume it; the exit code."""
    console.print(f"{part.name}: {shown(part.path)}", style="bold")
    if part.about.get("scaled_down"):
        console.print(f"Scaled down: {part.about['scaled_down']}", style="yellow")
    again = foreign.command("reproduce", folder, foreign.programs(folder, {}, PYTHON=python)) if folder else None
    request = Request(part.flags, timeout=arguments.timeout, python=python, dry_run=arguments.dry_run, again=again)
    return run_sweep(part, request, folder / part.name if folder else None)


def run_sweep(part: Sweep, request: Request, out: Path | None) -> int:
    """Run a sweep with the command that measures it, or resume the run in `out`; return the exit code."""
    about = part.about
    if part.measures in ("start", "stream"):
        request = replace(request, out=str(out) if out else None)
        if part.measures == "start":
            return start.start(request, about["strategies"], about["processes"])
        served = about["strategies"], about["processes"], about["lengths"], about["calls"], about["caches"]
        return stream.stream(request, *served)
    exists = out is not None and any((out / name).exists() for name in (runs.PLAN, explain.FILE))
    place = str(out) if out else None
    request = replace(request, out=place, resume=place if exists else None)
    return (explain.explain if part.measures == "explain" else bench.bench)(request)


def evidence_in(chosen: list[Sweep], folder: Path) -> Evidence:
    """Return the evidence from a reproduction's sweeps in its folder."""
    records: list[Record] = []
    samples: dict[Record, list[SampleLine]] = {}  # of each record, by its object
    eager: dict[Record, str] = {}
    places = [folder] if is_joined(folder) else [folder / part.name for part in chosen]
    for place in places:
        taken = recordfile.benches(place)
        samples |= dict.fromkeys(taken, runs.Run(place).samples())
        groups = baselines(taken)
        eager |= {record: groups.get(record.group, "") for record in taken}
        records += taken
    entries = [entry for place in places for entry in explain.entries_in(place)]
    profiles = [entry for entry in entries if not entry.get("control")]
    return Evidence(
        Records(records),
        tuple(explanation.explained(profiles)),
        paired=partial(paired, samples),
        by_process=lambda record: speedups_by_process(samples[record], record, eager[record]),
        starts=in_rounds(start.FORM, places),
        streams=in_rounds(stream.FORM, places),
    )


def is_joined(folder: Path) -> bool:
    """Return whether the runs of a reproduction stand in its own folder, as published ones do."""
    return any((folder / name).exists() for name in (runs.RECORDS, runs.EXPLAINED))


def in_rounds(form: Form, places: list[Path]) -> tuple[Any, ...]:
    """Return the cells that a command with rounds of fresh processes measured."""
    return tuple(cell for place in places for cell in form.cells(form.journal.read(place)))


def paired(samples: dict[Record, list[SampleLine]], this: Record, other: Record) -> Interval | None:
    """Return the ratio of two records' latencies, from the rounds in which one process timed them in turn.

    None for two sweeps, two shapes, and records that are excluded or that a slow host limits. `samples` are those of
    each record's sweep.
    """
    if any(one.excluded or one.slowed for one in (this, other)) or samples[this] is not samples[other]:
        return None
    if this.group != other.group:
        return None
    cells = this.cell, other.cell
    return Series.from_samples(samples[this], dict(zip(cells, cells, strict=True))).ratio(
        {cells[0]: 1.0, cells[1]: -1.0}
    )


def report(experiment: Experiment, chosen: list[Sweep], folder: Path, out: Path, console: Console) -> None:
    """Print tables and answers from a reproduction's folder; write `table.md` into `out`."""
    from experiments import page

    evidence = evidence_in(chosen, folder)
    if not evidence.device_kinds:
        word = make_word("RESUME", str(folder))
        raise UsageError(f"{folder} contains no records of {experiment.name} yet; resume it with {word}.")
    out.mkdir(parents=True, exist_ok=True)
    path = page.write(experiment, chosen, evidence, out)
    page.show(experiment, evidence, console)
    console.print(f"Written: {path}", soft_wrap=True)
