"""Charts: figures lie where their logarithm says, modes look alike everywhere, nothing is drawn that is not known."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from doubles.reported import record

import frameworks
from analysis.modes import labels
from analysis.points import Points
from analysis.settings import Words
from reports import drawing
from reports.drawing import Curve, Dot, Look, Scale

LOOK = Look("#123456", 1, False)


def test_equal_ratios_are_equal_distances():
    scale = Scale.fit([1.0, 100.0])
    middle = scale.at(10.0)
    assert scale.at(100.0) - middle == pytest.approx(middle - scale.at(1.0))
    assert scale.begin < scale.at(1.0) < scale.at(100.0) < scale.end


@pytest.mark.parametrize("values", [[3.0], [1.0, 1.01], [0.001, 5000.0], [], [None, 0.0, 7.0]])
def test_any_figures_have_an_axis_with_few_round_marks(values):
    scale = Scale.fit(values)
    assert 1 <= len(scale.ticks) <= 6
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)
    assert {f"{tick:e}"[0] for tick in scale.ticks} <= set("1235")


def test_close_figures_are_not_pulled_apart_to_fill_the_chart():
    scale = Scale.fit([1.0, 1.01])
    assert scale.at(1.01) - scale.at(1.0) < 2


def places(svg: str, tag: str, attribute: str) -> list[float]:
    return [float(value) for value in re.findall(rf'<{tag} [^>]*{attribute}="([\d.]+)%"', svg)]


def test_a_figure_lies_within_its_interval_and_one_without_has_none():
    rows = [Dot("a mode", LOOK, 2.0, "2 ms", 1.0, 4.0), Dot("b <mode>", LOOK, 8.0, "8 ms", note="excluded")]
    html = drawing.dots(rows)
    ElementTree.fromstring(html)
    axis, tracks = html.split('<div class="line" style', 1)
    (low,), (high,) = places(tracks, "line", "x1"), places(tracks, "line", "x2")
    first, second = places(tracks, "use", "x")
    assert low < first < high < second and len(places(axis, "line", "x1")) == len(drawing.scale_of(rows).ticks)
    assert '<span class="name">b &lt;mode&gt; <small>excluded</small></span>' in html and "<b>2 ms</b>" in html


def test_curves_rise_where_figures_do_and_are_named():
    rows = [
        Curve("up", "0", ((1, 1.0), (10, 5.0))),
        Curve("flat", "1", ((1, 2.0), (10, 2.0))),
    ]
    html = drawing.curves(rows) + drawing.legend({row.mode: row.name for row in rows})
    up, flat = (
        [tuple(map(float, p.split(","))) for p in points.split()] for points in re.findall(r'points="([^"]+)"', html)
    )
    assert up[0][0] < up[1][0] and up[0][1] > up[1][1]  # y counts downwards
    assert flat[0][1] == flat[1][1]
    assert html.count("<circle") == 4 and "> up</li>" in html and "> flat</li>" in html


def test_what_is_of_a_mode_has_its_colour_and_dashes_wherever_it_is_drawn():
    style = drawing.symbols([LOOK, Look("#654321", 0, True)])
    assert '[data-mode="0"]{--hue:#123456;--dash:8 3}[data-mode="1"]{--hue:#654321;--dash:2 3}' in style
    dot = drawing.dots([Dot("a", LOOK, 2.0, "2 ms", mode="1")])
    assert 'data-mode="1"' in dot and LOOK.colour not in dot


def test_bars_are_as_long_as_the_milliseconds():
    html = drawing.stacks([("eager", [("matmul", 3.0), ("idle", 1.0)]), ("graph", [("matmul", 2.0)])])
    assert places(html, "rect", "width") == [75.0, 25.0, 50.0]
    colours = re.findall(r'<rect [^>]*fill="(#\w+)"', html)
    assert colours[0] == colours[2] != colours[1]
    assert "<b>4 ms</b>" in html and "<b>2 ms</b>" in html


def test_a_step_begins_where_the_one_before_it_ends_and_is_grey_where_it_leads_back():
    rows = [Dot("a", LOOK, 8.0, "8 ms"), Dot("b", LOOK, 2.0, "2 ms"), Dot("c", LOOK, 4.0, "4 ms")]
    html = drawing.waterfall(rows)
    first, second, third = places(html, "rect", "x")
    assert second == third and html.count(drawing.BACK) == 1 and first < second + places(html, "rect", "width")[1]


def looks(*records) -> dict:
    known = {("alpha", "graph"): Words(colour="#aa0000", place=1), ("alpha", "eager"): Words(colour="#aa0000", place=0)}
    return drawing.looks(Points(list(records)).all, known)


def test_hue_is_the_framework_s_and_eager_is_hollow_whatever_else_is_shown():
    alone = looks(record("beta", "graph"), record("beta", "eager"))
    beside = looks(*(record(f, mode) for f in ("alpha", "beta") for mode in ("eager", "graph")))
    assert alone["beta", "graph"].colour == beside["beta", "graph"].colour != beside["alpha", "graph"].colour
    assert beside["alpha", "eager"].colour == beside["alpha", "graph"].colour == "#aa0000"
    assert [beside["alpha", mode].hollow for mode in ("eager", "graph")] == [True, False]


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(part * weight for part, weight in zip(parts, (0.2126, 0.7152, 0.0722), strict=True))


def stands_out(colour: str) -> bool:
    """Whether marks of the colour have a contrast of 3:1 on white and on a dark page (WCAG 2.2, 1.4.11)."""
    light = luminance(colour)
    return 1.05 / (light + 0.05) >= 3 and (light + 0.05) / (luminance("#12161c") + 0.05) >= 3


@pytest.mark.parametrize("name", [name for name in frameworks.NAMES if not frameworks.describe(name).is_reference])
def test_a_framework_has_a_colour_of_its_own_that_stands_out(name):
    colour = frameworks.describe(name).colour
    assert [other for other in frameworks.NAMES if frameworks.describe(other).colour == colour] == [name]
    assert stands_out(colour)


def test_colours_of_no_framework_stand_out():
    assert all(map(stands_out, (*drawing.OTHERS, drawing.BACK)))
    assert not stands_out("#7a5195") and not stands_out("#c0c0c0")


def test_modes_of_a_framework_have_symbols_of_their_own():
    for name in frameworks.NAMES:
        modes = [mode.name for mode in frameworks.describe(name).modes if not mode.is_rung]  # these have bars
        rows = [record("alpha", mode) | {"framework": name} for mode in reversed(modes)]
        found = drawing.looks(Points(rows).all, labels())
        assert len({(look.symbol, look.hollow) for look in found.values()}) == len(modes)
        assert len({look.dash for look in found.values()}) == len(modes)
