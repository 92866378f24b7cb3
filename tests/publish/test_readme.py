"""The README and the findings: figures, picture and sample are those of the records, links and commands exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib

import pytest
from conftest import ROOT

import frameworks.description
import workloads
from commands import bench
from measurement.profiles import PROFILES
from plan import sweep
from publish import definitions, documents
from records import jsonfiles

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
BEGIN, END = (mark.format(name="figures") for mark in (documents.BEGIN, documents.END))


@pytest.fixture(scope="module")
def pages():
    """The makers of all pages, by path."""
    return documents.pages()


def test_pages_are_what_records_and_definitions_make(pages):
    """Made again with `python -m publish`."""
    assert [path for path, make in pages.items() if make() != path.read_text(encoding="utf-8")] == []


def test_records_are_read_when_pages_are_made_and_not_before():
    code = "import sys; sys.addaudithook(lambda event, about: event == 'open' and print(about[0])); "
    for call, reads in (("", False), ("documents.pages()", True)):
        command = [sys.executable, "-c", f"{code} from publish import documents; {call}"]
        opened = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        assert (f"{ROOT}/results/" in opened) == reads


def test_only_the_text_between_the_marks_of_a_page_is_made():
    page = f"before\n{BEGIN}\nold\n{END}\nafter"
    assert documents.filled(page, {"figures": "new"}) == f"before\n{BEGIN}\nnew\n{END}\nafter"
    for missing in (BEGIN, END):
        with pytest.raises(ValueError, match="is missing"):
            documents.filled(page.replace(missing, ""), {"figures": "new"})


def test_pictures_are_those_that_are_made(pages):
    made = {path.name for path in pages if path.suffix == ".svg"}
    assert {path.name for path in ROOT.glob("docs/pictures/*")} == made
    assert (ROOT / "docs/sample.html").exists() == (ROOT / "docs/sample.html" in pages)


@pytest.mark.parametrize("text", [TEXT, PAGE], ids=["README.md", "findings.md"])
def test_no_figure_stands_outside_of_what_is_made_from_records(text):
    by_hand = re.sub(r"(?s)<!-- (\w+): made by .*?<!-- end of \1 -->", "", text)
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
    "docs/changed-criteria.md": 1425,
    "docs/columns.md": 3120,
    "docs/findings.md": 1150,
    "docs/methodology.md": 3000,
    "docs/reports.md": 1725,
    "docs/usage.md": 2645,
}


FIGURES = re.compile(r"(?s)<!-- (figures|tables): .*<!-- end of \1 -->")


def test_the_documentation_stays_short():
    """Tables of published figures and of answers do not count: they grow with the edition."""
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES if "results/" not in page}
    pages = {page: len(FIGURES.sub("", text).split()) for page, text in texts.items()}
    assert sum(pages.values()) <= 20_450
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
