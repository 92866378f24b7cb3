"""Reproducing a table: what there is, a folder added to the suite, tables, claims, resuming."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.suite import copy_with_fake
from doubles.synthetic import timed

import experiments
import runner
from commands.reproduce import evidence_in, paired
from experiments.evidence import Evidence, Records
from experiments.page import markdown, reach
from experiments.spec import Sweep
from plan import hosts, plan, sweep
from publish import reproductions

pytestmark = pytest.mark.slow
ABOUT = {"scaled_down", "minutes", "on", "measure", "title", "headline", "mean"}


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """The suite with the fake framework and with a table of its own."""
    copy = copy_with_fake(tmp_path_factory.mktemp("suite"))
    shutil.copytree(ROOT / "tests/doubles/table", copy.folder / "experiments/fake_table")
    return copy


def reproduce(suite, *words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "runner.py", "reproduce", "--python", sys.executable, *words]
    return subprocess.run(command, cwd=suite.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="module")
def reproduced(suite, tmp_path_factory):
    """A finished reproduction: its output and its folder."""
    out = tmp_path_factory.mktemp("runs") / "run"
    done = reproduce(suite, "--table", "fake-table", "--out", str(out))
    assert done.returncode == 0, done.stdout
    return done.stdout, out


def test_a_table_is_added_by_adding_its_folder(suite):
    listed = reproduce(suite).stdout
    assert "fake-table" in listed
    assert "about 3 min" in listed  # as its sweep file says


def test_every_table_is_listed_with_devices_and_times(capsys, monkeypatch):
    monkeypatch.setattr(hosts, "usable_cpus", lambda: 2)
    assert runner.main(["reproduce"]) == 0
    listed = capsys.readouterr().out
    for name in experiments.names():
        devices = {part.device for part in experiments.get(name).sweeps()}
        assert listed.count(f" {name} ") == len(devices), name
    assert listed.count("about ") >= len(experiments.names())
    assert "THREADS" not in listed


def test_claims_are_answered_beside_the_tables(reproduced):
    output, folder = reproduced
    page = (folder / "table.md").read_text()
    assert "fake graph: **holds**: eager took" in page
    assert "- all: **holds**: eager took" in page
    assert "It takes time on a GPU." not in page
    assert "| batch_size | fake eager | fake graph |" in page
    assert "Scaled down: Everything is tiny." in output
    assert "**Scaled down** (cpu): Everything is tiny." in page
    assert "Some cells were measured in one process" in page or "hold across processes" in page


@pytest.mark.parametrize(
    ("launches", "sentence"),
    [
        ([1, 6], "Some cells were measured in one process, so"),
        ([2], "Some cells were measured in 2 processes, so"),
        ([3, 6], "Answers hold across processes: each cell was measured in 3 or more."),
        ([], ""),
    ],
)
def test_the_page_tells_how_far_its_answers_reach(launches, sentence):
    told = reach(Evidence(Records(timed(1.0, launches=count) for count in launches)))
    assert told.startswith(sentence) and bool(told) == bool(sentence)


def test_the_run_is_bench_s_own(reproduced):
    _, folder = reproduced
    names = {path.name for path in (folder / "cpu").iterdir()}
    assert {"plan.json", "machine.json", "records.jsonl", "results.csv", "samples.jsonl.gz"} <= names
    assert json.loads((folder / "reproduction.json").read_text())["table"] == "fake-table"


def test_an_existing_run_is_read_again_without_measuring(suite, reproduced):
    _, folder = reproduced
    before = (folder / "cpu/records.jsonl").read_bytes()
    (folder / "table.md").unlink()
    done = reproduce(suite, "--from", str(folder))
    assert done.returncode == 0, done.stdout
    assert "holds" in done.stdout
    assert (folder / "table.md").exists()
    assert (folder / "cpu/records.jsonl").read_bytes() == before


def test_the_page_of_an_existing_run_goes_where_it_is_asked_for(suite, reproduced, tmp_path):
    """It went into the run's own folder, a published one among them, whatever OUT said."""
    _, folder = reproduced
    copy, out = tmp_path / "run", tmp_path / "new" / "pages"
    shutil.copytree(folder, copy)
    (copy / "table.md").write_text("as published")
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    done = reproduce(suite, "--from", str(copy), "--out", str(out))
    assert done.returncode == 0, done.stdout
    assert {path.name for path in out.iterdir()} == {"table.md"}
    assert "fake graph: **holds**" in (out / "table.md").read_text() and str(out / "table.md") in done.stdout
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before
    refused = reproduce(suite, "--from", str(copy), "--out", str(folder))
    assert refused.returncode == 2 and "already contains a run" in refused.stdout


