"""Every reader on damaged files: a sentence that names the file, or an answer; never a traceback, never a wait."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
import random
import shutil
from collections import ChainMap
from pathlib import Path

import pytest
from doubles.reported import lines, profile, record, rows_of, small_set, write_run

import runner
from measurement.refusals import UsageError
from records import jsonfiles, runs
from records import record as schema
from records.recordfile import Unreadable, load, write_csv

DIGITS = 10**400
ODD = (None, True, 0, -1, 3, 2**63, DIGITS, 0.0, -1.0, 5e-324, 1e-30, 1e30, 1e308, float("inf"), float("nan"))
ODD += ("", "x", "\ud800", "=1+1", "{}", "[]", '{"a": 1}', "[1]", '[["a"]]', "null", "1", [], {}, [1], {"a": 1})
TOGETHER = 6  # columns
# What a text of a CSV may be instead.
TEXTS = ("", "x", "0", "-1", "1e400", "inf", "nan", "1e308", "5e-324", "9" * 400, "true", "{}", "[1]", "'", "2.5")
PROFILES = [profile("eager", 0.02) | {"baseline": True}, profile("graph", 0.016) | {"baseline": False}]
PLAN = {"given": {"framework": "alpha"}, "cells": [], "started_at": "2026-01-01T00:00:00Z", "number": 1}
NODES = [{"node": "one", "latency_ms": 2.0}, {"node": "two", "latency_ms": 3.0}]


def rows() -> list[dict]:
    """Two threads counts of a rung-free framework, with something in every column that is JSON."""
    texts = {"versions": '{"numpy": "2.0"}', "settings": '{"policies": {"a": "b"}}'}
    texts |= dict.fromkeys(("graph_break_places", "recompiled_places"), '[["x.py:3", "print"]]')
    return [row | texts for row in (*small_set()[:4], record("alpha", "eager", threads=4))]


@pytest.fixture
def folder(tmp_path) -> Path:
    """A run's folder with all that readers read."""
    made = write_run(tmp_path / "run", rows(), PROFILES)
    (made / "plan.json").write_text(json.dumps(PLAN))
    (made / "nodes.jsonl").write_bytes(lines(NODES))
    samples = [{"cell": row.cell, "launch": 1, "worker": "w", "seconds_per_call": [0.1, 0.2]} for row in rows()]
    (made / "samples.jsonl.gz").write_bytes(gzip.compress(lines(samples)))
    return made


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> Path:
    return write_run(tmp_path_factory.mktemp("other") / "other", rows())


def answers(folder: Path, other: Path, capsys, name: str = "", out: Path | None = None) -> list[int]:
    """The exit codes of all readers; a refusal is one line, and names the file if it is about one."""
    out = out or folder.parent / "out"
    out.mkdir(exist_ok=True)
    commands = [
        ["report", folder, "--out", out],
        ["compare", folder, other, "--out", out / "c.md"],
        ["compare", f"{folder},{other}", "--history", "--out", out],
        ["report", folder, "--gather", out / "all.csv"],
    ]
    codes = []
    for words in commands:
        capsys.readouterr()
        codes.append(runner.main(list(map(str, words))))
        error = capsys.readouterr().err
        assert codes[-1] in (0, 1, 2, 3)
        if codes[-1] == 2:
            assert error.count("\n") == 1 and len(error) < 1000
            assert (
                name in error
                or "no records yet" in error
                or "No cell was measured twice" in error
                or "in common" in error
            )
    return codes


def fits(path: Path) -> bool:
    """Whether records can be read, or are refused with the file's name."""
    try:
        load(path)
    except Unreadable as refused:
        assert str(path) in str(refused) and "\n" not in str(refused)
        return False
    return True


def test_the_readers_read_what_is_whole(folder, other, capsys):
    assert answers(folder, other, capsys) == [0, 0, 0, 0]


def test_profiles_without_records_are_reported_and_not_compared(folder, other, capsys):
    for name in ("records.jsonl", "results.csv"):
        (folder / name).unlink(missing_ok=True)
    assert answers(folder, other, capsys, "profiles but no records") == [0, 2, 2, 2]


