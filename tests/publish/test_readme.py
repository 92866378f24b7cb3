"""The README and the findings: figures, picture and sample are those of the records, links and commands exist."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from conftest import ROOT

import frameworks.description
import workloads
from commands import bench
from measurement.profiles import PROFILES
from measurement.statistics import Interval
from plan import sweep
from publish import definitions, documents, evidence, findings, picture, summary
from records import jsonfiles
from reports.numbers import text_of

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
BEGIN, END = (mark.format(name="figures") for mark in (documents.BEGIN, documents.END))
SUMMARY, FIGURES = (text[text.index(BEGIN) : text.index(END)] for text in (TEXT, PAGE))


@pytest.mark.parametrize("path", documents.PAGES, ids=lambda path: path.name)
def test_pages_are_what_records_and_definitions_make(path):
    """Made again with `python -m publish`."""
    assert documents.made(path) == path.read_text(encoding="utf-8")


def test_only_the_text_between_the_marks_of_a_page_is_made():
    page = f"before\n{BEGIN}\nold\n{END}\nafter"
    assert documents.filled(page, {"figures": "new"}) == f"before\n{BEGIN}\nnew\n{END}\nafter"
    for missing in (BEGIN, END):
        with pytest.raises(ValueError, match="is missing"):
            documents.filled(page.replace(missing, ""), {"figures": "new"})


PRECISE = r"[\d.]+×\xa0±[\d.]+\xa0%"


def test_every_figure_of_the_summary_s_table_is_one_of_the_findings():
    found = re.findall(PRECISE, SUMMARY)
    assert len(found) > 12 and [figure for figure in found if figure not in FIGURES] == []


@pytest.mark.parametrize("part", [SUMMARY, FIGURES], ids=["README.md", "findings.md"])
def test_every_multiple_has_its_precision_or_its_interval(part):
    assert re.findall(r"[\d.]+×(?!\xa0±[\d.]+\xa0%| \([\d.]+–[\d.]+\)|\d)", part) == []


def test_every_figure_is_of_three_processes_or_more():
    for row in (*summary.ROWS, *findings.BERT, *findings.TOKENS, *findings.IMAGES, *findings.TRAINING):
        points = evidence.measured(*row.folders, **row.columns_of("eager"))
        assert points and {point.record.interval_scope for point in points} == {evidence.ACROSS}, row.title
    long = evidence.report_data(findings.LONG[2]).points.all
    assert {point.record.processes for point in long} == {2, 3}
    assert {point.record.processes for point in evidence.measured(findings.LONG[2])} == {3}


def test_a_cell_is_over_all_its_runs_and_one_run_is_itself():
    row = findings.BERT[1]
    points = evidence.measured(*row.folders, **row.columns_of("inductor"))
    assert len({point.record.machine_id for point in points}) == len(points) == 3
    gain = evidence.pooled(points, lambda point: point.speedup)
    lows, values, highs = zip(*((p.speedup.low, p.speedup.value, p.speedup.high) for p in points), strict=True)
    assert min(values) < gain.value < max(values) and min(lows) < gain.low and gain.high < max(highs)
    assert evidence.pooled(points[:1], lambda point: point.speedup) == pytest.approx(points[0].speedup)
    assert evidence.pooled([], lambda point: point.speedup) is None


def test_a_precise_figure_is_the_interval_s_half_width():
    assert evidence.precise(Interval(5.0, 4.0, 6.0), "×") == "5.00×\xa0±20\xa0%"
    assert evidence.precise(Interval(0.5, 0.498, 0.502)) == "0.5\xa0±0.4\xa0%"


def test_no_figure_is_of_an_excluded_cell():
    """The LSTM's graphs are flagged `program_differs`, torchvision's outputs are zero, F's ResNet-50 is a mismatch."""
    trained = {point.record.workload for point in evidence.measured(findings.MEAN_TRAINING, mode="inductor")}
    assert len(trained) == 7 and "lstm" not in trained
    assert "| Geometric mean, training of 7 models, batch 8, all `IMPL=plain` |  | 1.48×" in TEXT
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| lstm |")]
    assert row.count("| excluded |") == 1 and row.count("excluded") == 2
    assert evidence.measured(evidence.H200 / "vision-q-torchvision") == []
    resnet = evidence.measured(evidence.H200 / "training-f-torch-resnet")
    assert {point.record.mode for point in resnet} == {"eager", "cuda-graph"}


