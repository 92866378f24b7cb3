"""Output for a terminal: a finished cell in a line, and the answers at the end of a run, within its columns."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Sequence
from operator import attrgetter

from rich.console import Console
from rich.text import Text

from analysis.answers import Answer, Trust
from analysis.rules import STAY, USE
from measurement.flags import CONSTANT, EAGER_COMPILES, PROGRAM_DIFFERS, ZERO
from measurement.places import as_typed
from measurement.statistics import FASTER, SLOWER
from measurement.text import plain, times
from records.record import Record
from reports import answers, numbers
from reports.answers import Line
from reports.remarks import recompilations, unequal_machines

_FILE_WIDTH, _MOST_WIDTH = 120, 120
MOST_SHAPES, MOST_REASONS = 24, 20  # more than this scrolls by unread
HEADS = ("ms", "±", "over eager", "first call")
WIDTH = 36  # of what `in_a_line` makes, but for a flag and for figures of more digits than usual
_BOUND = "\u00a0%"  # stays with its number
WARNING = "yellow"
STYLES = {FASTER: "green", SLOWER: "red", USE: "green", STAY: "red"}
# Flags on the cell itself, not on the machine: they appear where they are raised.
OF_THE_CELL = (
    *("recompiled", PROGRAM_DIFFERS, EAGER_COMPILES, "threads_exceeded", "roofline_exceeded", "not_compared"),
    *(ZERO, CONSTANT),
)


class PlainConsole(Console):
    """A console that prints every text literally: no markup, no emoji codes, no control characters.

    Commands in it have the name that a user types.

    Texts come from frameworks, paths and files; styled ones are a `rich.text.Text`.
    """

    def __init__(self, **how):
        super().__init__(markup=False, emoji=False, highlight=False, **how)

    def render_str(self, text: str, **how) -> Text:
        return super().render_str(plain(as_typed(text)), **how)


def console() -> Console:
    """Return a console as wide as the terminal; as COLUMNS, or as the usual table, where the output goes to a file."""
    terminal = PlainConsole()
    if terminal.is_terminal:
        return terminal
    given = os.environ.get("COLUMNS", "")
    return PlainConsole(width=int(given) if given.isdigit() and int(given) else _FILE_WIDTH)


def closing(found: Sequence[Sequence[Answer]], records: Sequence[Record], console: Console) -> None:
    """Print the setting, a block for each shape, the call to type, the basis of the figures, and failed cells."""
    found = [of_setting for of_setting in found if of_setting]
    if found:
        shared, own = answers.heading([of_setting[0].setting for of_setting in found])
        shapes = [
            (", ".join(filter(None, (name, answer.shape.text))), answer)
            for name, of_setting in zip(own, found, strict=True)
            for answer in of_setting
        ]
        console.print(Text(plain(shared)))
        calls = _blocks(shapes[:MOST_SHAPES], console)
        left_out = len(shapes) - MOST_SHAPES
        console.print(f"\n{times(left_out, 'more shape')} in report.html." if left_out > 0 else "")
        wide = max(map(len, calls), default=0)
        for place, (mode, call) in enumerate(calls.items()):
            _print([f"{'' if place else 'Type':<6}{mode:<{wide}}  {call}"], console)
        _print([f"Trust: {answers.trust(Trust.from_records(records))}."], console)
    _print(_remarks(records), console)


def _blocks(shapes: Sequence[tuple[str, Answer]], console: Console) -> dict[str, str]:
    """Print a block for each shape; return, by mode, the call to type where that did not fit into a row."""
    rows = [list(answers.lines(answer)) for _, answer in shapes]
    every = [line for of_shape in rows for line in of_shape]
    figures = [(line.ms, line.width.removeprefix("±"), line.gain, line.first) for line in every]
    widths = [max(map(len, column)) for column in zip(HEADS, *figures, strict=True)]
    room = min(console.width, _MOST_WIDTH) - sum(widths) - 2 * len(widths)
    framework = max((len(line.framework) for line in every), default=0)
    typed = all(framework + 2 + len(line.call) <= room for line in every)
    names = [[_name(line, framework, typed) for line in of_shape] for of_shape in rows]
    longest = [len(text) for text in (*(title for title, _ in shapes), *(name for some in names for name in some))]
    left = min(max(longest), room)
    for (title, answer), of_shape, named in zip(shapes, rows, names, strict=True):
        console.print()
        console.print(_row(plain(title), HEADS, left, widths, "bold"), soft_wrap=True)
        for line, text in zip(of_shape, named, strict=True):
            parts = (line.ms, line.width.removeprefix("±"), line.gain, line.first)
            console.print(_row(plain(text), parts, left, widths, "", STYLES.get(line.kind, "")), soft_wrap=True)
        sentences = (
            answers.fastest(answer),
            *answers.pays(answer),
            *answers.besides(answer),
            *answers.rest(answer),
        )
        _print(filter(None, sentences), console, "  ")
    return {} if typed else {line.mode: line.call for line in every if line.call}


def _name(line: Line, width: int, typed: bool) -> str:
    return f"{line.framework:<{width}}  {(typed and line.call) or line.mode}"


def _row(name: str, parts: Sequence[str], left: int, widths: Sequence[int], style: str, of_gain: str = "") -> Text:
    """Return names on the left and figures on the right; longer names have a separate line."""
    text = Text(name if len(name) <= left else f"{name}\n", style=style)
    text.pad_right(left - len(name) if len(name) <= left else left)
    for place, (part, width) in enumerate(zip(parts, widths, strict=True)):
        text.append("  ")
        text.append(part.ljust(width) if place == 2 else part.rjust(width), style=of_gain if place == 2 else None)
    text.rstrip()
    return text


def _print(sentences: Iterable[str], console: Console, indent: str = "") -> None:
    """Print each sentence, wrapped between words, all lines but the first indented."""
    for sentence in sentences:
        lines = textwrap.wrap(
            plain(sentence).replace(" %", _BOUND),
            min(console.width, _MOST_WIDTH),
            initial_indent=indent,
            subsequent_indent=indent + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        console.print(Text("\n".join(lines).replace(_BOUND, " %")), soft_wrap=True)


def _remarks(records: Sequence[Record]) -> list[str]:
    """Return remarks on the cells themselves: unequal shares of a machine, recompilations, failures."""
    lines = unequal_machines(records)
    for framework in dict.fromkeys(record.framework for record in records):
        own = (record for record in records if record.framework == framework)
        lines += [f"{framework} {sentence}" for sentence in recompilations(own)]
    failed = sum(not record.is_measured for record in records)
    return [
        *lines,
        *([f"{failed} of {times(len(records), 'cell')} without figures:"] if failed else []),
        *failures(records),
    ]


def failures(records: Sequence[Record]) -> list[str]:
    """List why cells failed, the commonest reason first, with their modes, and their workloads if there are several."""
    alike: dict[tuple, list[Record]] = {}
    for record in records:
        if record.reason:
            ended = "partial" if record.is_measured else record.status
            alike.setdefault((record.framework, ended, record.reason), []).append(record)
    several = len({record.workload for record in records}) > 1
    lines = []
    for (framework, status, why), cells in sorted(alike.items(), key=lambda entry: -len(entry[1]))[:MOST_REASONS]:
        names = [", ".join(dict.fromkeys(map(get, cells))) for get in (attrgetter("mode"), attrgetter("workload"))]
        lines.append(f"{framework} {' of '.join(names if several else names[:1])}: {status}: {why}")
    return lines


def in_a_line(record: Record) -> Text:
    """Return latency and speedup of a cell, figures under each other, and the first flag that is the cell's own."""
    if not record.is_measured:
        return Text(record.status, style=WARNING)
    parts = (
        f"{numbers.text_of(record.median_ms)} ms".rjust(11),
        numbers.plus_minus(record.latency).ljust(7),
    )
    line = Text(" ".join(parts))
    if not record.is_baseline and record.speedup_vs_eager is not None:
        gain = numbers.speedup(record.speedup_vs_eager, record.speedup)
        line.append(f" {gain:<15}", style=STYLES.get("" if record.excluded else record.sign or "", ""))
    flags = [name for name in record.raised if name in OF_THE_CELL]
    if flags:
        line.append(f" {flags[0]}", style=WARNING)
    line.rstrip()
    return line
