"""How far a run is, from its folder alone: what is damaged there is left out, and nothing is waited for."""

from __future__ import annotations

import json
import os

import pytest

from commands.watch import Sight
from measurement.refusals import UsageError
from records import jsonfiles

PLAN = {"given": {}, "cells": ["a", "b", "c"], "started_at": "2026-01-01T00:00:00Z"}


def seen(folder, plan: dict, *lines: bytes) -> list[str]:
    (folder / "plan.json").write_text(json.dumps(plan))
    (folder / "records.jsonl").write_bytes(b"\n".join(lines))
    sight = Sight(folder)
    sight.look()
    return sight.lines()


def test_each_cell_counts_once_and_half_a_line_not_yet(tmp_path):
    whole = b'{"cell": "a", "status": "ok", "node": "n1"}'
    told = seen(tmp_path, PLAN, whole, whole, b'{"cell": "b", "status": "crash"}', b'{"cell": "c"')
    assert told[0] == "2 of 3 cells (1 ok, 1 crash) · not in a Slurm job"
    assert "since the start" in told[1] and told[2] == "by node: n1 1"


@pytest.mark.parametrize("line", [b"null", b"[]", b"{}", b'{"cell": ["a"]}', b'{"cell": null}', b"\xff", b"[" * 9999])
def test_a_line_that_holds_no_record_is_left_out(tmp_path, line):
    assert seen(tmp_path, PLAN, line, b"")[0] == "0 of 3 cells · not in a Slurm job"


@pytest.mark.parametrize("started", ["yesterday", None, 3])
def test_a_plan_that_does_not_say_when_tells_no_pace(tmp_path, started):
    assert seen(tmp_path, PLAN | {"started_at": started}, b'{"cell": "a"}', b"") == [
        "1 of 3 cells (1 None) · not in a Slurm job"
    ]


def test_what_is_no_file_is_neither_read_nor_waited_for(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    (tmp_path / "submitted.json").write_text("[7]")
    os.mkfifo(tmp_path / "records.jsonl")
    os.mkfifo(tmp_path / "machine.json")
    sight = Sight(tmp_path)
    sight.look()
    assert sight.lines() == ["0 of 3 cells · not in a Slurm job"] and not sight.ended()


def test_a_file_without_end_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonfiles, "MOST_OF_A_LINE", 1 << 10)
    monkeypatch.setattr(jsonfiles, "MOST_OF_A_FILE", 1 << 10)
    (tmp_path / "machine.json").write_text('{"job": "7"' + " " * (1 << 20) + "}")
    assert seen(tmp_path, PLAN, b'{"cell": "a", "status": "ok"}', b"")[0] == "1 of 3 cells (1 ok) · not in a Slurm job"
    with pytest.raises(UsageError, match=r"records\.jsonl cannot be read: it has a line of more than"):
        seen(tmp_path, PLAN, b"\0" * (1 << 20))


@pytest.mark.parametrize("rate", [0.5, 0.123456789, 1e300])
def test_records_that_are_rewritten_between_two_looks_are_all_seen(tmp_path, rate):
    """As after every window, when peaks have changed: earlier lines get shorter or longer, and new ones follow."""
    (tmp_path / "plan.json").write_text(json.dumps(PLAN | {"cells": ["a", "b", "c", "d"]}))
    path = tmp_path / "records.jsonl"
    sight = Sight(tmp_path)
    for cell in "abc":
        jsonfiles.append(path, {"cell": cell, "status": "ok", "peak_tflops": 0.12345})
    sight.look()
    assert len(sight.seen) == 3
    jsonfiles.append(path, {"cell": "d", "status": "ok", "peak_tflops": rate})
    jsonfiles.amend(path, {cell: {"peak_tflops": rate} for cell in "abc"})
    sight.look()
    assert sight.ended() and sight.statuses == {"ok": 4}


def test_a_rewriting_that_leaves_the_size_as_it_was_hides_no_record(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"cell": "a", "note": "0123456789"}\n{"cell": "b"}\n')
    sight = Sight(tmp_path)
    sight.look()
    path.write_bytes(b'{"cell": "a"}\n{"cell": "b"}\n{"cell": "c"}\n'.ljust(sight.place - 1) + b"\n")
    sight.look()
    assert path.stat().st_size == sight.place and sight.ended()
