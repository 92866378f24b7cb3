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
from measurement.statistics import Interval
from plan import sweep
from publish import picture, readme, usage
from publish.findings import bert, evidence, models, summary
from records import jsonfiles

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
SUMMARY, FIGURES = (text[text.index(readme.BEGIN) : text.index(readme.END)] for text in (TEXT, PAGE))
ROWS = [line.strip("| ").split(" | ") for line in FIGURES.splitlines() if line.startswith("| batch")]
INTERVAL = re.compile(r"95 %: [\d.]+ to [\d.]+×")


@pytest.mark.parametrize("path", readme.PAGES, ids=lambda path: path.name)
def test_its_figures_are_those_of_the_records(path):
    """To be made anew with `python -m publish.readme`."""
    text, made = path.read_text(encoding="utf-8"), readme.PAGES[path]()
    assert readme.made_anew(text, made) == text
    assert "3.63 to 8.66×" in text
    assert readme.made_anew(text.replace("3.63 to 8.66×", "9 to 10×"), made) == text


def test_a_tie_is_told_with_its_intervals():
    assert "0.564 ms (95 %: 0.552 to 0.576), and jax jit, 0.672 ms (95 %: 0.293 to 1.54), cannot be told apart" in PAGE
    assert "**Small batches of 128 tokens: 3.63 to 8.66×**" in PAGE


def test_the_summary_s_rows_hold_the_intervals_of_the_findings_table():
    rows = [line.strip("| ").split(" | ") for line in SUMMARY.splitlines() if line.startswith("| BERT-base, ")]
    assert [row[0] for row in rows] == list(summary.SIZES)
    for title, _, *told, hosts in rows:
        named = [f"batch {batch}, {length} tokens" for batch, length in summary.SIZES[title]]
        mine = [row for row in ROWS if row[0] in named]
        assert all(f"[{letter}]" in " ".join(row[1] for row in mine) for letter in re.findall(r"\b[A-Z]\b", hosts))
        for mode, text in zip(summary.MODES, told, strict=True):
            cells = [row[2 + bert.MODES.index(mode)] for row in mine]
            ends = [re.search(r"× \(([\d.]+)-([\d.]+)\)", cell).groups() for cell in cells]
            low, high = min(float(end) for end, _ in ends), max(float(end) for _, end in ends)
            assert text == f"{low:.2f} to {high:.2f}×"


def test_every_interval_of_the_summary_stands_in_the_findings():
    told = {found for line in SUMMARY.splitlines() if not line.startswith("| ") for found in INTERVAL.findall(line)}
    assert len(told) > 10 and [found for found in told if found not in PAGE] == []


def test_every_multiple_of_the_summary_is_an_interval_or_has_one():
    ranges, alone = bare(SUMMARY)
    table = [line for line in SUMMARY.splitlines() if line.startswith("| ")]
    assert alone == [] and ranges == bare("\n".join(table))[0]


def bare(told: str) -> tuple[list[str], list[str]]:
    """Ranges of multiples, and multiples without an interval behind them, in a text."""
    for interval in (r"95 %: [\d.]+ to [\d.]+×", r"× \([\d.]+-[\d.]+\)", r"× \([\d.]+ to [\d.]+×\)"):
        told = re.sub(interval, " @", told)
    ranges = r"[\d.]+ to [\d.]+×"
    return re.findall(ranges, told), re.findall(r"[\d.]+×(?![^×@\n]*@)", re.sub(ranges, "", told))


def test_every_measured_multiple_has_its_interval():
    ranges, alone = bare(FIGURES.replace("published 2.27×", "").replace("published 1.41×", ""))
    assert alone == []
    replayed = evidence.points(*models.DECODING, mode="inductor-reduce-overhead")
    assert ranges[6:] == [bert.span(replayed)], "the six before are tested below"
    assert bare("2.00× (95 %: 1.00 to 3.00×), 4.00× (3.9-4.1) or 5.00×, 1.20 to 1.30×") == (
        ["1.20 to 1.30×"],
        ["5.00×"],
    )


def test_a_range_holds_every_interval():
    gains = [point.speedup for point in evidence.points(models.SMALL_TRAINING, mode="inductor")]
    low, high = min(gain.low for gain in gains), max(gain.high for gain in gains)
    assert bert.span(evidence.points(models.SMALL_TRAINING, mode="inductor")) == f"{low:.2f} to {high:.2f}×"


@pytest.mark.parametrize(
    ("begun", "shapes"),
    [
        ("Small batches of 128", ["batch 1, 128 tokens", "batch 8, 128 tokens"]),
        ("A small batch of 512", ["batch 4, 512 tokens"]),
        ("A large batch of 512", ["batch 64, 512 tokens"]),
    ],
)
def test_a_headline_s_ranges_hold_the_intervals_of_the_table(begun, shapes):
    (line,) = [line for line in FIGURES.splitlines() if line.startswith(f"- **{begun}")]
    told = re.findall(r"([\d.]+) to ([\d.]+)×", line)
    for column, (low, high) in zip((bert.MODES.index("inductor-reduce-overhead"), 1), told, strict=True):
        cells = [row[2 + column] for row in ROWS if row[0] in shapes]
        ends = [re.search(r"× \(([\d.]+)-([\d.]+)\)", cell).groups() for cell in cells]
        assert float(low) == min(float(end) for end, _ in ends)
        assert float(high) == max(float(end) for _, end in ends)


def test_a_mean_is_told_without_the_models_that_lose():
    gains = {"a": Interval(0.5, 0.4, 0.6), "b": Interval(2.0, 1.9, 2.1), "c": Interval(8.0, 7.0, 9.0)}
    assert models._without_losers(gains).startswith(", without a on average 4.00× (95 %: 3.7")
    assert models._without_losers(gains | {"a": Interval(0.9, 0.8, 1.1)}) == ""


