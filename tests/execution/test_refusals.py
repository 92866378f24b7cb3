"""What the operating system refuses is one sentence and an exit code, in every command; nothing is left half-written.

The refusals are real: a small disk, a disk that takes no writing, a limit on files, a full device, closed descriptors.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.disks import disk
from doubles.reported import small_set, write_run
from doubles.suite import TINY, Finished

import runner
from commands.bench import exit_code
from measurement import refusals

CELLS = (
    "--framework",
    "numpy",
    "--mode",
    "eager",
    "--workload",
    "mlp",
    "--width",
    "8",
    "--depth",
    "1",
    "--threads",
    "1",
)
NUMPY = (*TINY, "--framework", "numpy", "--mode", "eager")
COMMAND = [sys.executable, str(ROOT / "runner.py")]


def one_sentence(output: str, *words: str) -> bool:
    """Whether the last line is a refusal with these words, and no traceback is above it."""
    assert "Traceback" not in output, output
    last = output.splitlines()[-1]
    return last.startswith("runner.py: ") and all(word in last for word in words)


@pytest.mark.slow
def test_a_full_disk_loses_nothing_and_says_how_to_go_on(suite, tmp_path):
    with disk(tmp_path / "disk", "size=32k") as place:
        full = suite.bench(place / "run", *NUMPY, "--out", str(place / "run"))
        assert full.code == 2
        assert one_sentence(full.output, "No space left on device", f"resume with: make bench RESUME={place}/run")
        assert not list(place.rglob("*.tmp"))
        subprocess.run(["mount", "-o", "remount,size=4m", place], check=True)
        again = suite.bench(place / "run", "--resume", str(place / "run"))
        assert again.code == 0, again.output
        assert again.complete()


@pytest.mark.slow
def test_a_full_disk_under_explain_says_what_is_kept(suite, tmp_path):
    with disk(tmp_path / "disk", "size=16k") as place:
        small = [
            "--framework",
            "numpy",
            "--mode",
            "eager",
            "--workload",
            "mlp",
            "--impl",
            "plain",
            "--width",
            "8",
            "--depth",
            "1",
            "--threads",
            "1",
        ]
        words = [sys.executable, suite.folder / "runner.py", "explain", *small, "--out", place / "run"]
        full = subprocess.run(words, cwd=suite.folder, capture_output=True, text=True)
    assert full.returncode == 2, full.stdout
    assert one_sentence(full.stderr, "No space left on device", f"Finished profiles are kept in {place}/run.")


@pytest.mark.slow
def test_a_disk_that_takes_no_writing(suite, tmp_path):
    with disk(tmp_path / "disk", "size=1m") as place:
        folder, other = (write_run(place / name, small_set()) for name in ("run", "other"))
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        for words in (
            ["report", folder],
            ["report", folder, "--gather", place / "all.csv"],
            ["compare", other, folder],
        ):
            done = subprocess.run([*COMMAND, *words], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 2
            assert one_sentence(done.stderr, "Read-only file system")
        refused = suite.bench(place / "new", *NUMPY, "--out", str(place / "new"))
        assert refused.code == 2
        assert one_sentence(refused.output, "cannot be written")


def test_a_report_is_replaced_whole_or_not_at_all(tmp_path):
    """A limit on the size of files, which the page exceeds and the Markdown does not."""
    folder = write_run(tmp_path / "run", small_set())
    (folder / "report.html").write_text("the last one")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # noqa: E731
    here = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # else the limit truncates the checkout's compiled modules
    done = subprocess.run([*COMMAND, "report", folder], env=here, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 2
    assert one_sentence(done.stderr, "report.html: File too large", "ulimit")
    assert (folder / "report.html").read_text() == "the last one"
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("words", [["list"], ["report", "RUN"], ["compare", "RUN", "OTHER"], ["bench", "--dry-run"]])
def test_output_that_nothing_can_be_written_to(tmp_path, words):
    folders = {name: str(write_run(tmp_path / name, small_set())) for name in ("RUN", "OTHER")}
    words = [folders.get(word, word) for word in words]
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and one_sentence(done.stderr, "No space left on device")


@pytest.mark.slow
def test_a_start_without_input_and_output_measures(suite, tmp_path):
    """As from cron: the results pipe had the number of the worker's output.

    PYTHONSAFEPATH leaves the suite's folder out of the paths of all its processes.
    """
    out = tmp_path / "run"
    command = 'PYTHONSAFEPATH=1 "$@" <&- >&- 2>&-'
    words = ["bash", "-c", command, "-", sys.executable, "runner.py", "bench", *NUMPY, "--out", str(out)]
    assert subprocess.run(words, cwd=suite.folder).returncode == 0
    assert Finished(0, "", out).complete()
    assert [record["reason"] for record in Finished(0, "", out).records] == [None]


@pytest.mark.parametrize("words", ["raise ImportError('broken')", "", "1 +", "raise MemoryError"])
def test_a_module_that_cannot_be_loaded(tmp_path, words):
    """As a broken NumPy on PYTHONPATH, or any where `ulimit -v` leaves it no room."""
    (tmp_path / "numpy.py").write_text(words)
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*COMMAND, "bench", "--dry-run"], env=variables, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert one_sentence(done.stderr, "Python", "ulimit -v")


def test_an_error_of_the_suite_s_own_is_no_refusal():
    for error in (ValueError("own"), AttributeError("own")):
        assert refusals.unloaded(error.with_traceback(None)) is None


@pytest.mark.parametrize("command", ["bench", "explain"])
@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1", "1e10"])
def test_a_timeout_is_a_time_to_wait(command, seconds, capsys):
    assert runner.main([command, *CELLS, f"--timeout={seconds}"]) == 2
    assert "TIMEOUT must be a number of seconds above 0 and up to 1,000,000" in capsys.readouterr().err


def pipe(path: Path) -> None:
    os.mkfifo(path)


SWEEPS = {
    "latin": (lambda path: path.write_bytes(b'framework = "\xe9"'), "is not UTF-8"),
    "deep": (lambda path: path.write_text("batch = " + "[" * 100_000), "is not valid TOML"),
    "long number": (lambda path: path.write_text("batch = " + "1" * 5000), "is not valid TOML"),
    "a list as filter": (lambda path: path.write_text('filter = ["a"]'), "FILTER takes one value"),
    "a table as weights": (lambda path: path.write_text("[weights]\na = 1"), "WEIGHTS takes one value"),
    "endless": (lambda path: path.symlink_to("/dev/zero"), "a device, a pipe or a folder"),
    "pipe": (pipe, "a device, a pipe or a folder"),
    "large": (lambda path: path.write_bytes(b"#" * (1 << 21)), "more than 1 MiB"),
    "missing": (lambda path: None, "No such file"),
}


@pytest.mark.parametrize("kind", SWEEPS)
def test_a_sweep_file_that_is_none(kind, tmp_path, capsys):
    make, words = SWEEPS[kind]
    make(tmp_path / "sweep.toml")
    assert runner.main(["bench", "--dry-run", "--sweep", str(tmp_path / "sweep.toml")]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


LONG = "x" * 300


TOO_LONG = [
    ["bench", *CELLS, "--out", LONG],
    ["bench", "--resume", LONG],
    ["bench", "--dry-run", "--sweep", LONG],
    ["explain", *CELLS, "--out", LONG],
    ["reproduce", "--from", LONG],
    ["report", LONG],
    ["compare", LONG, LONG],
    ["report", LONG, "--gather", "all.csv"],
    ["report", "RUN", "--gather", f"{LONG}.csv"],
]


@pytest.mark.parametrize("words", TOO_LONG, ids=lambda words: " ".join(words)[:24])
def test_a_name_that_is_too_long(words, tmp_path, capsys, monkeypatch):
    folder = write_run(tmp_path / "run", small_set())
    monkeypatch.chdir(tmp_path)
    assert runner.main([str(folder) if word == "RUN" else word for word in words]) == 2
    error = capsys.readouterr().err
    assert "File name too long" in error and error.count("\n") == 1


@pytest.mark.slow
def test_a_signal_while_the_runner_starts_is_no_traceback():
    """At many instants of its own processor time from when it heeds signals on, whatever else the machine does.

    What Python itself needs before that knows nothing of the runner, and takes longer on a busy machine.
    """
    code = (
        "import os, runpy, signal, sys\n"
        "signal.signal(signal.SIGVTALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))\n"
        "later, get = [float(sys.argv[1])], signal.getsignal\n"
        "def getsignal(number):\n"  # which the runner asks first of all
        "    if later: signal.setitimer(signal.ITIMER_VIRTUAL, later.pop())\n"
        "    return get(number)\n"
        "signal.getsignal = getsignal\n"
        "sys.argv = ['runner.py', 'bench', '--dry-run']\n"
        "runpy.run_path('runner.py', run_name='__main__')\n"
    )
    codes = set()
    for number in range(7):
        command = [sys.executable, "-c", code, str(0.03 + 0.06 * number)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert "Traceback" not in done.stderr, done.stderr
        codes.add(done.returncode)
    ended_first = -signal.SIGVTALRM  # the timer found Python after it had given up its own handlers
    assert codes <= {0, 130, ended_first} and 130 in codes


@pytest.mark.parametrize("stopped", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_a_signal_while_a_module_is_loaded_waits_for_it(stopped, tmp_path):
    """What is raised there Python may drop, and Cython's and NumPy's C code make an ImportError of it."""
    at_work = f"os.kill(os.getpid(), {int(stopped)})"
    (tmp_path / "slow.py").write_text(f"import os\n{at_work}\nprint('loaded')\n")
    code = (
        "import time, runner\nrunner.stop_politely()\n"
        "try: import slow; time.sleep(60)\nexcept KeyboardInterrupt: exit(130)"
    )
    paths = os.pathsep.join((str(tmp_path), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "loaded\n", "")


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["ok", "ok"], 0),
        (["ok", "unsupported"], 0),
        (["unsupported"], 3),
        ([], 3),
        *((["ok", bad], 3) for bad in ("crash", "timeout", "oom", "error", "mismatch")),
    ],
)
def test_the_exit_code_says_whether_all_was_measured(statuses, code):
    assert exit_code(statuses) == code


def test_a_refused_write_names_its_file(tmp_path):
    with pytest.raises(OSError) as refused, refusals.naming(tmp_path / "full"), open("/dev/full", "w") as file:
        file.write("x")
    assert (
        refusals.sentence(refused.value)
        == f"{tmp_path}/full: No space left on device; free space there, then try again."
    )


def test_a_folder_that_cannot_be_copied_is_one_sentence(tmp_path):
    (tmp_path / "cache").mkdir()
    for name in ("one", "two"):
        (tmp_path / "cache" / name).symlink_to("gone")
    with pytest.raises(OSError) as refused:
        shutil.copytree(tmp_path / "cache", tmp_path / "copy")
    said = refusals.sentence(refused.value)
    assert re.fullmatch(r"\S+/copy/(one|two): No such file or directory; choose another path, then try again\.", said)
