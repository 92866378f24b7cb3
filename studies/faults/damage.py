"""Damaged records and tables, for every command that reads them and for a resume.

A reader answers or refuses in one sentence, within its time and memory, and changes no file of the run. A resume keeps
the lines that are whole and completes the plan, or refuses in a sentence and changes nothing.
"""

from __future__ import annotations

import csv
import io
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

from studies.faults.commands import SPARSE, TOLD, bytes_in, publish, whole_pages, words_of
from studies.faults.tampering import ANY, RECORDS, finished_run, in_a_record, with_line, with_own_cache
from studies.faults.trial import DONE, REFUSED, Trial

MEMORY = 3 << 30  # bytes of addresses: what fills the memory ends in a MemoryError and not in the kernel's killer
DIGITS = "9" * 400
Table = list[list[str]]


def in_a_row(name: str, text: str) -> Callable[[Trial, bytes], bytes]:
    """A text in place of a column's, in one row."""

    def changed(trial: Trial, data: bytes) -> bytes:
        header, *rows = csv.reader(io.StringIO(data.decode()))
        rows[trial.rng.randrange(len(rows))][header.index(name)] = text
        return written([header, *rows])

    return changed


def written(rows: Table, separator: str = ",") -> bytes:
    table = io.StringIO(newline="")
    csv.writer(table, delimiter=separator).writerows(rows)
    return table.getvalue().encode()


def of_rows(change: Callable[[Table], Table], separator: str = ",") -> Callable[[Trial, bytes], bytes]:
    return lambda trial, data: written(change(list(csv.reader(io.StringIO(data.decode())))), separator)


def without(name: str) -> Callable[[Table], Table]:
    """The table without a column."""
    return lambda rows: [[cell for n, cell in enumerate(row) if n != rows[0].index(name)] for row in rows]


TABLES = {how: change for how, change in ANY.items() if how not in ("a list", "null")} | {
    "CRLF": lambda trial, data: data.replace(b"\n", b"\r\n"),
    "lone CR": lambda trial, data: data.replace(b"\r\n", b"\r"),
    "open quote": lambda trial, data: data + b'"' + data.splitlines()[-1],
    "quote amid": lambda trial, data: data.replace(b",", b',"', trial.rng.randint(1, 40)),
    "NUL amid": lambda trial, data: data.replace(b",", b",\0", trial.rng.randint(150, 300)),
    "no UTF-8": lambda trial, data: data.replace(b"mlp", b"\xff\xfe"),
    "header alone": lambda trial, data: data.splitlines(keepends=True)[0],
    "header gone": lambda trial, data: data.partition(b"\n")[2],
    "header twice": lambda trial, data: data.partition(b"\n")[0] + b"\n" + data,
    "blank lines": lambda trial, data: data.replace(b"\n", b"\n\n\n"),
    "rows turned": of_rows(lambda rows: [rows[0], *reversed(rows[1:])]),
    "columns turned": of_rows(lambda rows: [row[::-1] for row in rows]),
    "a column twice": of_rows(lambda rows: [[*row, row[5]] for row in rows]),
    "a column more": of_rows(lambda rows: [[*row, "x"] for row in rows]),
    "a row too long": of_rows(lambda rows: [*rows[:-1], [*rows[-1], "x", "y"]]),
    "a row too short": of_rows(lambda rows: [*rows[:-1], rows[-1][:9]]),
    "row twice": of_rows(lambda rows: [*rows, rows[-1]]),
    "no status": of_rows(without("status")),
    "no cell": of_rows(without("cell")),
    "no latency": of_rows(without("latency_ms_median")),
    "semicolons": of_rows(lambda rows: rows, ";"),
    "tabs": of_rows(lambda rows: rows, "\t"),
    "long field": in_a_row("reason", "x" * 300_000),
    "latency text": in_a_row("latency_ms_median", "fast"),
    "latency inf": in_a_row("latency_ms_median", "inf"),
    "latency nan": in_a_row("latency_ms_median", "nan"),
    "latency 0": in_a_row("latency_ms_median", "0"),
    "latency digits": in_a_row("latency_ms_median", DIGITS),
    "speedup negative": in_a_row("speedup_vs_eager", "-2"),
    "threads digits": in_a_row("threads", DIGITS),
    "launches inf": in_a_row("launches", "inf"),
    "batch half": in_a_row("batch_size", "1.5"),
    "versions no JSON": in_a_row("versions", "{"),
    "versions a list": in_a_row("versions", "[1]"),
    "settings deep": in_a_row("settings", "[" * 100_000),
    "status odd": in_a_row("status", "wonderful"),
    "schema 99": in_a_row("schema_version", "99"),
    "cell odd": in_a_row("cell", "../../x"),
    "formula": in_a_row("framework_version", "=cmd|' /C calc'!A0"),
}  # fmt: skip
LINES = RECORDS | {
    "NUL amid": lambda trial, data: data.replace(b": ", b": \0", 1),
    "no UTF-8": lambda trial, data: data.replace(b"mlp", b"\xff\xfe", 1),
    "lone surrogate": in_a_record(framework_version="\ud800"),
    "digits": lambda trial, data: data.replace(b'"launches": 3', b'"launches": ' + DIGITS.encode(), 1),
    "1e999": lambda trial, data: data.replace(b'"launches": 3', b'"launches": 1e999', 1),
    "key twice": lambda trial, data: data.replace(b'{"', b'{"status": "crash", "', 1),
    "versions a list": in_a_record(versions="[1]"),
    "settings a number": in_a_record(settings="3"),
    "object as flags": in_a_record(flags={"a": 1}),
    "long text": in_a_record(reason="x" * 3_000_000),
    "lines of braces": with_line(b"{}\n{}\n{}"),
    "a gigantic number": with_line(b'{"cell": "a/b", "status": "ok", "threads": 1' + b"0" * 5000 + b"}"),
}
SPECIAL = ("a pipe", "a folder", "sparse", "endless device", "unreadable")
READERS = ("report", "compare", "history", "gather", "watch", "site", "resume")


