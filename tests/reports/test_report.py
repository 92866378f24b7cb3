"""The report: a golden page of Markdown, numbers that are the CSV's, and the rules of honest plotting."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from conftest import ROOT
from doubles.reported import BASE, built, elsewhere, failed, profile, record, small_set, write_run

import runner
from analysis import facts
from analysis.answers import by_setting
from analysis.points import Points
from analysis.settings import Words
from records.recordfile import write_csv
from reports import brief, markdown, page, sections
from reports.numbers import ratio, text_of
from reports.report_data import ReportData

MODES = ("eager", "graph")
GOLDEN = ROOT / "tests" / "golden" / "report.md"
# Made again after an intended change with: PYTHONPATH=. python tests/reports/test_report.py
PROFILES = [profile("eager", 0.020), profile("graph", 0.016)]


def golden() -> str:
    """The small set's report."""
    facts_of = {"abcd1234": {"machine_id": "abcd1234", "cpu": "A processor", "cpus_usable": 2, "gpus": []}}
    data = ReportData(Points(small_set()), tuple(PROFILES), facts_of, ("A remark on what was read.",))
    return markdown.report("A small run", sections.build(data))


def test_the_markdown_is_the_golden_one():
    assert golden() == GOLDEN.read_text()


def test_the_answer_has_all_figures_of_a_setting_in_one_table():
    (panel, other) = built(small_set())["answer"].panels
    assert len(panel.table.rows) == 12 and len(other.table.rows) == 2
    assert panel.notes[0] == "beta at batch 1, 128 tokens: use graph, 15 ms ±1 %, 2.00× eager (1.96–2.04)."
    assert "2 threads" in panel.title and "1 thread" in other.title


def test_the_shape_that_most_frameworks_ran_is_shown_first():
    rows = [*small_set(), *(record("alpha", mode, threads=2, latency=5.0) | {"seq_len": 32} for mode in ("eager",))]
    charts_of = {chart.tags["tokens"]: chart.first for chart in built(rows)["answer"].panels[0].charts[:3]}
    assert charts_of == {"32": False, "128": True, "512": False}


def test_a_card_answers_at_a_glance():
    known = {("beta", "graph"): Words('beta.compile(m, "<fast>")')}
    made = sections.build(ReportData(Points(small_set()[:12]), known=known))[0]
    card = made.panels[0].charts[0].card
    first, second = card.items
    assert (first.framework, first.todo, first.is_code) == ("beta", 'beta.compile(m, "<fast>")', True)
    assert first.figures == "15 ms ±1 %, 2.00× eager (1.96–2.04)"
    assert (second.todo, second.is_code, second.kind) == ("use graph", False, "use")
    assert card.lines == (
        "Fastest: beta graph; alpha graph takes 1.07× as long (1.06–1.08).",
        "beta graph pays for itself after 330 calls (330–340; 10 s of eager calls).",
        "alpha graph pays for itself after 1,300 calls (1,200–1,400; 25 s of eager calls).",
        "Trust: 95 % intervals (±) over 3 processes · no output compared · 4 of 4 cells within ±10 %.",
    )
    page_of = page.fragment(made)
    assert '<code>beta.compile(m, &quot;&lt;fast&gt;&quot;)</code> <button type="button" class="copy"' in page_of


def test_modes_that_nobody_deploys_are_off_the_axis_in_one_line():
    known = {("alpha", "eager"): Words(deployed=False)}
    made = sections.build(ReportData(Points([record("alpha", mode) for mode in MODES]), known=known))[0]
    (chart,) = made.panels[0].charts
    assert "alpha eager" not in chart.drawing and chart.notes == ("Not for deployment: alpha eager 20 ms.",)
    by_mode = {row.cells[0]: row.cells for row in made.panels[0].table.rows}
    assert len(by_mode) == 2 and "× eager" not in made.panels[0].table.columns  # a multiple of that says nothing


