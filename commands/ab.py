"""The command `ab`: two environments measured in turn, process by process, and compared pair by pair."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from analysis import paired, pairs
from analysis.comparison import Side
from commands import bench, compare, published, report
from environments.uv import SetupError
from execution import alternation, campaign
from execution.campaign import Campaign, Request, options_of
from execution.execute import Executor
from execution.progress import Bar, duration
from execution.recorder import Recorder
from measurement import programs
from measurement.refusals import DONE, INTERRUPTED, UsageError
from measurement.text import make_command, times
from plan import sweep, versions
from plan.options import Option, without
from records import foreign, runs
from records.cell_result import Context, Failure
from records.manifest import PAIR
from records.manifest import read as read_manifest
from records.manifest import write as write_manifest
from records.record import Record
from reports import run_headings, terminal

_LETTERS = "ab"
MOST_PROCESSES = 6  # of each side, as many on both: processes are paired
OWN = "the suite's own environment"


@dataclass(frozen=True)
class Pair:
    """A pair of runs: a word for each side's environment (None: the suite's own), and the sweep's flags."""

    made: Path | None  # its folder, None until it is made
    words: tuple[str | None, str | None]
    given: dict[str, Any]

    @property
    def folder(self) -> Path:
        """Return its folder, which is made."""
        assert self.made is not None
        return self.made

    def programs(self) -> dict[str, str]:
        """Return models, interpreters and versions, by variable, that a command line has to name to resume the pair."""
        return foreign.programs(self.folder, self.given, **dict(zip("AB", self.words, strict=True)))

    def run_folder(self, letter: str) -> Path:
        """Return the folder of one side's run, with the pair's name in its own."""
        return self.folder / f"{self.folder.name}-{letter}"


def options() -> list[Option]:
    """Return the options of `ab`."""
    sides = [Option(letter, "default: the suite's environment", "PYTHON|VERSION") for letter in _LETTERS]
    sides.append(Option("versions", "versions of both sides: torch==2.12,torch==2.13", "A,B"))
    return [*without(campaign.local_options(), "python requirements"), *sides, compare.MAX_SLOWDOWN]


def run(arguments: argparse.Namespace) -> int:
    """Measure A and B in turn and compare them; the exit code is 1 if B is too slow or broke."""
    console = terminal.console()
    limit = compare.share(arguments.max_slowdown)
    pair = opened(arguments) if arguments.resume is not None else new_pair(arguments)
    with contextlib.ExitStack() as held:
        if pair.made and not arguments.dry_run:
            held.enter_context(runs.Run(pair.folder).held())
        campaigns = [campaign_of(pair, side, arguments, console, held) for side in range(2)]
        if arguments.dry_run:
            return show(pair, campaigns, arguments.out, console)
        for one, word, letter in zip(campaigns, pair.words, "AB", strict=True):
            one.prepare_with(interpreters_of(one, word, letter))
        pair = pair if pair.made else begin(pair, has_one_python(campaigns), arguments.out, held)
        console.print(f"Run {pair.folder}", soft_wrap=True)
        sides = [start(one, pair.run_folder(letter), held) for one, letter in zip(campaigns, _LETTERS, strict=True)]
        resume = f"Resume with: {foreign.command('ab', pair.folder, pair.programs())}"
        try:
            with bench.resumable(lambda: resume):
                measure(campaigns, sides, console)
        except KeyboardInterrupt:
            stopped(pair, campaigns, sides, console)
            console.print(resume, soft_wrap=True)
            return INTERRUPTED
        for run, _ in sides:
            run.compress_samples()
        return compare_sides(pair, [run for run, _ in sides], limit, console)


def show(pair: Pair, campaigns: list[Campaign], out: str | None, console: Console) -> int:
    """Print the plan, and make the checks of the run; return the exit code. Raises UsageError."""
    campaigns[0].show_plan()
    total = duration(sum(estimates(campaigns).values()))
    console.print(f"Processes of A and B alternate; about {total} in total.")
    refuse_a_pair(out)
    with runs.Run.begin(out) if pair.made is None else contextlib.nullcontext():
        for one, word, letter in zip(campaigns, pair.words, "AB", strict=True):
            one.check(interpreters_of(one, word, letter))
    return DONE


