"""Published figures: each is of one record of the edition, and what the edition lacks is nowhere."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.reported import record

import runner
from analysis.points import Points
from analysis.rounds import typical
from plan import plan, sweep
from publish import figures, picture, place
from records import recordfile
from records.assemble import parameters_text
from records.record import Record
from reports.report_data import ReportData

RESULTS = ROOT / "results"
RUNS = {
    "h100/gpu-bert-short-torch": "h200-c-short",
    "h100/gpu-bert-long-torch": "h200-c-long",
    "h100/gpu-bert-long-tensorflow": "h200-tensorflow",
    "cpu/cpu-language": "two-cores",
}
# Columns of a record behind each figure: the estimate and its interval, or parts of a sum.
BEHIND = {
    "ms": ("latency_ms_median", "latency_ms_ci_low", "latency_ms_ci_high"),
    "speedup": ("speedup_vs_eager", "speedup_ci_low", "speedup_ci_high"),
    "J per call": ("energy_j_per_call", "energy_ci_low", "energy_ci_high"),
    "eager's energy over it": ("energy_saving_vs_eager", "energy_saving_ci_low", "energy_saving_ci_high"),
}
EFFICIENCY = "of one rank's speed"
BEHIND[EFFICIENCY] = ("scaling_efficiency", "scaling_efficiency_low", "scaling_efficiency_high")
FIRST_CALL = "first_call_s", "compiler_start_s", "build_s", "load_s"
NUMBER = r"[\d,]+(?:\.\d+)?"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results with an edition of two places, made of runs of earlier versions."""
    folder = tmp_path_factory.mktemp("results")
    for table, run in RUNS.items():
        shutil.copytree(ROOT / "tests/runs" / run, folder / place.EDITION / table)
    for table in ("cpu-start", "cpu-stream"):
        shutil.copytree(RESULTS / place.EDITION / "cpu" / table, folder / place.EDITION / "cpu" / table)
    return folder


@pytest.fixture
def edition(results, monkeypatch):
    monkeypatch.setattr(recordfile, "RESULTS", results)
    return results / place.EDITION


def is_of(text: str, value: float | None) -> bool:
    """Say whether a number is a value, rounded to the digits that it shows."""
    decimals = len(text.partition(".")[2])
    return value is not None and abs(float(text.replace(",", "")) - value) <= 0.5001 * 10**-decimals


def shows(cell: str, figure: str, row: dict) -> bool:
    """Say whether a cell shows a figure of a raw record."""
    found = re.fullmatch(rf"({NUMBER})(?:×|\s%)?(?:\s±({NUMBER})\s%| \+ start)?", cell)
    if not found:
        return False
    if figure == "first call, s":
        unmeasured = row["framework"] == "torch" and row["schema_version"] < 10
        if unmeasured != cell.endswith(" + start"):
            return False
        return is_of(found[1], sum(row.get(name) or 0 for name in FIRST_CALL))
    value, low, high = (row[name] for name in BEHIND[figure])
    half = None if low is None else 50 * (high - low) / value
    factor = 100 if figure == EFFICIENCY else 1
    return is_of(found[1], factor * value) and (half is None or bool(found[2] and is_of(found[2], half)))


def raw(edition: Path) -> dict[tuple[str, str], list[tuple[Record, dict]]]:
    """Return the records of each place and table as they are read, and as they are on disk."""
    found = {}
    for path in edition.glob("*/*/records.jsonl"):
        read = recordfile.load(path).records
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        found[path.parts[-3], path.parts[-2]] = list(zip(read, rows, strict=True))
    return found


VAGUE = ("inconclusive", "not eager")


def charts(text: str) -> list[tuple[str, str, str]]:
    """Return title, place and lines of each chart of a page."""
    return re.findall(r"(?ms)^### ([^\n]+) \(([\w-]+)\)\n(.*?)(?=^#|\Z)", text)


