"""The host's own speed: a fixed Python loop timed around every turn, and the turns that count.

Two processes in the same minute may differ twofold because another tenant uses the core's other hyperthread. No system
counter reports it (the time is not stolen). But everything that the core executes takes longer, including this loop.

Every latency and speedup estimates its value on a core at full speed. A turn's control is the slower of the loops right
before and after it. A turn counts if its control is at most `SLOW` times the loop at full speed. All turns of a mode
count if its calls do not wait for the host (`follows`). The time of calls that wait is scaled to the core of the
fastest process (`at_full_speed`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import NamedTuple

from measurement.statistics import ENOUGH_PROCESSES, FEWEST_VALUES

STEPS = 15_000  # 0.3 ms on a processor of 2023
# With a busy hyperthread a core takes 1.8 to 2 times as long, after a clock change 1.1 to 1.2 times. The loop scatters
# by a few percent. This limit excludes only changes that halve a ratio.
SLOW = 1.25
# A GPU call waits for the host all the time if submission takes at least this share of it. On an H200 the share was
# 0.85 to 1.26 for kernels launched one by one, and 0.03 to 0.63 for CUDA graphs, which overlap with submission.
HOST_SHARE = 0.8
# Up to this share it does not wait even for a slow core (twice the time). On H100s slow turns took at most 1.3 % longer
# at shares up to 0.36, and 28 to 46 % longer from 0.97 on.
LIGHT_SHARE = HOST_SHARE / 2
# Below `HOST_SHARE`, slow turns that take the time of fast ones do not wait. On H100s 73 to 100 % of the slow turns
# of 23 cells were within this limit, and 0 to 20 % of those of 10 cells at shares from 0.65 on.
SAME = 0.02
FEWEST_FAST, FEWEST_SLOW = 3, 6  # turns for this comparison, the slow ones in at least two processes
NEAR = 1.01  # of the least median: medians of 20 loops scatter by 0.5 %
FASTEST_SHARE = 0.1  # of a run's loops; the slowest of them is at full speed


def loop() -> int:
    """Run a fixed amount of interpreter work, with little memory and no system call; return its sum."""
    total = 0
    for step in range(STEPS):
        total += step & 7
    return total


def loop_seconds(clock: Callable[[], float]) -> float:
    """Return the loop's seconds: the faster of two, since an interrupt in one does not mean a slow host."""
    start = clock()
    loop()
    middle = clock()
    loop()
    return min(middle - start, clock() - middle)


def full_seconds(loops: Sequence[float], earlier: float | None = None) -> float | None:
    """Return the loop's seconds at the core's full speed; None without measurements.

    That is the fastest decile (nearest rank) of `loops`, in any order, or `earlier`, from earlier processes, if
    shorter.
    """
    own = sorted(loops)[int(FASTEST_SHARE * len(loops))] if loops else None
    return min((seconds for seconds in (own, earlier) if seconds is not None), default=None)


def limits(host_s: float | None, samples: Sequence[float]) -> bool:
    """Return whether calls may wait for the host, which submits one in `host_s` seconds (None on a CPU).

    `samples` are seconds per call.
    """
    return host_s is None or not samples or host_s > LIGHT_SHARE * median(samples)


def good_turns(loops: Sequence[float], turns: int, full_s: float | None, limited: bool = True) -> list[bool]:
    """Return for each turn whether it counts: the host ran at full speed, or does not limit the mode.

    A turn without a loop (early samples) counts.
    """
    limit = math.inf if full_s is None or not limited else SLOW * full_s
    return [seconds <= limit for seconds in loops[:turns]] + [True] * (turns - len(loops))


class Turns(NamedTuple):
    """A cell's turns in one process: seconds per call, and the control of each."""

    samples: Sequence[float]
    loops: Sequence[float]
    host_s: float | None  # of a call until its submission returns; None on a CPU
    device_s: float | None  # of a call in which the device is busy; None if that was not measured
    full_s: float | None = None  # the control's at full speed, from this and earlier processes


def full_speed_s(processes: Iterable[Turns]) -> float | None:
    """Return the control's seconds at full speed, by the fastest host of these processes; None if none timed it."""
    known = [turns.full_s or full_seconds(turns.loops) for turns in processes]
    return min(filter(None, known), default=None)


def good_in_all(processes: Sequence[Turns], full_s: float | None) -> list[list[bool]]:
    """Return for each turn of a cell's processes whether it counts."""
    follow = follows(processes, full_s)
    return [
        good_turns(turns.loops, len(turns.samples), full_s, follow and limits(turns.host_s, turns.samples))
        for turns in processes
    ]