def test_hosts_have_the_letters_of_the_page_that_describes_them():
    page = (evidence.H200 / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| \| ([A-Z |]+) \|\n\|[-|]+\n\| `machine_id` \| (.+) \|$", page)
    assert list(evidence.hosts().items()) == [
        (machine, letter)
        for names, machines in rows
        for letter, machine in zip(names.split(" | "), machines.split(" | "), strict=True)
    ]


@pytest.mark.parametrize("folders", [findings.SHORT, (*findings.DECODING, findings.JAX_DECODING)])
def test_frameworks_of_a_row_ran_on_one_machine(folders):
    assert len(evidence.report_data(*folders).points.machines) == 1


def test_its_picture_has_the_figures_of_one_run_of_each_framework():
    svg = (ROOT / "docs/pictures/bert-light.svg").read_text(encoding="utf-8")
    drawn = re.findall(r' y="\d+">([\d.]+) ms ±', svg)
    # Eager mode of JAX and of TensorFlow is not deployed.
    assert len(drawn) == 7 and drawn == sorted(drawn, key=float)
    for point in picture.PICTURES["bert"].points:
        name = f"{point.record.framework} {point.record.mode}"
        assert re.search(rf">{name}</text>.*?>{re.escape(text_of(point.median_ms))} ms ±", svg), name
    assert "Host H, 3 processes;" in svg


@pytest.mark.parametrize("text", [TEXT, PAGE], ids=["README.md", "findings.md"])
def test_no_figure_stands_outside_of_what_is_made_from_records(text):
    before, _, rest = text.partition(BEGIN)
    by_hand = before + rest.partition(END)[2]
    assert re.findall(r"\d[\d.]*\s?(?:×(?!\d)|ms\b|%)", re.sub(r"95 % (confidence )?interval", "", by_hand)) == []


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


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("results/")])
def test_files_that_are_named_exist(page):
    named = re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", without_code(page))
    ours = [name for name in named if (ROOT / name.split("/")[0]).is_dir() and not name.startswith("results/runs")]
    assert [name for name in ours if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_no_chapter_stands_twice(page):
    chapters = re.findall(r"(?m)^##? .*$", without_code(page))
    assert len(set(chapters)) == len(chapters)


def test_it_is_about_a_hundred_lines_and_read_in_minutes():
    assert TEXT.count("\n") <= 110 and len(re.findall(r"\S*\w\S*", TEXT)) <= 900


# Words of a page, with 15 % of tolerance for most.
MOST_WORDS = {
    "README.md": 1035,
    "CONTRIBUTING.md": 1500,
    "docs/columns.md": 3120,
    "docs/experiments.md": 1785,
    "docs/findings.md": 1150,
    "docs/methodology.md": 3000,
    "docs/reports.md": 1725,
    "docs/usage.md": 2645,
}


def test_the_documentation_stays_short():
    pages = {page: len((ROOT / page).read_text(encoding="utf-8").split()) for page in PAGES if "results/" not in page}
    assert sum(pages.values()) <= 22_000
    assert {page: words for page, words in pages.items() if words > MOST_WORDS.get(page, 1150)} == {}


def test_every_variable_of_bench_is_documented():
    usage = (ROOT / "docs/usage.md").read_text(encoding="utf-8")
    assert [option.name for option in bench.options() if not re.search(rf"\b{option.name}\b", usage)] == []


def test_what_is_cited_is_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = dict(re.findall(r"(?m)^(title|version|license): (\S+)$", (ROOT / "CITATION.cff").read_text()))
    assert cited == {"title": project["name"], "version": project["version"], "license": project["license"]}


def test_the_table_of_modes_has_all_but_those_of_ladders():
    text = definitions.modes_table()
    (row,) = [line for line in text.splitlines() if line.startswith("| torch | `cudagraphs` |")]
    assert row.endswith("| GPU | its name alone |") and "not the mode cuda-graph" in row
    for name in frameworks.swept():
        for mode in frameworks.describe(name).modes:
            assert (f"| {name} | `{mode.name}` |" in text) == (not mode.is_rung or mode.name == "cudagraphs")


VALUES = {
    "FRAMEWORK": frameworks.NAMES,
    "PRESET": sweep.presets(),
    "MODE": sweep.suggestions.MODE_GROUPS,
    "PASS": workloads.PASSES,
    "DTYPE": sweep.DTYPES,
    "PROFILE": PROFILES,
    "SHAPES": sweep.SHAPES,
}


@pytest.mark.parametrize("variable", VALUES)
def test_a_variable_s_row_names_all_its_values(variable):
    table = (ROOT / "docs/usage.md").read_text().partition("### Other names")[0]
    (row,) = [line for line in table.splitlines() if line.startswith(f"| `{variable}` | ")]
    named = {name for code in re.findall(r"`([^`]*)`", row) for name in code.split(",")}
    assert set(VALUES[variable]) - named == set()


def test_versions_are_told_to_run_another_program_where_records_say_so():
    """The README's 0.43× is of versions that this page called working, and no more."""
    page = (ROOT / "docs/versions.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (\w+) ([\d.]+)[^|]*\|[^|]*\| ([\d.]+) \|.*\| ([^|]*) \|$", page)
    programs: dict[tuple[str, ...], set[str]] = {}
    for path in ROOT.glob("results/**/records.jsonl"):
        for record in jsonfiles.lines(path) if "runs" not in path.parts else ():
            kind = record["workload"], record["implementation"]
            if kind == ("bert-base", "library") and record.get("program") in ("same", "differs"):
                release = (
                    record["framework_version"].partition("+")[0],
                    json.loads(record["versions"]).get("transformers"),
                )
                programs.setdefault((record["framework"], *release), set()).add(record["program"])
    told = {tuple(release): set(re.findall(r"`(same|differs)`", text)) for *release, text in rows}
    assert programs["torch", "2.11.0", "5.23.0"] == {"same", "differs"}
    assert [release for release in told if told[release] != programs.get(release, set())] == []
