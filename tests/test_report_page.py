"""The page in a browser: no network, no errors, charts, filters, keys, a phone's width, light and dark."""

from __future__ import annotations

import pytest
from doubles import browser
from doubles.reported import profile, record, small_set, write_run

import runner

pytestmark = pytest.mark.skipif(
    browser.found() is None, reason="there is no Chromium on PATH; on Debian: apt install chromium"
)
TAB, SPACE = ("Tab", 9), (" ", 32)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of the small set in two precisions, one cell of it in training too, with profiles."""
    half = [row | {"dtype": "bf16", "cell": row["cell"].replace("fp32", "bf16")} for row in small_set()]
    profiles = [profile("eager", 0.02), profile("graph", 0.016)]
    modes = ("eager", "graph")
    training = [row | {"pass": "training"} for row in (record("alpha", mode, latency=60.0) for mode in modes)]
    training = [row | {"cell": row["cell"].replace("inference", "training")} for row in training]
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
A_MARK = ", ".join(f"svg .mark-{kind} path" for kind in ("symbol", "rect", "line"))


def test_every_chart_is_drawn_with_marks_beside_a_table(page, report):
    page.open(report)
    assert page.evaluate(f"{CHARTS}.length") >= 10
    assert page.evaluate(f"{CHARTS}.filter(c => !c.querySelector('{A_MARK}')).map(c => c.id)") == []
    assert page.evaluate(f"{CHARTS}.every(c => c.closest('.panel').querySelector('tbody tr'))")
    assert page.evaluate(f"{CHARTS}.every(c => c.getAttribute('aria-label')?.length > 20)")


VISIBLE = "[...document.querySelectorAll('#speedup tbody tr')].filter(r => r.offsetParent && !r.hidden)"
MARKS = "document.querySelectorAll('#speedup .panel:not([hidden]) svg .mark-symbol[aria-roledescription] path').length"


def untick(page, axis: str, value: str) -> None:
    page.evaluate(f"document.querySelector('input[name={axis}][value={value}]').click()")


def test_filters_hide_rows_panels_and_points_and_bring_them_back(page, report):
    page.open(report)
    rows, marks = page.evaluate(f"{VISIBLE}.length"), page.evaluate(MARKS)
    untick(page, "framework", "beta")
    assert page.evaluate(f"{VISIBLE}.length") < rows
    assert not page.evaluate(f"{VISIBLE}.some(r => r.textContent.includes('beta'))")
    page.until(f"{MARKS} < {marks}")
    assert "A part is shown" in page.evaluate("document.getElementById('filtered').textContent")
    untick(page, "dtype", "bf16")
    assert page.evaluate("[...document.querySelectorAll('#speedup .panel')].filter(p => !p.hidden).length") == 3
    page.evaluate("document.querySelector('#filters button').click()")
    page.until(f"{VISIBLE}.length === {rows} && {MARKS} === {marks}")
    assert page.evaluate("document.getElementById('filtered').textContent") == ""
    assert page.problems == []


def test_the_passes_can_be_chosen_apart(page, report):
    page.open(report)
    boxes = "[...document.querySelectorAll('input[name=pass]')].map(box => box.value)"
    assert page.evaluate(boxes) == ["inference", "training"]
    panels = "[...document.querySelectorAll('#speedup .panel')].filter(p => !p.hidden).map(p => p.dataset.pass)"
    assert set(page.evaluate(panels)) == {"inference", "training"}
    untick(page, "pass", "inference")
    assert set(page.evaluate(panels)) == {"training"}
    assert page.evaluate("document.querySelector('#kernels .panel').hidden")


def test_everything_can_be_reached_and_worked_by_keys(page, report):
    page.open(report)
    reached = set()
    for _ in range(120):
        page.press(*TAB)
        reached.add(page.evaluate("(e => e.className || e.name || e.tagName)(document.activeElement)"))
    assert {"skip", "A", "framework", "dtype", "BUTTON", "table"} <= reached
    page.evaluate("document.querySelector('input[name=framework]').focus()")
    page.press(*SPACE)
    assert page.evaluate("document.querySelector('input[name=framework]').checked") is False
    assert "A part is shown" in page.evaluate("document.getElementById('filtered').textContent")


@pytest.mark.parametrize("width", [375, 768, 1280])
def test_it_fits_the_window(page, report, width):
    page.open(report, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = f"{CHARTS}.filter(c => c.querySelector('svg').getBoundingClientRect().right > innerWidth + 1).length"
    assert page.evaluate(wide) == 0
    assert page.evaluate("parseFloat(getComputedStyle(document.querySelector('td')).fontSize)") >= 12


CONTRAST = """(() => {
  const parse = (c) => c.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255);
  const light = (c) => parse(c).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = light(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll('h1, section p, td, svg .role-axis-label text, legend, .v-faster, a')]
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
