"""Two environments measured in turn: who goes when, what is compared, what is kept, what is refused."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from doubles.reported import record
from doubles.suite import PATIENCE, TINY, WAITS, Finished

import runner
from analysis import paired
from analysis.comparison import SAME, SLOWER, Reason
from commands.ab import has_one_python, label, titles
from environments.uv import SetupError
from execution import turns
from measurement.refusals import UsageError
from measurement.statistics import INCONCLUSIVE
from plan import versions
from records.cell_result import Failure
from records.record import Record
from records.runs import Run

pytestmark = pytest.mark.slow


def steps(name: str, count: int, done: list, stop: int | None = None):
    """An executor's steps that note what was done; Ctrl-C comes in the one numbered `stop`."""
    try:
        for launch in range(count):
            yield launch
            if launch == stop:
                raise KeyboardInterrupt
            done.append(f"{name}{launch}")
    except KeyboardInterrupt:
        done.append(f"{name} kept")
        raise


def test_launches_alternate_and_who_is_first_changes():
    done = []
    turns.alternate([steps("a", 4, done), steps("b", 4, done)], turning=True)
    assert done == ["b0", "a0", "a1", "b1", "b2", "a2", "a3", "b3"]


def test_a_side_with_more_left_to_do_goes_on_alone():
    done = []
    turns.alternate([steps("a", 3, done), steps("b", 1, done)])
    assert done == ["a0", "b0", "a1", "a2"]


@pytest.mark.parametrize("stopped", ["a", "b"])
def test_an_interruption_reaches_both(stopped):
    done = []
    with pytest.raises(KeyboardInterrupt):
        turns.alternate([steps(name, 4, done, 1 if name == stopped else None) for name in "ab"])
    assert {"a kept", "b kept"} <= set(done)


def entry(cell: str, launch: int, level: float, rounds: int = 12) -> dict:
    """A launch's samples: alternately a little below and above a level."""
    seconds = [level * (1.001 if n % 2 else 0.999) for n in range(rounds)]
    return {"cell": cell, "launch": launch, "seconds_per_call": seconds, "host_loop_s": [0.0003] * rounds}


def sides(a: list[float], b: list[float], **changed):
    """Both sides' records and samples: a cell with these levels by launch."""
    rows = [record("alpha", "eager", **changed) for _ in "ab"]
    samples = ((entry(rows[0].cell, n, level) for n, level in enumerate(side)) for side in (a, b))
    return paired.compare([rows[0]], [rows[1]], paired.processes_of(*samples))


DRIFTING = [0.020, 0.026, 0.018, 0.030, 0.022, 0.024]


def test_what_drifts_alike_on_both_sides_hides_nothing():
    (slower,) = sides(DRIFTING, [level * 1.05 for level in DRIFTING]).cells
    assert slower.verdict == SLOWER
    assert slower.ratio.value == pytest.approx(1.05)
    assert slower.ratio.high - slower.ratio.low < 0.02
    (same,) = sides(DRIFTING, DRIFTING).cells
    assert same.verdict == SAME
    (shuffled,) = sides(DRIFTING, [level * 1.05 for level in reversed(DRIFTING)]).cells
    assert shuffled.verdict == INCONCLUSIVE


def test_flags_disturb_no_pair():
    (cell,) = sides(DRIFTING, [level * 1.05 for level in DRIFTING], flags="other_load;steal").cells
    assert cell.verdict == SLOWER


def test_fewer_than_three_pairs_decide_nothing():
    (cell,) = sides([0.02, 0.02], [0.03, 0.03]).cells
    assert (cell.verdict, cell.why) == (INCONCLUSIVE, Reason("few shared processes", (2,)))
    (cell,) = sides([0.02], [0.03]).cells
    assert cell.verdict == INCONCLUSIVE


def test_pairs_are_of_launches_that_both_sides_have():
    levels = (1.0, 2.0, 4.0, 8.0), (9.0, 4.0, 8.0, 16.0)
    a, b = ({n: [math.log(level)] * 6 for n, level in enumerate(side)} for side in levels)
    del a[0]
    ratio, count = paired.change(a, b)
    assert (ratio, count) == (pytest.approx((2.0, 2.0, 2.0)), 3)
    del a[1]
    assert paired.change(a, b) == (None, 2)


