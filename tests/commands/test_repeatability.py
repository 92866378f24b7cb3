"""Whole runs repeated: what is counted, and a check that runs through."""

from __future__ import annotations

import json
import random
import sys
from statistics import fmean

import pytest

import runner
import workloads
from commands import repeatability
from commands.repeatability import agreement, intervals_of, verdict
from execution import peak_benchmarks
from execution.campaign import Campaign
from measurement.refusals import DONE, UsageError
from measurement.statistics import Interval
from plan import hosts
from records import runs
from records.intervals import over_processes
from reports import terminal


def test_pairs_are_counted_by_hand():
    runs = [Interval(1.0, 0.9, 1.1), Interval(1.05, 1.0, 1.2), Interval(2.0, 1.9, 2.1)]
    agreed = agreement("standard", "ratio", [runs, [Interval(1.0, 0.5, 1.5)]])
    assert (agreed.cells, agreed.pairs) == (1, 3)
    assert (agreed.overlap, agreed.second_in_first) == pytest.approx((1 / 3, 1 / 3))
    assert agreed.spread == 2.0
    assert agreement("standard", "ratio", [[runs[0]]]) is None


def test_figures_without_an_interval_and_failed_cells_do_not_count(record):
    known = {"latency_ms_ci_low": 1.9, "latency_ms_ci_high": 2.1, "speedup_vs_eager": 1.0}
    assert intervals_of(record(**known)) == {"latency": Interval(2.0, 1.9, 2.1)}
    assert intervals_of(record(**known, status="crash", reason="It died.")) == {}


@pytest.mark.parametrize(
    ("profile", "overlap", "says"),
    [("standard", 0.95, "agree"), ("standard", 0.85, "differ"), ("quick", 0.3, "not judged")],
)
def test_longer_profiles_are_held_to_their_promise(profile, overlap, says):
    agreed = repeatability.Agreement(profile, "ratio", 1, 20, overlap, overlap, 0.01, 1.0)
    assert says in verdict([agreed])


def runs_of(draw: random.Random, launches: int, between: float) -> list[Interval]:
    """Twenty runs of one cell: rounds scatter by 1 %, processes by as much as `between`."""
    runs = []
    for _ in range(20):
        levels = [draw.gauss(1.0, between) for _ in range(launches)]
        runs.append(over_processes([[draw.gauss(level, 0.01) for _ in range(15)] for level in levels]))
    return runs


def test_processes_that_differ_show_as_disagreement_of_single_ones_alone():
    draw = random.Random(4)
    shares = {
        launches: fmean(agreement("quick", "ratio", [runs_of(draw, launches, 0.05)]).overlap for _ in range(10))
        for launches in (1, 3)
    }
    assert shares[1] < 0.5
    assert shares[3] > 0.93


@pytest.mark.slow
def test_whole_runs_are_repeated_and_kept(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(peak_benchmarks, "groups_for", lambda cell: ())
    out = tmp_path / "repeats"
    flags = {"framework": "numpy", "workload": "bert-tiny", "impl": "plain", "seq": "8", "threads": "1"}
    words = ["doctor", *(word for name, value in flags.items() for word in (f"--{name}", value)), "--out", str(out)]
    words += ["--budget", "0.1"]
    runner.main([*words, "--repeats", "2"])
    kept = json.loads((out / "agreement.json").read_text())
    assert [one["pairs"] for one in kept["agreement"]] == [1]
    first, second = kept["runs"]["quick"]
    assert first[0]["cell"] == second[0]["cell"]
    assert first[0]["latency"] != second[0]["latency"]
    assert "run 2 of 2" in capsys.readouterr().out
    assert runner.main(["compare", str(out / "quick-01"), str(out / "quick-02")]) in (0, 1, 3, 4)
    assert "bert-tiny" in capsys.readouterr().out

    records = [out / name / "records.jsonl" for name in ("quick-01", "quick-02")]
    before = [path.read_bytes() for path in records]
    records[1].unlink()  # stopped before anything was recorded
    runner.main([*words, "--repeats", "2"])
    again = json.loads((out / "agreement.json").read_text())["runs"]["quick"]
    assert again[0] == first and records[0].read_bytes() == before[0]
    assert again[1][0]["cell"] == second[0]["cell"]

    words[words.index("8")] = "4"
    assert runner.main([*words, "--repeats", "2"]) == 2
    assert "of other cells" in capsys.readouterr().err


@pytest.fixture
def unmeasured(monkeypatch):
    """Runs that are planned and begun, and measure nothing."""

    def begin(campaign: Campaign, held):
        run = campaign.resumed or held.enter_context(runs.Run.begin(campaign.request.out))
        return run, campaign.begin(run)

    monkeypatch.setattr(repeatability.bench, "begin", begin)
    monkeypatch.setattr(repeatability.bench, "execute", lambda campaign, run, context: DONE)


def asked_for(folder, **flags) -> list[list[dict]]:
    """Two runs of what these flags ask for."""
    given = {"profile": "quick", "mode": "eager"} | flags
    return repeatability.measure_again(given, 2, sys.executable, folder, terminal.PlainConsole())


def test_a_user_s_own_model_is_repeated_and_gone_on_with(tmp_path, unmeasured):
    net, other = tmp_path / "net.py", tmp_path / "other" / "net.py"
    other.parent.mkdir()
    for path in (net, other):
        path.write_text("import torch\ndef model(): ...\ndef inputs(batch_size=2): ...\n")
    for _ in range(2):
        assert asked_for(tmp_path / "out", framework="torch", workload=str(net), threads="1") == [[], []]
    workloads._USER_MODELS.clear()
    with pytest.raises(UsageError, match="names programs to run"):
        asked_for(tmp_path / "out", framework="torch", workload=str(other), threads="1")


def test_all_gpus_are_repeated_and_gone_on_with(tmp_path, unmeasured, monkeypatch):
    gpu = {"name": "A GPU", "memory.total": "9 MiB", "index": "0", "uuid": "GPU-0"}
    monkeypatch.setattr(hosts, "visible_gpus", lambda: (gpu,))
    for _ in range(2):
        assert asked_for(tmp_path / "out", framework="torch", workload="mlp", device="gpu:all") == [[], []]
    with pytest.raises(UsageError, match="of other cells"):
        asked_for(tmp_path / "out", framework="torch", workload="mlp", device="gpu")


def test_one_run_cannot_be_compared(capsys):
    assert runner.main(["doctor", "--workload", "bert-tiny"]) == 2
    assert "REPEATS" in capsys.readouterr().err
