"""Pages that are made from committed records and from definitions; `python -m publish` writes all of them.

In some pages the text between two marks is made; others are made whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from commands import table
from measurement.places import SUITE as ROOT
from publish import committed, definitions, findings, picture, summary
from publish.evidence import report_data
from records.record import table_schema_text
from reports import sections
from reports.page import html

# The runs of the sample: all frameworks on one GPU.
SAMPLE = findings.SHORT
BEGIN, END = "<!-- {name}: made by python -m publish -->", "<!-- end of {name} -->"
# Of each page the makers of its parts, by the names in their marks.
PARTS: Mapping[Path, Callable[[], Mapping[str, str]]] = {
    ROOT / "README.md": lambda: {"figures": summary.text()},
    ROOT / "docs/findings.md": lambda: {"figures": findings.text()},
    ROOT / "docs/usage.md": lambda: {
        "workloads": definitions.workloads_table(),
        "modes": definitions.modes_table(),
    },
    ROOT / "docs/experiments.md": lambda: {"tables": definitions.experiments_tables()},
}


def sample() -> str:
    """Return the page of a committed run on a GPU."""
    content = report_data(*SAMPLE)
    title = "Is compiling worth it? A sample on one NVIDIA H200"
    return html(title, content, sections.build(content), ", ".join(folder.name for folder in SAMPLE))


WHOLE: Mapping[Path, Callable[[], str]] = {
    ROOT / "docs/columns.md": definitions.columns_page,
    ROOT / "docs/help.txt": partial(table.help_text, "make"),
    ROOT / "results/results.schema.json": table_schema_text,
    ROOT / "results/README.md": partial(committed.page, ROOT / "results"),
    **{
        ROOT / f"docs/pictures/{name}-{theme}.svg": partial(picture.svg, theme, name)
        for name in picture.PICTURES
        for theme in picture.STYLES
    },
    ROOT / "docs/sample.html": sample,
}
PAGES = (*PARTS, *WHOLE)


def made(path: Path) -> str:
    """Return the text of a page as its records and definitions make it. Raises ValueError where a mark is missing."""
    if path in WHOLE:
        return WHOLE[path]()
    return filled(path.read_text(encoding="utf-8"), PARTS[path]())


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