def untraced(text: str, records: dict) -> list[str]:
    """Return the cells with a figure that is not of the one record of their row, column and tables."""
    columns = {(c.title, column.head): column for c in (*figures.CHARTS, *figures.SUMMARY) for column in c.columns}
    wrong = []
    in_rounds = {chart.title: chart for chart in figures.ROUNDS}
    for title, where, lines in charts(text):
        heads, _, *rows = [line.strip("| ").split(" | ") for line in re.findall(r"(?m)^\|.*\|$", lines)]
        tables = re.findall(rf"{place.EDITION}/{where}/([\w-]+)\)", lines)
        if chart := in_rounds.get(title):
            processes = [one for table in tables for one in processes_of(where, table, chart)]
            wrong += [
                cell for row in rows for cell in not_taken(dict(zip(heads, row, strict=False)), where, tables, chart)
            ]
            wrong += [
                cell
                for name, *cells in rows
                for head, cell in zip(heads[1:], cells, strict=False)
                if re.search(r"\d", cell)
                and not head.startswith("take")
                and not shows_processes(cell, name, head.strip("`"), processes)
            ]
            continue
        if not tables:
            wrong += [row[2] for row in rows if not mean_of(records, where, row)]
            continue
        known = [entry for table in tables for entry in records[where, table]]
        for name, *cells in rows:
            for head, cell in zip(heads[1:], cells, strict=False):
                column = columns[title, head]
                own = [r for read, r in known if figures.name_of(read) == name and column.values.items() <= r.items()]
                if re.search(r"\d", cell) and not (len(own) == 1 and shows(cell, column.figure, own[0])):
                    wrong.append(cell)
    return wrong


def not_taken(row: dict[str, str], where: str, tables: list[str], chart: figures.Rounds) -> list[str]:
    """Return the recommendations of a row that its processes on disk do not give."""
    folders = [recordfile.RESULTS / place.EDITION / where / table for table in tables]
    cells = [cell for folder in folders for cell in chart.form.cells(chart.form.journal.read(folder))]
    (own,) = [cell for cell in cells if figures.served_name(cell.records) == next(iter(row.values()))]
    shown = {head: cell for head, cell in row.items() if head.startswith("take")}
    given = {head: own and chart.choice(own, int(re.sub(r"\D", "", head))) for head in shown}
    return [cell for head, cell in shown.items() if set(cell.split(" or ")) - {"", *VAGUE} != named_by(given[head])]


def named_by(choice: tuple[str, ...]) -> set[str]:
    """Return the strategies that a cell names: at most two."""
    return set(choice) if len(choice) < 3 else set()


def processes_of(where: str, table: str, chart: figures.Rounds) -> list[dict]:
    """Return the rows on disk of the processes of a table."""
    path = recordfile.RESULTS / place.EDITION / where / table / chart.form.journal.lines
    return [json.loads(line) for line in path.read_text().splitlines()]


def shows_processes(cell: str, name: str, strategy: str, processes: list[dict]) -> bool:
    """Say whether a cell shows the geometric mean of a strategy's right processes, with its half-width."""
    own = [r for r in processes if r["strategy"] == strategy and r["status"] == "ok" and r.get("caches") != "warm"]
    own = [r for r in own if name == titled(r)]
    found = re.fullmatch(rf"({NUMBER})\s±({NUMBER})\s%(, .*)?", cell)
    if not found or len({r["cell"] for r in own}) != 1:
        return False
    known = typical([r["total_s"] if "total_s" in r else r["first_answer_s"] for r in own])
    return is_of(found[1], known.value) and is_of(found[2], 100 * known.relative_half_width)


