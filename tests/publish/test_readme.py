"""The README and the findings: figures, picture and sample are those of the records, links and commands exist."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib

import pytest
from conftest import ROOT

import frameworks.description
import workloads
from commands import bench
from measurement.profiles import PROFILES
from plan import sweep
from publish import definitions, documents, evidence, findings, summary
from records import jsonfiles

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
BEGIN, END = (mark.format(name="figures") for mark in (documents.BEGIN, documents.END))
SUMMARY, FIGURES = (text[text.index(BEGIN) : text.index(END)] for text in (TEXT, PAGE))
ROWS = [line.strip("| ").split(" | ") for line in FIGURES.splitlines() if line.startswith("| bert-base library, batch")]


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


def test_a_tie_is_told_with_its_intervals():
    assert (
        "0.564 ms (95 %: 0.552 to 0.576), and jax jit, 0.672 ms (95 %: 0.293 to 1.54), are not shown to differ" in PAGE
    )


def test_every_interval_of_the_summary_is_one_of_the_findings():
    """Means of several models have no row there."""
    told = [line for line in SUMMARY.splitlines() if "Geometric mean" not in line and "MLP" not in line]
    found = re.findall(r"× \(([\d.]+)–([\d.]+)\)", "\n".join(told))
    assert len(found) > 10
    assert [ends for ends in found if f"{ends[0]} to {ends[1]}" not in PAGE] == []


def test_every_multiple_of_the_summary_has_an_interval():
    assert re.findall(r"[\d.]+×(?! \([\d.]+–[\d.]+\))", SUMMARY) == []


def test_every_row_of_the_summary_is_of_three_processes_or_more():
    for folder, columns in summary.ROWS.values():
        assert {point.record.interval_scope for point in evidence.points(folder, **columns)} == {"across processes"}


def bare(told: str) -> tuple[list[str], list[str]]:
    """Ranges of multiples, and multiples without an interval behind them, in a text."""
    for interval in (r"95 %: [\d.]+ to [\d.]+×", r"× \([\d.]+ to [\d.]+×?\)"):
        told = re.sub(interval, " @", told)
    ranges = r"[\d.]+ to [\d.]+×"
    return re.findall(ranges, told), re.findall(r"[\d.]+×(?![^×@\n]*@)", re.sub(ranges, "", told))


def test_every_measured_multiple_has_its_interval():
    assert bare(FIGURES.replace(findings.PUBLISHED, "")) == ([], [])
    assert bare("2.00× (95 %: 1.00 to 3.00×), 4.00× (3.9 to 4.1) or 5.00×, 1.20 to 1.30×") == (
        ["1.20 to 1.30×"],
        ["5.00×"],
    )


def test_a_range_holds_every_interval():
    gains = [point.speedup for point in evidence.points(findings.MEAN_TRAINING, mode="inductor")]
    low, high = min(gain.low for gain in gains), max(gain.high for gain in gains)
    assert findings.span(evidence.points(findings.MEAN_TRAINING, mode="inductor")) == f"{low:.2f} to {high:.2f}×"


def test_no_figure_is_of_an_excluded_cell():
    """The LSTM's graphs are flagged `program_differs`, torchvision's outputs are zero, F's ResNet-50 is a mismatch."""
    trained = {point.record.workload for point in evidence.points(findings.MEAN_TRAINING, mode="inductor")}
    assert len(trained) == 7 and "lstm" not in trained
    assert "Geometric mean, training of 7 models, batch 8 | | 1.48× (1.39–1.57) | 3.91× (3.71–4.12) |" in TEXT
    (row,) = [
        line
        for line in PAGE.splitlines()
        if line.startswith("| lstm, batch 8, 128 tokens, training | [P](") and "geometric" in line
    ]
    assert row.endswith("| 13.3 (12.9 to 13.7) | `program_differs` | `program_differs` |")
    assert evidence.points(evidence.H200 / "vision-q-torchvision") == []
    resnet = evidence.points(evidence.H200 / "training-f-torch-resnet")
    assert {point.record.mode for point in resnet} == {"eager", "cuda-graph"}


