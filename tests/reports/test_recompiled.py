"""Verdict and terminal name the guard and the count where a mode compiled again."""

from __future__ import annotations

import json

import pytest
from doubles.advised import cell, told

from reports.remarks import recompilation
from reports.terminal import _remarks

GUARD = json.dumps([["net.py:12", "len(self.seen) == 1"]])
AGAIN = {"recompilations": 5, "recompiled_places": GUARD, "samples": 40, "calls_per_sample": 2}
EXPECTED = "plain recompiled 5 times: len(self.seen) == 1 (net.py:12)."


@pytest.mark.parametrize("gain", [1.25, 1.0, 0.5], ids=["use", "untold", "stay"])
def test_the_verdict_and_the_terminal_name_guard_and_count(gain):
    rows = [cell(10.0), cell(10.0 / gain, gain, mode="plain", **AGAIN)]
    assert " ".join(told(*rows)).count(EXPECTED) == 1
    assert f"{rows[1].framework} {EXPECTED}" in _remarks(rows)


def test_an_excluded_mode_is_named_too():
    rows = [cell(10.0), cell(8.0, 1.25, mode="plain", status="mismatch", **AGAIN)]
    assert f"{rows[1].framework} {EXPECTED}" in _remarks(rows)


def test_an_eager_mode_that_compiles_in_every_call_is_named_once():
    rows = [cell(10.0, flags="eager_compiles"), cell(1.0, 10.0, mode="plain", flags="eager_compiles")]
    said = f"{rows[0].framework} eager compiles or traces in every call, so no speedup over it counts."
    assert [line for line in _remarks(rows) if "compiles" in line] == [said]


def again(**more) -> dict:
    return cell(8.0, 1.25, mode="plain", **(AGAIN | more))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"recompilations": 80}, "plain compiles in every call: len(self.seen) == 1 (net.py:12)."),
        ({"recompilations": 79}, "plain recompiled 79 times: len(self.seen) == 1 (net.py:12)."),
        ({"recompilations": 1, "recompiled_places": None}, "plain recompiled 1 time."),
        ({"recompilations": 0}, "plain recompiled: len(self.seen) == 1 (net.py:12)."),
        ({"recompilations": 0, "recompiled_places": None}, ""),
        ({"samples": None, "recompilations": 80}, "plain recompiled 80 times: len(self.seen) == 1 (net.py:12)."),
        (
            {"recompiled_places": json.dumps([[f"net.py:{line}", "x"] for line in (1, 2, 3)])},
            "plain recompiled 5 times: x (net.py:1); x (net.py:2); and 1 more.",
        ),
    ],
)  # fmt: skip
def test_the_sentence_follows_the_counts(more, expected):
    assert recompilation(again(**more)) == expected


def test_eager_mode_that_compiles_is_named():
    rows = [cell(10.0, **AGAIN | {"recompilations": 100}), cell(8.0, 1.25, mode="plain")]
    assert "eager compiles in every call" in " ".join(told(*rows))
