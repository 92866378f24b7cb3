"""How a mode looks, everywhere alike: hue says the framework, shape the mode, and eager mode is hollow."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.points import Point

# Of frameworks whose description names no colour; which one depends on the name alone.
OTHERS = ("#1f93a8", "#2f9e63", "#c94f7c", "#7c6f64", "#5b6ee1")
ABSENT = "#8b93a0"  # what is shown and not ranked
# Symbols of graph modes, about as large to the eye, in a box from -6 to 6.
PATHS = (
    "M0-5.2A5.2 5.2 0 1 1 0 5.2 5.2 5.2 0 1 1 0-5.2Z",
    "M-4.7-4.7H4.7V4.7H-4.7Z",
    "M0-6 6 5H-6Z",
    "M0-6.5 6.5 0 0 6.5-6.5 0Z",
    "M0 6-6-5H6Z",
    "M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "M-6-3.5H6V3.5H-6Z",
    "M-3.5-6H3.5V6H-3.5Z",
    "M-6 0-3-5.2H3L6 0 3 5.2H-3Z",
)
# Of graph modes' lines.
DASHES = ("none", "8 3", "10 3 2 3", "14 4", "4 4", "8 3 2 3 2 3", "12 3 5 3", "5 2", "16 3 2 3")


@dataclass(frozen=True)
class Look:
    """A mode's colour and symbol; `hollow` for eager mode."""

    colour: str
    symbol: int
    hollow: bool

    @property
    def dash(self) -> str:
        """Return the dashes of its line in a chart."""
        return "2 3" if self.hollow else DASHES[self.symbol]


def looks(points: Iterable[Point], known: Mapping) -> dict[tuple[str, str], Look]:
    """Return the look of every mode by framework and mode."""
    looks_by_mode: dict[tuple[str, str], Look] = {}
    for point in points:
        who = point.record.framework, point.record.mode
        if who in looks_by_mode:
            continue
        words = known.get(who)
        place = words.place if words and words.place else sum(name == who[0] for name, _ in looks_by_mode)
        looks_by_mode[who] = Look(hue(who[0], known), 0 if point.eager else max(place - 1, 0) % len(PATHS), point.eager)
    return looks_by_mode


def hue(framework: str, known: Mapping) -> str:
    """Return a framework's colour."""
    colour = next((words.colour for (name, _), words in known.items() if name == framework and words.colour), "")
    return colour or OTHERS[zlib.crc32(framework.encode()) % len(OTHERS)]


def symbols(known: Sequence[Look] = ()) -> str:
    """Return what charts refer to, once in a page: symbols, and the look of mode n, which is `known[n]`."""
    paths = "".join(f'<path id="s{n}" d="{path}"/>' for n, path in enumerate(PATHS))
    rules = "".join(f'[data-mode="{n}"]{{--hue:{one.colour};--dash:{one.dash}}}' for n, one in enumerate(known))
    style = f"<style>{rules}.row.absent{{color:{ABSENT};--hue:{ABSENT}}}</style>"
    return f'<svg width="0" height="0" style="position:absolute" aria-hidden="true">{style}<defs>{paths}</defs></svg>'


def mark(look: Look, x: str = "", title: str = "", more: str = "") -> str:
    """Return a mode's symbol at a place along x, in the colour around it; `title` shows when one points at it."""
    place = f' x="{x}"' if x else ""
    hollow = ' class="hollow"' if look.hollow else ""
    begun = f'<use href="#s{look.symbol}"{place}{hollow}{more}'
    return f"{begun}><title>{title}</title></use>" if title else f"{begun}/>"


def coloured(look: Look) -> str:
    """Return the attribute that colours symbols and intervals that lie within."""
    return f' color="{look.colour}"'


def tagged(look: Look, mode: str) -> str:
    """Return the attribute that colours a mode's marks: its number, whose look the page has, or its colour."""
    return f' data-mode="{mode}"' if mode else coloured(look)


def style(colours: Mapping[str, str]) -> str:
    """Return the style of a picture that stands alone: `ink`, `soft`, `line` and `ground` as #rrggbb."""
    return (
        f"text{{font-size:13px;fill:{colours['ink']};stroke:none}}.title{{font-size:15px;font-weight:600}}"
        f".row text[x]{{font-weight:600}}.soft,.axis text{{fill:{colours['soft']};font-size:12px}}"
        ".axis text{text-anchor:middle}"
        f".rule{{stroke:{colours['line']};vector-effect:non-scaling-stroke}}"
        "use{stroke-width:2;fill:currentColor;stroke:currentColor}"
        f".hollow{{fill:{colours['ground']}}}line{{stroke:currentColor;stroke-width:3;stroke-opacity:.45}}"
    )
