"""User models of tests/field through `bench`: for each file and mode a line with what is expected and what is found.

.venvs/runner/bin/python studies/field.py [WORD …] [--framework torch,jax] [--together 6] [--part 1/3] [--out FOLDER]

WORDs choose files whose names hold one of them. A group of files runs together in one `bench`, whose output goes into
the group's folder; progress goes to stderr. Exit code 1 where anything is not as expected.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import field_rows  # noqa: E402
from field_rows import Row  # noqa: E402

RUN = ("--profile", "quick", "--budget", "0.3", "--threads", "1")


def groups(rows: Sequence[Row], together: int) -> Iterator[list[Row]]:
    """Yield rows that can run in one `bench`: with the same options, each file once."""
    keyed = sorted(rows, key=lambda row: _key(row))
    for _, alike in itertools.groupby(keyed, key=_key):
        left = list(alike)
        while left:
            group: list[Row] = []
            for row in left:
                if len(group) < together and row.file not in [other.file for other in group]:
                    group.append(row)
            left = [row for row in left if not any(row is other for other in group)]
            yield group


def _key(row: Row) -> tuple:
    return row.framework, json.dumps(row.options, sort_keys=True), tuple(row.requirements)


def run(group: list[Row], out: Path, more: Sequence[str] = ()) -> dict[str, list[dict]]:
    """Measure a group; returns the records by the file's path."""
    out.mkdir(parents=True)
    first = group[0]
    words = ["--framework", first.framework, "--workload", ",".join(str(row.path) for row in group), *RUN, *more]
    words += [word for name, value in first.options.items() for word in (f"--{name}", str(value))]
    if first.requirements:
        (out / "requirements.txt").write_text("\n".join([*first.requirements, ""]))
        words += ["--requirements", str(out / "requirements.txt")]
    with (out / "bench.log").open("w") as log:
        command = [sys.executable, ROOT / "runner.py", "bench", *words, "--out", out / "run"]
        subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False)
    found = field_rows.records(group, out / "run")
    if not found:  # no file of the group runs at all, which bench says before it measures
        said = " ".join((out / "bench.log").read_text().split())
        for row in group:
            refused = [{"mode": mode, "status": row.of(mode)["status"], "reason": said} for mode in row.modes]
            found[str(row.path)] = [record for record in refused if record["status"] != "measured"]
    return found


def lines(row: Row, records: Sequence[dict]) -> Iterator[tuple[bool, str]]:
    """Yield for each mode whether it is as expected, and a line that says so."""
    by_mode = {record["mode"]: record for record in records}
    for mode in dict.fromkeys((*by_mode, *row.modes)):
        wanted, record = row.of(mode), by_mode.get(mode)
        unlike = row.unlike(record) if record else ["there is no record"]
        found = {column: record.get(column) for column in wanted} if record else {}
        yield not unlike, "\t".join([
            "NO" if unlike else "ok", row.framework, row.file, mode,
            f"expected {_shown(wanted)}", f"found {_shown(found)}", "; ".join(unlike),
        ])  # fmt: skip
    if not by_mode and not row.modes:
        yield False, "\t".join(["NO", row.framework, row.file, "", "", "", "there is no record"])


def _shown(columns: dict) -> str:
    return " ".join(f"{name}={str(value)[:160]!r}" for name, value in columns.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="parts of files' names")
    parser.add_argument("--framework", default=",".join(field_rows.frameworks()), help="those whose files run")
    parser.add_argument("--together", type=int, default=6, help="files in one run of bench")
    parser.add_argument("--device", default="cpu", help="where the files run; the tables hold for the CPU")
    parser.add_argument("--python", help="the interpreter that measures (default: the framework's environment)")
    parser.add_argument("--part", default="1/1", help="the second of three parts is 2/3")
    parser.add_argument("--out", type=Path, help="a folder for the runs")
    options = parser.parse_args()
    more = ["--device", options.device, *(["--python", options.python] if options.python else [])]
    chosen = [
        row
        for framework in options.framework.split(",")
        for row in field_rows.rows(framework)
        if not options.words or any(word in row.file for word in options.words)
    ]
    if not chosen:
        parser.error("no file has such a name")
    out, wrong, told = options.out or Path(tempfile.mkdtemp(prefix="field-")), 0, 0
    part, parts = map(int, options.part.split("/"))
    planned = list(groups(chosen, options.together))[part - 1 :: parts]
    for number, group in enumerate(planned, start=1):
        names = ", ".join(row.file for row in group)
        print(f"run {number} of {len(planned)}, {group[0].framework}: {names}", file=sys.stderr, flush=True)
        start = time.monotonic()
        found = run(group, out / f"{time.time_ns()}", more)
        for row in group:
            for right, line in lines(row, found.get(str(row.path), [])):
                told, wrong = told + 1, wrong + (not right)
                print(line, flush=True)
        print(f"  {time.monotonic() - start:.0f} s, {wrong} of {told} not as expected", file=sys.stderr, flush=True)
    print(f"{sum(map(len, planned))} rows, {told} records, {told - wrong} as expected; runs in {out}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
