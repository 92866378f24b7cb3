"""The report: a golden page of Markdown, numbers that are the CSV's, and the rules of honest plotting."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from conftest import ROOT
from doubles.reported import built, elsewhere, failed, profile, record, small_set, write_run

import runner
from harness.recordfile import write_csv
from reports import charts, facts, markdown, page, sections
from reports.content import MOST_ROWS_OF_A_TABLE, text_of
from reports.points import Points

GOLDEN = ROOT / "tests" / "golden" / "report.md"
# Old numbers make a test fail whose file was not made anew: python tests/test_report.py after a change that is meant.
PROFILES = [profile("eager", 0.020), profile("graph", 0.016)]


def golden() -> str:
    """The small set's report."""
    facts_of = {"abcd1234": {"machine_id": "abcd1234", "cpu": "A processor", "cpus_usable": 2, "gpus": []}}
    material = sections.Material(Points(small_set()), tuple(PROFILES), facts_of, ("A remark on what was read.",))
    return markdown.report("A small run", sections.build(material))


def test_the_markdown_is_the_golden_one():
    assert golden() == GOLDEN.read_text()


def test_the_answer_follows_from_the_records():
    graph, fastest, pays, care = built(small_set())["answer"].sentences
    assert graph == (
        "Of 7 comparisons, graph mode is faster than eager in 6, slower in 0 and no different as far as can be told in "
        "1; its speed over eager's: alpha graph 1.25×, beta graph 2×."
    )
    assert fastest == (
        "Of 3 shapes that several frameworks ran, the fastest is beta at 2, at 1 the two fastest cannot be told apart."
    )
    assert "takes 5 s more than eager's" in pays
    assert "paid for itself in 1 after 100 calls, in 5 after 1,000 calls, and in 6 after 10,000 calls." in pays
    assert care.startswith("To be read with care: 1 cell of 16 noisier than the profile promises, 2 cells without fig")


def test_one_shape_is_answered_by_name():
    rows = [record(f, mode) for f in ("alpha", "beta") for mode in ("eager", "graph")]
    wanted = (
        "Fastest: beta graph at bert plain, mask=none, cpu fp32, 2 threads, batch 1, seq 128, with 15 ms before "
        "alpha graph with 16 ms (the difference is real)"
    )
    assert built(rows)["answer"].sentences[1] == wanted + "."


class Tables(HTMLParser):
    """The tables of a page: rows of (text, value behind it or None), under the section's id."""

    def __init__(self, text: str):
        super().__init__()
        self.rows: dict[str, list[list]] = {}
        self._section, self._cell, self._value = "", None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        if tag == "section":
            self._section = known["id"]
        elif tag == "tr":
            self.rows.setdefault(self._section, []).append([])
        elif tag in ("td", "th"):
            self._cell, self._value = "", None
        elif tag == "data":
            self._value = float(known["value"])

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.rows[self._section][-1].append((self._cell, self._value))
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
        table = [row for row in csv.DictReader(file) if row["status"] in ("ok", "noisy")]

    def expected(mode, *columns) -> list[tuple[float, ...]]:
        return sorted(tuple(float(r[c]) for c in columns) for r in table if mode in (None, r["mode"]))

    def shown(key, first, *places) -> list[tuple[float, ...]]:
        rows = [row for row in tables[key] if len(row) > max(places) and all(row[n][1] is not None for n in places)]
        for row in rows:
            assert all(row[n][0] == text_of(row[n][1]) for n in places)
        return sorted(tuple(row[n][1] for n in places) for row in rows)

    assert shown("speedup", 0, 3, 4) == expected("graph", "latency_ms_median", "speedup_vs_eager")
    assert shown("compiling", 0, 3) == expected("graph", "first_call_s")
    assert shown("roofline", 0, 3, 4, 6) == expected(None, "intensity", "achieved_tflops", "mfu_pct")
    assert shown("memory", 0, 2) == expected(None, "peak_memory_mb")
    both = [row for row in table if row["threads"] == "2"]
    overview = len({row["seq_len"] + row["batch_size"] for row in both})
    ranked = [row for row in tables["frameworks"] if len(row) == 6 and row[1][1] is not None]
    assert overview == 3
    assert sorted(row[1][1] for row in ranked) == sorted(float(row["latency_ms_median"]) for row in both)