def campaign_of(
    pair: Pair, side: int, arguments: argparse.Namespace, console: Console, held: contextlib.ExitStack
) -> Campaign:
    """Return one side's campaign: its request, or the missing cells of its run. Raises UsageError."""
    word, folder = pair.words[side], pair.made and pair.run_folder(_LETTERS[side])
    python = None if word is None or versions.is_version(word) else word
    resumed = str(folder) if folder and (folder / runs.PLAN).exists() else None
    parts = {"python": python, "timeout": arguments.timeout, "dry_run": arguments.dry_run}
    one = Campaign.start(Request(pair.given, resume=resumed, **parts), console, held)
    if one.sweep.places.slots:
        raise UsageError(f"`ab` alternates processes on one device: name one GPU, such as gpu:0, not {sweep.ALL_GPUS}.")
    return one


def estimates(campaigns: list[Campaign]) -> dict[str, float]:
    """Estimate the seconds of each bundle on both sides, by its first cell."""
    both = {name: seconds for one in campaigns for name, seconds in one.estimates.items()}
    return {name: 2 * seconds for name, seconds in both.items()}


def interpreters_of(one: Campaign, word: str | None, letter: str) -> dict[tuple[str, str], Path | Failure]:
    """Return one side's interpreters; make those of other versions, but in a dry run. Raises UsageError."""
    if word is None or not versions.is_version(word):
        return one.make_environments(letter)
    keys = dict.fromkeys((bundle.first.framework, bundle.first.device_kind) for bundle in one.plan.bundles)
    make = not one.request.dry_run
    try:
        found = {key: versions.ensure(*key, word, report=one.console.print, make=make) for key in keys}
    except SetupError as error:
        raise UsageError(f"{word}: {error}") from None
    return {key: interpreter for key, interpreter in found.items() if interpreter}


def has_one_python(campaigns: Sequence[Campaign]) -> bool:
    """Return whether one build of Python measures both sides, by its version, date and compiler."""
    interpreters = {path for one in campaigns for path in one.interpreters.values() if isinstance(path, Path)}
    builds = {programs.answer([str(path), "-c", "import sys; print(sys.version)"]) for path in interpreters}
    return len(builds) == 1 and None not in builds


def start(one: Campaign, folder: Path, held: contextlib.ExitStack) -> tuple[runs.Run, Context]:
    """Begin one side's run, held by this process; return it, and the facts that its records repeat."""
    one.request = replace(one.request, out=str(folder))
    run = one.resumed or held.enter_context(runs.Run.begin(str(folder)))
    return run, one.begin(run)


def measure(campaigns: list[Campaign], sides: list[tuple[runs.Run, Context]], console: Console) -> None:
    """Run the remaining cells of both sides, process by process in turn."""
    left = [cell for one in campaigns for cell in one.plan.cells if cell.id not in one.finished]
    processes = min(MOST_PROCESSES, campaigns[0].profile.maximum_processes)
    profile = replace(campaigns[0].profile, minimum_processes=processes, maximum_processes=processes, spare_processes=0)
    with Bar(console, left, estimates(campaigns), processes=processes) as bar:
        executors = []
        for letter, one, (run, context) in zip(_LETTERS, campaigns, sides, strict=True):
            display = alternation.Sided(letter.upper(), bar, console)
            recorder = Recorder(run, context, display, one.store, one.sweep.unseen_seq, with_peaks=False)
            executors.append(Executor(replace(one.launcher(run), profile=profile), recorder, display, one.breakdown))
        alternation.run(executors, [one.plan for one in campaigns], [one.finished for one in campaigns])


def stopped(pair: Pair, campaigns: list[Campaign], sides: list[tuple[runs.Run, Context]], console: Console) -> None:
    """Print the kept files."""
    for run, _ in sides:
        run.write_csv()
    kept, planned = sum(len(run.records()) for run, _ in sides), sum(len(one.plan.cells) for one in campaigns)
    console.print(f"Stopped. {kept} of {times(planned, 'cell')} kept in {pair.folder}.", soft_wrap=True)


def new_pair(arguments: argparse.Namespace) -> Pair:
    """Return the pair of runs that the command line names. Raises UsageError."""
    words = words_of(arguments)
    if not any(words):
        raise UsageError(
            "Name what to compare: make ab A=<python or version> B=<python or version>, or VERSIONS=torch==2.12,"
            "torch==2.13; without A (or B) that side is the suite's own environment."
        )
    given = options_of(arguments)
    named = {versions.framework_of(word) for word in words if word and versions.is_version(word)}
    if any(named) and "framework" not in given:
        given["framework"] = ",".join(sorted(filter(None, named)))
    return Pair(None, words, given)