def damage(trial: Trial, path: Path, how: str, changes: dict) -> None:
    """Do this to a file."""
    if how in changes:
        path.write_bytes(changes[how](trial, path.read_bytes()))
        return
    path.unlink()
    if how == "a pipe":
        os.mkfifo(path)
    elif how == "a folder":
        path.mkdir()
    elif how == "endless device":
        path.symlink_to("/dev/zero")
    elif how == "unreadable":
        path.symlink_to("/proc/self/mem")
    else:
        with open(path, "wb") as file:
            file.truncate(SPARSE)


def damaged(trial: Trial, what: str) -> None:
    """One reader on one kind of damage."""
    command, file, how = what.split(" ", 2)
    if command == "site":
        with_own_cache(trial)
    planned = finished_run(trial)
    if command == "resume" and file == "results.csv" and not (trial.out / "records.jsonl").exists():
        return
    whole = trial.folder / "whole"
    shutil.copytree(trial.suite.folder / "template", whole)
    if file == "results.csv" and command != "resume":
        (trial.out / "records.jsonl").unlink()  # else it stands in for a table that cannot be read
    elif command != "resume" and trial.rng.random() < 0.5:
        (trial.out / "results.csv").unlink()
    damage(trial, trial.out / file, how, LINES if file == "records.jsonl" else TABLES)
    trial.longest_path = 4 * len(str(trial.out))
    limit = (resource.RLIMIT_AS, (MEMORY, MEMORY))
    if command == "resume":
        resumed(trial, planned, limit, how)
        return
    if command == "site":
        publish(trial, whole, trial.out)
    before = bytes_in(trial.out)
    words = words_of(trial, command, trial.out, whole)
    trial.run(*words, command=command, codes=TOLD, limit=limit)
    if bytes_in(trial.out) != before:
        trial.saw("files changed", "by a command that reads")
    whole_pages(trial, trial.folder)


def resumed(trial: Trial, planned: list[str], limit: tuple, how: str) -> None:
    before = trial.lines() if (trial.out / "records.jsonl").is_file() and how != "sparse" else None
    ended = trial.resume(codes=DONE | REFUSED, limit=limit)
    if ended.code in REFUSED:
        if before is not None and trial.lines() != before:
            trial.saw("records changed", "by a run that was refused")
        return
    trial.complete(planned, {}, in_records=False)  # what is odd in the records may stay there


FAULTS = {
    "damaged": {f"{command} {file} {how}": damaged for command in READERS
                for file, hows in (("records.jsonl", LINES), ("results.csv", TABLES)) for how in (*hows, *SPECIAL)},
}  # fmt: skip
