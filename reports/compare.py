"""Two sets of records cell by cell, for people: changed, unchanged and inconclusive cells, with reasons."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from analysis.comparison import FASTER, NOT_COMPARABLE, SAME, SLOWER, Compared, Comparison, Reason
from measurement.statistics import INCONCLUSIVE, Interval
from measurement.text import as_code, in_markdown, listed, make_command, times
from reports import markdown, numbers
from reports.content import Figure, Row, Table
from reports.names import Names
from reports.numbers import text_of

# A comment on a pull request holds 65,536 characters.
MOST_ROWS, MOST_REASONS = 100, 20
METHOD = (
    "Welch's test on processes, with Holm's correction for the number of cells. A change that all modes of a shape "
    f"share may be the machine's and counts only if it is large; `{make_command('ab', {})}` alternates both sides."
)
METHOD_IN_TURN = (
    "Processes of A and B alternated, so both met the same machine conditions. Student's t on the differences of "
    "neighbouring processes, with Holm's correction for the number of cells."
)
COLUMNS = ("cell", "A, ms", "B, ms", "ms, B over A", "B is")
REASONS = {  # by the rule, for its values
    "few processes": "{} has too few processes for an interval; at least three are needed",
    "few shared processes": "A and B share only {} processes; at least three are needed",
    "few samples": "{} has too few samples for an interval",
    "host slowed": "{}'s host never ran at full speed for long enough (host_slowed)",
    "not ruled out": "no difference is shown, and one beyond {:g} % is not ruled out",
    "mode moved too": "{} changed by a factor of {:.2f} as well: the cause may be the machine",
    "host changed": "the host's speed changed: its control loop took {:.2f} times as long, which explains the change",
    "no mode is precise": "no other mode of the shape is precise enough to show whether the machine changed",
    "no shape is precise": "the other shapes are not precise enough to show whether the machine changed",
    "no other mode": "no other mode of the shape shows whether the machine changed",
    "only in one": "only in {}",
    "held several times": "{} holds it {} times",
    "excluded": "{}: {}: {}",
    "other weights": "the weights differ: {} and {}",
    "other tf32": "the TF32 setting differs: {} and {}",
    "other policies": "the policies differ: {} and {}",
}
BESIDE_EAGER = "relative to eager"  # A's speedup over B's


def names_of(comparison: Comparison) -> Names:
    """Return short names of the cells."""
    return Names(cell.cell for cell in comparison.cells)


def summary(comparison: Comparison) -> str:
    """Return the cells per verdict, and whether the limit is kept."""
    verdicts = {
        verdict: len(comparison.with_verdict(verdict))
        for verdict in (SLOWER, FASTER, SAME, INCONCLUSIVE, NOT_COMPARABLE)
    }
    parts = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.items() if count)
    return f"{times(len(comparison.cells), 'cell')}: {parts}; {answer(comparison)}"


def answer(comparison: Comparison) -> str:
    """Return whether the limit is kept, in a few words."""
    limit = f"{100 * comparison.limit:g} %"
    over = Counter(cell.verdict for cell in comparison.over)
    if over:
        slower = [f"{over[SLOWER]:,} slower by more than {limit}"] if over[SLOWER] else []
        return ", ".join([*slower, *([f"{over[NOT_COMPARABLE]:,} broke"] if over[NOT_COMPARABLE] else [])])
    if not comparison.decided:
        return "nothing could be decided"
    return f"no cell is shown to be slower by more than {limit}"


def describe(why: Reason) -> str:
    """Return why a cell is not decided, as a clause."""
    flags = f"flags of {why.conditions}" if why.conditions else ""
    return "; ".join(filter(None, (REASONS[why.rule].format(*why.values), flags)))


def undecided(comparison: Comparison, names: Names) -> list[str]:
    """Return a line for each reason why cells have no verdict: how many, and the first of them."""
    cells = [cell for verdict in (INCONCLUSIVE, NOT_COMPARABLE) for cell in comparison.with_verdict(verdict)]
    return [f"{verdict}, {line}" for verdict, line in _reasons(cells, names)]


def _reasons(cells: Iterable[Compared], names: Names) -> Iterable[tuple[str, str]]:
    """Yield the verdict, a reason and the cells that it applies to, the commonest reason first."""
    by_reason = defaultdict(list)
    for cell in cells:
        if cell.why:
            by_reason[cell.verdict, cell.why].append(names[cell.cell])
    ordered = sorted(by_reason.items(), key=lambda entry: -len(entry[1]))
    for (verdict, why), of_cells in ordered[:MOST_REASONS]:
        yield verdict, f"{times(len(of_cells), 'cell')} ({listed(of_cells)}): {describe(why)}."
    if len(ordered) > MOST_REASONS:
        yield INCONCLUSIVE, f"and {len(ordered) - MOST_REASONS:,} more reasons."


def table(cells: Sequence[Compared], names: Names, beside_eager: bool = False) -> Table:
    """Return cells with their figures; with `beside_eager` also those relative to eager mode's change."""
    beside_eager = beside_eager and any(cell.beside_eager for cell in cells)
    columns = (*COLUMNS[:4], BESIDE_EAGER, COLUMNS[4]) if beside_eager else COLUMNS
    return Table(columns, tuple(_row(cell, names[cell.cell], beside_eager) for cell in cells[:MOST_ROWS]), len(cells))


