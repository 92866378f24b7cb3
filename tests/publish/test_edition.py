"""Publishing an edition: what is missing, what refuses it, and the page of a place."""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from doubles.starts import planted
from doubles.suite import copy_with_fake

from environments import environments
from experiments.spec import Sweep
from measurement.refusals import INCOMPLETE, REFUSED
from measurement.starts import WAYS
from measurement.streams import STRATEGIES
from plan import plan, sweep
from publish import edition, place
from records import runs, starts

TINY = """
framework = "fake"
workload = "mlp"
width = 8
depth = 1
batch = {batch}
threads = 1
budget = 0.1

[about]
title = "A tiny MLP"
"""


def test_every_table_of_the_edition_can_be_planned(many_processors):
    names = set()
    for part in edition.read_sweeps():
        planned = plan.plan(sweep.resolve(part.flags))
        assert planned.cells and part.about["title"], part.name
        assert part.device in environments.DEVICES and (part.device == "gpu") == (planned.cells[0].device_kind == "gpu")
        kind = part.measures, part.flags.get("energy", False), part.flags.get("policy")
        own = {(kind, cell.id) for cell in planned.cells}
        assert not names & own, f"{part.name} repeats a cell of another table"
        names |= own
        if part.measures in place.ROUNDS:
            about, known = part.about, {"start": WAYS, "stream": STRATEGIES}[part.measures]
            assert about["minutes"] and about["processes"] >= 3 and set(about["strategies"]) <= known.keys(), part.name
            assert {cell.mode for cell in planned.cells} == {"eager"}, part.name


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """The suite with the fake framework and an edition of one table, committed."""
    copy = copy_with_fake(tmp_path_factory.mktemp("suite"))
    for path in (copy.folder / "experiments/edition").glob("*.toml"):
        path.unlink()
    (copy.folder / "experiments/edition/cpu-tiny.toml").write_text(TINY.format(batch=1))
    (copy.folder / ".gitignore").write_text("__pycache__\n.cache\n.venvs\nprocesses/\n")
    commit(copy.folder)
    return copy


def commit(folder: Path) -> None:
    """Commit all files of a folder, which becomes a repository."""
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Measure"]):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


def publish(suite, *words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "runner.py", "publish", "--python", sys.executable, "--force", *words]
    return subprocess.run(command, cwd=suite.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_an_edition_is_measured_once_and_from_one_state_of_the_suite(suite):
    code = suite.folder / "plan/aliases.py"
    text = code.read_text()
    code.write_text(text + "\n# changed\n")
    refused = publish(suite, "--dry-run")
    assert refused.returncode == REFUSED and "commit first" in refused.stdout
    code.write_text(text)

    stopped = publish(suite, "--minutes", "0.02")
    again = stopped.stdout.partition("Resume with: ")[2]
    assert stopped.returncode == 130, stopped.stdout
    assert again.startswith(f"make publish EDITION={edition.EDITION} DEVICE=cpu MINUTES=0.02"), stopped.stdout
    done = publish(suite)
    assert done.returncode == 0, done.stdout
    place = suite.folder / "results" / edition.EDITION / "cpu"
    page = (place / "README.md").read_text()
    assert "## A tiny MLP" in page and "| fake graph |" in page
    kept = {path.name for path in (place / "cpu-tiny").iterdir() if path.is_file()}
    assert kept == {"plan.json", "machine.json", "records.jsonl", "samples.jsonl.gz"}

    before = (place / "cpu-tiny/records.jsonl").read_bytes()
    commit(suite.folder)  # results alone: the code is the same
    again = publish(suite)
    assert again.returncode == 0 and "A tiny MLP" in again.stdout
    assert (place / "cpu-tiny/records.jsonl").read_bytes() == before

    (suite.folder / "experiments/edition/cpu-more.toml").write_text(TINY.format(batch=2))
    code.write_text(text + "\n# changed\n")
    commit(suite.folder)
    other = publish(suite)
    assert other.returncode == REFUSED and "1 commit changed the measuring code since" in other.stdout, other.stdout
    (named,) = re.findall(r"such as (\w{10}) ", other.stdout)
    module = suite.folder / "publish/edition.py"
    start = "SAME_FIGURES: dict[str, str] = {"
    module.write_text(module.read_text().replace(start, f'{start}"{named}": "a comment", ', 1))
    commit(suite.folder)
    more = publish(suite, "--dry-run")
    assert more.returncode == 0 and "cpu-more" in more.stdout, more.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--device", "gpu"], "PLACE=h100"),
        (["--place", "../cpu"], "PLACE must be the name of a folder"),
        (["--edition", "runs"], "EDITION must be the name of a folder"),
        (["--table", "cpu-langauge"], "did you mean 'cpu-language'"),
    ],
)
def test_a_wrong_use_is_one_sentence(words, sentence, capsys):
    import runner

    assert runner.main(["publish", *words]) == REFUSED
    assert sentence in capsys.readouterr().err


