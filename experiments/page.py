"""The page of a reproduction: tables with the published figures, and the claims with their answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from experiments.evidence import Evidence
from experiments.spec import Experiment, Sweep, Table, Verdict
from measurement import durable
from measurement.statistics import ENOUGH_PROCESSES
from measurement.text import in_markdown, markdown_table
from records.process import ProcessRecord
from records.record import Record

WIDE, SHORTEST = 120, 5  # columns of a screen from which titles fit, and of a column
BASIS = "Intervals are 95 %; profiles have an assumed spread. A claim holds only where these say so."
STYLES = {Verdict.HOLDS: "green", Verdict.FAILS: "red", Verdict.OPEN: "yellow"}


def write(experiment: Experiment, sweeps: list[Sweep], evidence: Evidence, folder: Path) -> Path:
    """Write `table.md` into `folder`; returns its path."""
    page = folder / "table.md"
    durable.replace_text(page, markdown(experiment, sweeps, evidence))
    return page


def markdown(experiment: Experiment, sweeps: list[Sweep], evidence: Evidence, basis: str = BASIS) -> str:
    """Return the page as Markdown, with the basis of its answers; claims on another device are omitted."""
    parts = [f"# {experiment.title}", f"Source: {experiment.source}. Measured here: {in_markdown(setting(evidence))}."]
    if addresses := experiment.addresses:
        parts.append(f"Published at {', '.join(f'<{address}>' for address in addresses)}.")
    parts += [
        f"**Scaled down** ({part.name}): {part.about['scaled_down']}" for part in sweeps if "scaled_down" in part.about
    ]
    parts.append("\n\n".join(filter(None, ("## Claims", f"{basis} {reach(evidence)}".strip()))))
    for claim in experiment.claims:
        lines = [
            f"- {in_markdown(side)}: **{answer.verdict}**: {in_markdown(answer.text)}"
            for side, answer in experiment.answers(claim, evidence).items()
        ]
        parts += ["\n".join([f"**{claim.sentence}**", "", *lines])] if lines else []
    parts += [table_text(table) for table in experiment.tables(evidence, experiment.published())]
    return "\n\n".join(parts) + "\n"


def reach(evidence: Evidence) -> str:
    """Return a sentence: whether the answers hold for other processes; empty without any interval."""
    fewest = min((record.processes or 1 for record in evidence.records.included if record.latency), default=None)
    if fewest is None:
        return ""
    if fewest >= ENOUGH_PROCESSES:
        return f"Answers hold across processes: each cell was measured in {fewest} or more."
    few = "one process" if fewest == 1 else f"{fewest} processes"
    return (
        f"Some cells were measured in {few}, so their intervals exclude differences between processes: "
        "where an interval ends near a claim's limit, another run may answer otherwise."
    )


def setting(evidence: Evidence) -> str:
    """Return devices, how many machines where there are several, and measured versions."""
    records: list[Record | ProcessRecord] = list(evidence.records)
    records += [cell.record for cell in evidence.starts]
    records += [cell.record for cell in evidence.streams]
    devices = dict.fromkeys(record.device_name for record in records if record.device_name)
    machines = len({record.machine_id for record in records if record.machine_id})
    several = [f"{machines} machines"] * (machines > 1)
    versions = dict.fromkeys(f"{r.framework} {r.framework_version}" for r in records if r.framework_version)
    return "; ".join([", ".join(devices) or "nothing", *several, ", ".join(versions)])


def table_text(table: Table) -> str:
    """Return a table as Markdown."""
    return "\n".join([f"## {in_markdown(table.title)}", "", *markdown_table(table.columns, table.rows)])


def show(experiment: Experiment, evidence: Evidence, console: Console) -> None:
    """Print the tables and the answers."""
    for table in experiment.tables(evidence, experiment.published()):
        columns = zip(table.columns, list(zip(*table.rows, strict=True)) or [()] * len(table.columns), strict=True)
        heads = [Column(name, width=_width(name, cells, console.width), overflow="fold") for name, cells in columns]
        grid = Grid(*heads, title=table.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for row in table.rows:
            grid.add_row(*row)
        console.print(grid)
    answers = Grid("claim", "of", "answer", "numbers", title="Claims", title_justify="left", show_lines=True)
    for claim in experiment.claims:
        for index, (side, answer) in enumerate(experiment.answers(claim, evidence).items()):
            sentence = "" if index else claim.sentence
            answers.add_row(sentence, side, Text(str(answer.verdict), style=STYLES[answer.verdict]), answer.text)
    console.print(answers)
    if remark := reach(evidence):
        console.print(remark)


def _width(name: str, cells: Sequence[str], screen: int) -> int | None:
    """Return the width of a column of numbers on a narrow screen: titles are folded, numbers are not."""
    longest = max(map(len, cells), default=0)
    numbers = not any(" " in cell for cell in cells)
    return max(longest, SHORTEST) if numbers and screen < WIDE else None