@pytest.mark.parametrize("start", range(0, len(schema.NAMES), TOGETHER), ids=lambda start: schema.NAMES[start])
def test_every_column_with_odd_values(folder, other, capsys, start):
    """What the reader takes, the reports take: of several columns at once where the reader takes that."""
    usual, path = rows(), folder / "records.jsonl"

    def written(*odd: dict) -> bool:
        path.write_bytes(lines([row | more for row, more in itertools.zip_longest(usual, odd, fillvalue={})]))
        return fits(path)

    taken = {name: [v for v in ODD if written({name: v})] for name in schema.NAMES[start : start + TOGETHER]}
    for first in range(0, max(map(len, taken.values())), len(usual)):
        odd = {name: [{name: value} for value in all_of[first : first + len(usual)]] for name, all_of in taken.items()}
        at_once = [dict(ChainMap(*each)) for each in itertools.zip_longest(*odd.values(), fillvalue={})]
        for each in [at_once] if written(*at_once) else odd.values():
            written(*each)
            answers(folder, other, capsys, "records.jsonl")
    for name in taken:
        assert not written({name: [1]})
    assert answers(folder, other, capsys, "records.jsonl")[-1] == 2  # the reader of all columns


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_column_of_a_table_with_an_odd_text(tmp_path, text):
    """In every third column, from another one on: each has five of the texts."""
    table = io.StringIO()
    write_csv(rows(), tmp_path / "whole.csv")
    header, first, *rest = csv.reader((tmp_path / "whole.csv").open(newline=""))
    for place in range(TEXTS.index(text) % 3, len(header), 3):
        table = io.StringIO()
        csv.writer(table).writerows([header, [*first[:place], text, *first[place + 1 :]], *rest])
        (tmp_path / "t.csv").write_text(table.getvalue())
        fits(tmp_path / "t.csv")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_records_cut_off_anywhere_and_with_spans_missing(tmp_path, other, capsys, suffix):
    path = tmp_path / f"t.{suffix}"
    whole = lines(rows())
    if suffix == "csv":
        write_csv(rows(), path)
        whole = path.read_bytes()
    draw = random.Random(3)
    read = 0
    for number in range(60):
        start = draw.randrange(len(whole))
        end = len(whole) if number % 2 else min(len(whole), start + draw.randrange(1, 400))
        path.write_bytes(whole[:start] + whole[end:])
        if fits(path):
            read += 1
            if number % 4 == 0:
                answers(path, other, capsys, out=tmp_path)
    assert 0 < read < 60


FILES = {
    "plan.json": PLAN,
    "machine.json": {"machine_id": "abcd1234", "cpu": "A", "cpus_usable": 2, "memory_bytes": 2**33, "gpus": [{}]}
    | {"virtualised": True, "left_out": {"node": "why"}},
    "explained.jsonl": PROFILES[0] | {"reason": None, "samples_s": [0.1] * 8, "program": "same", "attention": []},
    "nodes.jsonl": NODES[0],
    "samples.jsonl": {"cell": "c", "launch": 1, "worker": "w", "seconds_per_call": [0.1], "host_loop_s": [0.1]},
}


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, entry in FILES.items() for key in entry])
def test_every_other_file_with_odd_values(folder, other, capsys, name, key):
    """The other lines of the file stay as they were."""
    rest = (folder / name).read_bytes() if name.endswith("jsonl") and (folder / name).exists() else b""
    refused = 0
    for value in (*ODD[:10], *ODD[12:16], {"a": []}, {"a": {"b": -1}}, [[1, 2]], [{"name": 3}], [DIGITS], [0.0]):
        (folder / name).write_bytes(lines([FILES[name] | {key: value}]) + rest)
        try:
            list(jsonfiles.lines(folder / name)) if name.endswith("jsonl") else jsonfiles.read_object(folder / name)
        except UsageError as error:
            assert name in str(error) and "\n" not in str(error)
            refused += 1
            continue
        answers(folder, other, capsys, name)
    assert refused or (name, key) in {("plan.json", "started_at")}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"\xff\x00", b"[" * 10**5, b'{"given": [1]}', b"\0" * 9])
