"""`summary.md`: what a run says in at most 25 lines, for a pull request."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from analysis.points import Point
from analysis.settings import Known, deployed
from measurement.text import as_code, in_html, in_markdown, markdown_table, times
from reports import ladder, markdown
from reports.material import Material
from reports.numbers import ratio, text_of
from reports.verdict import Verdict

MOST_LINES, MOST_SENTENCES, MOST_SHAPES, MOST_MODES = 25, 6, 6, 7


def summary(title: str, material: Material) -> str:
    """Return heading, origin, the verdict with its cautions, one table, and what holds of all, folded."""
    verdicts = material.verdicts
    lines = [f"### {in_markdown(title)}", "", _origin(material), ""]
    sentences = (_item(verdict, sentence) for verdict in verdicts for sentence in verdict.sentences)
    lines += list(islice(sentences, MOST_SENTENCES)) or ["No mode was measured beside eager mode."]
    lines += [f"- more in report.md, of {times(len(verdicts), 'setting')}"] if next(sentences, None) else []
    if verdicts:
        lines += ["", *table(verdicts[0], material)]
    if material.ladders:
        lines += ["", *ladder.lines(material.ladders, MOST_LINES - len(lines) - 3)]
    if cautions := in_html(" ".join(_cautions(material))):
        lines += ["", markdown.folded("To be read with care", cautions).replace("\n\n", " ")]
    return "\n".join(lines) + "\n"


def _item(verdict: Verdict, sentence: str) -> str:
    return f"- **{in_markdown(verdict.setting.name)}**: {in_markdown(sentence)}"


def _origin(material: Material) -> str:
    points = material.points.all
    records = [point.record for point in points]
    versions = dict.fromkeys(f"{r.framework} {r.framework_version}" for r in records if r.framework_version)
    revisions = dict.fromkeys(str(r.git_revision)[:12] for r in records if r.git_revision)
    facts = ", ".join(material.points.machines.values()), ", ".join(versions), *revisions
    return " · ".join([*map(as_code, material.commands[:1]), *map(in_markdown, facts)])


def table(verdict: Verdict, material: Material) -> list[str]:
    """Return the lines of a table with a row a shape and a column a mode."""
    setting = verdict.setting
    # Eager modes that nobody deploys last: they are cut first.
    unused = lambda point: point.eager and not deployed(point.record.framework, material.known)  # noqa: E731
    every = list(dict.fromkeys(point.series for point in sorted(setting.points, key=unused)))
    series = every[:MOST_MODES]
    part = f" ({len(series)} of {len(every)} modes)" if len(series) < len(every) else ""
    rows = []
    for shape in setting.shapes[:MOST_SHAPES]:
        cells = {point.series: figure(point, material.known) for point in setting.at[shape]}
        rows.append([shape.text, *(cells.get(name, "") for name in series)])
    if len(setting.shapes) > MOST_SHAPES:
        rows.append([times(len(setting.shapes) - MOST_SHAPES, "more shape"), *[""] * len(series)])
    columns = (f"{setting.name}, ms · × eager{part}", *series)
    return markdown_table(columns, rows, range(1, len(columns)))


def figure(point: Point, known: Known) -> str:
    """Return `0.703 · 5.73×`, or `0.703 (excluded)`.

    No multiple of an eager mode that nobody deploys.
    """
    time = text_of(point.median_ms)
    if point.excluded:
        return f"{time} (excluded)"
    if point.eager or not deployed(point.record.framework, known) or point.record.speedup_vs_eager is None:
        return time
    return f"{time} · {ratio(point.record.speedup_vs_eager)}×"


def _cautions(material: Material) -> Iterable[str]:
    for verdict in material.verdicts[:MOST_SENTENCES]:
        yield from verdict.contradictions
        if verdict.unlike:
            yield f"{verdict.setting.name}: {verdict.unlike}"
    failed = sum(not point.measured for point in material.points.all)
    if failed:
        yield f"{times(failed, 'cell')} without figures."