@pytest.fixture
def started(tmp_path):
    """A table of starts of an MLP by two strategies in three processes, as a function of the records it has."""
    flags = {"framework": "torch", "workload": "mlp", "mode": "eager", "threads": 1}
    about = {"title": "Starts", "measure": "start", "strategies": ["eager", "compile"], "processes": 3}
    table = place.Table(Sweep(Path("cpu-start.toml"), flags, about), tmp_path)
    (cell,) = plan.plan(sweep.resolve(flags)).cells

    def make(records) -> place.Table:
        for record in records:
            starts.JOURNAL.append(tmp_path, replace(record, cell=cell.group_id))
        return table

    return make


def test_a_table_of_starts_lacks_strategies_without_all_their_processes(started):
    assert started([]).state() == (2, 2)
    assert started(planted("eager", 2.0, 10.0, rounds=3)).state() == (2, 1)
    assert started(planted("compile", 12.0, 5.0, rounds=2)).state() == (2, 1)
    assert started([replace(planted("compile", 12.0, 5.0, rounds=3)[2], status="oom")]).state() == (2, 0)


def test_the_page_shows_starts_with_their_versions(started, monkeypatch):
    table = started(planted("eager", 2.0, 10.0, rounds=3) + planted("compile", 12.0, 5.0, rounds=3))
    monkeypatch.setattr(place, "read_sweeps", lambda: [replace(table.part, path=Path(f"{table.folder.name}.toml"))])
    page = place.page(table.folder.parent)
    assert "| strategy | first, s | times eager's | ms a call | pays, calls |" in page
    assert "| compile | 12 ±" in page and "| 6.00×" in page


def test_times_of_a_slow_host_are_marked_and_an_unknown_efficiency_is_not(record):
    shared = {"latency_ms_ci_low": 1.9, "latency_ms_ci_high": 2.1, "parameters": "ranks=2", "scaling_efficiency": 0.5}
    for slowed in (True, False):
        *_, row = place.of_bench([record(**shared, latency_slowed=slowed, launches=2)])
        assert row.count("host slowed") == 2 * slowed, row
    kept = {"scaling_efficiency_low": 0.49, "scaling_efficiency_high": 0.51}
    assert "50 % ±2 %" in place.of_bench([record(**shared, **kept)])[-1]


def test_energy_scaling_and_files_have_columns_where_they_were_measured(record):
    energy = {"energy_j_per_call": 2.0, "energy_ci_low": 1.9, "energy_ci_high": 2.1, "power_w": 300.0}
    lines = place.of_bench([record(latency_ms_ci_low=1.9, latency_ms_ci_high=2.1, **energy)])
    assert "All: mlp" in lines[1]
    assert lines[3] == "| mode | ms | J per call | W |"
    assert lines[5].endswith("| 2 ±5 % | 2 ±5 % | 300 |")
    saving = {"energy_saving_vs_eager": 1.5, "energy_saving_ci_low": 1.4, "energy_saving_ci_high": 1.6}
    for flags, shown in ((None, "1.50× ±7 %"), ("host_slowed", "host slowed")):
        graph = record(mode="graph", baseline=False, flags=flags, schema_version=9, **energy, **saving)
        lines = place.of_bench([graph])
        assert f"| {shown} |" in lines[5] and lines[6:] == (
            ["", "Flagged of 1 cells: [`host_slowed`](../../../docs/columns.md#flags) 1."] if flags else []
        )


