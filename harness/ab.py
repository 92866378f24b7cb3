"""The command `ab`: two environments measured in turn, process by process, and compared pair by pair."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from harness import alternation, bench, compare, paired, pairs, plan, report, runs, sweep, versions
from harness.execute import Executor
from harness.materials import MaterialsError, Store
from harness.progress import Bar, duration
from harness.sweep import UsageError
from harness.uv import SetupError
from reports import terminal
from reports.compare import Side

BEGUN = "ab.json"
INTERRUPTED = 130
_LETTERS = "ab"
OWN = "the suite's own environment"


@dataclass(frozen=True)
class Begun:
    """What a pair of runs is of: a word for each side's environment (None: the suite's own), and the sweep's flags."""

    folder: Path | None  # None until it is made
    words: tuple[str | None, str | None]
    given: dict

    def run_folder(self, letter: str) -> Path:
        """Where one side's run lies; its name tells which pair it is of."""
        return self.folder / f"{self.folder.name}-{letter}"


def ab(arguments: argparse.Namespace) -> int:
    """Measure A and B in turn and compare them; exit code 1: B is too slow or broke, 3: nothing could be decided."""
    console = terminal.console()
    limit = compare.share(arguments.max_slowdown)
    begun = opened(arguments) if arguments.resume is not None else asked_for(arguments)
    pair = Pair.of(begun, arguments.timeout, console)
    if arguments.dry_run:
        return pair.show()
    pair.prepare()
    begun = begun if begun.folder else begin(begun, arguments.out)
    sides = [_run(begun, letter) for letter in _LETTERS]
    console.print(f"Run {begun.folder}", highlight=False, soft_wrap=True)
    try:
        pair.measure(begun, sides)
    except KeyboardInterrupt:
        for run in sides:
            run.write_csv()
        kept, planned = sum(len(run.records()) for run in sides), 2 * len(pair.plans[0].cells)
        console.print(f"Stopped. {kept} of {planned} cells are kept in {begun.folder}.", soft_wrap=True)
        console.print(f"Go on with: make ab RESUME={begun.folder}", highlight=False, soft_wrap=True)
        return INTERRUPTED
    for run in sides:
        run.compress_samples()
    return tell(begun, sides, limit, console)


@dataclass
class Pair:
    """Both sides' plans, and what is made beforehand. `of` makes it, `prepare` comes before `measure`."""

    begun: Begun
    sweep: sweep.Sweep
    timeout: float
    console: Console
    finished: list[frozenset[str]]
    plans: list[plan.Plan]
    interpreters: list[dict] = field(default_factory=list)
    store: Store | None = None

    @classmethod
    def of(cls, begun: Begun, timeout: float, console: Console) -> Pair:
        """Plan what is asked for, or what both sides lack. Raises UsageError."""
        wanted = sweep.resolve(begun.given)
        if wanted.gpus:
            raise UsageError(f"{sweep.ALL_GPUS} measures side by side, and `ab` in turn: name one GPU, such as gpu:0.")
        if timeout <= 0:
            raise UsageError(f"TIMEOUT is a number of seconds above 0, not {timeout:g}.")
        finished = [_finished(begun, letter) for letter in _LETTERS]
        return cls(begun, wanted, timeout, console, finished, [plan.plan(wanted, done) for done in finished])

    @property
    def estimates(self) -> dict[str, float]:
        """About how many seconds each bundle takes on both sides, by its first cell."""
        both = {name: seconds for one in self.plans for name, seconds in bench.estimate(one, self.sweep).items()}
        return {name: 2 * seconds for name, seconds in both.items()}

    def show(self) -> int:
        """Print what would be measured; the exit code of a dry run."""
        bench.show_plan(self.plans[0], bench.estimate(self.plans[0], self.sweep), self.finished[0], self.console)
        total = duration(sum(self.estimates.values()))
        self.console.print(f"Twice, A and B in turn: about {total}.", highlight=False)
        return 0

    def prepare(self) -> None:
        """Make both sides' environments, and the weights and inputs that they share. Raises UsageError."""
        self.interpreters = [interpreters_of(word, self.plans[0], self.console) for word in self.begun.words]
        self.store = _materials(self.sweep, self.plans, self.console)

    def measure(self, begun: Begun, sides: list[runs.Run]) -> None:
        """Run what is left of both sides, launch by launch in turn."""
        left = sum(len(one.cells) - len(done) for one, done in zip(self.plans, self.finished, strict=True))
        with Bar(self.console, left, self.estimates) as bar:
            executors = [self._executor(begun, side, run, bar) for side, run in enumerate(sides)]
            alternation.run(executors, self.plans, self.finished)

    def _executor(self, begun: Begun, side: int, run: runs.Run, bar: Bar) -> Executor:
        word = argparse.Namespace(python=begun.words[side])
        return Executor(
            run=run,
            sweep=self.sweep,
            profile=plan.profile_of(self.sweep),
            context=bench.describe_run(run, self.sweep, self.plans[side], begun.given, word),
            display=alternation.Sided(_LETTERS[side].upper(), bar, self.console),
            interpreters=self.interpreters[side],
            materials=self.store,
            timeout_s=self.timeout,
            with_peaks=False,
        )


