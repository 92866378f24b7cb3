"""Users' files of every framework, all in one worker process: each is found as `tests/field/<framework>.toml` says."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import field_rows
import pytest
from doubles.brief import brief, frozen
from field_rows import Row

import runner
import workloads
from environments import environments
from execution import campaign, early_checks, peak_benchmarks
from launchers import local
from plan import plan
from plan.sweep import resolve
from records.record import NAMES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first row of a table measures all of them

# Modes that compile nothing where a compiler takes seconds a file.
MODES = {"torch": "eager,dynamo"}
# Files that leave a switch on, each in its own process.
ALONE = (
    *("checks_anomalies.py", "checks_leaks.py", "checks_nan.py", "checks_numerics.py", "not_eager.py"),
    *("counts_operators.py", "profiles_calls.py", "wide_by_default.py"),
)
ROWS = [row for name in field_rows.frameworks() for row in field_rows.rows(name)]
CASES = [
    pytest.param(row, marks=pytest.mark.xdist_group(f"field-{row.framework}"), id=f"{row.framework}-{row.file}")
    for row in ROWS
]
# Records by path, by set of options.
Found = dict[str, dict[str, list[dict]]]


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Callable[[str], Found]:
    """Return what measures a framework's files once, and gives their records by path under each set of options."""
    folder = tmp_path_factory.mktemp
    return functools.cache(lambda framework: measured(framework, folder("field") / framework))


def options(row: Row) -> str:
    return " ".join(f"--{name} {value}" for name, value in row.options.items())


def measured(framework: str, out: Path) -> Found:
    """Measure a framework's files; a second time where the worker crashed, as frameworks do at times."""
    rows = [row for row in ROWS if row.framework == framework]
    if not environments.path(framework, "cpu").exists():
        pytest.skip(f"{framework}'s environment is not made")
    found = measured_once(rows, out / "first")
    crashed = [
        row
        for row in rows
        if any(r["status"] == "crash" and row.unlike(r) for r in found[options(row)].get(str(row.path), ()))
    ]
    for flags, again in (measured_once(crashed, out / "second") if crashed else {}).items():
        found[flags] |= again
    return found


def measured_once(rows: list[Row], out: Path) -> Found:
    """Measure all sets of options with one launch, few calls, and no process of its own for each file."""
    framework = rows[0].framework
    usual = ["--framework", framework, *(["--mode", MODES[framework]] if framework in MODES else [])]
    usual += ["--profile", "quick", "--budget", "0.01", "--threads", "1", "--out", str(out)]
    together: dict[str, list[Row]] = {}
    for row in rows:
        together.setdefault(options(row), []).append(row)

    def words(some: list[Row], flags: str) -> list[str]:
        return ["bench", "--workload", ",".join(dict.fromkeys(str(row.path) for row in some)), *usual, *flags.split()]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workloads, "_USER_MODELS", {})
        cells_of = {
            flags: plan.cells_of(resolve(campaign.options_of(runner.parse(words(some, flags))[1])))
            for flags, some in together.items()
        }
        patch.setattr(plan, "cells_of", lambda sweep: [cell for cells in cells_of.values() for cell in cells])
        patch.setattr(plan, "process_key", lambda cell, isolate: (cell.framework, *{cell.workload}.intersection(ALONE)))
        patch.setattr(peak_benchmarks, "groups_for", lambda cell: ())
        patch.setattr(early_checks, "check", lambda *words: None)  # a process for each file
        patch.setattr(local, "worker_command", frozen(local.worker_command))
        patch.setitem(plan.PROFILES, "quick", brief(plan.PROFILES["quick"], 1))
        runner.main(words(rows, ""))
    names = {flags: {cell.id for cell in cells} for flags, cells in cells_of.items()}
    assert sum(map(len, names.values())) == len(set().union(*names.values()))
    found = field_rows.records(rows, out)
    return {
        flags: {path: [one for one in records if one["cell"] in ids] for path, records in found.items()}
        for flags, ids in names.items()
    }


@pytest.mark.parametrize("row", CASES)
def test_a_users_file_is_judged_as_it_should_be(found, row):
    records = found(row.framework)[options(row)].get(str(row.path), [])
    assert set(row.modes) <= {field_rows.STANDS_FOR.get(record["mode"], record["mode"]) for record in records}
    assert [(record["mode"], unlike) for record in records if (unlike := row.unlike(record))] == []


def test_every_row_has_its_file_and_known_columns():
    for row in ROWS:
        columns = {column for expected in row.expected.values() for column in expected}
        assert row.path.exists() and row.modes and columns <= set(NAMES), row


def test_a_record_that_is_not_as_expected_is_found():
    expected = {"all": {"flags": ["a", "!b"]}, "eager": {"graphs": 1, "reason": "", "flops": ">2"}}
    row = Row("torch", "x.py", "", ["eager"], expected)
    right = {"mode": "eager", "status": "ok", "flags": "a;c", "graphs": 1, "reason": None, "flops": 3}
    assert row.unlike(right) == []
    for change in (
        {"status": "mismatch"},
        {"flags": "a;b"},
        {"flags": None},
        {"graphs": 2},
        {"reason": "x"},
        {"flops": 2},
    ):
        assert len(row.unlike(right | change)) == 1, change