def words_of(arguments: argparse.Namespace) -> tuple[str | None, str | None]:
    """Return the words for both sides on the command line, None for one without. Raises UsageError."""
    if not arguments.versions:
        return arguments.a, arguments.b
    if arguments.a or arguments.b:
        raise UsageError("VERSIONS names both sides: omit A and B, or write A=torch==2.12 B=torch==2.13.")
    words = [word.strip() for word in arguments.versions.split(",")]
    if len(words) != 2 or not all(words):
        raise UsageError(f"VERSIONS takes two versions, such as torch==2.12,torch==2.13, not {arguments.versions!r}.")
    return words[0], words[1]


def opened(arguments: argparse.Namespace) -> Pair:
    """Return the pair of runs to resume. Raises UsageError."""
    name = arguments.resume
    folder = runs.found(name, PAIR)
    if folder is None:
        raise UsageError(f"{name} contains no pair of runs ({PAIR} is missing); `make ab A=… B=…` makes one.")
    content = read_manifest(folder / PAIR)
    sides = content.get("sides", [])
    if len(sides) != 2 or not all(isinstance(side, str | None) for side in sides):
        raise UsageError(f"{folder / PAIR} was changed: it no longer names two sides; start a new pair.")
    pair = Pair(folder.resolve(), (sides[0], sides[1]), content["given"])
    given, words = options_of(arguments), words_of(arguments)
    again = {"WORKLOAD": given.get("workload"), "A": words[0], "B": words[1]}
    foreign.check_named("ab", pair.folder, pair.programs(), again)
    meant = words[0] or pair.words[0], words[1] or pair.words[1]
    if meant != pair.words or sweep.resolve(pair.given | given) != sweep.resolve(pair.given):
        raise UsageError(f"{folder.name} was started with other values: omit them, or start a new pair.")
    return pair


def begin(pair: Pair, one_python: bool, out: str | None, held: contextlib.ExitStack) -> Pair:
    """Make the pair's folder, `held` from then on, and return the pair with it. Raises UsageError."""
    refuse_a_pair(out)
    run = runs.Run.create(out)
    held.enter_context(run.held())
    refuse_a_pair(out)  # another process may have had it and be done
    content = {"sides": list(pair.words), "given": pair.given, "command": sys.argv, "started_at": runs.utc_now()}
    more = {"one_python": one_python, "number": runs.next_number(run.folder)}
    write_manifest(run.folder / PAIR, {**content, **more})
    return replace(pair, made=run.folder)


def refuse_a_pair(out: str | None) -> None:
    """Raise UsageError where OUT is a pair of runs."""
    if out and (Path(out) / PAIR).exists():
        again = make_command("ab", {"RESUME": out})
        raise UsageError(f"OUT={out} already contains a pair of runs; resume it: {again}.")


def compare_sides(pair: Pair, sides: list[runs.Run], limit: float, console: Console) -> int:
    """Print and write the comparison; returns the exit code."""
    a, b = (report.read([str(run.folder)], pairs.COLUMNS_READ).records for run in sides)
    named = any(word is not None and not versions.is_version(word) for word in pair.words)
    one_python = read_manifest(pair.folder / PAIR).get("one_python", not named)  # earlier pairs lack it
    samples = paired.processes_of(*(run.samples() for run in sides), one_python=one_python is True)
    comparison = paired.compare(a, b, samples, limit)
    command = published.command("ab A=… B=…", pair.given)
    first, second = titles(pair.words, (a, b))
    headings = Side(first, run_headings.facts(a), command), Side(second, run_headings.facts(b), command)
    return compare.write(
        replace(comparison, sides=headings, cautions=tuple(run_headings.cautions(a, b))),
        pair.folder / "comparison.md",
        console,
    )


def titles(words: Sequence[str | None], records: Sequence[Sequence[Record]]) -> list[str]:
    """Return the sides' names: the framework's versions where these differ, else the given words."""
    found = [run_headings.version(side) for side in records]
    if None in found or len(set(found)) < len(found):
        return [label(word) for word in words]
    return [str(version) for version in found]


def label(word: str | None) -> str:
    """Return a side's name: its versions, or the name of its environment, whose path is private."""
    if word is None or versions.is_version(word):
        return word or OWN
    path = Path(word)
    return path.parent.parent.name if path.parent.name == "bin" else path.name
