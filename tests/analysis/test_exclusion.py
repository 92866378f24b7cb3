"""What is excluded enters no mean, ranking, verdict, comparison, claim or headline: each is given every kind of it."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pytest
from conftest import ROOT, listed_files
from doubles.ladders import DESCRIPTION, TIMES, samples
from doubles.reported import record

from analysis import facts, ladders, pairs, select
from analysis.answers import Answer
from analysis.points import Points
from analysis.significance import geometric_mean
from commands import export, history, repeatability
from commands.reproduce import paired
from experiments import gains, tables
from experiments.energy import FEWEST, correlation
from experiments.evidence import Evidence, Records, latency_of
from experiments.geometric_mean import parts_of
from experiments.judge import ratio_of
from experiments.spec import Sweep, Verdict
from publish import figures as published
from publish import place
from records import recordfile, rooflines
from records.record import Record
from reports import answers as words
from reports import brief, terminal
from reports.content import Table
from reports.page.index import Run, index
from reports.report_data import ReportData
from reports.sections import answer, scaling

MODELS = place.Table(Sweep(ROOT / "gpu-models.toml", {}, {"title": "Models", "mean": True}), ROOT / "no-run")
KINDS = {
    "mismatch": {"status": "mismatch", "reason": "The outputs differ."},
    "error": {"status": "error", "reason": "It raised."},
    "program_differs": {"program": "differs"},
    "eager_compiles": {"flags": "queue;eager_compiles"},
    "zero_outputs": {"flags": "queue;zero_outputs"},
    "constant_outputs": {"flags": "constant_outputs"},
}
COUNTING = {
    "none": {},
    "unknown program": {"program": "unknown"},
    "disturbed": {"flags": "drift;steal", "program": "same"},
}


def two(changes: dict, **others) -> list[Record]:
    """Eager mode and a faster graph, which `changes` may exclude."""
    return [record("alpha", "eager", **others), record("alpha", "graph", **others, **changes)]


def report_data(changes: dict, **others) -> ReportData:
    return ReportData(Points(two(changes, **others)))


def in_a_geometric_mean(changes: dict) -> bool:
    other = record("alpha", "graph", speedup_vs_eager=2.0, speedup_ci_low=1.9, speedup_ci_high=2.1)
    return geometric_mean([two(changes)[1], other]).value < 1.9


def in_several_runs(changes: dict) -> bool:
    later = record("alpha", "graph", latency=32.0, started_at="2026-02-02T00:00:00Z")
    (combined,) = select.combined([two(changes)[1], later])
    return combined.median_ms < 31


def in_a_ladder(changes: dict) -> bool:
    records = {mode: record("alpha", mode, latency=ms) for mode, ms in TIMES.items()}
    records["fused"] |= changes
    made = ladders.ladder(
        records, DESCRIPTION, ladders.Series.from_samples(samples(), {r.cell: m for m, r in records.items()})
    )
    counts = "fused" in [rung.mode for rung in made.rungs]
    assert counts == (made.crossed is not None) == ("fused" not in dict(made.missing))
    return counts


def in_a_pair_of_samples(changes: dict) -> bool:
    records = two(changes)
    cells = {row.cell: row.mode for row in records}
    entries = [
        {"cell": cell, "launch": n, "worker": "w", "seconds_per_call": [1.0, 1.1] * 6}
        for cell in cells
        for n in (0, 1, 2)
    ]
    return paired(dict.fromkeys(records, entries), *records) is not None


def in_a_comparison(changes: dict) -> bool:
    joined = pairs.joined(two({}), two(changes))
    counts = "graph" in [pair.mode for pair in joined.pairs]
    assert counts != any(other.broke for other in joined.others)
    return counts


def in_a_history(changes: dict) -> bool:
    cells = pairs.cells_of(two(changes))
    runs = [history.Loaded(history.trend.Moment(str(n), "", "", {}, ""), {"abcd1234": cells}) for n in range(2)]
    return "graph" in [line.cell.rpartition("/")[2] for line in history.follow(runs)[0]]


def as_a_peak(changes: dict) -> bool:
    row = record("alpha", "graph", workload="matmul", flops=1e9, latency_ms_min=1.0, **changes)
    return any("graph" in source for _, _, source in rooflines._rates(row))


def in_a_section(made) -> bool:
    rows = [row for panel in made.panels for row in panel.table.rows] if made else []
    return any("graph" in cell for row in rows for cell in row.cells if isinstance(cell, str))


def by_threads(changes: dict) -> ReportData:
    return ReportData(Points([row for n in (1, 2, 4) for row in two(changes, threads=n)]))


def on_the_readme(changes: dict, monkeypatch) -> bool:
    monkeypatch.setattr(place, "benches", lambda folder: two(changes))
    monkeypatch.setattr(published, "tables", lambda patterns, folder: [Path("table")])
    columns = [published.Column(mode, "speedup", {"mode": mode}) for mode in ("eager", "graph")]
    chart = published.Chart("A chart", (), (columns[0]._replace(figure="ms"), columns[1]))
    return bool(published.rows(chart, Path("place")))


def in_a_correlation(changes: dict) -> bool:
    def cell(joules: float, **changes) -> Record:
        changes = {"batch_size": int(joules), **changes}
        row = dict.fromkeys(("energy_j_per_call", "energy_ci_low", "energy_ci_high"), joules) | {"power_w": 1.0}
        return record("alpha", "graph", latency=joules, **row, **changes)

    return correlation(Records([*map(cell, range(1, FEWEST)), cell(9.0, **changes)])) is not None


def claims(changes: dict) -> Evidence:
    return Evidence(Records(two(changes)))


def shape_one(changes: dict) -> Answer:
    ((found,),) = report_data(changes).answers
    return found


def cards(changes: dict) -> str:
    """What the cards of a report's answer say."""
    (panel,) = answer.section(report_data(changes)).panels
    return " ".join(f"{item.todo} {item.figures}" for chart in panel.charts for item in chart.card.items)


