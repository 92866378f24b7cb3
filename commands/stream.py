"""The command `stream`: calls of different lengths one after the other, by strategy."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import frameworks
import workloads
from analysis.streams import cells
from commands import rounds
from commands.rounds import Form
from execution.campaign import Campaign, Request
from execution.streams import Streams, kept_caches
from measurement.cells import Cell
from measurement.refusals import UsageError
from measurement.streams import CACHES, COLD, EAGER, STRATEGIES
from measurement.text import percent
from plan import sweep
from plan.aliases import choose
from plan.options import Option
from plan.sweep import Sweep, split_words
from records import manifest, streams
from reports.sections.streams import html
from reports.streams import WORDS
from workloads import lengths
from workloads.lengths import Lengths, NoLengths

PROCESSES, CALLS, LONGEST = 5, 1000, 512
ALL = "all"  # strategies
WORKLOAD = "bert-tiny"  # where none is named
FORM = Form("stream", manifest.STREAMS, streams.JOURNAL, cells, WORDS, html)


def options() -> list[Option]:
    """Return the options of `stream`."""
    ends = "in torch on a GPU also with -cuda-graphs"
    plain = {name: one for name, one in STRATEGIES.items() if not one.cuda_graphs}
    ways, usual = (", ".join(name for name, one in plain.items() if not (rare and one.rare)) for rare in (False, True))
    return [
        *rounds.options_of_bench(WORKLOAD, "mask", needed="seq"),  # the lengths decide what is padded
        Option(
            "lengths", f"{', '.join(lengths.NAMES)}, or a CSV file: length[,batch],count", "NAME|FILE", lengths.NAMES[0]
        ),
        Option("calls", f"calls of the stream (default: {CALLS})", "N", CALLS, int),
        Option("strategy", f"ways to serve lengths: {ways}, or {ALL}; {ends} (default: {usual})", "A,B"),
        Option("caches", f"{', '.join(CACHES)} (default: {COLD})", "A,B", COLD),
        rounds.processes_option(PROCESSES),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Serve calls of different lengths by each strategy; the same OUT continues."""
    named, caches = rounds.named(arguments.strategy, [*STRATEGIES, ALL]), split_words(arguments.caches)
    request = rounds.request_of(arguments)
    return stream(request, named, arguments.processes, arguments.lengths, arguments.calls, caches)


def stream(
    request: Request, named: list[str], processes: int, distribution: str, calls: int, caches: Sequence[str]
) -> int:
    """Serve so many calls in processes of each strategy; the exit code. Raises UsageError before anything starts."""
    rounds.check_from_1("CALLS", calls)
    kinds = [choose(word, CACHES, "kind of caches") for word in caches]
    try:
        drawn = lengths.read(distribution)
    except NoLengths as error:
        raise UsageError(str(error)) from None
    check_lengths(sweep.resolve(rounds.with_defaults(request.flags, WORKLOAD)))
    flags = {"seq": str(min(LONGEST, drawn.longest))} | request.flags | {"shapes": "static"}
    if drawn.batches:
        if "batch" in flags:
            raise UsageError(f"{distribution} holds batch sizes: omit BATCH.")
        flags["batch"] = str(max(drawn.batches))
    campaign = rounds.begin(replace(request, flags=flags), WORKLOAD)
    chosen = named if named and ALL not in named else offered(campaign.plan.cells, rare=bool(named))
    strategies = list(dict.fromkeys([EAGER, *chosen]))
    maximum = longest(campaign)
    make = partial(Streams, caches_of=kinds, lengths=drawn, maximum=maximum, calls=calls)
    given = {"lengths": drawn.counts, "calls": calls} | ({"batches": drawn.batches} if drawn.batches else {})
    return FORM.run(
        campaign, strategies, processes, make, given, described(drawn, maximum),
        arms=lambda framework: len(kept_caches(framework, kinds)),
    )  # fmt: skip


def check_lengths(asked: Sweep) -> None:
    """Raise UsageError for a workload without streams."""
    for name in asked.axes["workload"]:
        if "seq_len" not in (parameter.name for parameter in workloads.get(name).parameters):
            raise UsageError(f"{name} has no sequence length: a stream needs the parameter seq_len.")


def longest(campaign: Campaign) -> int:
    """Return the length of the longest call. Raises UsageError for several."""
    found = {int(dict(cell.parameters)["seq_len"]) for cell in campaign.plan.cells}
    if len(found) != 1:
        raise UsageError("SEQ takes one number, the length of the longest call.")
    return found.pop()


def offered(measured: Iterable[Cell], rare: bool) -> list[str]:
    """Return the strategies that any of the cells' frameworks has on its device, with or without rare ones."""
    there = {name for cell in measured for name in frameworks.describe(cell.framework).streams
             if cell.device_kind == "gpu" or not STRATEGIES[name].cuda_graphs}  # fmt: skip
    return [name for name, one in STRATEGIES.items() if name in there and (rare or not one.rare)]


def described(drawn: Lengths, maximum: int) -> str:
    """Return a sentence on the lengths' distribution, and on the share of the calls that is cut."""
    share = drawn.share_above(maximum)
    cut = f"; {percent(share, 1)} are longer and are cut" if share else ""
    drawn = drawn.clipped(maximum)
    batches = f"; batches of {min(drawn.batches)} to {max(drawn.batches)}" if drawn.batches else ""
    return f"Lengths: {drawn.name}, {drawn.shortest} to {drawn.longest} tokens{cut}{batches}."
