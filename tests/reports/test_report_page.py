"""The page in a browser: no network, no errors, charts, choices, copies, keys, a phone's width, light and dark."""

from __future__ import annotations

import pytest
from conftest import ROOT
from doubles import browser
from doubles.reported import profile, record, small_set, write_run

import runner

pytestmark = pytest.mark.skipif(
    browser.executable() is None, reason="there is no Chromium on PATH; on Debian: apt install chromium"
)
TAB, SPACE = ("Tab", 9), (" ", 32)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of the small set in two precisions, one cell of it in training too, with profiles."""
    half = [row | {"dtype": "bf16", "cell": row.cell.replace("fp32", "bf16")} for row in small_set()]
    profiles = [profile("eager", 0.02), profile("graph", 0.016)]
    modes = ("eager", "graph")
    training = [row | {"pass": "training"} for row in (record("alpha", mode, latency=60.0) for mode in modes)]
    training = [row | {"cell": row.cell.replace("inference", "training")} for row in training]
    rows = [*small_set(), *half, *training, record("alpha", "a-graph-mode-with-a-name-that-is-long")]
    folder = write_run(tmp_path_factory.mktemp("runs") / "run", rows, profiles)
    assert runner.main(["report", str(folder)]) == 0
    return folder / "report.html"


@pytest.fixture(scope="module")
def page(report):
    """One browser for all tests; each opens the page anew."""
    with browser.Browser() as opened:
        yield opened


def test_it_asks_nothing_of_a_network_and_complains_of_nothing(page, report):
    page.open(report)
    assert [url for url in page.requests if not url.startswith("data:")] == [report.resolve().as_uri()]
    assert page.problems == []


def test_a_page_that_complains_is_found(page, tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text('<img src="file:///nowhere.png"><script>console.error("no"); throw new Error("never")</script>')
    page.open(broken)
    assert len(page.requests) == 2
    assert any("never" in problem for problem in page.problems)


CHARTS = "[...document.querySelectorAll('.chart')]"
SHOWN = f"{CHARTS}.filter(c => c.offsetParent)"


def test_every_chart_has_marks_and_words(page, report):
    page.open(report)
    assert page.evaluate(f"{CHARTS}.length") >= 7
    marks = "svg use, svg polyline, svg rect"
    label = "closest('figure').getAttribute('aria-label')"
    assert page.evaluate(f"{CHARTS}.filter(c => !c.querySelector('{marks}')).map(c => c.{label})") == []
    assert page.evaluate(f"{CHARTS}.every(c => c.{label}?.length > 20)")
    symbols = "[...document.querySelectorAll('use')].every(u => document.querySelector(u.getAttribute('href')))"
    assert page.evaluate(symbols)
    hollow = "document.querySelectorAll('#answer .panel:not([hidden]) .on use.hollow').length"
    assert page.evaluate(hollow) == 2


@pytest.mark.parametrize("width", [390, 838, 1280])
def test_names_values_and_marks_do_not_overlap(page, report, width):
    page.open(report, width=width)
    overlaps = """(() => {
      const box = (e) => e.getBoundingClientRect();
      const beside = (a, b) => a.right <= b.left + 1 || a.bottom <= b.top + 1;
      const apart = (a, b) => beside(a, b) || beside(b, a);
      return [...document.querySelectorAll('#answer .panel:not([hidden]) .on .line[data-mode]')].filter((line) => {
        const [name, track, value] = [...line.children].map(box);
        return !(apart(name, track) && apart(track, value) && apart(name, value));
      }).length;
    })()"""
    assert page.evaluate("document.querySelectorAll('#answer .panel:not([hidden]) .on .line[data-mode]').length") == 5
    assert page.evaluate(overlaps) == 0


def test_without_scripts_the_answer_is_there_and_the_rest_can_be_unfolded(page, report):
    with page.without_scripts():
        page.open(report)
        assert page.evaluate("document.getElementById('filters').offsetParent === null")
        assert "use graph" in page.evaluate("document.querySelector('#answer .on .card').innerText")
        assert page.evaluate(f"{SHOWN}.length") >= 2
        panels = "[...document.querySelectorAll('#answer .panel')]"
        assert page.evaluate(f"{panels}.map(p => p.open)")[:2] == [True, False]
        assert page.evaluate(f"{panels}.every(p => p.offsetParent)")
        assert page.evaluate("[...document.querySelectorAll('button.copy')].every(b => !b.offsetParent)")


def choose(page, name: str, value: str) -> None:
    """Choose a value of a select by its text."""
    page.evaluate(
        f"(() => {{ const s = document.querySelector('select[name={name}]');"
        f"s.value = [...s.options].find(o => o.text.includes('{value}')).value;"
        "s.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


ROWS = "[...document.querySelectorAll('#answer tbody tr')].filter(r => !r.hidden && !r.closest('[hidden]'))"
PANELS = "[...document.querySelectorAll('#answer .panel')].filter(p => p.offsetParent)"


def test_the_answer_follows_what_is_chosen_and_the_address_keeps_it(page, report):
    page.open(report)
    assert page.evaluate(f"{PANELS}.length") == 1
    assert "fp32" in page.evaluate(f"{PANELS}[0].querySelector('summary').textContent")
    choose(page, "setting", "bf16")
    assert page.evaluate(f"{PANELS}.map(p => p.querySelector('summary').textContent.includes('bf16'))") == [True]
    choose(page, "batch", "4")
    shown = "document.querySelector('#answer .panel:not([hidden]) figure.on {}')"
    assert page.evaluate(f"{shown.format('h3')}.textContent") == "Batch 4, 128 tokens"
    assert "30 ms ±1 %" in page.evaluate(f"{shown.format('.card')}.innerText")
    assert page.evaluate(f"{ROWS}.every(r => r.cells[1].textContent.startsWith('batch 4'))")
    kept = page.evaluate("location.href")
    assert "batch=4" in kept and "bf16" in kept
    page.open(report)
    page.evaluate(f"(location.hash = '{kept.partition('#')[2]}', 1)")
    page.until("document.querySelector('select[name=batch]').value === '4'")
    assert page.evaluate(f"{PANELS}.map(p => p.querySelector('summary').textContent.includes('bf16'))") == [True]
    assert page.problems == []


def test_the_address_keeps_the_section_beside_the_shape(page, report):
    page.open(report)
    choose(page, "batch", "4")
    page.evaluate("document.querySelector('nav a[href=\"#machines\"]').click()")
    kept = page.evaluate("location.hash")
    assert "batch=4" in kept and "section=machines" in kept
    assert page.evaluate("document.querySelector('#machines details').open") is True
    page.open(report)
    page.evaluate(f"(location.hash = '{kept[1:]}', 1)")
    page.until("document.querySelector('select[name=batch]').value === '4'")
    assert page.evaluate("scrollY > 0") and page.problems == []


def test_modes_can_be_hidden_and_come_back(page, report):
    page.open(report)
    shown = "[...document.querySelectorAll('#answer figure.on .line[data-mode]')].filter(g => g.offsetParent)"
    lines, height = f"{shown}.length", "document.querySelector('#answer figure.on .plot').offsetHeight"
    before = page.evaluate(lines), page.evaluate(height), page.evaluate(f"{ROWS}.length")
    box = "document.querySelector('input[name=mode][value=\"beta graph\"]').click()"
    page.evaluate(box)
    after = page.evaluate(lines), page.evaluate(height), page.evaluate(f"{ROWS}.length")
    assert after[0] == before[0] - 1 and after[1] < before[1] and after[2] < before[2]
    assert not page.evaluate(f"{ROWS}.some(r => r.cells[0].textContent === 'beta graph')")
    assert "1 modes are hidden" in page.evaluate("document.getElementById('count').textContent")
    page.evaluate(box)
    assert (page.evaluate(lines), page.evaluate(height), page.evaluate(f"{ROWS}.length")) == before


@pytest.mark.parametrize("width", [1280, 838, 390])
def test_the_menu_of_modes_shows_whole_names_within_the_window(page, report, width):
    page.open(report, width=width)
    page.evaluate("(document.querySelector('details.modes').open = true, 1)")
    box = "document.querySelector('details.modes > div').getBoundingClientRect()"
    assert page.evaluate(f"{box}.left") >= 0 and page.evaluate(f"{box}.right") <= width
    assert page.evaluate("(d => d.scrollWidth <= d.clientWidth)(document.querySelector('details.modes > div'))")


def test_a_table_is_copied_as_it_is_shown_and_saved_with_all_digits(page, report):
    page.open(report)
    page.evaluate("navigator.clipboard.writeText = (text) => { window.kept = text; return Promise.resolve(); }")
    page.evaluate(
        "(URL.createObjectURL = (blob) => { blob.text().then((text) => { window.kept = text; }); return '#'; }, 1)"
    )
    choose(page, "batch", "4")
    for way in ("markdown", "csv"):
        page.evaluate(f"document.querySelector('#answer .panel:not([hidden]) [data-way={way}]').click()")
        page.until("window.kept !== undefined")
        lines = page.evaluate("window.kept").splitlines()
        page.evaluate("(window.kept = undefined, 1)")
        body = lines[2 if way == "markdown" else 1 :]
        assert len(body) == 4 and all("batch 4, 128 tokens" in line for line in body)
        assert lines[0].startswith("| mode | shape | ms | ± |" if way == "markdown" else "mode,shape,ms,±,× eager,")
    assert lines[1].startswith('beta graph,"batch 4, 128 tokens",30,0.01,2,5.5,166.667')


def test_a_table_is_sorted_by_the_values_behind_its_figures(page, report):
    page.open(report)
    table = "document.querySelector('#answer .panel:not([hidden]) table')"
    click = f"[...{table}.querySelectorAll('th button')].find(b => b.textContent === '{{}}').click()"
    column = f"[...{table}.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[{{}}].textContent)"
    page.evaluate(click.format("ms"))
    assert page.evaluate(column.format(2)) == ["15", "16", "16", "20", "30"]
    page.evaluate(click.format("ms"))
    assert page.evaluate(column.format(2)) == ["30", "20", "16", "16", "15"]
    assert page.evaluate(f"{table}.querySelector('[aria-sort]').ariaSort") == "descending"
    page.evaluate(click.format("× eager"))
    assert page.evaluate(column.format(4)) == ["1.25× ±2 %", "1.25× ±2 %", "2.00× ±2 %", "", ""]


def test_everything_can_be_reached_and_worked_by_keys(page, report):
    page.open(report)
    reached = set()
    for _ in range(60):
        page.press(*TAB)
        reached.add(page.evaluate("(e => e.className || e.name || e.id || e.tagName)(document.activeElement)"))
    assert {"skip", "A", "setting", "batch", "tokens", "link", "SUMMARY", "BUTTON"} <= reached
    summary = "document.querySelector('#answer details.how summary')"
    page.evaluate(f"{summary}.focus()")
    page.press(*SPACE)
    assert page.evaluate(f"{summary}.parentElement.open") is True


def test_the_h200_s_answers_take_four_screens(page, tmp_path):
    runs = [f"tests/runs/h200-{name}" for name in ("c-short", "c-long", "tensorflow")]
    assert runner.main(["report", *(str(ROOT / run) for run in runs), "--out", str(tmp_path)]) == 0
    page.open(tmp_path / "report.html", height=800)
    assert page.evaluate("document.documentElement.scrollHeight") <= 4 * 800
    plot = "document.querySelector('#answer .on .plot').getBoundingClientRect().bottom"
    assert page.evaluate(plot) < 800


CUT_OFF = (
    f"{SHOWN}.flatMap(c => [...c.querySelectorAll('text, .line > *')])"
    ".filter(t => t.getBoundingClientRect().right > innerWidth + 1).map(t => t.textContent)"
)


def test_the_words_of_a_ladder_fit_the_window(page, tmp_path):
    assert runner.main(["report", str(ROOT / "tests/runs/schema-7"), "--out", str(tmp_path)]) == 0
    for width in (390, 768, 1280):
        page.open(tmp_path / "report.html", width=width)
        assert page.evaluate("document.querySelectorAll('#ladder .line').length") > 5
        assert page.evaluate(CUT_OFF) == [], width


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_it_fits_the_window(page, report, width):
    page.open(report, width=width)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    beyond = (
        "[...document.querySelectorAll('main *, header *, form > *')].filter(e => e.offsetParent && "
        "!e.closest('.table') && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"
    )
    assert page.evaluate(beyond) == []
    assert page.evaluate(CUT_OFF) == []
    tables = "[...document.querySelectorAll('.table')].filter(t => t.offsetParent && t.scrollWidth > t.clientWidth + 1)"
    if width != 768:
        assert page.evaluate(f"{tables}.map(t => t.innerText.slice(0, 60))") == []
    assert page.evaluate("parseFloat(getComputedStyle(document.querySelector('td')).fontSize)") >= 12


CONTRAST = """(() => {
  const parse = (c) => c.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255);
  const light = (c) => parse(c).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const texts = 'h1, section p, td, svg text, .todo code, .todo b, .card li, .line > span, .line > b, a';
  return [...document.querySelectorAll(texts)]
    .map((e) => light(getComputedStyle(e)[e.namespaceURI.endsWith('svg') ? 'fill' : 'color']))
    .map((l) => (Math.max(l, ground) + 0.05) / (Math.min(l, ground) + 0.05))
    .reduce((least, c) => Math.min(least, c), 21);
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_in_light_and_dark(page, report, dark):
    page.open(report, dark=dark)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") is not dark
    assert page.evaluate(CONTRAST) >= 4.5  # WCAG 2.2, 1.4.3
