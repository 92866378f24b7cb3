"""The language of pages, messages and code: no word of a short list, no subject what or who, 25 words a sentence."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, listed_files

from measurement.flags import FLAGS
from records.record import COLUMNS
from records.statuses import STATUSES

WORDS = re.compile(
    r"\b(tells?|told|comes? to|came to|mended|anew|left out|leaves? out|leaving out|reckon\w*|whoever|at hand"
    r"|asked of|besides?|(?:is|are|was|were) of)\b",
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


def too_long(text: str) -> list[str]:
    """Return the sentences of more than 25 words."""
    return [one for one in statements(text) if len(re.findall(r"\S*\w\S*", one)) > MOST_WORDS]


@pytest.mark.parametrize("page", [page for page in PAGES if page.endswith(".md") and page != "docs/columns.md"])
def test_sentences_have_at_most_25_words(page):
    assert too_long((ROOT / page).read_text(encoding="utf-8")) == []


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


DESCRIBING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# Begin no docstring of a function: words that are no verb in the imperative, and values that have no name.
NO_VERB = re.compile(
    r"Return wh(?:at|o)\b"
    r"|(?:An?|The|What|Who|Whoever|Whether|Which|How|Where|When|Why|This|That|It|Its|If|No|Not|All|Any|Each|Every|One"
    r"|Both|Several|Nothing|Nobody|In|Of|From|For|To|With|On|At|By|After|Before|Mode|Peak|\w*[^s\W]s)\b|[^A-Z]"
)


def docstrings(path: Path) -> Iterator[tuple[ast.AST, str]]:
    """Yield the modules, classes and functions of a file that have a docstring, with its text."""
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    for node in nodes:  # expressions hold none
        nodes += [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt | ast.excepthandler)]
        if isinstance(node, DESCRIBING) and (text := ast.get_docstring(node)):
            yield node, text


def wrong(node: ast.AST, text: str) -> list[str]:
    """Return what breaks the rules of style in a docstring; those of properties may be nouns."""
    decorators = [ast.unparse(one) for one in getattr(node, "decorator_list", ())]
    verb_needed = hasattr(node, "args") and not any(name.endswith("property") for name in decorators)
    no_verb = NO_VERB.match(text) if verb_needed else None
    words = [match.group() for match in WORDS.finditer(re.sub("`[^`]*`", "", text))]
    subjects = [one for one in statements(text) if re.match(r"(?:What|Who|Whoever)\b", one)]
    return [*words, *subjects, *too_long(text), *([no_verb.group()] if no_verb else [])]


def comments(path: Path) -> Iterator[str]:
    """Yield the comments of a file."""
    with tokenize.open(path) as file:
        yield from (token.string for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.COMMENT)


def test_docstrings_and_comments_keep_the_style():
    production = [path for path in listed_files() if path.suffix == ".py" and path.parts[0] not in ("tests", "results")]
    assert len(production) > 400
    described = ((path, *one) for path in production for one in docstrings(ROOT / path))
    assert {f"{path}: {text}": why for path, node, text in described if (why := wrong(node, text))} == {}
    suspects = [ROOT / path for path in production if WORDS.search((ROOT / path).read_text(encoding="utf-8"))]
    assert [text for path in suspects for text in comments(path) if WORDS.search(re.sub("`[^`]*`", "", text))] == []


@pytest.mark.parametrize(
    ("code", "broken"),
    [
        ('def f():\n    """Return the class.\n\n    Pass `beside` on."""', []),
        ('def f():\n    """Returns the sum."""', ["Returns"]),
        ('def f():\n    """The sum."""', ["The"]),
        ('def f():\n    """Return what is added."""', ["Return what"]),
        ('def f():\n    """`sum` of all."""', ["`"]),
        ('@property\ndef f():\n    """The sum."""', []),
        ('class A:\n    """What it holds: a sum."""', ["What it holds:"]),
        ('class A:\n    """A sum beside another."""', ["beside"]),
        (f'"""{"word " * MOST_WORDS}word."""', [f"{'word ' * MOST_WORDS}word."]),
    ],
)
def test_wrong_docstrings_are_found(code, broken, tmp_path):
    (tmp_path / "m.py").write_text(code)
    assert [one for node, text in docstrings(tmp_path / "m.py") for one in wrong(node, text)] == broken


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
