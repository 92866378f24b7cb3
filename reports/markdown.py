"""A report as Markdown: the sentences and tables of every section."""

from __future__ import annotations

from collections.abc import Iterable

from reports.content import Panel, Section, Table, times


def report(title: str, sections: Iterable[Section]) -> str:
    """The whole report."""
    return "\n\n".join([f"# {title}", *(_section(section) for section in sections)]) + "\n"


def _section(section: Section) -> str:
    parts = [f"## {section.title}", *section.sentences, *(_panel(panel) for panel in section.panels)]
    if section.left_out:
        parts.append(left_out(section))
    return "\n\n".join(parts)


def left_out(section: Section) -> str:
    """The sentence on panels that are not shown."""
    return (
        f"The first {len(section.panels):,} of {section.total:,} parts are shown; FRAMEWORK=, WORKLOAD=, IMPL=, "
        "DTYPE=, DEVICE= or FILTER= choose others, and the CSV has them all."
    )


def rows_left_out(table: Table) -> str:
    """The sentence on rows that are not shown."""
    return f"The first {len(table.rows):,} rows are shown; {times(table.left_out, 'more row')} in the CSV."


def _panel(panel: Panel) -> str:
    rest = [rows_left_out(panel.table)] if panel.table.left_out else []
    note = [panel.note] if panel.note else []
    return "\n\n".join([f"### {panel.title}", *note, table(panel.table), *rest])


def table(content: Table) -> str:
    """A table; numbers are aligned to the right."""
    rule = ["---:" if content.is_number(index) else "---" for index in range(len(content.columns))]
    rows = [[cell if isinstance(cell, str) else cell.text for cell in row.cells] for row in content.rows]
    return "\n".join(_line(cells) for cells in (content.columns, rule, *rows))


def _line(cells: Iterable[str]) -> str:
    """One line; a bar or a line break within a cell would end it."""
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