def test_no_figure_is_of_an_excluded_cell():
    """The LSTM's graphs are flagged `program_differs`, torchvision's outputs are zero, F's ResNet-50 is a mismatch."""
    trained = {point["workload"] for point in evidence.points(models.SMALL_TRAINING, mode="inductor")}
    assert len(trained) == 7 and "lstm" not in trained
    assert evidence.excluded(models.SMALL_TRAINING) == {"lstm": "program_differs"}
    assert "Training of 7 models at batch 8, geometric mean | | 1.39 to 1.57× | 3.71 to 4.12× |" in TEXT
    assert "Excluded: lstm (`program_differs`)" in PAGE
    assert evidence.points(evidence.H200 / "vision-q-torchvision") == []
    assert {p["mode"] for p in evidence.points(evidence.H200 / "training-f-torch-resnet")} == {"eager", "cuda-graph"}


def test_hosts_have_the_letters_of_the_page_that_describes_them():
    letters = evidence.hosts()
    assert letters["f332390e4633"] == "H" and len(set(letters.values())) == len(letters) >= 13
    measured = evidence.points(bert.SHORT[0], bert.LONG[0])
    assert evidence.place(measured, bert.SHORT[0], bert.SHORT[1]) == (
        "C and H, [torch](../results/h200/torch-2.13-h-short), [jax](../results/h200/jax-h-short), 2 or 3 processes"
    )


@pytest.mark.parametrize("folders", [bert.SHORT, bert.LONG], ids=["short", "long"])
def test_frameworks_are_ranked_on_one_machine(folders):
    assert len(evidence.material(*folders).points.machines) == 1


def test_torch_s_findings_are_of_three_processes_or_more():
    points = evidence.material(*bert.TORCH).points.measured
    assert {point["interval_scope"] for point in points} == {"across processes"}


@pytest.mark.parametrize("theme", readme.PICTURES)
def test_its_picture_is_drawn_from_the_records(theme):
    """To be made anew with `python -m publish.readme`."""
    svg = picture.svg(theme, readme.pictured())
    assert readme.PICTURES[theme].read_text(encoding="utf-8") == svg
    drawn = re.findall(r' dx="-?11"[^>]*>([\d.]+)~? ms<', svg)
    assert len(drawn) == 9 and drawn == sorted(drawn, key=float)


def test_its_picture_has_the_figures_and_the_host_of_a_row_of_the_table():
    svg = readme.PICTURES["light"].read_text(encoding="utf-8")
    (row,) = [row for row in ROWS if row[0] in svg and row[1].startswith("[H]")]
    for mode, cell in zip(bert.MODES, row[2:], strict=True):
        time, unsure = re.match(r"([\d.]+) \([\d.-]+\)(~?)", cell).groups()
        assert re.search(rf">torch {mode}</text>.*?>{time}{unsure} ms<", svg), mode
    assert "Host H, 3 processes;" in svg and row[1].endswith("3 processes")


def test_its_sample_is_the_page_of_the_records():
    """To be made anew with `python -m publish.readme`."""
    assert readme.SAMPLE.read_text(encoding="utf-8") == readme.sample()


@pytest.mark.parametrize("text", [TEXT, PAGE], ids=["README.md", "findings.md"])
def test_no_figure_stands_outside_of_what_is_made_from_records(text):
    before, _, rest = text.partition(readme.BEGIN)
    by_hand = before + rest.partition(readme.END)[2]
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


def test_it_is_about_a_hundred_lines_and_read_in_minutes():
    assert TEXT.count("\n") <= 110 and len(TEXT.split()) <= 1700


def test_every_variable_of_bench_is_documented():
    usage = (ROOT / "docs/usage.md").read_text(encoding="utf-8")
    assert [option.name for option in bench.options() if not re.search(rf"\b{option.name}\b", usage)] == []


def test_what_is_cited_is_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = dict(re.findall(r"(?m)^(title|version|license): (\S+)$", (ROOT / "CITATION.cff").read_text()))
    assert cited == {"title": project["name"], "version": project["version"], "license": project["license"]}


def test_the_tables_of_workloads_and_modes_are_those_of_their_definitions():
    """To be made anew with `python -m publish.usage`."""
    page = usage.PAGE.read_text(encoding="utf-8")
    assert usage.made_anew(page) == page
    assert usage.made_anew(page.replace("| torch | `cuda-graph` |", "| torch | `cuda_graph` |")) == page
    with pytest.raises(ValueError, match="end of modes"):
        usage.made_anew(page.replace("end of modes", "end of all"))
    text = usage.modes_table()
    (row,) = [line for line in text.splitlines() if line.startswith("| torch | `cudagraphs` |")]
    assert row.endswith("| GPU only | no | its name alone |") and "not the mode cuda-graph" in row
    for name in frameworks.swept():
        for mode in frameworks.describe(name).modes:
            assert f"| {name} | `{mode.name}` |" in text


VALUES = {
    "FRAMEWORK": frameworks.NAMES,
    "PRESET": sweep.presets(),
    "MODE": sweep.nearest.WORDS,
    "PASS": workloads.PASSES,
    "DTYPE": sweep.DTYPES,
    "PROFILE": PROFILES,
    "SHAPES": sweep.SHAPES,
}


@pytest.mark.parametrize("variable", VALUES)
def test_a_variable_s_row_names_all_its_values(variable):
    (row,) = [line for line in usage.PAGE.read_text().splitlines() if line.startswith(f"| `{variable}` | ")]
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
    code = re.findall(r"`([^`]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    known = {word for text in code for word in re.findall(r"\w+", text)}
    assert {field.name for field in dataclasses.fields(kind)} - known == set()