class Tables(HTMLParser):
    """The tables of a page: rows of (text, value behind it or None), under the section's id."""

    def __init__(self, text: str):
        super().__init__()
        self.rows: dict[str, list[list]] = {}
        self._section, self._cell, self._value = "", None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self._end_cell()
        if tag == "section":
            self._section = known["id"]
        elif tag == "tr":
            self.rows.setdefault(self._section, []).append([])
        elif tag in ("td", "th"):
            self._cell, self._value = "", known.get("data-v", "no number")

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data

    def handle_endtag(self, tag):
        self._end_cell()

    def _end_cell(self):
        """Cells have no end tags: whatever follows ends one. An empty value is the text itself."""
        if self._cell is not None:
            value = None if self._value == "no number" else float(self._value or self._cell)
            self.rows[self._section][-1].append((self._cell, value))
            self._cell = None


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A run of the small set with its report."""
    folder = write_run(tmp_path_factory.mktemp("runs") / "run", small_set(), PROFILES)
    write_csv(small_set(), folder / "results.csv")
    assert runner.main(["report", str(folder)]) == 0
    return folder


def test_numbers_in_the_page_are_the_csv_s(reported):
    tables = Tables((reported / "report.html").read_text()).rows
    with open(reported / "results.csv", newline="") as file:
        table = [row for row in csv.DictReader(file) if row["status"] == "ok"]

    def expected(mode, *columns) -> list[tuple[float, ...]]:
        return sorted(tuple(float(f"{float(r[c]):.6g}") for c in columns) for r in table if mode in (None, r["mode"]))

    def shown(key, *titles) -> list[tuple[float, ...]]:
        found, places = [], []
        for row in tables[key]:
            texts = [text for text, _ in row]
            if titles[0] in texts:
                places = [texts.index(title) for title in titles]
            elif all(row[n][1] is not None for n in places):
                for text, value in (row[n] for n in places):
                    assert text.partition("×")[0] in (text_of(value), ratio(value))
                found.append(tuple(row[n][1] for n in places))
        return sorted(found)

    assert shown("answer", "ms") == expected(None, "latency_ms_median")
    assert shown("answer", "ms", "× eager") == expected("graph", "latency_ms_median", "speedup_vs_eager")
    assert shown("answer", "memory, MB", "first call, s") == expected(None, "peak_memory_mb", "first_call_s")


def test_numbers_in_pictures_are_the_csv_s(reported):
    text = (reported / "report.html").read_text()
    values = {row.latency_ms_median for row in small_set() if row.is_measured}
    drawn = re.findall(r"<b>([\d.,]+) ms ±1 %</b>", text)
    assert len(drawn) == 14 and set(drawn) == {text_of(value) for value in values}


def test_the_page_needs_nothing_else(reported):
    text = (reported / "report.html").read_text()
    outside = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r'(?:src|href)=(?!"#|"data:)', outside) == []
    assert "@import" not in text[: text.index("</style>")]
    assert len(text) < 1e5


def test_modes_to_choose_from_stand_in_the_order_of_the_records():
    rows = [record(f, mode, workload=w) for w, f in (("z", "beta"), ("a", "alpha")) for mode in ("eager", "graph")]
    data = ReportData(Points(rows))
    text = page.html("Two", data, sections.build(data))
    wanted = ["beta eager", "beta graph", "alpha eager", "alpha graph"]
    assert re.findall(r'name="mode" value="([\w ]+)"', text) == wanted


def test_a_cell_without_figures_has_no_mark_but_a_reason():
    drawn = "".join(chart.drawing for panel in built(small_set())["answer"].panels for chart in panel.charts)
    assert "alpha graph<" in drawn and "graph-fast" not in drawn


def test_what_failed_parity_is_never_ranked():
    ranked = [rank for found in by_setting(Points(small_set()), {}) for answer in found for rank in answer.ranks]
    assert {rank.point.series for rank in ranked} == {"alpha graph", "alpha eager", "beta graph"}


def test_a_framework_of_another_machine_is_shown_and_not_ranked_unless_asked_for():
    alpha = [record("alpha", mode) for mode in ("eager", "graph")]
    beta = elsewhere([record("beta", mode) for mode in ("eager", "graph")])
    (here, there) = built(alpha + beta)["answer"].panels
    assert here.charts[0].notes == ("Not ranked, from another machine: beta graph 15 ms.",)
    assert "beta" not in here.charts[0].drawing and there.table.rows[0].cells[0] == "beta graph"
    (together,) = built(alpha + beta, across=True)["answer"].panels
    assert together.table.rows[0].cells[0] == "beta graph on Another processor"


def test_a_comment_on_github_can_hold_the_report():
    places = [(f"w{n}", batch) for n in range(300) for batch in range(1, 10)]
    rows = [record("alpha", mode) | {"workload": name, "batch_size": n} for name, n in places for mode in MODES]
    text = markdown.report("Many", sections.build(ReportData(Points(rows))))
    assert 50_000 < len(text) <= markdown.MOST_CHARACTERS
    assert "comments on GitHub are limited in length" in text and text.count("<details>") == text.count("</details>")
    assert "no more" not in golden()


def test_a_summary_fits_a_pull_request():
    rows = [
        record(f, mode, *shape) | {"workload": w} for w in "abcd" for f in BASE for shape in BASE[f] for mode in MODES
    ]
    rows += [record("alpha", mode) | {"workload": "a", "batch_size": n} for n in range(10, 15) for mode in MODES]
    known = {("beta", "eager"): Words(deployed=False), ("alpha", "graph"): Words("alpha.compile(m)")}
    data = ReportData(Points(rows), known=known, commands=("make bench BATCH=1,4",))
    text = brief.summary("What it is", data)
    lines = text.splitlines()
    assert len(lines) <= brief.MOST_LINES and lines[0] == "### What it is"
    assert lines[2] == "`make bench BATCH=1,4` · A processor · alpha 1.2, beta 1.2 · 0123456789"
    assert "- more in report.md, of 17 shapes" in text
    assert "| beta | graph | 15 | ±1 % |  | 5.5 s |" in text  # no multiple of an eager mode that nobody deploys
    assert "|  | alpha | `alpha.compile(m)` | 16 | ±1 % | 1.25× ±2 % | 5.5 s |" in text
    one = brief.summary("One", ReportData(Points([failed("alpha", "eager", "crash", "It died.")])))
    assert "Nothing was measured" in one


def test_sections_without_data_are_left_out():
    assert set(built([failed("alpha", "eager", "crash", "It died.")])) == {"answer", "machines", "failures"}
    bare = [record("alpha", "eager", regime=None, peak_memory_mb=None)]
    assert set(built(bare)) == {"answer", "machines"}


def test_every_failure_is_listed_with_its_reason():
    rows = built(small_set())["failures"].panels[0].table.rows
    assert {(row.cells[2], row.cells[3], row.cells[4]) for row in rows} == {
        ("crash", "The worker died | by a signal.", "Segmentation fault"),
        ("mismatch", "The outputs differ by 0.3.", ""),
    }
    assert "The worker died \\| by a signal." in golden()


def test_break_even_counts_the_first_call_and_loading():
    (pair,) = facts.pairs(Points([record("beta", "eager"), record("beta", "graph")]).measured)
    assert pair.extra_s == 5.0
    loaded = replace(pair, graph=replace(pair.graph, record=pair.graph.record | {"load_s": 2.0}))
    assert loaded.extra_s == 7.0
    assert pair.break_even[0] < 5.0 / 0.015 < pair.break_even[1]
    slow = record("alpha", "graph", latency=25.0) | {
        "speedup_vs_eager": 0.8,
        "speedup_ci_low": 0.7,
        "speedup_ci_high": 0.9,
    }
    (pair,) = facts.pairs(Points([record("alpha", "eager"), slow]).measured)
    assert (pair.pays_after, pair.break_even) == (None, None)


@pytest.mark.parametrize(("version", "calls"), [(12, 750), (13, 900)])
def test_the_break_even_of_a_record_is_its_own_and_of_earlier_ones_that_of_their_interval(version, calls):
    ends = {"break_even_calls": 900.0, "break_even_low": 500.0, "break_even_high": 1500.0, "schema_version": version}
    (pair,) = facts.pairs(Points([record("beta", "eager"), record("beta", "graph") | ends]).measured)
    assert (pair.pays_after, pair.break_even) == (pytest.approx(calls), (500.0, 1500.0))


@pytest.mark.parametrize(("low", "shown"), [(1.2, set()), (0.9, {"not shown to be faster"})])
def test_a_first_call_that_is_no_longer_than_eager_s_has_no_break_even(low, shown):
    records = [
        record("beta", "eager"),
        record("beta", "graph", first_call_s=0.4, break_even_low=0.0, speedup_ci_low=low),
    ]
    page = built(records)["answer"].panels[0]
    column = "pays after calls"
    cells = {row.cells[page.table.columns.index(column)] for row in page.table.rows if column in page.table.columns}
    assert cells - {""} == shown and "pays for itself" not in repr(page)


def test_two_hundred_cells_make_a_page_that_can_be_mailed():
    modes = ["eager", *(f"a-mode-of-some-length-{n}" for n in range(4))]
    rows = [
        record("alpha", mode, latency=10.0 + n)
        | {"framework": f"framework-{f}", "batch_size": b, "seq_len": s, "dtype": d}
        for d in ("fp32", "bf16")
        for f in range(4)
        for b in (1, 2, 8, 16, 64)
        for s in (128,)
        for n, mode in enumerate(modes)
    ]
    data = ReportData(Points(rows))
    assert len(rows) == 200
    assert len(page.html("Mail", data, sections.build(data)).encode()) < 400_000


def test_many_records_make_a_page_that_can_be_opened():
    count = 20_000
    rows = [
        record("alpha", mode, cell=f"{n}/{mode}", workload=f"w{n // 500}", parameters=f"n={n}")
        for n in range(count // 2)
        for mode in ("eager", "graph")
    ]
    data = ReportData(Points(rows))
    text = page.html("Many", data, sections.build(data))
    assert len(text.encode()) < 5e6
    assert "more rows in the CSV" in text or "parts are shown" in text


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(golden())
