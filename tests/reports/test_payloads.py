"""One folder with a payload in every text: what is written and shown of it obeys none, and the table reads back."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import ROOMS, ROOT, listed_files
from doubles import browser
from doubles.reported import profile, record, small_set, write_run
from markdown_it import MarkdownIt

import runner
from analysis import ladders
from experiments import page as experiments_page
from experiments import spec
from measurement.text import as_code, in_markdown, markdown_row
from records import record as schema
from records import recordfile
from records.record import Record
from reports import explanation, ladder, terminal

# Markup, scripts, addresses, mentions, formulas, what a terminal obeys, and what turns the direction of writing.
EVIL = (
    "\"'><script>window.RAN=1</script><img src=http://127.0.0.1:9/i onerror=window.RAN=2><svg/onload=window.RAN=3>"
    "</style></title></textarea><!--![i](http://e/i)[l](javascript:window.RAN=4)[r][r]<http://e/a>{{title}}${x}%s{x}"
    " @mention fixes #12 o/r#3 GH-4 https://e/x www.e.org &#60;b&#62; &lt;b `code <b>` ```` \\` \\[ ~~~ | a |\n\n"
    "# head\n> q\n[r]: http://e/r\n<b>x</b>\r\n\x1b]0;title\x07\x1b[31m\x1b[2J\x9b1m\x00\x08\u202egnp.exe\u2066\u2028x\x7f\ud800END"
)
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'=1", "")
TEXTS = [column.name for column in schema.COLUMNS if column.kind == "str"]
# Words of the suite's own, which readers hold to; times.
HELD = {"status", "sign"}
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def evil(name: str) -> str:
    """The payload for a field; its beginning is another formula, its end names the field."""
    return f"{FORMULAS[sum(name.encode()) % len(FORMULAS)]}{EVIL}{name} "


JSON = {
    "versions": json.dumps({evil("package"): evil("version")}),
    "settings": json.dumps({"policies": {evil("policy"): evil("choice")}}),
    **{
        name: json.dumps([[evil(f"{name} where"), evil(f"{name} why")]])
        for name in ("graph_break_places", "recompiled_places")
    },
}


def rows(factor: float = 1.0) -> list[Record]:
    """The small set with graphs slower by the factor, as it is and with payloads in all its texts."""
    usual = [
        {
            name: value * factor if value and "latency_ms" in name and row["mode"] == "graph" else value
            for name, value in row.items()
        }
        for row in (record.to_row() for record in small_set())
    ]
    made = []
    for row in usual:
        texts = {name: JSON.get(name) or evil(name) for name in TEXTS if name not in HELD}
        texts |= {name: f"{texts[name]} {row[name]}" for name in ("framework", "mode", "workload")}
        texts["cell"] = "/".join([texts["framework"], row["cell"].replace("/", "|"), texts["mode"]])
        texts["reason"] = texts["reason"] if row["status"] != "ok" else None
        made.append(row | texts | {"baseline": row["mode"] == "eager"})
    # Of libraries' models summary.md says that they may differ, with the setting's name.
    of_libraries = [
        row
        | {"implementation": "library", "workload": evil("workload"), "cell": row["cell"].replace("plain", "library")}
        for row in usual
        if row["status"] == "ok"
    ]
    return list(map(Record.from_row, [*usual, *made, *of_libraries]))


def profiles() -> list[dict]:
    entries = []
    for mode, seconds in (("eager", 0.02), ("graph", 0.016)):
        entry = profile(mode, seconds)
        texts = {name: evil(name) for name, value in entry.items() if isinstance(value, str) and name != "status"}
        texts |= {"mode": f"{evil('mode')} {mode}", "baseline": mode == "eager"}
        texts["kernels"] = [[evil("kernel"), seconds, 1, evil("operator")]]
        texts["cell"] = f"{evil('framework')}/{mode}/{texts['mode']}"
        entries += [entry | texts, entry | texts | {"cell": evil("cell"), "status": "error", "reason": evil("reason")}]
    return entries


PLAN = {"given": {"framework": evil("flag"), "filter": evil("filter"), evil("name"): "x"}, "started_at": evil("begun")}
MACHINE = {"cpu": evil("cpu"), "cpus_usable": 2, "memory_bytes": 2**33, "gpus": [{"name": evil("gpu")}]}
MACHINE |= {"machine_id": evil("machine_id"), "left_out": {evil("node"): evil("why")}, "python": evil("python")}


@dataclass
class Told:
    """What the readers wrote and printed of two such runs."""

    folder: Path
    codes: list[int] = field(default_factory=list)
    printed: str = ""
    pages: dict[str, str] = field(default_factory=dict)  # texts in Markdown, by file

    def files(self, suffix: str) -> list[Path]:
        return sorted(self.folder.glob(f"out/**/*{suffix}"))


def named(folder: Path, name: str, factor: float) -> Path:
    made = write_run(folder / f"{name}<img src=x onerror=x>`@m`[a](b)$(id)", rows(factor), profiles())
    (made / "plan.json").write_text(json.dumps(PLAN))
    (made / "machine.json").write_text(json.dumps(MACHINE))
    (made / "nodes.jsonl").write_text(json.dumps({"node": evil("node"), "latency_ms": 2.0}) + "\n")
    return made


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> Told:
    folder = tmp_path_factory.mktemp("payloads")
    (folder / "out").mkdir()
    told = Told(folder)
    first, second = named(folder, "a", 1.0), named(folder, "b", 1.5)
    commands = [
        ["report", first, "--out", folder / "out"],
        ["compare", first, second, "--out", folder / "out/comparison.md"],
        ["compare", f"{first},{second}", "--history", "--out", folder / "out"],
        ["report", first, "--gather", folder / "out/all.csv"],
        ["report", folder / "missing\x1b[31m"],
        ["report", "--site", folder / "out/site"],
    ]
    output = io.StringIO()
    silent = contextlib.redirect_stdout(output), contextlib.redirect_stderr(output)
    with silent[0], silent[1], pytest.MonkeyPatch.context() as patch:
        patch.setattr(recordfile, "RESULTS", folder)
        patch.setattr("publish.site.EDITION", ".")
        told.codes = [runner.main([str(word) for word in words]) for words in commands]
        explanation.show(profiles(), terminal.console())
    told.printed = output.getvalue()
    told.pages = {path.name: path.read_text() for path in told.files(".md")}
    told.pages["explanation.md"] = explanation.markdown(profiles())
    told.pages["table.md"] = experiments_page.table_text(
        spec.Table(evil("title"), (evil("a"), "b"), ((evil("c"), "1"),))
    )
    return told


def test_every_reader_reads_it(told):
    assert told.codes == [0, 1, 0, 0, 2, 0], told.printed[-2000:]
    assert len(TEXTS) - len(HELD) >= 45
    html = "".join(path.read_text() for path in told.files(".html"))
    shown = {name for name in TEXTS if f"END{name}" in html + told.printed + "".join(told.pages.values())}
    assert {"framework", "mode", "device_name", "reason", "framework_version", "git_revision"} <= shown, shown


def test_no_line_of_the_terminal_is_obeyed(told):
    assert "END" in told.printed and CONTROLS.findall(told.printed) == []


MENTION = re.compile(r"@\w|(?<!\w)#\d|\w/[\w.-]+#\d|\bGH-\d")


def obeyed(page: str) -> list[str]:
    """What Markdown makes of a page besides text, tables, headings, lists, code and what folds; mentions."""
    found = []
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(page):
        if token.type == "html_block":
            found += re.findall(r"<(?!/?(?:details|summary)>)", token.content)
            found += MENTION.findall(unescape(token.content))
        elif token.type == "fence":
            found.append(token.content)
        elif token.type == "inline":  # GitHub makes links of addresses as they are written
            found += re.findall(r"://|www\.\w", re.sub("(`+).*?\\1", "", token.content))
        for child in token.children or ():
            if child.type not in ("text", "text_special", "code_inline", "softbreak", "strong_open", "strong_close"):
                found.append(f"{child.type} {child.content}")
            found += MENTION.findall(child.content) if child.type != "code_inline" else []
    headings = re.findall(r"(?m)^#+ head\b|^> |^\[r\]:", page)
    return [*found, *headings, *CONTROLS.findall(page.replace("\n", ""))]


PAGES = ["summary.md", "report.md", "comparison.md", "history.md", "explanation.md", "table.md"]


@pytest.mark.parametrize("name", PAGES)
def test_no_markdown_holds_markup_of_others(told, name):
    assert "END" in told.pages[name] and obeyed(told.pages[name]) == []


def test_every_page_in_markdown_is_among_these():
    parts = (*ROOMS, "reports", "experiments")
    sources = [(ROOT / path).read_text() for path in listed_files() if path.suffix == ".py" and path.parts[0] in parts]
    of_the_suite = {"README.md", "columns.md", "experiments.md", "methodology.md"}  # made of what is committed
    assert set(re.findall(r'"(\w+\.md)"', "".join(sources))) - of_the_suite == set(PAGES)
    rungs = tuple(ladders.Rung(evil(name), evil("adds"), 2.0, None) for name in ("first", "last"))
    eager = record("alpha", "eager") | {"framework": evil("framework")}
    made = ladders.Ladder(eager, rungs, (ladders.Step(*rungs, None),), (None, None))
    assert obeyed("\n".join(ladder.lines([made], 99))) == []


@pytest.mark.parametrize(
    "text",
    [
        *EVIL.split(" "),
        evil("x"),
        "#1",
        "# 1",
        "> x",
        "~~~",
        "`@m",
        "``a`@m`b",
        "\\`@m`",
        "*a* __b__ _c_",
        "~~a~~ $x$",
        "- x",
        "+ x",
        "1. x",
        "12) x",
        "---",
        "===",
        "* * *",
    ],
)
def test_a_text_in_markdown_is_a_text(text):
    """In a paragraph, an item, a cell, a heading, and after another."""
    shown, pair = in_markdown(text), f"{in_markdown('`')} {in_markdown(text)} {as_code(text)} {in_markdown('`')}"
    under = MarkdownIt("commonmark").enable("strikethrough").parse(f"x\n{shown}")
    assert [token.type for token in under] == ["paragraph_open", "inline", "paragraph_close"]
    assert not {"s_open", "em_open", "strong_open"} & {child.type for child in under[1].children}
    for page in (shown, f"- {shown}", markdown_row([text, text]), f"# x {shown}", pair, f"- **{shown}**: {pair}"):
        assert obeyed(page) == []
    assert obeyed(f"{shown} <b>")  # what is looked for is found


def test_markdown_shows_what_was_written():
    for text in (
        "a<b> [c](d) &amp; \\* www.x.y https://x",
        "reduce_overhead `code` a/b#x @ 2.5 GHz",
        "- 2 * _a_ ~ 1. $b$",
    ):
        (_, inline, _) = MarkdownIt("commonmark").parse(in_markdown(text))
        assert "".join(f"`{c.content}`" if c.type == "code_inline" else c.content for c in inline.children) == text


def texts_of(record: Record) -> list:
    row = record.to_row()
    return [row[name] for name in TEXTS]


def test_a_table_is_safe_to_open_and_reads_back_to_the_same_bytes(told):
    path = told.folder / "out/all.csv"
    with open(path, newline="", encoding="utf-8") as file:
        cells = [row[name] for row in csv.DictReader(file) for name in TEXTS if row[name]]
    assert len(cells) > 500 and [cell for cell in cells if cell[0] in "=+-@\t\r"] == []
    (folder,) = told.folder.glob("a<*")
    before, after = recordfile.load(folder / "records.jsonl").records, recordfile.load(path).records
    assert list(map(texts_of, after)) == list(map(texts_of, before))


OWN_ADDRESS = re.compile(r"#[\w-]+|data:,|results\.csv|[\w%/.-]*index\.html")


class Seen(HTMLParser):
    """Tags of a page and what their attributes name or run."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.calls: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        calls = [name for name, value in attrs if name.startswith("on") or name in ("src", "action", "data", "srcdoc")]
        self.calls += [
            *calls,
            *(v for n, v in attrs if n.endswith("href") and not OWN_ADDRESS.fullmatch(v or "")),
        ]


