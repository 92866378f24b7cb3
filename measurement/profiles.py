"""How long and how carefully a cell is measured: `quick`, `standard` or `rigorous`."""

from __future__ import annotations

from dataclasses import dataclass

# Calls before a sample of several, as a share of it: the first milliseconds after another mode are up to a third
# slower, while caches and predictors adapt.
LEAD_IN_SHARE = 0.25
SINGLE_CALLS_SHARE = 0.1  # of a sample's time, for calls after it that are each waited for


@dataclass(frozen=True)
class Profile:
    """Budgets and stopping rules. Times in seconds, half-widths relative to the estimate.

    A process samples at least `minimum_rounds`, until the cell's share of `seconds_per_cell` (over the fewest
    processes) is spent. It never exceeds `maximum_seconds_per_cell`, even if that allows fewer rounds. With
    `stop_early` it stops as soon as the intervals are within `target_half_width`. Processes are added from
    `minimum_processes` to `maximum_processes` until the intervals over processes are within it. Up to
    `spare_processes` more replace those on a slow host, which give no value.
    """

    name: str
    minimum_processes: int
    maximum_processes: int
    seconds_per_cell: float
    maximum_seconds_per_cell: float
    minimum_rounds: int
    target_half_width: float
    stop_early: bool
    warmup_seconds: float  # cap per mode and process; reaching it unsteady is flagged
    spare_processes: int = 0
    spread_seconds: float = 0.0  # processes of bundles that together take no longer than this take turns
    sample_seconds: float = 0.020  # a sample is at least this long, or one call
    # A sample of queued calls includes filling and emptying the queue, 0.1 to 3 ms on an H200. Samples are long enough
    # to keep that a small share, within these bounds.
    queued_sample_seconds: float = 0.050
    longest_queued_sample_seconds: float = 0.4
    queue_share: float = 0.01
    warmup_window: int = 5
    long_call_seconds: float = 0.05
    long_call_window: int = 3  # of calls that long
    steady_median: float = 0.02
    steady_span: float = 0.2  # of warmup_seconds: a window cannot reveal changes slower than its length

    @property
    def longest_queued_sample(self) -> float:
        """Seconds that a sample of queued calls may last, so that there is time for all rounds."""
        turn = self.maximum_seconds_per_cell / self.minimum_processes / self.minimum_rounds
        affordable = turn / (1 + LEAD_IN_SHARE + SINGLE_CALLS_SHARE)
        return max(self.queued_sample_seconds, min(self.longest_queued_sample_seconds, affordable))

    @property
    def most_processes(self) -> int:
        """Processes of a group at most, with those that replace others."""
        return self.maximum_processes + self.spare_processes


# The operations that peaks are measured with, once per run and framework.
PEAK_BENCHMARK = Profile("peak-benchmark", 1, 1, 0.4, 2.0, 6, 0.05, stop_early=False, warmup_seconds=0.3)
# Speeds of `make explain`, in addition to profiles: enough rounds for an interval, one process.
EXPLAINED = Profile("explained", 1, 1, 1.0, 6.0, 10, 0.05, stop_early=False, warmup_seconds=1.0)
# A call's time in a started process (`make start`), after its first output.
STARTED = Profile("start", 1, 1, 1.0, 4.0, 6, 0.05, stop_early=False, warmup_seconds=1.5)

PROFILES = {
    profile.name: profile
    for profile in (
        # Two seconds a cell and process: an answer while you wait.
        Profile("quick", 3, 5, 6.0, 18.0, 6, 0.10, stop_early=False, warmup_seconds=1.0),
        # Three seconds, with processes far apart: the interval covers their differences.
        Profile("standard", 3, 10, 9.0, 36.0, 10, 0.05, stop_early=False, warmup_seconds=6.0, spread_seconds=900),
        # Up to seven and a half seconds.
        Profile("rigorous", 3, 20, 22.5, 90.0, 10, 0.02, stop_early=True, warmup_seconds=10.0, spread_seconds=3600),
    )
}
