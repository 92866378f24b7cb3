"""`report` with SITE=FOLDER: an index that leads to a page for every published run, as files beside each other."""

from __future__ import annotations

import json
import re

import pytest
from doubles import browser
from doubles.reported import elsewhere, record, small_set, write_run

import runner
from analysis.points import Points
from publish.place import EDITION
from records import recordfile
from records.recordfile import write_csv
from reports.page.index import Run, index
from reports.report_data import ReportData


def publish(results, place: str, rows: list[dict], begun: str) -> None:
    folder = write_run(results / place, rows)
    plan = {"given": {"framework": "alpha", "batch": "1,4"}, "started_at": begun}
    (folder / "plan.json").write_text(json.dumps(plan))
    write_csv(rows, folder / "results.csv")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site of two published runs; a third is not published."""
    results = tmp_path / "results"
    monkeypatch.setattr(recordfile, "RESULTS", results)
    publish(results / EDITION, "cpu/first", small_set(), "2026-01-01T00:00:00Z")
    newer = [record("alpha", "eager"), record("alpha", "graph", latency=10.0, speedup_vs_eager=0.5)]
    newer[1] |= {"speedup_ci_low": 0.4, "speedup_ci_high": 0.6, "latency_ms_median": 40.0}
    publish(results / EDITION, "cpu/second", newer, "2026-02-02T00:00:00Z")
    publish(results, "runs/mine", elsewhere(small_set()), "2026-03-03T00:00:00Z")
    out = tmp_path / "site"
    assert runner.main(["report", "--site", str(out)]) == 0
    return out


def test_every_link_leads_to_a_file_of_the_site(site):
    pages = list(site.rglob("index.html"))
    assert {str(page.parent.relative_to(site)) for page in pages} == {
        ".",
        f"{EDITION}/cpu/first",
        f"{EDITION}/cpu/second",
    }
    for page in pages:
        links = re.findall(r'href="([^"#][^"]*)"', page.read_text())
        links = [link for link in links if not link.startswith("data:")]
        assert links and all((page.parent / link).is_file() for link in links)
        assert "http" not in "".join(links)


def test_the_index_shows_how_cells_of_several_runs_went(site):
    text = (site / "index.html").read_text()
    (history,) = re.findall(r'(?s)<section id="history-abcd".*?</section>', text)
    assert "How it went, machine abcd: 2 cells over 2 runs, 1 step up (slower)" in history
    assert "32 → 40" not in history and "16 → 40" in history and history.count("▁█") == 1
    assert "2026-01-01" not in history  # the day of the records, not of the plan


def test_a_site_whose_runs_share_no_cell_shows_no_history(tmp_path, monkeypatch):
    monkeypatch.setattr(recordfile, "RESULTS", tmp_path / "results")
    publish(tmp_path / "results" / EDITION, "cpu/only", small_set(), "2026-01-01T00:00:00Z")
    assert runner.main(["report", "--site", str(tmp_path / "site")]) == 0
    assert "history-" not in (tmp_path / "site/index.html").read_text().split("</style>")[1]


def test_the_index_has_the_best_figure_of_the_newest_run(site):
    text = (site / "index.html").read_text()
    _, latest, *_, runs = text.split("<section ")
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr .*?</tr>", latest)]
    slower, one, two = sorted(rows, key=lambda row: row[2])
    assert slower[2:5] == ["<b>alpha eager</b>", "20 ±1 %", "graph 0.50× ±20 %"]
    assert 'href="2026-12/cpu/second/index.html">2026-02-02<' in slower[5]
    assert one[2:5] == ["<b>alpha graph</b>", "32 ±1 %", "1.25× ±2 %"] and "1 thread" in one[0]
    assert two[2:5] == ["<b>beta graph</b>", "15 ±1 %", "2.00× ±2 %"] and "2026-01-01" in two[5]
    assert runs.index("cpu/second") < runs.index("cpu/first")
    assert "make bench FRAMEWORK=alpha BATCH=1,4" in runs and "runs/mine" not in text


def test_gpus_come_first_and_rows_carry_what_they_are_filtered_by():
    on_gpu = {"device": "gpu:0", "device_name": "A GPU", "machine_id": "ffff"}
    rows = [record("alpha", mode) for mode in ("eager", "graph")]
    runs = [
        Run(f"{n}/index.html", str(n), f"2026-01-0{n}", "make bench", ReportData(Points(some)))
        for n, some in enumerate((rows, [row | on_gpu for row in rows]), 1)
    ]
    text = index(runs)
    assert re.findall(r'data-device="([^"]+)"', text) == ["A GPU", "A processor"]
    assert re.findall(r'<select name="(\w+)"', text) == ["framework", "device", "workload"]


@pytest.mark.skipif(
    browser.executable() is None, reason="there is no Chromium on PATH; on Debian: apt install chromium"
)
def test_the_index_is_filtered_and_its_address_keeps_the_choice(site):
    shown = "[...document.querySelectorAll('#latest tbody tr')].filter(row => !row.hidden).length"
    with browser.Browser() as page:
        page.open(site / "index.html")
        assert page.evaluate(shown) == 3
        page.evaluate(
            "(s => { s.value = 'beta'; s.dispatchEvent(new Event('change', {bubbles: true})); })"
            "(document.querySelector('select[name=framework]'))"
        )
        assert page.evaluate(shown) == 1
        assert page.evaluate("location.hash") == "#framework=beta"
        assert page.evaluate("document.documentElement.scrollHeight") < 3 * 900 and page.problems == []


@pytest.mark.parametrize("content", ["", "[]", "{", None])
def test_a_damaged_run_is_one_sentence(site, capsys, content):
    capsys.readouterr()
    path, before = recordfile.RESULTS / EDITION / "cpu/first/plan.json", (site / "index.html").read_bytes()
    if content is None:
        (path.parent / "records.jsonl").write_text('{"framework": "alpha"}\n')
    else:
        path.write_text(content)
    assert runner.main(["report", "--site", str(site)]) == 2
    told = capsys.readouterr().err
    assert str(path.parent) in told and told.count("\n") == 1
    assert (site / "index.html").read_bytes() == before