def test_a_mean_counts_models_with_a_speedup_at_full_speed(record):
    def measured(workload: str, speedup: float, **changes):
        interval = {"speedup_ci_low": 0.99 * speedup, "speedup_ci_high": 1.01 * speedup, "launches": 3}
        return record(workload=workload, mode="graph", baseline=False, speedup_vs_eager=speedup, **interval, **changes)

    part = Sweep(Path("gpu-models.toml"), {}, {"title": "Models", "mean": True})
    found = [measured("a", 2.0), measured("b", 8.0), measured("c", 9.0, flags="host_slowed", schema_version=9)]
    assert place.means([(place.Table(part, Path("none")), found)])[-1].startswith("| batch 4 | graph | 4.00× ±")
    assert place.means([(place.Table(part, Path("none")), found)])[-1].endswith("| 2 of 3 |")
    elsewhere = [replace(found[1], machine_id="another")]
    rows = place.means([(place.Table(part, Path("none")), of_table) for of_table in (found, elsewhere)])[-2:]
    assert [re.sub(" ±.*%", "", row) for row in rows] == [
        f"| batch 4 | graph | {str(found[0].machine_id)[:4]} | 4.00× | 2 of 3 |",
        "| batch 4 | graph | anot | 8.00× | 1 of 1 |",
    ]


def test_a_second_machine_is_compared_with_the_first(record, monkeypatch, tmp_path):
    """Only with a GPU of the same kind, and for the cells that both have."""

    def measured(ms: float, loop: float, device="GPU", uuid="a"):
        interval = {"latency_ms_median": ms, "latency_ms_ci_low": 0.98 * ms, "latency_ms_ci_high": 1.02 * ms}
        return replace(
            record(launches=3, host_loop_ms_full=loop, host_ms_in_loops=5.0, gpu_uuid=uuid, **interval),
            device_name=device,
        )

    part = Sweep(Path("gpu-bert.toml"), {}, {"title": "BERT"})
    here, first = measured(3.0, 0.6), measured(2.5, 0.5, uuid="b")
    monkeypatch.setattr(place, "benches", lambda folder: [first])
    for name, loop in (("h100-second", 0.6), ("h100/gpu-bert", 0.5)):
        lines = [{"cell": here.cell, "launch": n, "seconds_per_call": [3e-3] * 9, "host_s": 3e-3} for n in range(3)]
        (tmp_path / name).mkdir(parents=True)
        text = "".join(json.dumps(line | {"host_loop_s": [loop * 1e-3] * 9}) + "\n" for line in lines)
        (tmp_path / name / "samples.jsonl").write_text(text)
    lines = place.against(tmp_path / "h100", [(place.Table(part, tmp_path / "h100-second"), [here])])
    assert lines[-1].split(" | ")[1:] == ["1.20 ±2 %", "1.20 |"]
    assert "is another machine" in "".join(lines)
    monkeypatch.setattr(place, "benches", lambda folder: [measured(2.5, 0.5, "another GPU", "b")])
    assert place.against(tmp_path / "h100", [(place.Table(part, tmp_path / "h100-second"), [here])]) == []
    on_cpu = measured(3.0, 0.6, uuid=None)
    monkeypatch.setattr(place, "benches", lambda folder: [on_cpu])
    assert place.against(tmp_path / "cpu", [(place.Table(part, tmp_path / "cpu-second"), [on_cpu])]) == []
    monkeypatch.setattr(place, "benches", lambda folder: [replace(first, git_revision="of another day")])
    lines = place.against(tmp_path / "h100", [(place.Table(part, tmp_path / "h100-second"), [here])])
    assert "a GPU of this kind, measured by suite of another day." in "".join(lines)
    monkeypatch.setattr(place, "benches", lambda folder: [measured(2.5, 0.5)])
    lines = place.against(tmp_path / "h100", [(place.Table(part, tmp_path / "h100-again"), [here])])
    assert "is an earlier run on this GPU" in "".join(lines)


