"""Is `synchronize` believed only when it waits? On a device whose clock moves by its work alone."""

from __future__ import annotations

import pytest

from measurement.completion import OUTSTANDING_SHARE, outstanding_share

WORK, COPY = 8.0, 1.0


class Device:
    """Work is queued by a call, runs while time passes, and must be done before it can be fetched."""

    def __init__(self, waits: float):
        self.now, self.done_at, self.waits, self.calls = 0.0, 0.0, waits, 0

    def step(self) -> None:
        self.calls += 1
        self.done_at = self.now + WORK

    def synchronize(self, output) -> None:
        self.now += self.waits * (self.done_at - self.now)

    def fetch(self, output) -> None:
        self.now = max(self.now, self.done_at) + COPY

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def share_of(device: Device) -> float:
    return outstanding_share(device.step, device.synchronize, device.fetch, lambda: device.now, device.sleep)


@pytest.mark.parametrize(("waits", "share"), [(1.0, 0.0), (0.0, 8 / 9), (0.25, 6 / 9), (0.75, 2 / 9)])
def test_the_share_is_what_is_left_to_do(waits, share):
    assert share_of(Device(waits)) == pytest.approx(share)


def test_a_slow_copy_to_the_host_is_not_taken_for_work():
    device = Device(waits=1.0)
    device.fetch = lambda output: device.sleep(20 * WORK)
    assert share_of(device) == 0


def test_short_calls_are_asked_three_times_and_one_slip_forgiven():
    device = Device(waits=1.0)
    waits = iter([0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    inner = device.synchronize

    def slips_once(output) -> None:
        device.waits = next(waits)
        inner(output)

    device.synchronize = slips_once  # on the call that only sets up, and on one pair
    fast = lambda: device.now / 1e4  # noqa: E731 - calls of a millisecond
    share = outstanding_share(device.step, device.synchronize, device.fetch, fast, lambda s: device.sleep(s * 1e4))
    assert device.calls == 7
    assert share <= OUTSTANDING_SHARE