def test_the_page_needs_nothing_else(reported):
    text = (reported / "report.html").read_text()
    outside = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r'(?:src|href)=(?!"#|"data:)', outside) == []
    assert "@import" not in text[: text.index("</style>")]
    assert len(text) < 2e6


def test_boxes_stand_in_the_order_of_the_records():
    rows = [record(f, mode, workload=w) for w, f in (("z", "beta"), ("a", "alpha")) for mode in ("eager", "graph")]
    material = sections.Material(Points(rows))
    text = page.html("Two", material, sections.build(material))
    assert re.findall(r'name="(?:framework|workload)" value="(\w+)"', text) == ["beta", "alpha", "z", "a"]


def test_a_cell_without_figures_has_no_mark_but_a_row():
    panel = built(small_set())["speedup"].panels[1]
    marks = page._spec(panel.chart)["rows"]
    assert {row["series"] for row in marks} == {"alpha graph", "beta graph"}
    states = {row.cells[1]: row.cells[-1] for row in panel.table.rows if row.cells[2] == ""}
    assert states["beta graph-fast"] == "crash"
    assert states["alpha graph-fast"] == "mismatch"


def test_what_failed_parity_is_never_ranked():
    names = {rank.point.series for ranks in facts.contests(Points(small_set()).measured) for rank in ranks}
    assert names == {"alpha eager", "alpha graph", "beta eager", "beta graph"}


def test_intervals_are_drawn_and_one_is_marked():
    spec = page._spec(built(small_set())["speedup"].panels[0].chart)
    assert all(row["low"] < row["value"] < row["high"] for row in spec["rows"])
    marks = [layer["data"]["values"] for layer in spec["spec"]["layer"] if layer.get("data")]
    assert marks == [[{"mark": 1, "name": "eager = 1"}]]


@pytest.mark.parametrize(("factor", "scale"), [(1.5, "linear"), (20.0, "log")])
def test_the_axis_is_logarithmic_where_ratios_span_a_decade(factor, scale):
    graph = record("beta", "graph") | {"speedup_vs_eager": factor, "speedup_ci_low": factor, "speedup_ci_high": factor}
    spec = page._spec(built([record("beta", "eager"), graph])["speedup"].panels[0].chart)["spec"]
    points = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "point")
    assert points["encoding"]["x"]["scale"].get("type", "linear") == scale


def test_every_chart_is_valid_vega_lite():
    import altair

    rows = [row | {"value": row["ms"]} for row in page._spec(built(small_set())["batch"].panels[0].chart)["rows"]]
    x, y = charts.Axis("x", "batch"), charts.Axis("ms", "time, ms", log=True)
    found = [panel.chart for section in built(small_set(), profiles=PROFILES).values() for panel in section.panels]
    drawn = [chart.drawing for chart in found if chart]
    drawn += [charts.lines(rows, x, y, panel="framework", dash="series"), charts.bars(rows, "ms", "framework")]
    assert len(drawn) > 10
    for drawing in drawn:
        altair.Chart.from_dict(drawing)  # checks it against the grammar
    with pytest.raises(Exception, match="mark"):
        altair.Chart.from_dict({**drawn[0], "layer": [{"mark": "no mark"}]})


def test_a_geometric_mean_stands_under_all_its_parts_or_nowhere():
    rows = built(small_set())["speedup"].panels[1].table.rows
    shown = [row.cells[0] for row in rows if "geometric" in row.cells[0]]
    assert shown == ["geometric mean of 3", "geometric mean of 3"]
    many = [
        record("alpha", m) | {"parameters": f"n={n}"}
        for n in range(MOST_ROWS_OF_A_TABLE + 1)
        for m in ("eager", "graph")
    ]
    panel = built(many)["speedup"].panels[0]
    assert panel.table.left_out == 1
    assert not any("geometric" in row.cells[0] for row in panel.table.rows)


