"""The README: its figures, picture and sample are those of the committed records, its links and commands exist."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

import runner
from harness import picture, readme

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_its_figures_are_those_of_the_records():
    """To be made anew with `python -m harness.readme`."""
    assert readme.with_figures(TEXT) == TEXT
    assert "Small batches of 128 tokens: 5.19 to 7.51×" in TEXT
    assert "A small batch of 512 tokens: 3.35 to 4.65×" in TEXT
    assert "0.564 ms (95 %: 0.552 to 0.576), and jax jit, 0.672 ms (95 %: 0.293 to 1.54), cannot be told apart" in TEXT
    assert readme.with_figures(TEXT.replace("5.19 to 7.51×", "9 to 10×")) == TEXT


@pytest.mark.parametrize("folders", [readme.SHORT, readme.LONG], ids=["short", "long"])
def test_frameworks_are_ranked_on_one_machine(folders):
    assert len(readme.material(*folders).points.machines) == 1


def test_torch_s_findings_are_of_three_processes_or_more():
    points = readme.material(*readme.TORCH).points.measured
    assert {point["interval_scope"] for point in points} == {"across processes"}


@pytest.mark.parametrize("theme", readme.PICTURES)
def test_its_picture_is_drawn_from_the_records(theme):
    """To be made anew with `python -m harness.readme`."""
    assert readme.PICTURES[theme].read_text(encoding="utf-8") == picture.svg(theme, readme.material(*readme.LONG))
    drawn = re.findall(r' dx="-?11"[^>]*>([\d.]+)~? ms<', picture.svg(theme, readme.material(*readme.LONG)))
    assert len(drawn) == 9 and drawn == sorted(drawn, key=float)


def test_its_sample_is_the_page_of_the_records():
    """To be made anew with `python -m harness.readme`."""
    assert readme.SAMPLE.read_text(encoding="utf-8") == readme.sample()


def test_no_figure_stands_outside_of_what_is_made_from_records():
    before, _, rest = TEXT.partition(readme.BEGIN)
    by_hand = before + rest.partition(readme.END)[2]
    # The agreement with loops by hand is told in results/h200/README.md, in a table of its own.
    start = by_hand.index("Against loops written by hand")
    by_hand = by_hand[:start] + by_hand[by_hand.index("The library implementations") :]
    assert re.findall(r"\d[\d.]*\s?(?:×|ms\b|%)", by_hand.replace("95 % interval", "")) == []


LINKED = ("README.md", "docs/usage.md")
PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/*.md", "results/**/README.md")
    for path in ROOT.glob(pattern)
    if "runs" not in path.relative_to(ROOT).parts
)


def anchors(text: str) -> set[str]:
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.*)$", text)}


def without_code(page: str) -> str:
    return re.sub(r"(?s)```.*?```", "", (ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = ROOT / page
    links = re.findall(r'\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"', without_code(page))
    found = [link for pair in links for link in pair if link and not link.startswith("http")]
    assert found or page not in LINKED
    for link in found:
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("page", PAGES)
def test_no_chapter_stands_twice(page):
    chapters = re.findall(r"(?m)^##? .*$", without_code(page))
    assert len(set(chapters)) == len(chapters)


def test_it_is_about_a_hundred_lines():
    assert TEXT.count("\n") <= 110


def test_every_variable_of_bench_is_documented():
    commands = next(action for action in runner.parser()._actions if isinstance(action.choices, dict)).choices
    options = set(commands["bench"]._option_string_actions) - {"-h", "--help"}
    flags = [option.strip("-").upper().replace("-", "_") for option in options]
    assert len(flags) > 20
    usage = (ROOT / "docs/usage.md").read_text(encoding="utf-8")
    assert [flag for flag in flags if not re.search(rf"\b{flag}\b", usage)] == []
