"""What a user sees while a sweep runs: a bar with the current cell, its latest figures and the time left."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness.plan import Bundle
from measurement.schema import is_baseline

# A redraw costs a few milliseconds of a core that a worker may be measured on.
REDRAWS_PER_SECOND = 1


class Bar:
    """A progress bar on a terminal; one line a cell elsewhere. `estimates`: seconds of a bundle by its first cell."""

    def __init__(self, console: Console, cells: int, estimates: dict[str, float]):
        self._console, self._estimates = console, estimates
        self._left, self._expected, self._started = sum(estimates.values()), 0.0, time.monotonic()
        self._progress = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False),
            console=console,
            refresh_per_second=REDRAWS_PER_SECOND,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=cells, left=_left(self._left))
        self._cell, self._launch = "", 0

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_) -> None:
        self._progress.stop()

    def _describe(self, text: str) -> None:
        self._progress.update(self._task, description=text)

    def bundle(self, bundle: Bundle, launch: int) -> None:
        """A worker is being started."""
        self._launch = launch
        self._describe(f"{bundle.first.group_id}: start")

    def phase(self, cell_id: str | None, phase: str) -> None:
        """The worker began something new."""
        self._cell = cell_id or self._cell
        launch = f" (launch {self._launch + 1})" if self._launch else ""
        self._describe(f"{cell_id or ''}: {phase}{launch}")

    def progress(self, rounds: int, seconds: dict[str, float]) -> None:
        """Rounds taken so far, with the last sample of each mode."""
        figures = ", ".join(f"{cell.rpartition('/')[2]} {value * 1e3:.3g} ms" for cell, value in seconds.items())
        group = next(iter(seconds), self._cell).rpartition("/")[0]
        self._describe(f"{group}: {rounds} rounds, {figures}")

    def record(self, record: dict) -> None:
        """A cell is finished."""
        self._console.print(line(record), highlight=False, markup=False, soft_wrap=True)
        self._progress.advance(self._task)

    def bundle_done(self, bundle: Bundle) -> None:
        """Correct the estimate of what is left by how the bundles so far compared with theirs."""
        estimate = self._estimates[bundle.first.id]
        self._left -= estimate
        self._expected += estimate
        pace = (time.monotonic() - self._started) / max(self._expected, 1e-9)
        self._progress.update(self._task, left=_left(self._left * pace))


def _left(seconds: float) -> str:
    return f"about {duration(seconds)} left"


def duration(seconds: float) -> str:
    """Seconds in words of a fitting unit."""
    if seconds < 90:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def line(record: dict) -> str:
    """One line on a finished cell."""
    if record.get("latency_ms_median") is None:
        return f"{record['cell']}: {record['status']}: {record['reason']}"
    text = f"{record['cell']}: {record['status']}, {record['latency_ms_median']:.4g} ms"
    if not is_baseline(record) and record.get("speedup_vs_eager") is not None:
        text += f", {record['speedup_vs_eager']:.3g}x eager"
        if record.get("speedup_ci_low") is not None:
            text += f" [{record['speedup_ci_low']:.3g}, {record['speedup_ci_high']:.3g}]"
    if record.get("flags"):
        text += f" ({record['flags'].replace(';', ', ')})"
    return text + (f": {record['reason']}" if record.get("reason") else "")


class Silent:
    """A display that shows nothing."""

    def bundle(self, bundle: Bundle, launch: int) -> None:
        pass

    def phase(self, cell_id: str | None, phase: str) -> None:
        pass

    def progress(self, rounds: int, seconds: dict[str, float]) -> None:
        pass

    def record(self, record: dict) -> None:
        pass

    def bundle_done(self, bundle: Bundle) -> None:
        pass
