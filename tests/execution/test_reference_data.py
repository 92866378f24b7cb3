"""What is kept between runs is compared with its digest: damaged weights, inputs, and references are made again.

Those of whole runs damage the real cache of a copy of the suite.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from doubles.suite import PATIENCE, TINY, Finished, wait_for

from execution import reference_data
from measurement import durable
from plan.plan import Group
from records.statuses import MEASURED

pytestmark = pytest.mark.slow

NUMPY = (*TINY, "--framework", "numpy", "--mode", "eager")


def flip(path: Path, place: float = 0.9) -> None:
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zero(path: Path) -> None:
    """Zeros of the right size: a file whose content a power loss took."""
    values = np.load(path)
    np.save(path, np.zeros_like(values))


DAMAGE = [
    ("weights", "layers.0.linear.weight.npy", flip),
    ("weights", "layers.0.linear.weight.npy", cut),
    ("weights", "layers.0.linear.weight.npy", zero),
    ("weights", "layers.0.linear.weight.npy", Path.unlink),
    ("weights", durable.SUMS, cut),
    ("inputs", "", flip),
    ("inputs", "", cut),
    ("reference", "", flip),
    ("reference", "", cut),
]


@pytest.fixture
def make(tmp_path, monkeypatch, capsys):
    """Make or find the reference data of a small MLP in a cache of the test's own; what is said of them."""
    monkeypatch.setattr(reference_data, "CACHE", tmp_path / "reference_data")

    def made(seals: dict | None = None) -> dict:
        request = {"workload": "mlp", "pass": "inference", "source": None, "seed": 3, "storage": "fp32"}
        request |= {"parameters": {"batch_size": 3, "width": 8, "depth": 2}}
        asked = {"requests": [request], "seals": seals or {}}
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(asked)))
        assert reference_data.main() == 0
        return json.loads(capsys.readouterr().out)

    return made


def contents(made: dict) -> dict[str, str]:
    """The digest of every file of the reference data."""
    entries = [Path(made[kind]) for kind in ("weights", "inputs", "reference")]
    files = [path for entry in entries for path in (sorted(entry.iterdir()) if entry.is_dir() else [entry])]
    return {str(path): durable.sha256(path) for path in files}


@pytest.mark.parametrize(("kind", "file", "damage"), DAMAGE, ids=lambda value: getattr(value, "__name__", value))
def test_a_damaged_entry_is_made_anew(make, kind, file, damage):
    made = make()
    right = contents(made)
    damage(Path(made[kind]) / file if file else Path(made[kind]))
    assert contents(made) != right
    assert make()["seals"] != made["seals"]
    assert contents(made) == right


@pytest.mark.parametrize("damage", [flip, zero])
def test_no_reference_is_made_from_damaged_weights(make, damage):
    """Every framework would agree with it."""
    made = make()
    right = contents(made)
    Path(made["reference"]).unlink()
    damage(Path(made["weights"]) / "layers.0.linear.weight.npy")
    make()
    assert contents(made) == right


def test_what_was_compared_once_is_compared_again_only_when_it_was_written_to(make):
    """Reading takes a second for a gigabyte; a run asks before each launch."""
    made = make()
    weights = Path(made["weights"]) / "layers.0.linear.weight.npy"
    assert make(seals=made["seals"])["seals"] == made["seals"]
    content = weights.read_bytes()
    before = weights.stat()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if nobody had
    make(seals=made["seals"])
    assert weights.read_bytes() == content


def entries(folder: Path) -> list[Path]:
    """The MLP's files in a suite's cache."""
    return [path for path in (folder / ".cache/reference").rglob("*") if "mlp-" in str(path) and path.is_file()]


def test_a_run_measures_nothing_with_a_damaged_cache(suite, tmp_path):
    """Damaged before it begins, damaged after its first launch, deleted after its first launch."""
    shutil.rmtree(suite.folder / ".cache/reference", ignore_errors=True)  # other tests' shapes
    first = suite.bench(tmp_path / "run", *NUMPY, "--out", str(tmp_path / "run"))
    assert first.code == 0
    right = {path: path.read_bytes() for path in entries(suite.folder)}
    for when, damage in (("before", cut), ("during", cut), ("during", Path.unlink)):
        out = tmp_path / f"{when}-{damage.__name__}"
        if when == "before":
            damage_all(suite.folder, damage)
        process = suite.begin(*NUMPY, "--budget", "0.3", "--out", str(out))
        if when == "during":
            wait_for((out / "samples.jsonl").exists, process)  # the worker goes on with the peaks
            damage_all(suite.folder, damage)
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, output
        (record,) = Finished(0, output, out).records
        assert record["status"] in MEASURED and record["launches"] == 3
        needed = set(entries(suite.folder))
        assert needed and all(path.read_bytes() == right[path] for path in needed)


def damage_all(folder: Path, damage) -> None:
    for path in entries(folder):
        damage(path)


