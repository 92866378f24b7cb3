"""Display of a running sweep: progress, the current step, figures so far, and a line for a finished cell."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

import frameworks
from execution.worker_run import Figure, Figures
from measurement.cells import PEAK_PREFIX, Cell
from measurement.text import percent, plain
from plan.plan import Bundle
from records.record import Record
from reports import terminal
from reports.names import Names
from reports.numbers import text_of

# A redraw costs a few milliseconds of a core that a worker may be measured on.
REDRAWS_PER_SECOND = 1
# Columns: least width for bar and step on one line; widest line of a cell; width of the bar with a step.
ONE_LINE, LINE, BAR = 100, 80, 24
# A worker's names of phases, and their texts on the display.
STEPS = {"prepare": "building the model", "compiler start": "starting the compiler", "outputs": "comparing outputs"}
STEPS |= {
    "wait": "waiting for the device",
    "program": "listing operators",
    "release": "freeing memory",
    "import": "importing",
}
MOST_ROWS = 16  # of figures so far, on a terminal


class Bar:
    """A progress bar on a terminal, above the figures so far; elsewhere plain lines, one per process and cell.

    `cells` are the plan's; `estimates` are seconds per bundle of `processes` processes, by its first cell. Without
    `lines` nothing is printed about cells.
    """

    def __init__(
        self,
        console: Console,
        cells: Sequence[Cell],
        estimates: dict[str, float],
        clock: Callable[[], float] = time.monotonic,
        lines: bool = True,
        processes: int = 1,
    ):
        self._console, self._clock = console, clock
        self._names = Names((cell.id for cell in cells), whole=True)
        self._lines = lines
        self._modes = {cell.id: cell.mode for cell in cells}
        self._estimates = dict(estimates)  # of the remaining work, by bundle
        self._processes, self._whole = processes, sum(estimates.values())
        self._figures: dict[str, Figure] = {}  # of cells without a record, in order of appearance
        self._unsaid: dict[str, Figure] = {}  # figures not yet printed
        self._recorded: set[str] = set()  # cells with a record
        self._known_from = 0  # number of processes behind the figures; 0: a few rounds of the first
        self._shares = {name: seconds / processes for name, seconds in estimates.items()}  # of a process
        self._begun = self._process_begun = self._step_begun = clock()
        self._current = next(iter(self._shares.values()), 0.0)  # estimated seconds of the current process
        self._expected = 0.0
        self._step, self._timed, self._process, self._framework = ("", "starting"), False, 0, ""
        self._live = Live(
            get_renderable=self.render,
            console=console,
            refresh_per_second=REDRAWS_PER_SECOND,
            transient=True,
        )

    def __enter__(self) -> Bar:
        if shared := self._names.shared:
            self._console.print(Text(f"All cells: {shared}", style="dim"), soft_wrap=True)
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def render(self) -> RenderableType:
        """Return the bar, share of the work, times and step, in one or two lines; then the figures so far."""
        width = self._console.width
        elapsed = duration(self._clock() - self._begun)
        facts = f"{percent(self.share())} · {elapsed} · about {duration(self.left())} left"
        bar_width = BAR if width >= ONE_LINE else max(0, width - cell_len(facts) - 1)
        bar = ProgressBar(total=1.0, completed=self.share(), width=bar_width)
        grid = Table.grid(padding=(0, 1))
        if width >= ONE_LINE:
            grid.add_row(bar, Text(facts), Text(self.step(width - BAR - cell_len(facts) - 2), no_wrap=True))
            return Group(grid, *self.rows())
        grid.add_row(bar, Text(facts, no_wrap=True))
        return Group(grid, Text(self.step(width), no_wrap=True), *self.rows())

    def rows(self) -> list[Text]:
        """Return the figures so far of cells without a record, one line each below a title."""
        cells = list(self._figures)[-MOST_ROWS:]
        if not cells or self._console.height < len(cells) + 4:
            return []
        count = "1 process" if self._known_from < 2 else f"{self._known_from} processes"
        names = [plain(self._names[cell]) for cell in cells]
        width = min(max(map(len, names)), LINE - 26)
        lines = [f"{fitted(f'provisional ({count})', width + 4)}{'ms':>9}{'over eager':>13}"]
        for cell, name in zip(cells, names, strict=True):
            figure = self._figures[cell]
            lines.append(f"  {fitted(name, width)}  {text_of(figure.seconds * 1e3):>9}{figure.ratio(' slowed'):>13}")
        return [Text(line, no_wrap=True) for line in lines]

    def share(self) -> float:
        """Return the completed share of the expected seconds; the current process counts at most its estimate."""
        done = self._whole - sum(self._estimates.values())
        at_work = min(self._clock() - self._process_begun, self._current)
        return min((done + at_work) / self._whole, 1.0) if self._whole else 0.0

    def step(self, room: int = LINE) -> str:
        """Return the current step, with its seconds if nothing else shows progress.

        The text has at most `room` columns: names are shortened before the phase.
        """
        names, doing = self._step
        seconds = f" {self._clock() - self._step_begun:.0f} s" if self._timed else ""
        process = (
            f" · process {self._process + 1} of {max(self._processes, self._process + 1)}" if self._process else ""
        )
        doing = f"{doing}{seconds}{process}"
        named = Text(plain(names))
        named.truncate(max(room - cell_len(doing) - 3, 0), overflow="ellipsis")
        return " · ".join(filter(None, (named.plain, doing)))[: max(room, 0)]

    def left(self) -> float:
        """Return the remaining seconds of the run, from the processes so far and their estimates; they decrease."""
        now, ahead = self._clock(), sum(self._estimates.values())
        pace = (self._process_begun - self._begun) / self._expected if self._expected else 1.0
        spent = now - self._process_begun
        if self._current and spent > self._current * pace:  # slower than the others, as the next may be
            pace = (now - self._begun) / (self._expected + self._current)
        return max(ahead * pace - spent, 0.02 * ahead * pace)

    def _begin(self, names: str, doing: str, timed: bool = True) -> None:
        if (names, doing) != self._step:
            self._step_begun = self._clock()
        self._step, self._timed = (names, doing), timed

    def bundle(self, bundle: Bundle, process: int) -> None:
        """Show that a worker is starting."""
        self._process, self._framework = process, bundle.first.framework
        self._current = self._shares.get(bundle.first.id, 0.0)
        self._begin(self._framework, "starting")

    def phase(self, cell_id: str | None, phase: str) -> None:
        """Show the worker's new phase."""
        if phase == "first call":
            eager = self._modes.get(cell_id or "") == frameworks.describe(self._framework).baseline.name
            doing = "first call" if eager else "compiling"
        else:
            doing = STEPS.get(phase, phase)
        self._begin(self._named(cell_id) if cell_id else self._framework, doing)

    def _named(self, cell: str) -> str:
        """Return a cell's name as `torch inductor · bert-base 1×128`, or the framework of a peak benchmark."""
        if cell.startswith(PEAK_PREFIX):
            return f"{cell.removeprefix(PEAK_PREFIX).partition('/')[0]} · peaks of the machine"
        return " · ".join(filter(None, (self._names.mode(cell), self._names.shape(cell))))

    def progress(self, rounds: int, seconds: dict[str, float]) -> None:
        """Show the number of rounds so far, with the last sample of each mode in ms."""
        first = next(iter(seconds), "")
        figures = ", ".join(f"{name.rpartition('/')[2]} {text_of(value * 1e3)}" for name, value in seconds.items())
        names = " · ".join(filter(None, (self._framework, self._names.shape(first))))
        self._begin(names, f"round {rounds}" + (f" · {figures} ms" if len(figures) < 40 else ""), timed=False)

    def figures(self, process: int, figures: Figures) -> None:
        """Show new figures of cells without a record: from a few rounds in process 0, later over all processes."""
        figures = {cell: figure for cell, figure in figures.items() if cell not in self._recorded}
        self._figures |= figures
        self._unsaid |= figures
        self._known_from = process + 1
        compared = process or any(figure.speedup is not None for figure in figures.values())
        if compared and self._lines and not self._console.is_terminal:
            self._say(process)

    def _say(self, process: int) -> None:
        """Print the figures not yet printed, one line per shape."""
        shapes: dict[str, list[str]] = {}
        for cell, figure in self._unsaid.items():
            ratio = f" ({figure.ratio(', host slowed')})" if figure.speedup else ""
            mode = cell.rpartition("/")[2]
            shapes.setdefault(self._names.shape(cell), []).append(f"{mode} {text_of(figure.seconds * 1e3)} ms{ratio}")
        self._unsaid.clear()
        last = max(self._processes, process + 1)
        for shape, figures in shapes.items():
            text = f"process {process + 1}/{last}: {self._framework} {shape}: {', '.join(figures)}"
            self._console.print(Text(plain(text + ("" if process else ", provisional"))), soft_wrap=True)

    def record(self, record: Record) -> None:
        """Show a finished cell."""
        self._figures.pop(record.cell, None)
        self._recorded.add(record.cell)
        if self._lines:
            self._console.print(line(record, self._names), soft_wrap=True)

    def bound(self, cell_id: str, sentence: str) -> None:
        """Show the bounds of a cell's graphs, before any is compiled."""
        if self._lines:
            self._console.print(Text(f"{self._named(cell_id)}: {plain(sentence)}", style="dim"), soft_wrap=True)

    def process_done(self, bundle: Bundle) -> None:
        """Count a finished process."""
        name = bundle.first.id
        self._settle(name, min(self._shares.get(name, 0.0), self._estimates.get(name, 0.0)))

    def bundle_done(self, bundle: Bundle) -> None:
        """Remove the rest of a finished bundle from the estimates."""
        self._settle(bundle.first.id, self._estimates.get(bundle.first.id, 0.0))

    def _settle(self, name: str, seconds: float) -> None:
        if seconds:
            self._estimates[name] -= seconds
            self._expected += seconds
            self._process_begun, self._current = self._clock(), 0.0