def asked_for(arguments: argparse.Namespace) -> Begun:
    """What was asked for on the command line. Raises UsageError."""
    words: list[str | None] = [arguments.a, arguments.b]
    if arguments.versions:
        if any(words):
            raise UsageError("VERSIONS names both sides: leave out A and B, or write A=torch==2.12 B=torch==2.13.")
        words = [word.strip() for word in arguments.versions.split(",")]
        if len(words) != 2 or not all(words):
            raise UsageError(f"VERSIONS is two versions, such as torch==2.12,torch==2.13, not {arguments.versions!r}.")
    if not any(words):
        raise UsageError(
            "Say what to compare: make ab A=<python or version> B=<python or version>, or VERSIONS=torch==2.12,"
            "torch==2.13; without A (or B) that side is the suite's own environment."
        )
    given = bench.asked_for(arguments)
    named = {versions.framework_of(word) for word in words if word and versions.is_version(word)} - {None}
    if named and "framework" not in given:
        given["framework"] = ",".join(sorted(named))
    return Begun(None, tuple(words), given)


def opened(arguments: argparse.Namespace) -> Begun:
    """The pair of runs to go on with. Raises UsageError."""
    name = arguments.resume
    if name == "newest":
        folders = sorted(path.parent for path in runs.RUNS.glob(f"*/{BEGUN}"))
        name = folders[-1] if folders else name
    for folder in (Path(name), runs.RUNS / name):
        if (folder / BEGUN).exists():
            content = runs.Run(folder.resolve()).read(BEGUN)
            begun = Begun(folder.resolve(), tuple(content["sides"]), content["given"])
            given = bench.asked_for(arguments)
            asked = [arguments.a or begun.words[0], arguments.b or begun.words[1]]
            if tuple(asked) != begun.words or sweep.resolve(begun.given | given) != sweep.resolve(begun.given):
                raise UsageError(f"{folder.name} was begun with other values: leave them out, or begin another pair.")
            return begun
    raise UsageError(f"{name} holds no pair of runs (no {BEGUN} in it); `make ab A=… B=…` makes one.")


def begin(begun: Begun, out: str | None) -> Begun:
    """The same with its folder, which is made. Raises UsageError."""
    if out and (Path(out) / BEGUN).exists():
        raise UsageError(f"OUT={out} already holds a pair of runs; go on with it: make ab RESUME={out}.")
    run = runs.Run.create(out)
    content = {"sides": begun.words, "given": begun.given, "command": sys.argv, "started_at": runs.utc_now()}
    run.write(BEGUN, content)
    (run.folder / "launches").rmdir()  # launches are the sides'
    return replace(begun, folder=run.folder)


def _run(begun: Begun, letter: str) -> runs.Run:
    folder = begun.run_folder(letter)
    return runs.Run(folder) if (folder / runs.PLAN).exists() else runs.Run.create(str(folder))


def _finished(begun: Begun, letter: str) -> frozenset[str]:
    return runs.Run(begun.run_folder(letter)).finished() if begun.folder else frozenset()


def interpreters_of(word: str | None, planned: plan.Plan, console: Console) -> dict:
    """The interpreter for every framework and kind of device, as `word` says. Raises UsageError."""
    if word is None or not versions.is_version(word):
        return bench.prepare_environments(planned, word, console)
    keys = dict.fromkeys((bundle.first.framework, bundle.first.device_kind) for bundle in planned.bundles)
    report = lambda text: console.print(text, highlight=False, markup=False)  # noqa: E731
    try:
        return {key: versions.ensure(*key, word, report=report) for key in keys}
    except SetupError as error:
        raise UsageError(f"{word}: {error}") from None


def _materials(wanted: sweep.Sweep, plans: list[plan.Plan], console: Console) -> Store:
    """Weights and inputs, which both sides share. Raises UsageError."""
    store = Store(wanted.weights, wanted.seed)
    groups = {group.cells[0].group_id: group for one in plans for bundle in one.bundles for group in bundle.groups}
    unseen = [other for group in groups.values() if (other := plan.at_unseen_length(group, wanted.unseen_seq))]
    try:
        store.prepare([*groups.values(), *unseen], lambda text: console.print(text, highlight=False))
    except MaterialsError as error:
        raise UsageError(str(error)) from None
    return store


def tell(begun: Begun, sides: list[runs.Run], limit: float, console: Console) -> int:
    """Print and write what came out; returns the exit code."""
    columns = [report.read([str(run.folder)], pairs.COLUMNS_READ).columns for run in sides]
    samples: list[Mapping] = [paired.launches_of(run.samples()) for run in sides]
    comparison = paired.compare(*columns, samples, limit)
    command = compare.command_of({"given": begun.given}).replace("make bench", "make ab A=… B=…")
    headings = (Side(label(word), pairs.facts(own), command) for word, own in zip(begun.words, columns, strict=True))
    return compare.told(replace(comparison, sides=tuple(headings)), begun.folder / "comparison.md", console)


def label(word: str | None) -> str:
    """What a side is called: its versions, or the name of its environment, whose place is nobody else's business."""
    if word is None or versions.is_version(word):
        return word or OWN
    path = Path(word)
    return path.parent.parent.name if path.parent.name == "bin" else path.name
