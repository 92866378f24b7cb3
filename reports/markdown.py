"""A report as Markdown: sentences, and tables that fold, as long as a comment on GitHub may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from measurement.text import in_markdown, markdown_table, times
from reports.content import Panel, Section, Table

# GitHub takes 65,536 characters of a comment.
MOST_CHARACTERS = 60_000
_CUT = "The page and the CSV have the rest; comments on GitHub are limited in length."


def report(title: str, sections: Sequence[Section]) -> str:
    """Return the whole report, or as many whole panels of it as fit; sentences of a section come before its panels."""
    title = in_markdown(title)
    parts, left = [f"# {title}"], MOST_CHARACTERS - len(title) - len(_CUT) - 8
    for part in (part for section in sections for part in _parts(section)):
        if len(part) + 2 > left:
            parts.append(_CUT)
            break
        parts.append(part)
        left -= len(part) + 2
    return "\n\n".join(parts) + "\n"


def _parts(section: Section) -> Iterable[str]:
    yield "\n\n".join([f"## {in_markdown(section.title)}", *map(in_markdown, section.sentences)])
    yield from map(_panel, section.panels)
    if section.left_out:
        yield left_out(section)


def left_out(section: Section) -> str:
    """Return the sentence on panels that are not shown."""
    return (
        f"The first {len(section.panels):,} of {section.total:,} parts are shown; FRAMEWORK=, WORKLOAD=, IMPL=, "
        "DTYPE=, DEVICE= or FILTER= select others, and the CSV has all."
    )


def rows_left_out(table: Table) -> str:
    """Return the sentence on rows that are not shown."""
    return f"The first {len(table.rows):,} rows are shown; {times(table.left_out, 'more row')} in the CSV."


def _panel(panel: Panel) -> str:
    parts = [f"### {in_markdown(panel.title)}"]
    parts += ["\n".join(f"- {in_markdown(note)}" for note in panel.notes)] if panel.notes else []
    if panel.table:
        rest = [rows_left_out(panel.table)] if panel.table.left_out else []
        parts.append(folded(times(panel.table.total, "row"), "\n\n".join([table(panel.table), *rest])))
    return "\n\n".join(parts)


def folded(title: str, content: str) -> str:
    """Return a text that a click unfolds."""
    return f"<details><summary>{title}</summary>\n\n{content}\n\n</details>"


def table(content: Table) -> str:
    """Return a table; numbers are aligned to the right."""
    numbers = [index for index in range(len(content.columns)) if content.is_number(index)]
    return "\n".join(markdown_table(content.columns, content.texts, numbers))