def test_rounds_of_a_slow_host_and_the_priming_launch_do_not_count():
    slow = entry("x", 0, 0.02) | {"host_loop_s": [0.0003] * 10 + [0.001] * 2}
    slow["seconds_per_call"][-2:] = [9.0, 9.0]
    (cells,) = paired.processes_of([slow, entry("x", 0, 0.02) | {"launch": None}])
    assert max(cells["x"][0]) < math.log(0.021)


def test_sides_are_called_by_versions_or_environments():
    words = {"torch==2.12": "torch==2.12", "/some/where/base/bin/python": "base", "python3.12": "python3.12"}
    assert {word: label(word) for word in words} == words
    assert label(None) == "the suite's own environment"

    def side(*found: tuple[str, str | None]) -> list[Record]:
        return [record("alpha", "eager") | {"framework": name, "framework_version": version} for name, version in found]

    one, two = (side(("torch", version), ("torch", version)) for version in ("2.12.1", "2.13.0"))
    assert titles(["/one/bin/python", None], [one, two]) == ["torch 2.12.1", "torch 2.13.0"]
    failed = side(("torch", "2.14.1"), ("torch", None))  # a cell that never started
    assert titles(["/one/bin/python", None], [one, failed]) == ["torch 2.12.1", "torch 2.14.1"]
    several = side(("torch", "2.13.0"), ("jax", "0.11.2"))
    for other in (one, several, side(("torch", None))):
        assert titles(["/one/bin/python", "/two/bin/python"], [one, other]) == ["one", "two"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Name what to compare: make ab A="),
        (["--versions", "torch==2.12"], "VERSIONS takes two versions"),
        (["--versions", "torch==2.12,torch==2.13", "--a", "python3"], "VERSIONS names both sides"),
        (["--a", "torch==2.12;rm", "--dry-run"], "is not a version"),
        (["--a", "/nowhere/python", "--framework", "torch"], "A=/nowhere/python: no interpreter"),
        (["--resume", "nowhere"], "nowhere contains no pair of runs"),
        (["--a", "numpy==1.0", "--framework", "numpy"], "numpy always runs in the suite's environment"),
        (["--a", "python3", "--max-slowdown", "5"], "MAX_SLOWDOWN must be a percentage"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(capsys, tmp_path, words, sentence):
    assert runner.main(["ab", *TINY, "--out", str(tmp_path / "a pair"), *words]) == 2
    told = capsys.readouterr().err
    assert sentence in told and told.count("\n") == 1
    assert not (tmp_path / "a pair").exists()


def test_versions_take_the_place_of_a_framework_s_own_pins():
    requirements = "# a comment\ntorch==2.13.0\ntransformers==5.23.0\nnumpy\n"
    assert versions.pinned(requirements, "torch", "torch==2.12.1") == "transformers==5.23.0\nnumpy\ntorch==2.12.1\n"
    assert versions.pinned(requirements, "torch", "numpy==2.1 jinja2==3").splitlines()[-2:] == [
        "numpy==2.1",
        "jinja2==3",
    ]
    assert versions.pinned("paddlepaddle==3.3.1\n", "paddle", "paddle==3.2") == "paddlepaddle==3.2\n"
    assert versions.framework_of("paddlepaddle==3.2 numpy==2") == "paddle"
    assert versions.framework_of("numpy==2") is None
    with pytest.raises(UsageError, match="is not a version"):
        versions.pins("torch==2.12 transformers")


def resolver(monkeypatch, tmp_path, answer) -> list[list[str]]:
    """Let uv answer so; what it was asked. Environments are not made."""
    calls = []

    def uv(arguments, env, failed, *, stdin, report):
        calls.append([*arguments, stdin])
        if isinstance(answer, Exception):
            raise answer
        Path(arguments[-1]).write_text(answer)

    monkeypatch.setattr(versions, "VENVS", tmp_path)
    monkeypatch.setattr(versions, "uv", uv)
    monkeypatch.setattr(versions.environments, "make", lambda recipe, report: recipe)
    return calls


def test_an_environment_of_another_version_is_resolved_once_and_made_like_the_locked_one(monkeypatch, tmp_path):
    calls = resolver(monkeypatch, tmp_path, "torch==2.12.0\nnumpy==2.1\n")
    made = [versions.ensure("torch", "cpu", "torch==2.12.0", report=lambda text: None) for _ in range(2)]
    (words,) = calls
    assert words[-1] == "transformers==5.23.0\nnumpy\nsafetensors\ntorch==2.12.0\n"
    assert [recipe.home for recipe in made] == [tmp_path / "torch-cpu-torch-2.12.0"] * 2
    assert made[0].requirements == "torch==2.12.0\nnumpy==2.1\n" and "check" in made[0].directives
    assert sorted(path.name for path in tmp_path.iterdir()) == ["torch-cpu-torch-2.12.0.txt"]


@pytest.mark.parametrize(
    ("word", "more", "version", "added"),
    [
        ("paddle==3.2.0 numpy==1.26.4", "", "3.2.0", "numpy"),
        ("paddlepaddle-gpu==3.2.0 numpy==1.26.4", "", "3.2.0", "numpy"),
        ("", "# mine\ntqdm>=4\n", "3.3.1", "tqdm"),
    ],
)
def test_other_versions_keep_the_user_s_index_and_its_package(monkeypatch, tmp_path, word, more, version, added):
    """The cut-off of the framework's own requirements is not for packages that the user names."""
    monkeypatch.setenv("PADDLE_INDEX", "https://a.example/")
    calls = resolver(monkeypatch, tmp_path / "installed" / "environments", "paddlenlp==3.0.0b4\n")
    arguments = ("paddle", "gpu", more or word, lambda text: None)
    recipe = versions.ensure_beside(*arguments) if more else versions.ensure(*arguments)
    (words,) = calls
    assert recipe.from_index == ("https://a.example/", f"paddlepaddle-gpu=={version}")
    assert recipe.requirements == "paddlenlp==3.0.0b4\n"
    assert "paddlenlp==3.0.0b4" in words[-1] and "paddlepaddle" not in words[-1] and added in words[-1]
    assert words[words.index("--exclude-newer") + 1] == "2025-06-30"
    assert [option for option in words if "2100" in option] == [f"--exclude-newer-package={added}=2100-01-01"]
    monkeypatch.delenv("PADDLE_INDEX")
    other = versions.ensure_beside(*arguments) if more else versions.ensure(*arguments)
    assert other.home != recipe.home and other.from_index == ()


def test_a_resolution_that_the_disk_has_no_room_for_is_made_anew(monkeypatch, tmp_path):
    """Half of it would be taken for the versions, from then on."""
    calls = resolver(monkeypatch, tmp_path, "torch==2.12.0\nnumpy==2.1\n")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk, pytest.raises(OSError):
        disk.setattr(os, "fsync", full)
        versions.ensure("torch", "cpu", "torch==2.12.0", report=lambda text: None)
    assert not list(tmp_path.iterdir())
    versions.ensure("torch", "cpu", "torch==2.12.0", report=lambda text: None)
    assert len(calls) == 2


def test_a_version_that_is_nowhere_is_one_sentence(monkeypatch, tmp_path):
    told = (
        "torch==9.9 could not be resolved:\n  Because there is no version of torch==9.9 and you require torch==9.9, …"
    )
    resolver(monkeypatch, tmp_path, SetupError(told))
    with pytest.raises(SetupError) as error:
        versions.ensure("torch", "cpu", "torch==9.9", report=lambda text: None)
    assert str(error.value) == "there is no torch 9.9 for this Python and platform."
    elsewhere = "hint: `torch` was found on https://a.example/index, but not at the requested version (torch==9.9)."
    resolver(monkeypatch, tmp_path, SetupError(f"{told}\n{elsewhere}"))
    with pytest.raises(SetupError, match=r"no torch 9\.9 in https://a\.example/index, .*UV_INDEX_STRATEGY="):
        versions.ensure("torch", "cpu", "torch==9.9", report=lambda text: None)
    assert not list(tmp_path.iterdir())


def interpreter(folder: Path, name: str, **variables: str) -> str:
    """This interpreter under another name, with variables of its own."""
    path = folder / name
    lines = "".join(f"export {variable}={value}\n" for variable, value in variables.items())
    path.write_text(f'#!/bin/sh\n{lines}exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("answer", "one"), [(None, True), ("echo 3.12.3 by another compiler", False), ("exit 1", False)]
)
def test_a_build_of_python_is_known_by_its_own_words(tmp_path, answer, one):
    old, new = Path(interpreter(tmp_path, "old")), Path(interpreter(tmp_path, "new"))
    if answer:
        new.write_text(f"#!/bin/sh\n{answer}\n")
    failed = {("jax", "gpu"): Failure("failed", "not installed")}
    sides = [SimpleNamespace(interpreters={("torch", "gpu"): path} | failed) for path in (old, new)]
    assert has_one_python(sides) == one


@pytest.fixture
def pair(suite, tmp_path):
    """Run `ab` with a side that takes half as long again, to its end or begun only."""
    sides = ["--a", interpreter(tmp_path, "old"), "--b", interpreter(tmp_path, "new", FAKE_DELAY="0.5")]
    words = (*TINY, "--framework", "fake", "--width", "64", "--timeout", WAITS, "--out", str(tmp_path / "a pair"))

    def command(*more: str, resume: bool = False) -> dict:
        flags = ["--resume", str(tmp_path / "a pair"), *sides] if resume else [*words, *sides]
        return dict(
            args=[sys.executable, "runner.py", "ab", *flags, *more], cwd=suite.folder, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    return command


def test_a_pair_of_runs_is_measured_in_turn_and_compared(pair, tmp_path):
    done = subprocess.run(**pair())
    folder = tmp_path / "a pair"
    assert done.returncode in (0, 1, 3) and "Traceback" not in done.stdout, done.stdout  # noise may hide even this
    assert json.loads((folder / "ab.json").read_text())["one_python"]
    page = (folder / "comparison.md").read_text()
    assert "alternated" in page and "### old → new: " in page and "- **A**: old · " in page
    begun = []
    for letter in "ab":
        run = Finished(0, "", folder / f"a pair-{letter}")
        assert run.complete()
        assert [r["launches"] for r in run.records] == [3, 3]
        logs = sorted((run.folder / "processes").glob("[0-9]*"))
        begun += [((path / "worker.log").stat().st_mtime, letter) for path in logs]
    assert "".join(letter for _, letter in sorted(begun)) in ("baabba", "abbaab"), begun
    again = subprocess.run(**pair(resume=True))  # nothing is left to do but to tell
    assert again.returncode == done.returncode
    assert (folder / "comparison.md").read_text() == page


def test_an_interrupted_pair_goes_on_where_it_stopped(pair, tmp_path):
    heed = dict(process_group=0, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    process = subprocess.Popen(**pair("--budget", "2"), **heed)
    folder, deadline = tmp_path / "a pair", time.monotonic() + PATIENCE
    kept = [folder / f"a pair-{letter}" / "processes" / "reports.jsonl" for letter in "ab"]
    while not all(path.exists() for path in kept):  # a launch of each side is done
        assert process.poll() is None and time.monotonic() < deadline, process.stdout.read()
        time.sleep(0.05)
    for second in (pair(resume=True), pair()):  # changes nothing
        refused = subprocess.run(**second)
        assert refused.returncode == 2, refused.stdout
        assert re.search(f"is being measured by process {process.pid} |already contains a pair of runs", refused.stdout)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    assert f"make ab RESUME='{folder}' A=" in output.replace("\n", "")
    before = [[json.loads(line)["report"]["samples"] for line in path.read_text().splitlines()] for path in kept]
    assert all(before)

    content = json.loads((folder / "ab.json").read_text())
    (folder / "ab.json").write_text(json.dumps({**content, "sides": ["/bin/false", "/bin/false"]}))
    refused = subprocess.run(**pair(resume=True))
    assert refused.returncode == 2 and "was changed after the run was started" in refused.stdout, refused.stdout
    (folder / "ab.json").write_text(json.dumps(content))
    refused = subprocess.run(**pair("--batch", "4", resume=True))
    assert refused.returncode == 2 and "was started with other values" in refused.stdout
    done = subprocess.run(**pair(resume=True))
    assert done.returncode in (0, 1, 3), done.stdout
    for letter, earlier in zip("ab", before, strict=True):
        run = Finished(0, "", folder / f"a pair-{letter}")
        assert run.complete()
        assert [r["launches"] for r in run.records] == [3, 3]
        samples = Run(run.folder).samples()
        assert all(series in [entry["seconds_per_call"] for entry in samples] for series in earlier)
        assert len({(entry["cell"], entry["launch"]) for entry in samples}) == 6