def printed(changes: dict) -> str:
    """What a terminal shows at the end of a run."""
    console = terminal.PlainConsole(file=io.StringIO(), width=80)
    terminal.closing(report_data(changes).answers, two(changes), console)
    return console.file.getvalue()


def limits(changes: dict) -> list[str]:
    """What is said of a slower core, where eager mode waits for the host."""
    eager, graph = two(changes)
    eager |= {"host_ms_in_loops": 60.0}
    ((found,),) = ReportData(Points([eager, graph])).answers
    return words.limits(found)


def figures(changes: dict) -> Table:
    return answer.section(report_data(changes)).panels[0].table


# Whether an excluded graph enters, by consumer; each takes the changes of the graph's record.
CONSUMERS = {
    "a mean": lambda changes: "bert" in parts_of(Records(two(changes)).graph),
    "a geometric mean": in_a_geometric_mean,
    "figures over several runs": in_several_runs,
    "a claim's records": lambda changes: len(claims(changes).records.graph.included) > 0,
    "a claim's correlation": in_a_correlation,
    "a claim's speedup": lambda changes: claims(changes).records.graph.find_one() is not None,
    "a claim's answer": lambda changes: gains.times_as_fast(1, 2)(claims(changes)).verdict is Verdict.HOLDS,
    "a claim's ratio": lambda changes: ratio_of(*two(changes)) is not None,
    "a claim's latency": lambda changes: latency_of(two(changes)[1]) is not None,
    "a claim's table": lambda changes: tables.latency(two(changes)[1]) == "16",
    "a claim's table of gains": lambda changes: tables.gain(two(changes)[1]).startswith("20 ("),
    "a claim's pair of samples": in_a_pair_of_samples,
    "advice": lambda changes: "use" in [one.kind for one in shape_one(changes).choices],
    "a ranking": lambda changes: "graph" in [rank.point.record.mode for rank in shape_one(changes).ranks],
    "the site's index": lambda changes: "1.25×" in index([Run("a", "a", "2026-01-01", "", report_data(changes))]),
    "a pull request's summary": lambda changes: "1.25×" in brief.summary("One", report_data(changes)),
    "a pair of points": lambda changes: len(facts.pairs(Points(two(changes)).all)) > 0,
    "when compiling pays": lambda changes: "pays after calls" in figures(changes).columns,
    "scaling": lambda changes: in_a_section(scaling.section(scaling.AXES[0], by_threads(changes))),
    "compare and ab": in_a_comparison,
    "history": in_a_history,
    "a ladder": in_a_ladder,
    "repeatability": lambda changes: len(repeatability.intervals_of(two(changes)[1])) > 0,
    "a machine's peak": as_a_peak,
    "an export to Bencher": lambda changes: two({})[1].cell in export.bencher(two(changes)),
    "an export to GitHub": lambda changes: len(export.github_action(two(changes))) == 2,
    "an export to PyTorch": lambda changes: len(export.pytorch_oss(two(changes), ())) == 2,
    "a report's answer": lambda changes: "use graph 16 ms" in cards(changes),
    "the terminal's block": lambda changes: "1.25×" in printed(changes),
    "a slower core": lambda changes: len(limits(changes)) > 0,
    "an edition's page": lambda changes: "1.25×" in "".join(place.of_bench(two(changes))),
    "an edition's mean": lambda changes: len(place.means([(MODELS, two(changes))])) > 0,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_nothing_that_is_excluded_enters(consumer, kind):
    assert not CONSUMERS[consumer](KINDS[kind])


@pytest.mark.parametrize("kind", COUNTING)
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_what_is_not_excluded_enters(consumer, kind):
    assert CONSUMERS[consumer](COUNTING[kind])


@pytest.mark.parametrize(
    ("kind", "enters"), [*dict.fromkeys(KINDS, False).items(), *dict.fromkeys(COUNTING, True).items()]
)
def test_the_readme_has_no_excluded_figure(kind, enters, monkeypatch):
    assert on_the_readme({**KINDS, **COUNTING}[kind], monkeypatch) == enters


def test_the_reason_is_the_status_or_a_flag_and_an_unknown_program_is_none():
    reasons = {kind: record("alpha", "graph", **changes).excluded for kind, changes in KINDS.items()}
    assert reasons == {kind: kind for kind in KINDS}
    assert [record("alpha", "graph", **changes).excluded for changes in COUNTING.values()] == [None] * 3


# Every module that reads a record's latency or speedup, with the consumers above that it is tried by, or why it need
# not be: what is shown of one cell is no mean, ranking or headline.
READERS: dict[str, tuple[str, ...] | str] = {
    "analysis/answers.py": ("a ranking",),
    "analysis/changes.py": ("compare and ab",),
    "analysis/facts.py": ("a pair of points", "a ranking"),
    "analysis/ladders.py": ("a ladder",),
    "analysis/pairs.py": ("compare and ab",),
    "analysis/points.py": "hands each record on with its exclusion",
    "analysis/rules.py": ("advice",),
    "analysis/select.py": ("figures over several runs",),
    "analysis/sensitivity.py": ("a slower core",),
    "analysis/significance.py": ("a geometric mean", "a ranking"),
    "commands/answer.py": "the exit code, of headline records",
    "commands/export.py": ("an export to Bencher", "an export to GitHub", "an export to PyTorch"),
    "commands/history.py": ("history",),
    "commands/repeatability.py": ("repeatability",),
    "commands/doctor.py": "its own trials, which are no records",
    "execution/cluster.py": "the control cell of each node",
    "execution/execute.py": "how wide intervals are, for the next process",
    "execution/progress.py": "one cell's line",
    "execution/stopping.py": "how wide intervals are, for the next process",
    "execution/worker_run.py": "one cell's figures so far",
    "experiments/decode_claims/__init__.py": ("a claim's table",),
    "experiments/page.py": "how many processes measured each cell",
    "experiments/evidence.py": ("a claim's latency", "a claim's records", "a claim's speedup"),
    "experiments/first_principles/__init__.py": ("a claim's table",),
    "experiments/first_principles/chain.py": ("a claim's records",),
    "experiments/first_principles/overhead.py": ("a claim's records",),
    "experiments/gains.py": ("a claim's answer",),
    "experiments/geometric_mean/__init__.py": ("a mean", "a geometric mean"),
    "experiments/keras_io/__init__.py": ("a claim's records", "a claim's latency"),
    "experiments/paddle_bert/__init__.py": ("a claim's records",),
    "experiments/tables.py": ("a claim's table", "a claim's table of gains"),
    "experiments/tf32_mlp/__init__.py": ("a claim's table",),
    "experiments/torch2_gpt/__init__.py": ("a claim's records",),
    "publish/place.py": ("an edition's page", "an edition's mean"),
    "publish/picture.py": "points that are not excluded",
    "records/assemble.py": "makes the records",
    "records/record.py": "the record",
    "records/rooflines.py": ("a machine's peak",),
    "reports/answers.py": ("a pull request's summary", "the terminal's block"),
    "reports/causes.py": "profiles, which are no records",
    "reports/compare.py": ("compare and ab",),
    "reports/explanation.py": "one profile's own line",
    "reports/ladder.py": ("a ladder",),
    "reports/page/index.py": ("the site's index",),
    "reports/sections/answer.py": ("a report's answer", "when compiling pays"),
    "reports/sections/ladders.py": ("a ladder",),
    "reports/sections/scaling.py": ("scaling",),
    "reports/terminal.py": ("the terminal's block",),
    "reports/trend.py": ("history",),
    "worker/interleaved.py": "first figures of one cell",
}
FIGURES = {"speedup", "latency", "speedup_vs_eager", "speedup_ci_low", "latency_ms_median", "median_ms"}


def test_every_reader_of_figures_is_tried():
    readers = {
        path
        for path, tree in production().items()
        if FIGURES & {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    }
    assert readers == READERS.keys()
    named = {name for names in READERS.values() if isinstance(names, tuple) for name in names}
    assert named <= CONSUMERS.keys()


def test_a_mode_on_a_slowed_host_is_no_headline_and_yet_not_excluded():
    slowed = {"flags": "host_slowed"}
    assert not CONSUMERS["advice"](slowed) and not CONSUMERS["a mean"](slowed)
    assert not CONSUMERS["a claim's answer"](slowed) and CONSUMERS["a claim's speedup"](slowed)


RULE = "records/statuses.py"
# Who else may look at statuses of measured cells: for what is shown of a cell, not for what is made of its figures.
LOOK_AT_STATUS = {
    RULE: "the rule itself",
    "records/record.py": "whether a record is of a measured cell",
    "records/values.py": "that a record of any other status has a reason",
    "records/recordfile.py": "a measured record needs a latency to be read",
    "commands/bench.py": "the exit code",
}
LOOK_AT_MEASURED = {
    "commands/bench.py": "the earlier run that a comparison is proposed with",
    "analysis/pairs.py": "the times shown beside the reason for which a cell is not compared",
    "analysis/facts.py": "what other processes took of the machine",
    "reports/terminal.py": "whether a cell is shown by its figures or its status",
    "reports/brief.py": "how many cells have no figures",
    "analysis/answers.py": "which cells conditions and precision are counted of",
    "analysis/points.py": "the same on pages",
}
# Who names the verdict on a program: who lists it and makes it a record's.
NAME_PROGRAMS = {RULE, "frameworks/program.py", "records/assemble.py"}


def production() -> dict[str, ast.Module]:
    files = [path for path in listed_files() if path.suffix == ".py" and path.parts[0] not in ("tests", "studies")]
    return {path.as_posix(): ast.parse((ROOT / path).read_text()) for path in files}


def test_no_other_module_decides_it():
    trees = production()
    constants = {
        path: {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)} for path, tree in trees.items()
    }
    assert {path for path, values in constants.items() if "differs" in values} == NAME_PROGRAMS
    flags = {"program_differs", "eager_compiles", "zero_outputs", "constant_outputs"}
    assert {path for path, values in constants.items() if values & flags} <= {"measurement/flags.py"}
    names = {
        path: {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for path, tree in trees.items()
    }
    assert {path for path, used in names.items() if "MEASURED" in used} == LOOK_AT_STATUS.keys()
    assert {path for path, used in names.items() if "is_measured" in used} == LOOK_AT_MEASURED.keys()


def test_no_committed_folder_is_advised_by_an_excluded_cell():
    for path in sorted(ROOT.glob("results/[!r]*/**/records.jsonl")):
        for found in ReportData(Points(recordfile.load(path).records)).answers:
            chosen = [choice.point for answer in found for choice in answer.choices]
            ranked = [rank.point for answer in found for rank in answer.ranks]
            assert [point.record.cell for point in (*chosen, *ranked) if point.excluded] == []
