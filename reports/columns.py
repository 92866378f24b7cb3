"""`docs/columns.md`, the flags in `docs/methodology.md`, and `results/results.schema.json`, from their definitions.

`python -m reports.columns` writes all three.
"""

from __future__ import annotations

from pathlib import Path

from measurement.flags import FLAGS
from measurement.schema import COLUMNS, SCHEMA_VERSION, STATUSES, table_schema_text

DOCS = Path(__file__).resolve().parent.parent / "docs"
_BEGIN, _END = "<!-- flags: made by reports/columns.py -->", "<!-- end of flags -->"


def columns_page() -> str:
    """The page on the CSV's columns."""
    rows = [f"| `{c.name}` | {c.kind} | {c.unit} | {c.meaning} |" for c in COLUMNS]
    statuses = [f"| `{name}` | {meaning} |" for name, meaning in STATUSES.items()]
    return "\n".join(
        [
            "# Columns of a record",
            "",
            f"Made from `measurement/schema.py` by `python -m reports.columns`; schema version {SCHEMA_VERSION}.",
            "A missing value is empty, never 0. CPU and GPU results have the same columns.",
            "",
            "| column | type | unit | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
            "## Statuses",
            "",
            "Every planned cell ends in exactly one record with one of these.",
            "",
            "| status | meaning |",
            "|---|---|",
            *statuses,
            "",
        ]
    )


def flags_table() -> str:
    """The closed list of flags, as Markdown."""
    rows = [f"| `{f.name}` | {f.threshold} | {f.meaning} | {f.remedy} |" for f in FLAGS]
    return "\n".join([_BEGIN, "| flag | raised when | meaning | remedy |", "|---|---|---|---|", *rows, _END])


def with_flags(page: str) -> str:
    """The methodology page with the flags' table made anew."""
    before, _, rest = page.partition(_BEGIN)
    return before + flags_table() + rest.partition(_END)[2]


if __name__ == "__main__":
    (DOCS / "columns.md").write_text(columns_page())
    (DOCS.parent / "results" / "results.schema.json").write_text(table_schema_text(), encoding="utf-8")
    methodology = DOCS / "methodology.md"
    methodology.write_text(with_flags(methodology.read_text()))
