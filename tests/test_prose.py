"""The language of pages and messages: no word of a short list, no subject that begins with what or who, 25 words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, listed_files

from measurement.flags import FLAGS
from records.record import COLUMNS
from records.statuses import STATUSES

WORDS = re.compile(
    r"\b(tells?|told|comes? to|came to|mended|anew|left out|leaves? out|leaving out|reckon\w*|whoever|at hand"
    r"|asked of)\b",
    re.IGNORECASE,
)
STATEMENT = re.compile(r"(?:^|(?<=[.:;] )|(?<=\| )|(?<=- ))(?:What|Who|Whoever) [^.?|]*[.|]", re.MULTILINE)
MOST_WORDS = 25
PAGES = sorted(
    {*(str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))), "docs/help.txt"}
)
MESSAGES = {
    "columns": [column.meaning for column in COLUMNS],
    "flags": [text for flag in FLAGS for text in (flag.threshold, flag.meaning, flag.remedy)],
    "statuses": [*STATUSES.values()],
}


def found(text: str) -> list[str]:
    """Return what breaks the rules of style in a text, without code and quoted names."""
    prose = re.sub(r"(?s)```.*?```|`[^`]*`", "", text)
    return [match.group() for rule in (WORDS, STATEMENT) for match in rule.finditer(prose)]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_keeps_the_style(page):
    assert found((ROOT / page).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES)
def test_lines_have_at_most_140_characters(page):
    """But those of tables, code and what is made from records."""
    text = (ROOT / page).read_text(encoding="utf-8")
    by_hand = re.sub(r"(?s)```.*?```|<!-- [\w-]+: made by.*?<!-- end of|<picture>.*?</picture>", "", text)
    long = [line for line in by_hand.splitlines() if len(line) > 140 and not line.lstrip().startswith("|")]
    assert long == []


def statements(text: str) -> Iterator[str]:
    """Yield the sentences of a page that are written by hand: cells of tables apart, code as one word."""
    text = re.sub(r"(?s)```.*?```|<!-- [\w-]+: made by.*?<!-- end of[^\n]*|<picture>.*?</picture>", "", text)
    text = re.sub(r"`[^`]*`", "CODE", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))
    parts = re.split(r"\n\s*\n|\n\s*(?=[-*] |\d+\. )| ?\| |\|\n", text)
    for part in parts:
        yield from re.split(r"(?<=[:;])\s+|(?<=[.!?])\s+(?=[A-Z*(]|\d)", " ".join(part.split()))


@pytest.mark.parametrize("page", [page for page in PAGES if page.endswith(".md") and page != "docs/columns.md"])
def test_sentences_have_at_most_25_words(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [one for one in statements(text) if len(re.findall(r"\S*\w\S*", one)) > MOST_WORDS] == []


def test_long_sentences_are_found():
    long = "word " * MOST_WORDS
    assert list(statements("One two. Three `a b c`: four.\n\n- Five\n  six.\n\n| a b | c |\n")) == [
        *("One two.", "Three CODE:", "four.", "- Five six.", "", "a b", "c", "")
    ]
    assert max(len(one.split()) for one in statements(f"{long}word. Short.")) > MOST_WORDS


@pytest.mark.parametrize("kind", MESSAGES)
def test_messages_keep_the_style(kind):
    assert {text: words for text in MESSAGES[kind] if (words := found(text))} == {}


def sentences(path: Path) -> Iterator[str]:
    """Yield the string literals of a module that hold several words, but docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    literals = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings)
    for text in (node.value for node in literals if isinstance(node.value, str)):
        if len(text.split()) > 1 and "<" not in text:
            yield text


def test_messages_in_code_keep_to_the_words():
    files = [path for path in listed_files() if path.suffix == ".py" and path.parts[0] not in ("tests", "studies")]
    assert len(files) > 200
    code = [ROOT / path for path in files if WORDS.search((ROOT / path).read_text())]
    assert {text for path in code for text in sentences(path) if WORDS.search(text)} == set()


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("Nothing is told.", ["told"]),
        ("It comes to 3.", ["comes to"]),
        ("Made anew. What counts is time.", ["anew", "What counts is time."]),
        ("- Who measures waits.", ["Who measures waits."]),
        ("What is measured? `told` is a name.\n\n```\nleft out\n```\n", []),
    ],
)
def test_the_check_finds_what_it_should(text, broken):
    assert found(text) == broken
