"""Records made for one rule each, of two frameworks that are not there, and what is said of them."""

from __future__ import annotations

from doubles.synthetic import timed

from analysis.answers import Answer, by_setting
from analysis.points import Points
from analysis.settings import Words
from reports.sections.answer import in_words

KNOWN = {
    ("alpha", "plain"): Words("alpha.compile(model)", default=True),
    ("alpha", "quick"): Words('alpha.compile(model, "quick")'),
    ("idle", "eager"): Words(deployed=False),
    ("idle", "graph"): Words("idle.jit(model)", default=True),
}
SHARED = {
    "workload": "bert", "implementation": "plain", "pass": "inference", "dtype": "fp32", "threads": 2, "launches": 3,
    "shapes": "static", "weights": "seed:0", "machine_id": "abcd", "device_name": "A processor", "program": "same",
    "batch_size": 1, "seq_len": 128,
}  # fmt: skip


def cell(milliseconds: float, gain: float | None = None, first: float = 0.5, **more) -> dict:
    """A record; `gain` is its speedup over eager."""
    percent = None if gain is None else 100 * (1 - 1 / gain)
    return timed(milliseconds, percent, **({**SHARED, "first_call_s": first} | more))


def answered(*rows: dict, across: bool = False) -> list[Answer]:
    """The answer at every shape of every setting of these records."""
    return [answer for found in by_setting(Points(list(rows), across), KNOWN) for answer in found]


def told(*rows: dict) -> list[str]:
    """Every sentence that these records lead to."""
    return [sentence for answer in answered(*rows) for sentence in in_words(answer)]