def test_runs_that_were_joined_are_read_and_not_resumed(reproduced, tmp_path, capsys):
    _, folder = reproduced
    for path in (folder / "cpu/records.jsonl", folder / "cpu/samples.jsonl.gz", folder / "reproduction.json"):
        shutil.copy(path, tmp_path)
    part = Sweep(Path("cpu.toml"), {}, {})
    (ours, theirs) = (evidence_in([part], place) for place in (tmp_path, folder))
    rows, expected = ([record.to_row() for record in each.records] for each in (ours, theirs))
    assert rows == expected != []
    graph, eager = next(iter(ours.records.graph)), next(iter(ours.records.eager))
    assert ours.by_process(graph) and (graph.slowed or eager.slowed or ours.paired(graph, eager))
    assert runner.main(["reproduce", "--resume", str(tmp_path)]) == 2
    assert f"cannot be resumed; answer the claims with FROM={tmp_path}." in capsys.readouterr().err


def test_resuming_measures_what_is_missing(suite, reproduced, tmp_path):
    _, folder = reproduced
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    records = (copy / "cpu/records.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "cpu/records.jsonl").write_bytes(records[0])
    done = reproduce(suite, "--resume", str(copy))
    assert done.returncode == 0, done.stdout
    lines = (copy / "cpu/records.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == len(records) == 2
    kept, before = (json.loads(line) | {"bound_roofline": None} for line in (lines[0], records[0]))
    assert kept == before  # the bound follows the fastest cell


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--table", "paddle-bart"], "did you mean 'paddle-bert'?"),
        (["--table", "paddle-bert", "--device", "tpu"], "There is no device 'tpu'"),
        (["--from", "nowhere"], "nowhere contains no reproduction.json; `make reproduce TABLE=…` makes one."),
        (["--resume", "newest"], "RESUME continues in the run's folder: omit OUT and FROM."),
        (["--table", "paddle-bert", "--framework", "torc"], "did you mean 'torch'?"),
    ],
)
def test_what_cannot_be_asked(words, sentence, capsys, tmp_path):
    assert runner.main(["reproduce", "--out", str(tmp_path / "run"), *words]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_framework_is_chosen_among_those_of_each_sweep():
    from commands.reproduce import chosen_sweeps

    request = {"table": "first-principles", "device": "gpu:1", "flags": {"framework": "python,jax", "budget": "1"}}
    chosen = {part.name: part.flags for part in chosen_sweeps(experiments.get("first-principles"), request)}
    assert chosen["gpu-chain"]["framework"] == ["jax"]
    assert chosen["gpu-chain"]["device"] == "gpu:1"
    assert chosen["gpu-python"]["framework"] == ["python"]
    assert chosen["gpu-python"]["device"] == "cpu"
    request["flags"]["framework"] = "jax"
    assert "gpu-python" not in {part.name for part in chosen_sweeps(experiments.get("first-principles"), request)}


def test_a_finished_run_is_not_overwritten(reproduced, capsys):
    _, folder = reproduced
    assert runner.main(["reproduce", "--table", "paddle-bert", "--out", str(folder)]) == 2
    assert "already contains a run" in capsys.readouterr().err


@pytest.mark.parametrize("name", experiments.names())
def test_every_sweep_file_makes_a_plan(name, many_processors):
    experiment = experiments.get(name)
    assert experiment.name == name
    assert "gpu" in {part.device for part in experiment.sweeps()}
    for part in experiment.sweeps():
        more = {"start": {"strategies", "processes"}}
        more["stream"] = more["start"] | {"lengths", "calls", "caches"}
        assert more.get(part.measures, set()) <= set(part.about)
        assert set(part.about) <= ABOUT | more.get(part.measures, set())
        planned = plan.plan(sweep.resolve(part.flags))
        assert len(planned.cells) > len(planned.impossible)


@pytest.mark.parametrize("name", experiments.names())
def test_published_figures_load_and_claims_are_sentences(name):
    experiment = experiments.get(name)
    assert experiment.published()
    assert all(claim.sentence.endswith(".") for claim in experiment.claims)
    assert len({claim.sentence for claim in experiment.claims}) == len(experiment.claims)


@pytest.mark.parametrize("device", ["cpu", "gpu:0"])
@pytest.mark.parametrize("name", experiments.names())
def test_every_table_has_a_page_with_the_published_figures(name, device):
    experiment = experiments.get(name)
    shape = {"framework": "torch", "workload": "resnet50", "device": device, "batch_size": 1}
    records = [timed(9.0, **shape), timed(9.0, 20, mode="inductor", **shape)]
    evidence = Evidence(Records(records))
    text = markdown(experiment, experiment.sweeps(), evidence)
    assert text.count("\n## ") > 1
    for claim in experiment.claims:
        assert (f"**{claim.sentence}**" in text) == bool(experiment.answers(claim, evidence))


def test_places_of_the_edition_answer_claims_on_their_tables():
    found = {one.name: one for one in reproductions.committed() if one.experiment.edition}
    forms = found["forms-xeon"]
    assert {part.name for part in forms.sweeps} == {"cpu-forms", "cpu-forms-paddle"}
    claim = next(one for one in forms.experiment.claims if one.sentence.startswith("On a CPU OpenVINO"))
    numbers = forms.experiment.answers(claim, forms.evidence)["all"].numbers
    assert numbers.count("resnet50") == numbers.count("vit-b16") == 1, "a pair is of one framework"


def test_the_page_on_experiments_has_every_table():
    sections = dict(part.split("\n", 1) for part in reproductions.claims().removeprefix("## ").split("\n\n## "))
    assert sections.keys() == set(experiments.names())
    assert "| The static graph is faster at every shape. |  | no: paddle |" in sections["paddle-bert"]
    assert (
        "| At batch 128 compiling costs time (sglang#1008: 0.96 times the tokens). | no |  |"
        in sections["decode-claims"]
    )
    flat = "| Fused, a chain's time is flat up to 64 multiplications. | yes: torch; no: jax | no |"
    assert flat in sections["first-principles"]
    assert "Compiled, BERT trains" not in sections["cnn-training"], "no record has it"
    assert sections["cnn-training"].endswith("Claims without a measurement: 2.")


def test_figures_of_two_machines_stand_side_by_side_under_their_names():
    from experiments import page, tables

    record = {"framework": "torch", "framework_version": "1", "mode": "eager", "batch_size": 1, "device_name": "A GPU"}
    found = [
        timed(ms, **record | {"machine_id": name, "framework_version": "1"})
        for ms, name in ((1, "abcdef"), (2, "123456"))
    ]
    records = Records(found)
    table = tables.by_shape("Latency", ("batch_size",), {"torch": records}, tables.latency)
    assert table.rows == (("1", "abcd: 1; 1234: 2"),)
    assert page.setting(Evidence(records)) == "A GPU; 2 machines; torch 1"
    assert page.setting(Evidence(Records(found[:1]))) == "A GPU; torch 1"


def test_modes_timed_in_turn_are_compared_round_by_round():
    """A slow launch falls on both, so their ratio is known better than either of the two times."""
    launches = {0: 1.0, 1: 3.0, 2: 2.0}
    entries = [
        {"cell": f"torch/mlp/{mode}", "launch": launch, "worker": "w", "seconds_per_call": seconds}
        for launch, slow in launches.items()
        for mode, times in (("cuda-graph", 1.3), ("inductor", 1.0))
        for seconds in [[slow * times * (1 + 0.001 * (index % 3)) for index in range(12)]]
    ]
    cells = ("torch/mlp/cuda-graph", "torch/mlp/inductor", "jax/mlp/inductor", "torch/mlp/eager")
    replayed, compiled, jax, eager = records = [timed(1.0, cell=cell) for cell in cells]
    again = timed(1.0, cell="torch/mlp/inductor")
    samples = dict.fromkeys(records, entries) | {again: list(entries)}
    ratio = paired(samples, replayed, compiled)
    assert ratio.value == pytest.approx(1.3, rel=1e-6) and ratio.high / ratio.low < 1.01
    assert paired(samples, replayed, jax) is None  # of another group
    assert paired(samples, replayed, eager) is None  # without samples
    assert paired(samples, replayed, again) is None  # of another sweep, though its cell is the same
    slowed = compiled | {"latency_slowed": True}
    assert paired(samples | {slowed: entries}, replayed, slowed) is None