@pytest.mark.parametrize("name", ["plan.json", "machine.json", "explained.jsonl", "records.jsonl", "nodes.jsonl"])
def test_files_that_hold_something_else(folder, other, capsys, name, content):
    (folder / name).write_bytes(content)
    answers(folder, other, capsys)


NAMES = ("records.jsonl", "results.csv", "plan.json", "machine.json", "explained.jsonl", "nodes.jsonl")
NAMES += ("samples.jsonl", "samples.jsonl.gz")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("name", NAMES)
def test_no_reader_waits_for_a_pipe_or_reads_a_device(folder, other, capsys, name, kind):
    path = folder / name
    path.unlink(missing_ok=True)
    {"pipe": os.mkfifo, "device": lambda p: p.symlink_to("/dev/zero"), "folder": Path.mkdir}[kind](path)
    codes = answers(folder, other, capsys, name)
    # Of a table that cannot be read the records stand in.
    assert 2 in codes or name == "results.csv"


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_table_does_not_hide_what_lies_in_the_records_place(folder, other, capsys, kind):
    write_csv(rows(), folder / "results.csv")
    (folder / "records.jsonl").unlink()
    make = {"pipe": os.mkfifo, "device": lambda p: p.symlink_to("/dev/zero"), "folder": Path.mkdir}[kind]
    make(folder / "records.jsonl")
    os.utime(folder / "records.jsonl", (0, 0), follow_symlinks=False)
    os.utime(folder / "results.csv", (2**32, 2**32))  # newer than /dev/zero as well
    assert answers(folder, other, capsys, "records.jsonl") == [2, 2, 2, 2]


def test_no_more_is_unpacked_than_a_run_leaves(folder, monkeypatch):
    monkeypatch.setattr(jsonfiles, "MOST_UNPACKED", 1 << 20)
    (folder / "samples.jsonl.gz").write_bytes(gzip.compress(b"\n" * (8 << 20)))
    with pytest.raises(UsageError, match=r"samples\.jsonl\.gz cannot be read: its .* bytes unpack to more than 1 MiB"):
        runs.Run(folder).samples()


def test_a_line_without_end_is_refused(folder, monkeypatch):
    monkeypatch.setattr(jsonfiles, "MOST_OF_A_LINE", 1 << 10)
    with pytest.raises(UsageError, match=r"records\.jsonl cannot be read: it has a line of more than"):
        runs.Run(folder).records()


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_the_first_of_a_cell_twice_counts_and_is_said(tmp_path, suffix):
    first, *rest = rows()
    both = [first, first | {"latency_ms_median": 3.0}, *rest]
    path = tmp_path / f"t.{suffix}"
    write_csv(both, path) if suffix == "csv" else path.write_bytes(lines(both))
    loaded = load(path)
    assert rows_of(loaded.records) == rows_of(rows())
    assert loaded.remarks == [f"{tmp_path.name}/t.{suffix}: ignored 1 record of cells with an earlier record."]


def test_a_misfit_names_its_line_below_torn_and_empty_ones(tmp_path):
    bad = record("alpha", "graph") | {"threads": 0}
    (tmp_path / "r.jsonl").write_bytes(b'{"a\n' + lines([rows()[0]]) + b"\n" + lines([bad]))
    with pytest.raises(Unreadable, match=r"r\.jsonl, line 4: threads holds 0, which is not from 1 to"):
        load(tmp_path / "r.jsonl")
    write_csv([rows()[0] | {"reason": "two\nlines"}, bad], tmp_path / "r.csv")
    with pytest.raises(Unreadable, match=r"r\.csv, line 4: threads holds 0, which is not from 1 to"):
        load(tmp_path / "r.csv")


def test_the_readers_clean_up(folder):
    shutil.rmtree(folder)
    assert runner.main(["report", str(folder)]) == 2