def test_hosts_have_the_letters_of_the_page_that_describes_them():
    letters = evidence.hosts()
    page = (evidence.H200 / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| \| ([A-Z |]+) \|\n\|[-|]+\n\| `machine_id` \| (.+) \|$", page)
    assert list(letters.items()) == [
        (machine, letter)
        for names, machines in rows
        for letter, machine in zip(names.split(" | "), machines.split(" | "), strict=True)
    ]
    measured = evidence.points(findings.SHORT[0], findings.LONG[0])
    assert evidence.place(measured, *findings.SHORT[:2]) == (
        "C and H, [torch](../results/h200/torch-2.13-h-short), [jax](../results/h200/jax-h-short), 2 or 3 processes"
    )


@pytest.mark.parametrize("folders", [findings.SHORT, findings.LONG], ids=["short", "long"])
def test_frameworks_are_ranked_on_one_machine(folders):
    assert len(evidence.material(*folders).points.machines) == 1


def test_torch_s_findings_are_of_three_processes_or_more():
    points = evidence.material(findings.SHORT[0], findings.TORCH[1]).points.measured
    assert {point.record.interval_scope for point in points} == {"across processes"}


def test_its_picture_has_the_figures_and_the_host_of_a_row_of_the_table():
    svg = (ROOT / "docs/picture-light.svg").read_text(encoding="utf-8")
    drawn = re.findall(r' dx="-?11"[^>]*>([\d.]+)~? ms<', svg)
    assert len(drawn) == 9 and drawn == sorted(drawn, key=float)
    (row,) = [row for row in ROWS if row[0].partition(", ")[2] in svg and row[1].startswith("[H]") and len(row) == 6]
    for mode, cell in zip((*findings.MODES, "cuda-graph"), row[2:], strict=True):
        time, unsure = re.match(r"([\d.]+) \([\d.]+ to [\d.]+\)(~?)", cell).groups()
        assert re.search(rf">torch {mode}</text>.*?>{time}{unsure} ms<", svg), mode
    assert "Host H, 3 processes;" in svg and row[1].endswith("3 processes")


@pytest.mark.parametrize("text", [TEXT, PAGE], ids=["README.md", "findings.md"])
def test_no_figure_stands_outside_of_what_is_made_from_records(text):
    before, _, rest = text.partition(BEGIN)
    by_hand = before + rest.partition(END)[2]
    assert re.findall(r"\d[\d.]*\s?(?:×|ms\b|%)", re.sub(r"95 % (confidence )?interval", "", by_hand)) == []


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


def test_it_is_about_a_hundred_lines_and_read_in_minutes():
    assert TEXT.count("\n") <= 110 and len(re.findall(r"\S*\w\S*", TEXT)) <= 900


def test_every_variable_of_bench_is_documented():
    usage = (ROOT / "docs/usage.md").read_text(encoding="utf-8")
    assert [option.name for option in bench.options() if not re.search(rf"\b{option.name}\b", usage)] == []


def test_what_is_cited_is_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = dict(re.findall(r"(?m)^(title|version|license): (\S+)$", (ROOT / "CITATION.cff").read_text()))
    assert cited == {"title": project["name"], "version": project["version"], "license": project["license"]}


def test_the_table_of_modes_names_every_mode():
    text = definitions.modes_table()
    (row,) = [line for line in text.splitlines() if line.startswith("| torch | `cudagraphs` |")]
    assert row.endswith("| GPU | its name alone |") and "not the mode cuda-graph" in row
    for name in frameworks.swept():
        for mode in frameworks.describe(name).modes:
            assert f"| {name} | `{mode.name}` |" in text


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


@pytest.mark.parametrize("kind", [frameworks.description.Framework, frameworks.description.Mode])
def test_contributing_names_all_that_a_description_says(kind):
    """Three fields of a framework's stood in the code alone."""
    code = re.findall(r"`([^`]+)`", without_code("CONTRIBUTING.md"))
    known = {word for text in code for word in re.findall(r"\w+", text)}
    assert {field.name for field in dataclasses.fields(kind)} - known == set()
