"""One fault: a scratch folder, the real command line with its processes, and the expectations of all faults."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from doubles.suite import Suite

from records import values
from records.statuses import MEASURED

# How long the slowest machine may take for a run of a few tiny cells; a run that takes longer counts as hung.
PATIENCE = 240.0
TIMEOUT = 15.0  # seconds of silence that a worker is allowed: more than its start takes on a busy machine
TINY = ("--workload", "mlp", "--width", "8", "--depth", "1", "--threads", "1", "--budget", "0.1")
FAKE = (*TINY, "--framework", "fake", "--python", sys.executable, "--timeout", f"{TIMEOUT:g}")
WHOLE, INCOMPLETE = 0, 3  # all that can be measured was, or not all of it
DONE = frozenset({WHOLE, INCOMPLETE})
INTERRUPTED = frozenset({130, -signal.SIGINT})
REFUSED = frozenset({2})
ALL_MEASURED: dict[str, tuple[str, ...]] = {}  # no mode that may end otherwise
LONGEST_REFUSAL = 600  # characters: a sentence, with a path in it


@dataclass
class Ended:
    """A command that has ended: its exit code and what it printed."""

    code: int
    output: str


@dataclass
class Trial:
    """One fault being tried. `violations` are pairs of a kind and what was seen."""

    suite: Suite
    folder: Path
    rng: random.Random
    violations: list[tuple[str, str]] = field(default_factory=list)
    python: str = sys.executable
    silence: float = TIMEOUT
    patience: float = PATIENCE
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.out = self.folder / "run"
        self.outputs: dict[int, Path] = {}
        self.last_code: int | None = None  # of the last command that ended
        self.longest_path = 0  # of names that a refusal must contain

    def saw(self, kind: str, what: str) -> None:
        self.violations.append((kind, " ".join(what.split())[:300]))

    def begin(
        self,
        *words: str,
        command: str = "bench",
        environment: dict | None = None,
        shell_script: str = 'exec "$@"',
        limit: tuple | None = None,
        umask: int = -1,
    ) -> subprocess.Popen:
        """Start the command line in its own session, as a terminal does, heeding all signals."""

        def prepare() -> None:
            for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(sign, signal.SIG_DFL)
            if limit:
                resource.setrlimit(*limit)

        variables = {
            **os.environ,
            "FAKE_MISCHIEF": "1",
            "FAULT_TRIAL": self.mark,
            "EAGER_VS_GRAPH_UNDECIDED_PASSES": "1",
        }
        variables |= environment or {}
        path = self.folder / f"output-{uuid.uuid4().hex[:6]}"
        with open(path, "wb") as output:
            process = subprocess.Popen(
                ["/bin/sh", "-c", shell_script, "sh", sys.executable, "runner.py", command, *words],
                cwd=self.suite.folder,
                env={name: value for name, value in variables.items() if value is not None},
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=prepare,
                umask=umask,
            )
        self.outputs[process.pid] = path
        return process

    def end(
        self,
        process: subprocess.Popen,
        codes: frozenset[int] | None = DONE,
        patience: float | None = None,
        left: bool = True,
        seen: bool = True,
    ) -> Ended:
        """Wait for its end, and check the rules of every command; its sentence is checked only if `seen`."""
        if not self.ends(process, patience or self.patience):
            self.saw("does not end", f"still running after {patience or self.patience:g} s")
            process.kill()
            process.wait()
        output = self.outputs[process.pid].read_bytes().replace(b"\0", b"").decode(errors="replace")  # or UTF-16
        ended = Ended(process.returncode, output)
        self.last_code = ended.code
        if "Traceback (most recent call last)" in output:
            lines = output.strip().splitlines()
            places = [line.strip() for line in lines if line.startswith("  File ")]
            self.saw("traceback", f"{lines[-1]} ({places[-1] if places else 'no file'})")
        if codes is not None and ended.code not in codes:
            self.saw("exit code", f"{ended.code}, not one of {sorted(codes)}: {output[-200:]}")
        said = output.strip().splitlines()[-1:] if self.begun else [output.strip()]  # after what was measured
        if seen and ended.code in REFUSED and not 0 < len("".join(said)) <= LONGEST_REFUSAL + self.longest_path:
            self.saw("no sentence", f"exit code 2 and {len(output)} characters: {output[-200:]}")
        if left:
            self.nothing_left()
        return ended

    def ends(self, process: subprocess.Popen, patience: float) -> bool:
        """Return whether the process ends, waiting as long as it makes progress.

        Progress is a second of processor time during `patience`, ten times in a row at most.
        """
        for _ in range(10):
            used = self.processor_seconds()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
                return True
            if abs(self.processor_seconds() - used) < 1:
                return False
        return False

    def processor_seconds(self) -> float:
        """Return the seconds of processor time that the running processes have used so far."""
        ticks = 0
        for number in self.processes():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def run(self, *words: str, codes: frozenset[int] | None = DONE, **how) -> Ended:
        return self.end(self.begin(*words, **how), codes)

    def resume(self, *begin: str, codes: frozenset[int] = DONE, **how) -> Ended:
        """Resume the run, or begin it with these words, if given."""
        words = begin or ("--resume", str(self.out), "--python", self.python, "--timeout", f"{self.silence:g}")
        return self.run(*words, codes=codes, **how)

    def go_on(self, words: tuple[str, ...], allowed: dict[str, tuple[str, ...]] | None = ALL_MEASURED, **how) -> None:
        """Resume the run, or begin it with these words: finished cells stay, and the plan is completed exactly."""
        finished = [record["cell"] for record in self.records()]
        self.resume(*([] if self.begun else (*words, f"--out={self.out}")), **how)
        if [record["cell"] for record in self.records()][: len(finished)] != finished:
            self.saw("finished cells lost", f"{len(finished)} before")
        self.complete(self.planned(), allowed)

    def report(self, codes: frozenset[int] | None = frozenset({0})) -> Ended:
        """Write the run's report."""
        return self.run(str(self.out), command="report", codes=codes)

    def processes(self) -> dict[int, list[str]]:
        """Return the command lines of all processes that this trial started, by process id, under any parent."""
        commands = {}
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"FAULT_TRIAL={self.mark}".encode() in (path / "environ").read_bytes():
                    commands[int(path.name)] = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
        return commands

    def workers(self) -> list[int]:
        """Return the process ids of workers, without their guards."""
        return [
            number
            for number, words in self.processes().items()
            if any(word.endswith("job.json") for word in words) and not any(w.endswith("guard.py") for w in words)
        ]

    def nothing_left(self, seconds: float = TIMEOUT + 5) -> None:
        """Note processes that still run; end them."""
        deadline = time.monotonic() + seconds
        time.sleep(0.05)  # one that is about to become another program has no variables for a moment
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for number, words in left.items():
            self.saw("process left", " ".join(words)[:150])
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def until(self, condition: Callable[[], object], process: subprocess.Popen) -> bool:
        """Wait for a condition while the process runs; return whether it holds."""
        deadline = time.monotonic() + self.patience
        while not condition():
            if process.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def later(self, longest: float = 6.0) -> None:
        """Sleep for a random time of at most `longest` seconds."""
        time.sleep(self.rng.uniform(0, longest))

    # What a run left

    @property
    def begun(self) -> bool:
        return os.path.exists(self.out / "plan.json")  # Path.exists raises where a name is too long

    def planned(self) -> list[str]:
        return json.loads((self.out / "plan.json").read_text())["cells"]

    def lines(self) -> list[bytes]:
        path = self.out / "records.jsonl"
        return path.read_bytes().splitlines() if path.exists() else []

    def records(self) -> Iterator[dict]:
        """Yield the records that can be read and fit the schema."""
        for line in self.lines():
            with contextlib.suppress(ValueError, RecursionError, AttributeError, TypeError):
                record = json.loads(line)
                if values.problem(record) is None:
                    yield record

    def rows(self) -> list[dict]:
        try:
            csv.field_size_limit(1 << 27)
            with open(self.out / "results.csv", newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))
        except (OSError, ValueError, csv.Error) as error:
            self.saw("torn", f"results.csv: {error}")
            return []

    def complete(
        self, planned: list[str], allowed: dict[str, tuple[str, ...]] | None = None, in_records: bool = True
    ) -> None:
        """Check that every planned cell occurs once, in the records and the CSV.

        `allowed`: mode -> statuses; other modes are measured. With None, the one cell that was hit may have any status.
        """
        if in_records:
            self._exactly(planned, [record["cell"] for record in self.records()], "records.jsonl")
        rows = self.rows()
        self._exactly(planned, [row["cell"] for row in rows], "results.csv")
        unmeasured = [row for row in rows if row["status"] not in MEASURED]
        code = INCOMPLETE if any(row["status"] != "unsupported" for row in unmeasured) else WHOLE
        if self.last_code in DONE and self.last_code != code:
            self.saw("exit code", f"{self.last_code} with {len(unmeasured)} of {len(rows)} cells not measured")
        if allowed is None:
            for row in unmeasured[1:]:
                self.saw("others hit", f"{row['cell']}: {row['status']}, {row['reason']}")
            return
        for row in rows:
            statuses = allowed.get(row["mode"], ("measured",))
            measured = row["status"] in MEASURED and "measured" in statuses
            if not measured and row["status"] not in statuses:
                kind = "misclassified" if row["mode"] in allowed else "others hit"
                self.saw(kind, f"{row['cell']}: {row['status']}, not {' or '.join(statuses)}: {row['reason']}")

    def complete_once(self, planned: list[str]) -> None:
        """Check that the records have no cell twice and none of another plan; some may be missing."""
        cells = [record["cell"] for record in self.records()]
        self._exactly([name for name in planned if name in cells], cells, "records.jsonl")

    def _exactly(self, planned: list[str], cells: list[str], where: str) -> None:
        count = Counter(cells)
        for kind, names in (
            ("lost", [name for name in planned if not count[name]]),
            ("doubled", [name for name in count if count[name] > 1]),
            ("foreign cell", [name for name in count if name not in planned]),
        ):
            if names:
                self.saw(kind, f"{where}: {', '.join(names)}")