def titled(row: dict) -> str:
    """Return the name of the row that shows a process."""
    shape = dict(pair.split("=") for pair in row["cell"].split("/")[-1].split(","))
    if "lengths" in row:
        shown = f"batch {shape['batch_size']}, {row['number']:,} calls, {row['lengths']}"
    elif "seq_len" in shape:
        shown = f"{shape['batch_size']} × {int(shape['seq_len']):,} tokens"
    else:
        shown = f"batch {shape['batch_size']}"
    policies = f", {row['policies']}" if row.get("policies") else ""
    source, _, name = row["workload"].rpartition(":")
    origin = f" ({source})" if source else ""
    return f"{row['framework']} {figures.NAMES.get(name, name)}{origin}, {shown}{policies}"


def mean_of(records: dict, where: str, row: list[str]) -> bool:
    """Say whether a geometric mean is that of its models' speedups."""
    shape, mode, figure, _ = row
    marked = {part.name for part in place.read_sweeps() if part.about.get("mean")}
    every = [pair for (host, table), rows in records.items() if host == where and table in marked for pair in rows]
    alike = [(read, r) for read, r in every if f"batch {r['batch_size']}" == shape and r["mode"] == mode]
    known = [r["speedup_vs_eager"] for read, r in alike if read.headline and read.speedup]
    product = 1.0
    for value in known:
        product *= value ** (1 / len(known))
    return is_of(figure.partition("×")[0], product)


PAGES = {"README.md": "results", "docs/findings.md": "../results"}