def follows(processes: Sequence[Turns], full_s: float | None) -> bool:
    """Return whether a cell's time may follow the core's speed: False if slow turns take the time of fast ones.

    Half of each process's slow turns must do so. Submission may take more than `LIGHT_SHARE`, since a full queue blocks
    it, but less than `HOST_SHARE`: where the core changes its speed within a turn, slow and fast turns are alike. With
    fewer turns, or slow ones in one process only, it is True.
    """
    shares = [turns.host_s / median(turns.samples) for turns in processes if turns.host_s is not None and turns.samples]
    if len(shares) < len(processes) or min(shares, default=1.0) >= HOST_SHARE:
        return True
    marked = [(turns.samples, good_turns(turns.loops, len(turns.samples), full_s)) for turns in processes]
    fast = [one for samples, marks in marked for one in itertools.compress(samples, marks)]
    slow = [[one for one, is_good in zip(*both, strict=True) if not is_good] for both in marked]
    slow = [seconds for seconds in slow if seconds]
    if len(fast) < FEWEST_FAST or sum(map(len, slow)) < FEWEST_SLOW or len(slow) < 2:
        return True
    usual = median(fast)
    return any(sum(abs(one / usual - 1) <= SAME for one in seconds) < len(seconds) / 2 for seconds in slow)


def fastest_seconds(processes: Iterable[Sequence[Turns]], full_s: float | None) -> float | None:
    """Return the control's median seconds over the good turns of the fastest processes; None without any.

    Each process has the turns of its cells. It counts from `FEWEST_VALUES` good ones on. Processes within `NEAR` of the
    fastest are pooled: of many equal ones the least median lies below the common one.
    """
    loops = ([loop for turns in cells for loop in _good(turns.loops, turns, full_s)] for cells in processes)
    enough = [good for good in loops if len(good) >= FEWEST_VALUES]
    least = min(map(median, enough), default=0.0)
    near = [good for good in enough if median(good) <= NEAR * least]
    return median(itertools.chain(*near)) if near else None


def at_full_speed(
    cells: Sequence[Sequence[Turns]], full_s: float | None, fastest_s: float | None = None
) -> list[list[list[float]]]:
    """Return seconds per call of interleaved cells, a list for each process, as on the fastest process's core.

    An interpreter submits a call that waits for the host, so its time is proportional to the control's, but at least
    the device's. All cells of a process share its core, which cancels in a ratio of two that wait. `fastest_s` is the
    control's time in the fastest process if there are others than these.
    """
    by_process = list(zip(*cells, strict=True))
    fastest_s = fastest_s or fastest_seconds(by_process, full_s)
    factors = [_factor(turns, full_s, fastest_s) for turns in by_process]
    return [_scaled(processes, factors, full_s) for processes in cells]


def _scaled(processes: Sequence[Turns], factors: Sequence[float], full_s: float | None) -> list[list[float]]:
    """Return a cell's seconds per call, scaled by each process's factor."""
    scale = scaling(processes, full_s)
    both = zip(processes, factors, strict=True)
    return [[scale(seconds, factor) for seconds in turns.samples] for turns, factor in both]


def scaling(processes: Sequence[Turns], full_s: float | None) -> Callable[[float, float], float]:
    """Return a function of a cell's seconds per call and a factor: their product, as far as calls wait for the host.

    It returns no less than the device's seconds.
    """
    part = _waiting(processes, full_s) if follows(processes, full_s) else 0.0
    least = median([turns.device_s for turns in processes if turns.device_s] or [0.0])
    return lambda seconds, factor: max(seconds * (1 - part * (1 - factor)), min(seconds, least))


def _factor(cells: Sequence[Turns], full_s: float | None, fastest_s: float | None) -> float:
    """Return the control's time in the fastest process over its median in one process's good turns; 1 without any."""
    loops = [loop for turns in cells for loop in _good(turns.loops, turns, full_s)]
    return fastest_s / median(loops) if fastest_s and loops else 1.0


def _waiting(processes: Sequence[Turns], full_s: float | None) -> float:
    """Return the part of a cell's time that waits for the host, from 0 at `LIGHT_SHARE` to 1 at `HOST_SHARE`.

    The process with the smallest share of submission decides, because a slow host may double it in one.
    """
    good = [(turns.host_s, _good(turns.samples, turns, full_s)) for turns in processes]
    shares = [host_s / median(taken) for host_s, taken in good if host_s is not None and len(taken) >= FEWEST_VALUES]
    part = (min(shares, default=0.0) - LIGHT_SHARE) / (HOST_SHARE - LIGHT_SHARE)
    return max(0.0, min(1.0, part))


def _good(values: Sequence[float], turns: Turns, full_s: float | None) -> list[float]:
    """Return the values of the turns with the host at full speed."""
    limit = 0.0 if full_s is None else SLOW * full_s
    return [value for value, _, loop in zip(values, turns.samples, turns.loops, strict=False) if loop <= limit]


def counting(processes: Sequence[Sequence[bool]]) -> tuple[list[list[int]], bool]:
    """Return the indices of the turns that count in each process, and whether the host was slow in too many.

    A process with slow turns and fewer than `FEWEST_VALUES` good ones is dropped. If fewer than `ENOUGH_PROCESSES`
    remain, all turns of all processes count, and published summaries omit their results.
    """
    good = [[place for place, is_good in enumerate(turns) if is_good] for turns in processes]
    enough = usable(processes)
    if not all(enough) and sum(enough) < ENOUGH_PROCESSES:
        return [list(range(len(turns))) for turns in processes], True
    return [places if is_enough else [] for places, is_enough in zip(good, enough, strict=True)], False


def usable(processes: Sequence[Sequence[bool]]) -> list[bool]:
    """Return for each process whether it has enough good turns for a value."""
    return [sum(turns) >= min(FEWEST_VALUES, len(turns)) for turns in processes]