def _row(cell: Compared, name: str, beside_eager: bool) -> Row:
    figures = [Figure(text_of(value), value) if value else "" for value in cell.times_ms]
    ratios = [_ratio(cell.ratio), *([_ratio(cell.beside_eager)] if beside_eager else [])]
    return Row((name, *figures, *ratios, cell.verdict))


def _ratio(ratio: Interval | None) -> Figure | str:
    return Figure(numbers.speedup(ratio.value, ratio), ratio.value) if ratio else ""


def page(comparison: Comparison) -> str:
    """Return the comparison as Markdown for a pull request: cautions, changed cells, and unchanged ones, folded."""
    names = names_of(comparison)
    parts = [f"### {in_markdown(title(comparison))}", "\n".join(_sides(comparison))]
    parts.append("\n".join(map(_caution, comparison.cautions)))
    parts.append(f"**{summary(comparison)}.** B over A is a ratio of ms: above 1, B is slower.")
    parts.append(f"All cells: {in_markdown(names.shared)}." if names.shared else "")
    for verdict in (SLOWER, FASTER):
        if cells := comparison.with_verdict(verdict):
            parts += [f"#### {verdict.capitalize()}", _shown(cells, names), "\n".join(_bullets(cells, names))]
    for verdict in (INCONCLUSIVE, NOT_COMPARABLE, SAME):
        if cells := comparison.with_verdict(verdict):
            inner = "\n\n".join(filter(None, ["\n".join(_bullets(cells, names)), _shown(cells, names)]))
            folded = f"<summary>{verdict.capitalize()}: {times(len(cells), 'cell')}</summary>"
            parts.append(f"<details>{folded}\n\n{inner}\n\n</details>")
    parts.append(METHOD_IN_TURN if comparison.in_turn else METHOD)
    return "\n\n".join(filter(None, parts)) + "\n"


def title(comparison: Comparison) -> str:
    """Return the compared runs, and the answer, in one line."""
    a, b = comparison.sides
    return f"{a.name} → {b.name}: {answer(comparison)}"


def _sides(comparison: Comparison) -> list[str]:
    lines = []
    for letter, side in zip("AB", comparison.sides, strict=True):
        lines.append(f"- **{letter}**: {in_markdown(' · '.join((side.name, *side.facts)))}")
        lines += [f"  {as_code(side.command)}"] if side.command else []
    return lines


def _caution(text: str) -> str:
    head, colon, rest = text.partition(": ")
    return f"- **{in_markdown(head)}**: {in_markdown(rest)}" if colon else f"- {in_markdown(text)}"


def _bullets(cells: Sequence[Compared], names: Names) -> list[str]:
    return [f"- {in_markdown(line)}" for _, line in _reasons(cells, names)]


def _shown(cells: list[Compared], names: Names) -> str:
    content = table(cells, names, beside_eager=True)
    more = [f"And {content.left_out:,} more."] if content.left_out else []
    return "\n\n".join([markdown.table(content), *more])
