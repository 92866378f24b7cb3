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
from execution import early_checks, peak_benchmarks
from launchers import local
from plan import plan
from records.record import NAMES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first row of a table measures all of them

# Modes that compile nothing where a compiler takes seconds a file.
MODES = {"torch": "eager,dynamo"}
# Each set of options has one process.
ROWS = [row for name in field_rows.frameworks() for row in field_rows.rows(name)]
CASES = [
    pytest.param(row, marks=pytest.mark.xdist_group(f"field-{row.framework}"), id=f"{row.framework}-{row.file}")
    for row in ROWS
]


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Callable[[str, str], dict[str, list[dict]]]:
    """Return what measures a framework's files under the same options once, and gives their records by path."""
    folder = tmp_path_factory.mktemp
    return functools.cache(lambda framework, flags: measured(framework, flags, folder("field") / framework))


def options(row: Row) -> str:
    return " ".join(f"--{name} {value}" for name, value in row.options.items())


def measured(framework: str, flags: str, out: Path) -> dict[str, list[dict]]:
    """Measure the files of one set of options; a second time where the worker crashed, as frameworks do at times."""
    rows = [row for row in ROWS if row.framework == framework and options(row) == flags]
    if not environments.path(framework, "cpu").exists():
        pytest.skip(f"{framework}'s environment is not made")
    found = measured_once(rows, flags, out / "first")
    crashed = [
        row
        for row in rows
        if any(record["status"] == "crash" and row.unlike(record) for record in found.get(str(row.path), ()))
    ]
    return found | measured_once(crashed, flags, out / "second") if crashed else found


def measured_once(rows: list[Row], flags: str, out: Path) -> dict[str, list[dict]]:
    """Measure with one launch, few calls, and no process of its own for each file."""
    framework = rows[0].framework
    words = ["--framework", framework, "--workload", ",".join(str(row.path) for row in rows), *flags.split()]
    words += ["--mode", MODES[framework]] if framework in MODES else []
    words += ["--profile", "quick", "--budget", "0.02", "--threads", "1", "--out", str(out)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workloads, "_USER_MODELS", {})
        patch.setattr(plan, "process_key", lambda cell, isolate: (cell.framework,))
        patch.setattr(peak_benchmarks, "groups_for", lambda cell: ())
        patch.setattr(early_checks, "check", lambda *words: None)  # a process for each file
        patch.setattr(local, "worker_command", frozen(local.worker_command))
        patch.setitem(plan.PROFILES, "quick", brief(plan.PROFILES["quick"], 1))
        runner.main(["bench", *words])
    return field_rows.records(rows, out)


@pytest.mark.parametrize("row", CASES)
def test_a_users_file_is_judged_as_it_should_be(found, row):
    records = found(row.framework, options(row)).get(str(row.path), [])
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
