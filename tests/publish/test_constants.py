"""A rule that several modules follow is written in one of them."""

from __future__ import annotations

import ast
from collections import defaultdict

from conftest import ROOT, listed_files

import frameworks

MODES = {mode.name for name in frameworks.NAMES for mode in frameworks.describe(name).modes}
SHORTEST = 12  # characters of a text that two modules would hardly have by chance


def constants(source: str) -> set[str]:
    """The values of a module's constants that are long texts, or hold several values with a text among them."""
    found = set()
    for node in ast.parse(source).body:
        try:
            value = ast.literal_eval(node.value) if isinstance(node, ast.Assign) else None
        except ValueError:  # made of other names
            continue
        texts = isinstance(value, tuple | list | dict) and len(value) > 1 and any(isinstance(v, str) for v in value)
        if texts or (isinstance(value, str) and len(value) >= SHORTEST and value not in MODES):
            found.add(repr(value))
    return found


def test_no_two_modules_hold_the_same_constant():
    modules = defaultdict(list)
    for path in listed_files():
        if path.suffix == ".py" and path.parts[0] not in ("tests", "studies", "results"):
            for value in constants((ROOT / path).read_text()):
                modules[value].append(path.as_posix())
    assert {value: places for value, places in modules.items() if len(places) > 1} == {}


def test_such_constants_are_found():
    source = (
        'A, B = "records", "table"\nC = {"pass": 1, "shapes": 2}\nD = "scaled_dot_product"\nE = "short"\nF = (1, 2)\n'
    )
    assert constants(source) == {"('records', 'table')", "{'pass': 1, 'shapes': 2}", "'scaled_dot_product'"}