def test_what_killed_writers_left_goes_and_what_living_ones_hold_stays(make):
    inputs = Path(make()["inputs"])
    cache = inputs.parent
    left, held = cache / ".new-killed", cache / ".new-held"
    for folder in (left, held):
        folder.mkdir()
        (folder / "half.npy").write_bytes(b"half")
    code = "import sys, time; from pathlib import Path; from environments import locks\n"
    code += "with locks.hold_folder(Path(sys.argv[1])): print('held', flush=True); time.sleep(100)"
    how = dict(cwd=ROOT, stdout=subprocess.PIPE, text=True)
    writer = subprocess.Popen([sys.executable, "-c", code, held], **how)
    assert writer.stdout.readline() == "held\n"
    inputs.unlink()  # something to be made
    try:
        make()
        assert not left.exists() and held.exists()
    finally:
        writer.kill()
        writer.wait()
    inputs.unlink()
    make()
    assert not held.exists()


def test_a_killed_maker_leaves_no_entry_that_is_not_whole(suite):
    """Killed at many instants; what lies in the cache fits its digest, and the next run finds or makes the rest."""
    command = [sys.executable, "-m", "execution.reference_data"]
    request = {"workload": "mlp", "pass": "inference", "source": None, "seed": 7, "storage": "fp32"}
    request |= {"parameters": {"batch_size": 3, "width": 256, "depth": 4}}
    asked = json.dumps({"requests": [request], "seals": {}})
    how = dict(cwd=suite.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for number in range(12):
        process = subprocess.Popen(command, **how)
        process.stdin.write(asked)
        process.stdin.close()
        time.sleep(0.1 + 0.03 * number)
        process.send_signal(signal.SIGKILL)
        process.wait()
        cache = suite.folder / ".cache/reference"
        kept = [p for p in cache.glob("*") if p.suffix != ".sha256" and p.name != ".lock" and ".new-" not in p.name]
        assert all(map(durable.fits, kept))
    done = subprocess.run(command, cwd=suite.folder, input=asked, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not list((suite.folder / ".cache/reference").glob(".new-*"))


def test_a_cache_that_is_deleted_under_a_worker_costs_no_cell(run):
    """A mode deletes it while it is sampled, once: what the worker reads next is not there, for no fault of its own."""
    finished = run("--framework", "fake", "--mode", "eager,wipes", "--batch", "1,2", environment={"FAKE_MISCHIEF": "1"})
    assert finished.code == 0, finished.output
    assert finished.complete()
    assert {record["status"] for record in finished.records} <= set(MEASURED)


def test_a_reference_that_is_made_later_is_there_once_it_is_asked_for(cell, tmp_path, monkeypatch):
    """A worker gets its weights and inputs meanwhile; peak benchmarks, which are compared with nothing, have none."""
    group, peaks = batch_of(cell, 3), batch_of(cell, 5)
    monkeypatch.setattr(reference_data, "ensure", in_this_process)
    monkeypatch.setattr(reference_data, "CACHE", tmp_path / "reference_data")
    store = reference_data.Store(None, 0)
    store.prepare([group], lambda text: None, references=reference_data.LATER)
    store.prepare_later([group, peaks])
    early, whole = store.for_worker(group), store(group)
    assert (early.weights, early.inputs) == (whole.weights, whole.inputs)
    assert early.reference is None and "0.output" in np.load(whole.reference)
    assert store(peaks).reference is None
    again = reference_data.Store(None, 0)
    again.prepare([group], lambda text: None, references=reference_data.LATER)
    assert again.for_worker(group) == whole


def batch_of(cell, size: int) -> Group:
    return Group((cell(parameters=(("batch_size", size), ("width", 8), ("depth", 1))),), frozenset())


def test_data_that_failed_in_the_background_fail_again(cell, monkeypatch):
    """Else a run that asks once more would go on without them."""

    def ensure(requests, seals):
        raise reference_data.ReferenceDataError("no room")

    monkeypatch.setattr(reference_data, "ensure", ensure)
    store = reference_data.Store(None, 0)
    store.prepare_later([batch_of(cell, 1)])
    for ask in (store.complete, store.complete, lambda: store(batch_of(cell, 1))):
        with pytest.raises(reference_data.ReferenceDataError, match="no room"):
            ask()


def test_a_closed_store_begins_nothing_more(cell, monkeypatch):
    begun, entered, goes_on = [], threading.Event(), threading.Event()

    def ensure(requests, seals):
        begun.append(requests)
        entered.set()
        assert goes_on.wait(PATIENCE)
        return []

    monkeypatch.setattr(reference_data, "ensure", ensure)
    store = reference_data.Store(None, 0)
    store.prepare_later([batch_of(cell, 1)])
    store.prepare_later([batch_of(cell, 2)])
    assert entered.wait(PATIENCE)
    store.close()
    goes_on.set()
    store._background.shutdown(wait=True)
    assert len(begun) == 1


def in_this_process(requests: list[dict], seals: dict[str, str]) -> list[reference_data.ReferenceData]:
    """Make reference data as the maker's own process does."""
    made = [reference_data._make(request, reference_data.Cache(seals)) for request in requests]
    for one in made:
        seals |= one.pop("seals")
    return [reference_data.ReferenceData(**one) for one in made]