@pytest.fixture(scope="module")
def usual(tmp_path_factory) -> set[str]:
    """The tags of pages without payloads."""
    folder = tmp_path_factory.mktemp("usual")
    for name, factor in (("a", 1.0), ("b", 1.5)):
        (write_run(folder / name, rows(factor)[: len(small_set())], [profile("eager", 0.02)]) / "plan.json").write_text(
            json.dumps({"given": {}})
        )
    with contextlib.redirect_stdout(io.StringIO()):
        assert runner.main(["report", str(folder / "a")]) == 0
        assert runner.main(["compare", f"{folder / 'a'},{folder / 'b'}", "--history", "--out", str(folder)]) == 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(recordfile, "RESULTS", folder)
            patch.setattr("publish.site.EDITION", ".")
            assert runner.main(["report", "--site", str(folder / "site")]) == 0
    return {tag for page in folder.glob("**/*.html") for tag in Seen(page.read_text()).tags}


@pytest.mark.parametrize("name", ["report.html", "history.html", "site/index.html", "site/a*/index.html"])
def test_no_page_has_a_tag_or_an_address_of_others(told, usual, name):
    (path,) = told.folder.glob(f"out/{name}")
    text = path.read_text()
    seen = Seen(text)
    assert "END" in text and {*seen.tags} <= usual and seen.calls == []
    assert seen.tags.count("script") == (name != "history.html")
    assert CONTROLS.findall(text.replace("\n", "")) == []


@pytest.mark.skipif(
    browser.executable() is None, reason="there is no Chromium on PATH; on Debian: apt install chromium"
)
def test_a_browser_runs_nothing_of_others_and_asks_for_nothing(told):
    with browser.Browser() as page:
        for path in told.files(".html"):
            page.open(path)
            assert page.evaluate(
                "[typeof window.RAN, document.querySelectorAll('img, iframe, object, base').length]"
            ) == [
                "undefined",
                0,
            ]
            assert [url for url in page.requests if not url.startswith("data:")] == [path.resolve().as_uri()]
            assert page.problems == []
