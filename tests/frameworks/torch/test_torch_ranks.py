"""Training on several ranks with torch itself: losses of one process, and one record where a rank fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT
from doubles.environment import QUICKLY, bench

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PLANTED = ROOT / "tests/doubles/planted_ranks"
TRAINING = ("FRAMEWORK=torch", "PASS=training", "WORKLOAD=mlp", "WIDTH=8", "DEPTH=2", "BATCH=2", *QUICKLY)


def records(folder: Path, *words: str) -> dict[str, dict]:
    """Return the records of a run of one launch, by the cells' names."""
    return {line["cell"]: line for line in bench(folder, *TRAINING, *words).records}


def left_running(folder: Path) -> list[str]:
    """Return the command lines of processes that work in a run's folder."""
    texts = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            texts.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return [text for text in texts if str(folder) in text and "worker" in text]


def test_losses_are_those_of_one_process(tmp_path):
    """Captured by Dynamo alone, which compiles no code; Inductor takes over a minute."""
    words = ("RANKS=2", "STRATEGY=ddp,fsdp", "MODE=dynamo", "CHECKPOINT=full", "WORKLOAD=mlp,llama-tiny", "SEQ=4")
    found = records(tmp_path / "run", *words)
    assert len(found) == 8
    for name, line in found.items():
        assert (line["status"], line["parity_reference"]) == ("ok", "numpy"), (name, line["reason"])
        assert 0 <= line["exposed_communication_ms"] <= line["communication_ms"] != 0
        assert 0 <= line["rank_imbalance"] < 1
    blocks = [line["graph_break_places"] for name, line in found.items() if "fsdp" in name and "dynamo" in name]
    assert ["fully_shard" in place for place in blocks] == [True, True]
    assert not left_running(tmp_path / "run")


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        ("killed", "crash", "Rank 1 was killed by SIGKILL"),
        ("stopped", "timeout", "silent for 15 s"),
        ("out of memory", "oom", "Rank 1: MemoryError"),
    ],
)
def test_a_rank_that_fails_ends_its_cell(tmp_path, monkeypatch, fault, status, reason):
    monkeypatch.setenv("PYTHONPATH", str(PLANTED))
    monkeypatch.setenv("FAULT", fault)
    (line,) = records(
        tmp_path / "run", "RANKS=2", "MODE=eager", f"TIMEOUT={15 if fault == 'stopped' else 120}"
    ).values()
    assert line["status"] == status
    assert reason in line["reason"]
    assert not left_running(tmp_path / "run")


def test_a_skipped_update_is_a_mismatch(tmp_path, monkeypatch):
    done = planted(tmp_path / "run", monkeypatch, "no update", "WORKLOAD=gpt-tiny", "BATCH=4", "SEQ=4")
    assert [line["status"] for line in done.records] == ["mismatch"] * 2, done.output


def test_a_skipped_all_reduce_is_an_error(tmp_path, monkeypatch):
    """In bf16 the losses of so small a model are within the tolerance."""
    done = planted(tmp_path / "run", monkeypatch, "no all-reduce", "WORKLOAD=mlp", "BATCH=4", "WIDTH=8", "DEPTH=2")
    assert [line["status"] for line in done.records] == ["error"] * 2, done.output
    assert all("do not train one model" in line["reason"] for line in done.records)


def planted(folder: Path, monkeypatch, fault: str, *words: str):
    """Return a run on two ranks, in fp32 and bf16, with a fault in all of them."""
    monkeypatch.setenv("PYTHONPATH", str(PLANTED))
    monkeypatch.setenv("FAULT", fault)
    common = ("FRAMEWORK=torch", "PASS=training", "RANKS=2", "MODE=eager", "DTYPE=fp32,bf16")
    return bench(folder, *common, *words, *QUICKLY)