def duration(seconds: float) -> str:
    """Return seconds as text in a suitable unit."""
    if seconds < 90:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def line(record: Record, names: Names) -> Text:
    """Return one line of at most 80 columns on a finished cell; shorten names rather than figures."""
    cell, measured = record.cell, record.latency_ms_median is not None
    figures = terminal.in_a_line(record) if measured else Text(_failure(record), style="yellow")
    mode, shape = names.widths
    room = LINE - 4 - max(terminal.WIDTH, cell_len(figures.plain) if measured else 0)
    shape = min(shape, max(room - mode, room // 2))
    mode = min(mode, room - shape)
    text = Text(f"{fitted(plain(names.mode(cell)), mode)}  {fitted(plain(names.shape(cell)), shape)}  ") + figures
    text.truncate(LINE, overflow="ellipsis")
    return text


def _failure(record: Record) -> str:
    return plain(f"{record.status}: {record.reason}")


def fitted(text: str, width: int) -> str:
    """Return the text in `width` columns, padded, or cut in the middle, because names differ at both ends."""
    if len(text) <= width:
        return text.ljust(width)
    head = max(width * 3 // 5, 0)
    tail = max(width - head - 1, 0)
    return f"{text[:head]}…{text[len(text) - tail :]}"[: max(width, 0)]
