"""Nothing of one machine is in the project: paths, package indexes, the plans beside the checkout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT, listed_files

# Written so that this file does not match itself.
PRIVATE = {
    "an index address": re.compile(r"://[^\s'\"`]*(?:/sim" r"ple|/whl\b|/packa" r"ges/|pyp" r"i)|index-ur" r"l\s*[= ]"),
    "the plan beside the checkout": re.compile(r"\.\./sha" r"red"),
    "a path of one machine": re.compile(r"(?<![\w.])/(?:wo" r"rk|ro" r"ot|ho" r"me|Us" r"ers|m" r"nt)/[\w.]"),
}


def private_in(path: Path, text: str) -> list[str]:
    """What the text says that belongs to one machine. A framework's own index may be named where users need it."""
    text = re.sub(r"https://(?:www\.paddlepaddle\.org\.cn|download\.pytorch\.org)/\S*", "", text)
    if path.suffix == ".in":
        text = re.sub(r"(?m)^#.*$", "", text)
    return [what for what, pattern in PRIVATE.items() if pattern.search(text)]


def test_nothing_belongs_to_one_machine():
    texts = ((path, (ROOT / path).read_bytes().decode(errors="replace")) for path in listed_files())
    assert [(str(path), found) for path, text in texts if (found := private_in(path, text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "--index-ur" "l https://example.org/",
        "https://example.org/sim" "ple",
        "see ../sha" "red/DESIGN.md",
        "/ro" "ot/.cache",
        "open('/ho" "me/someone/x')",
    ],
)  # fmt: skip
def test_what_belongs_to_one_machine_is_found(text):
    assert len(private_in(Path("x.txt"), text)) == 1