@pytest.mark.parametrize("page", PAGES)
def test_every_published_figure_is_of_a_record_of_the_edition(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert untraced(text, raw(RESULTS / place.EDITION)) == []
    assert bool(charts(text)) == any(figures.rows(chart, p) for p in figures.places() for chart in figures.CHARTS)


def test_a_changed_digit_of_any_figure_is_found(edition):
    records = raw(edition)
    for text in (figures.summary(), figures.chapters()):
        assert len(charts(text)) >= 2 and untraced(text, records) == []
        cells = list(re.finditer(rf"(?<=\| )(?:{NUMBER})×?(?:\s±{NUMBER}\s%| \+ start)?(?= \|)", text))
        assert len(cells) >= 7
        for cell in cells:
            for digit in re.finditer(r"\d", cell[0]):
                at = cell.start() + digit.start()
                changed = text[:at] + str((int(digit[0]) + 1) % 10) + text[at + 1 :]
                assert len(untraced(changed, records)) == 1, (cell[0], at)


def test_cells_of_fewer_than_three_processes_and_tables_that_are_missing_have_no_figure(edition):
    text = figures.chapters()
    assert "| BERT-base (library), 8 × 128 tokens |" in text and "BERT-base, 8 × 128 tokens" not in text
    assert "gpu-bert-long-jax" not in text and "`jax.jit`" not in text.partition("(cpu)")[0]
    assert figures.summary().count("###") == 2


def test_an_edition_without_tables_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(recordfile, "RESULTS", tmp_path)
    assert figures.summary() == figures.chapters() == figures.NOTHING
    assert picture.made() == [] and picture.html("bert", "docs") == "" and "##" not in picture.gallery()[2:]
    assert runner.main(["report", "--site", str(tmp_path / "site")]) == 0


def test_rows_of_a_chart_are_those_of_planned_cells(many_processors):
    """Every title that is asked for exists, and no two cells of the edition share a row and a column."""
    cells = {part.name: plan.plan(sweep.resolve(part.flags)).cells for part in place.read_sweeps()}
    shared = {name: {figures.name_of(record) for record in map(planned_record, found)} for name, found in cells.items()}
    titles = {title for chart in figures.SUMMARY for title in chart.titles} | {p.row for p in picture.PICTURES.values()}
    assert titles <= set().union(*shared.values())
    for chart in figures.CHARTS:
        named = [Path(name) for name in cells if any(Path(name).match(pattern) for pattern in chart.tables)]
        rows = [planned_record(cell) for path in named for cell in cells[path.name]]
        for column in chart.columns:
            own = [r for r in rows if all(getattr(r, name) == value for name, value in column.values.items())]
            assert [title for title, n in Counter(map(figures.name_of, own)).items() if n > 1] == [], chart.title


def planned_record(cell):
    """Return the columns of a cell's record that name its row."""
    shape = dict(cell.parameters)
    names = {name: getattr(cell, name) for name in ("workload", "implementation", "framework", "mode", "dtype")}
    row = record("alpha", "eager") | names | {"pass": cell.pass_name}
    return row | {
        "batch_size": shape.get("batch_size"), "seq_len": shape.get("seq_len"), "parameters": parameters_text(shape),
    }  # fmt: skip


def test_a_picture_has_the_times_of_one_row(edition, monkeypatch):
    of_library = picture.PICTURES["bert"]._replace(row="BERT-base (library), 8 × 128 tokens")
    monkeypatch.setitem(picture.PICTURES, "bert", of_library)
    assert picture.made() == ["bert"]
    svg = picture.svg("light", "bert")
    table, title = raw(edition)["h100", "gpu-bert-short-torch"], picture.PICTURES["bert"].row
    records = [r for read, r in table if figures.name_of(read) == title]
    drawn = re.findall(r">(\w+ [\w-]+)</text>.*?>([\d.]+) ms ±", svg)
    assert len(drawn) == len(records) == 4
    assert all(is_of(text, r["latency_ms_median"]) for n, text in drawn for r in records if n == f"torch {r['mode']}")
    assert [text for _, text in drawn] == sorted((text for _, text in drawn), key=float)
    assert "NVIDIA H200, bf16, torch 2.13.0" in svg


def test_a_row_and_a_picture_are_of_one_machine(monkeypatch):
    """Tables of a place may be of several."""
    column = figures.Column("eager", "ms", {"mode": "eager"})
    chart = figures.Chart("A chart", (), (column, column._replace(head="graph", values={"mode": "graph"})))
    rows = [record("alpha", mode, machine_id="one") for mode in ("eager", "graph")]
    mixed = [rows[0], rows[1] | {"machine_id": "another"}]
    monkeypatch.setattr(figures, "tables", lambda patterns, folder: [Path("table")])
    drawn = picture.Picture("A picture", (), figures.name_of(rows[0]))
    for records, refusal in ((rows, contextlib.nullcontext()), (mixed, pytest.raises(ValueError, match="one"))):
        monkeypatch.setattr(place, "benches", lambda folder, records=records: records)
        with refusal:
            assert len(figures.rows(chart, Path("place"))) == 1
        with refusal:
            assert len(drawn.points(ReportData(Points(records)))) == 2


def untraced_of_site(html: str, site_records: dict) -> list[str]:
    """Return the figures of a site's index that are not of a record of the run that their row leads to."""
    wrong = []
    latest = html.split("<section ")[1]
    for row in re.findall(r"<tr .*?</tr>", latest):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
        own = [r for _, r in site_records[tuple(re.search(r'href="[^/]+/([^/]+)/([^/]+)/', row).groups())]]
        gain = re.search(rf"({NUMBER}×(?: ±{NUMBER} %)?)", cells[4])
        wrong += [cells[3]] if not any(shows(cells[3], "ms", r) for r in own) else []
        wrong += [gain[1]] if gain and not any(shows(gain[1], "speedup", r) for r in own) else []
    return wrong


def test_every_figure_of_the_site_s_index_is_of_a_record_of_the_edition(edition, tmp_path):
    assert runner.main(["report", "--site", str(tmp_path)]) == 0
    html, records = (tmp_path / "index.html").read_text(), raw(edition)
    assert {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/**/index.html")} == {
        f"{place.EDITION}/{table}" for table in RUNS
    }
    figure = re.search(rf">({NUMBER}) ±{NUMBER} %</td>", html)
    assert figure and untraced_of_site(html, records) == []
    changed = html[: figure.start(1)] + str((int(figure[1][0]) + 1) % 10) + html[figure.start(1) + 1 :]
    assert len(untraced_of_site(changed, records)) == 1
