"""`summary.md`: the results of a run in at most 25 lines, for a pull request."""

from __future__ import annotations

from itertools import islice

from analysis.answers import Answer, Trust
from measurement.text import as_code, in_markdown, markdown_table, times
from reports import answers, ladder
from reports.report_data import ReportData

MOST_LINES, MOST_ROWS, MOST_SENTENCES = 25, 9, 4
COLUMNS = ("setting and shape", "framework", "use", "ms", "±", "over eager", "first call")


def summary(title: str, data: ReportData) -> str:
    """Return heading, origin, a table with a row per framework and shape, and the basis of the figures."""
    lines = [f"### {in_markdown(title)}", "", _origin(data), ""]
    shapes = [answer for found in data.answers for answer in found]
    if not shapes:
        return "\n".join([*lines, "Nothing was measured."]) + "\n"
    shared, own = answers.heading([found[0].setting for found in data.answers])
    titles = {id(answer): name for found, name in zip(data.answers, own, strict=True) for answer in found}
    rows = [row for answer in shapes for row in _rows(answer, titles[id(answer)])]
    lines += [in_markdown(shared), "", *markdown_table(COLUMNS, rows[:MOST_ROWS], range(3, 7))]
    sentences = [
        f"- {in_markdown(titles[id(answer)])}, {answer.shape.text}: {in_markdown(text)}"
        for answer in shapes
        if (text := answers.fastest(answer))
    ]
    lines += ["", *islice(sentences, MOST_SENTENCES)] if sentences else []
    if len(rows) > MOST_ROWS or len(sentences) > MOST_SENTENCES:
        lines.append(f"- more in report.md, of {times(len(shapes), 'shape')}")
    if data.ladders:
        lines += ["", *ladder.lines(data.ladders, MOST_LINES - len(lines) - 3)]
    records = [point.record for point in data.points.all]
    failed = sum(not record.is_measured for record in records)
    lines += ["", f"Trust: {in_markdown(answers.trust(Trust.from_records(records)))}."]
    return "\n".join(lines) + (f" {times(failed, 'cell')} without figures.\n" if failed else "\n")


def _rows(answer: Answer, name: str) -> list[tuple[str, ...]]:
    """Return a row per framework, with the call to type where that is known."""
    title = ", ".join(filter(None, (name, answer.shape.text)))
    rows: list[tuple[str, ...]] = []
    for line in answers.lines(answer):
        use = f"`{line.call}`" if line.call else line.mode
        rows.append((title, line.framework, use, line.ms, line.width, line.gain, line.first))
        title = ""
    return rows


def _origin(data: ReportData) -> str:
    points = data.points.all
    records = [point.record for point in points]
    versions = dict.fromkeys(f"{r.framework} {r.framework_version}" for r in records if r.framework_version)
    revisions = dict.fromkeys(str(r.git_revision)[:12] for r in records if r.git_revision)
    facts = ", ".join(data.points.machines.values()), ", ".join(versions), *revisions
    return " · ".join([*map(as_code, data.commands[:1]), *map(in_markdown, facts)])