def test_machines_are_compared_only_when_asked_and_then_labelled():
    alpha = [record("alpha", mode) for mode in ("eager", "graph")]
    beta = elsewhere([record("beta", mode) for mode in ("eager", "graph")])
    apart = built(alpha + beta)
    assert "ACROSS=1" in apart["frameworks"].sentences[0]
    assert apart["frameworks"].panels == ()
    together = built(alpha + beta, across=True)["frameworks"]
    assert together.sentences[0].startswith("Asked for: this section compares different machines")
    assert together.panels[0].table.rows[0].cells[2] == "beta graph on Another processor"


def test_a_machine_s_long_name_is_broken_into_lines_not_cut():
    name = "Some(R) Processor(TM) Platinum 1234C with sixty-four cores @ 2.00GHz"
    beta = [row | {"device_name": name} for row in elsewhere([record("beta", mode) for mode in ("eager", "graph")])]
    chart = built([record("alpha", "eager"), *beta], across=True)["frameworks"].panels[1].chart.drawing
    axis = chart["layer"][-1]["encoding"]["y"]["axis"]
    lines = json.loads(axis["labelExpr"].partition(")[datum")[0][1:])[f"beta graph on {name}"]
    assert " ".join(lines) == f"beta graph on {name}"
    assert max(map(len, lines)) <= charts.LINE
    assert chart["height"]["step"] >= charts.LINE_STEP * len(lines)
    svg = charts.svg(chart)
    assert "…" not in svg and all(line in svg for line in lines)


def test_sections_without_data_are_left_out():
    assert set(built([failed("alpha", "eager", "crash", "It died.")])) == {"answer", "machines", "failures"}
    bare = [record("alpha", "eager", intensity=None, regime=None, peak_memory_mb=None)]
    assert set(built(bare)) == {"answer", "machines", "flags", "failures"}


def test_every_failure_is_listed_with_its_reason():
    rows = built(small_set())["failures"].panels[0].table.rows
    assert {(row.cells[2], row.cells[3], row.cells[4]) for row in rows} == {
        ("crash", "The worker died | by a signal.", "Segmentation fault"),
        ("mismatch", "The outputs differ by 0.3.", ""),
    }
    assert "The worker died \\| by a signal." in golden()


def test_break_even_and_what_calls_save():
    (pair,) = facts.pairs(Points([record("beta", "eager"), record("beta", "graph")]).measured)
    assert pair.extra_s == 5.0
    loaded = replace(pair, graph=replace(pair.graph, record=pair.graph.record | {"load_s": 2.0}))
    assert loaded.extra_s == 7.0
    assert pair.break_even[0] < 5.0 / 0.015 < pair.break_even[1]
    assert (pair.pays(100), pair.pays(333), pair.pays(1000)) == ("no", "cannot be told", "yes")
    assert pair.saved_s(1000).value == pytest.approx(10.0)
    slow = record("alpha", "graph", latency=25.0) | {
        "speedup_vs_eager": 0.8,
        "speedup_ci_low": 0.7,
        "speedup_ci_high": 0.9,
    }
    (pair,) = facts.pairs(Points([record("alpha", "eager"), slow]).measured)
    assert pair.break_even is None
    assert pair.pays(10**6) == "no"


def test_many_records_make_a_page_that_can_be_opened(tmp_path):
    count = 20_000
    rows = [
        record("alpha", mode, cell=f"{n}/{mode}", workload=f"w{n // 500}", parameters=f"n={n}")
        for n in range(count // 2)
        for mode in ("eager", "graph")
    ]
    material = sections.Material(Points(rows))
    text = page.html("Many", material, sections.build(material))
    assert len(text.encode()) < 10e6
    assert "more rows in the CSV" in text or "parts are shown" in text


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(golden())