def test_other_versions_are_refused(monkeypatch, tmp_path, record, many_processors):
    place = tmp_path / "cpu"
    found = [record(framework="torch", framework_version="2.13.0"), record(framework="jax", framework_version="0.11.2")]
    monkeypatch.setattr(edition, "read_records", lambda folder: iter(found))
    monkeypatch.setattr(edition.environments, "ensure", lambda *words, **named: Path(sys.executable))
    monkeypatch.setattr(edition, "version", lambda interpreter, name: "2.11.0")
    table = next(part for part in edition.read_sweeps() if part.name == "gpu-models-images-1")
    arguments = argparse.Namespace(device="gpu", python=None)
    with pytest.raises(edition.UsageError, match=r"torch 2\.13\.0, and 2\.11\.0 is installed"):
        edition.check_versions(place, [edition.Table(table, place)], arguments)


def test_a_library_that_is_not_installed_is_refused(many_processors):
    table = next(part for part in edition.read_sweeps() if part.name == "gpu-models-images-1")
    arguments = argparse.Namespace(device="gpu", python=sys.executable)
    with pytest.raises(edition.UsageError, match="gpu-models-images-1 needs torchvision, which torch's environment"):
        edition.check_libraries([edition.Table(table, Path("none"))], arguments)


def test_minutes_start_no_table_that_does_not_fit(monkeypatch, tmp_path, capsys):
    def of(name: str) -> edition.Table:
        return edition.Table(Sweep(tmp_path / f"{name}.toml", {}, {"title": name}), tmp_path / name)

    measured = []
    monkeypatch.setattr(edition.reproduce, "run_sweep", lambda part, *rest: measured.append(part.name) or 0)
    monkeypatch.setattr(edition, "seconds_left", lambda table: {"long": 600, "short": 30}[table.part.name])
    arguments = argparse.Namespace(
        edition="e", place=None, device="cpu", table=None, minutes=1, python=None, timeout=900, force=False
    )
    code = edition.measure([of("long"), of("long"), of("short")], arguments, edition.terminal.console())
    assert measured == ["long", "short"] and code == INCOMPLETE
    assert "Resume with: make publish EDITION=e DEVICE=cpu MINUTES=1" in capsys.readouterr().out


def test_a_table_that_this_machine_cannot_plan_lacks_nothing(tmp_path):
    part = Sweep(
        Path("cpu-wide.toml"), {"framework": "torch", "workload": "mlp", "threads": 100_000}, {"title": "Wide"}
    )
    table = place.Table(part, tmp_path)
    assert table.state() is None and not table.lacks


def test_processes_of_unfinished_cells_shorten_the_time_left(tmp_path):
    part = Sweep(Path("cpu-mlp.toml"), {"framework": "torch", "workload": "mlp", "threads": 1}, {"title": "MLP"})
    table = place.Table(part, tmp_path)
    whole = edition.seconds_left(table)
    cells = table._cells()
    (tmp_path / "processes").mkdir()
    for cell, process in [*itertools.product(cells, (0, 1)), (min(cells), 1), ("peak:matmul", 0)]:
        runs.Run(tmp_path).keep_report({"cell": cell, "report": {"process": process}})
    runs.Run(tmp_path).keep_report({"cell": min(cells), "busy_s": 0.1})
    assert edition.seconds_left(table) == pytest.approx(whole / 3)  # two of three
    runs.Run(tmp_path).keep_report({"cell": min(cells), "report": {"process": 2}})
    assert edition.seconds_left(table) == pytest.approx(whole / 3)  # until its record is written
