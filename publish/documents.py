"""Pages that are made from committed records and from definitions; `python -m publish` writes all of them.

In some pages the text between two marks is made; others are made whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from commands import table
from measurement.places import SUITE as ROOT
from publish import committed, definitions, figures, picture, place, reproductions, site
from records.record import table_schema_text
from reports import sections
from reports.page import html
from reports.write import subject

BEGIN, END = "<!-- {name}: made by python -m publish -->", "<!-- end of {name} -->"
# Of each page the makers of its parts, by the names in their marks.
PARTS: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "README.md": lambda: {"picture": picture.html("bert", "docs/pictures"), "figures": figures.summary()},
    "docs/findings.md": lambda: {"figures": figures.chapters()},
    "docs/usage.md": lambda: {"workloads": definitions.workloads_table(), "modes": definitions.modes_table()},
    "docs/experiments.md": lambda: {"tables": reproductions.claims()},
    "results/experiments/README.md": lambda: {"answers": reproductions.answers()},
}


def sample() -> str:
    """Return the report on the runs behind the README's picture."""
    content = site.read(*picture.PICTURES["bert"].folders)
    return html(f"Is compiling worth it? {subject(content)}", content, sections.build(content), place.EDITION)


def pages() -> dict[Path, Callable[[], str]]:
    """Return the maker of each page's text, by path. Which pages there are depends on the committed records."""
    drawn = picture.made()
    return {
        **{ROOT / name: partial(_with_parts, ROOT / name, make) for name, make in PARTS.items()},
        ROOT / "docs/columns.md": definitions.columns_page,
        ROOT / "docs/help.txt": partial(table.help_text, "make"),
        ROOT / "docs/gallery.md": picture.gallery,
        ROOT / "results/results.schema.json": table_schema_text,
        **{folder / "README.md": partial(place.page, folder) for folder in figures.places()},
        ROOT / "results/README.md": partial(committed.page, ROOT / "results"),
        **{
            ROOT / f"docs/pictures/{name}-{theme}.svg": partial(picture.svg, theme, name)
            for name in drawn
            for theme in picture.STYLES
        },
        **({ROOT / "docs/sample.html": sample} if "bert" in drawn else {}),
    }


def _with_parts(path: Path, make: Callable[[], Mapping[str, str]]) -> str:
    """Return a page with its parts as they are now made. Raises ValueError where a mark is missing."""
    return filled(path.read_text(encoding="utf-8"), make())


def filled(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with `parts` between their marks. Raises ValueError where a mark is missing."""
    for name, text in parts.items():
        begin, end = BEGIN.format(name=name), END.format(name=name)
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"{begin} … {end} is missing.")
        page = f"{before}{begin}\n{text}\n{end}{after}"
    return page
