"""A copy of the suite that knows one framework more, driven through its command line."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from records import values

ROOT = Path(__file__).resolve().parents[2]
CODE = (
    "experiments",
    "frameworks",
    "workloads",
    "measurement",
    "environments",
    "plan",
    "records",
    "analysis",
    "execution",
    "commands",
    "publish",
    "launchers",
    "worker",
    "reports",
    "runner.py",
    "pyproject.toml",
    "Makefile",  # which makes it a checkout
)
SILENCE = "15"  # seconds, where a mode hangs: more than a worker needs to start on a busy machine
PATIENCE = 400.0  # seconds until something is said to hang: less than pytest's own limit, which names no process
WAITS = f"{PATIENCE:g}"  # seconds that a worker may be silent where nothing should have to wait for it
# What the copy's modules end with: the fake's name, peaks of small arrays, and samples and warm-ups of a tenth of
# the time.
REGISTERED = 'NAMES = ("fake", *NAMES)'
APPENDED = {
    "frameworks/__init__.py": REGISTERED,
    "execution/peak_benchmarks.py": """
SIZES["cpu"] = (
    ("matmul", {"size": 128}), ("stream", {"elements": 75_000}), *SIZES["cpu"][2:4], ("matvec", {"size": 128})
)
""",
    "execution/campaign.py": """
import os
CPUS_FOR_BOTH = int(os.environ.get("FAKE_CPUS_FOR_BOTH", CPUS_FOR_BOTH))
""",
    "plan/plan.py": """
SPARE_PROCESSES = 0  # on a busy machine the number of processes would depend on its load
""",
    "measurement/profiles.py": """
import dataclasses
PEAK_BENCHMARK = dataclasses.replace(
    PEAK_BENCHMARK, seconds_per_cell=0.005, maximum_seconds_per_cell=0.05, warmup_seconds=0.01, sample_seconds=0.002
)
PROFILES |= {
    name: dataclasses.replace(profile, warmup_seconds=profile.warmup_seconds / 10, sample_seconds=0.002)
    for name, profile in PROFILES.items()
}
""",
}
# The smallest cells there are.
TINY = ("--workload", "mlp", "--width", "8", "--depth", "1", "--batch", "1", "--threads", "1", "--budget", "0.02")


@dataclass
class Finished:
    """What a run of the command line left: its exit code, its output and its folder."""

    code: int
    output: str
    folder: Path

    @property
    def lines(self) -> list[bytes]:
        """The records, as they stand in the file."""
        return (self.folder / "records.jsonl").read_bytes().splitlines(keepends=True)

    @property
    def records(self) -> list[dict]:
        return [json.loads(line) for line in self.lines]

    @property
    def planned(self) -> list[str]:
        return json.loads((self.folder / "plan.json").read_text())["cells"]

    def rows(self) -> list[dict[str, str]]:
        """The rows of the CSV."""
        with open(self.folder / "results.csv", newline="") as file:
            return list(csv.DictReader(file))

    def complete(self) -> bool:
        """Whether every planned cell has exactly one record, each fits the schema, and the CSV holds the same."""
        names = [record["cell"] for record in self.records]
        assert sorted(names) == sorted(self.planned), self.output
        assert [values.problem(record) for record in self.records] == [None] * len(names)
        assert [row["cell"] for row in self.rows()] == names
        return True

    def record(self, mode: str, framework: str = "fake") -> dict:
        """The only record of a framework's mode."""
        (record,) = [r for r in self.records if (r["framework"], r["mode"]) == (framework, mode)]
        return record


@dataclass
class Suite:
    """The suite's code in a folder of its own."""

    folder: Path

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "runner.py", "bench", *words]

    def begin(self, *words: str, environment: dict[str, str] | None = None) -> subprocess.Popen:
        """Start `bench` in a process group of its own, as a terminal does; no signal is ignored there.

        Under nohup and in a script's background some are, and a process inherits that.
        """

        def heed() -> None:
            for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(sign, signal.SIG_DFL)

        return subprocess.Popen(**self._process(words, environment), process_group=0, preexec_fn=heed)

    def bench(self, out: Path, *words: str, environment: dict[str, str] | None = None) -> Finished:
        """Run `bench` with `words` to its end; `out` is where its run lies."""
        done = subprocess.run(**self._process(words, environment))
        return Finished(done.returncode, done.stdout, out)

    def _process(self, words: tuple[str, ...], environment: dict[str, str] | None) -> dict:
        """What `bench` runs as: its output is one text."""
        variables = {**os.environ, **(environment or {})}
        output = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return dict(args=self.command(*words), cwd=self.folder, env=variables, **output)


def copy_with_fake(folder: Path) -> Suite:
    """Copy the suite's code and register the fake: its folder, and its name in the registry.

    Peaks are of small arrays there, measured for a twentieth of the time: what they are is of no test, and every run
    measures them. And a cell's calls are timed before they are steady, which is of no test here either.
    """
    for name in CODE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    shutil.copytree(
        ROOT / "tests/doubles/fake", folder / "frameworks/fake", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name, text in APPENDED.items():
        with open(folder / name, "a") as file:
            file.write(f"{text}\n")
    return Suite(folder)


def processes_naming(text: str) -> list[int]:
    """Processes whose command line holds `text`."""
    numbers = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in path.read_bytes():
                numbers.append(int(path.parent.name))
        except OSError:  # it ended meanwhile
            continue
    return numbers


def wait_for(condition, process: subprocess.Popen | None = None, seconds: float = PATIENCE) -> None:
    """Return once `condition()` holds; fail when it does not in time, or when `process` has ended before."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def alive(process_id: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
