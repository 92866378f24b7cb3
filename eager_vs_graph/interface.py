"""The Python function `compare` and its result."""

from __future__ import annotations

import html
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

from eager_vs_graph import carried

CODES = (0, 1, 3)  # exit codes of a run that has figures


class Problem(RuntimeError):
    """Why nothing was measured, in one sentence with the way out."""


@dataclass(frozen=True)
class Result:
    """One comparison. `answer` is the object of `bench --json`; `folder` holds the run's files."""

    answer: Mapping[str, Any]
    folder: Path

    @property
    def verdict(self) -> str:
        """Return the verdict, a sentence for each shape."""
        return "\n".join(self.answer["verdicts"])

    @cached_property
    def frame(self) -> pandas.DataFrame:
        """Return the figures, a row for each mode, in the columns of results.csv."""
        import pandas

        return pandas.read_csv(self.folder / "results.csv")

    def report(self) -> Path:
        """Make the run's page and return its path."""
        _run(["report", str(self.folder)], quiet=True)
        return self.folder / "report.html"

    def __repr__(self) -> str:
        return f"{self.verdict}\n{self.folder}"

    def _repr_html_(self) -> str:
        """Return the page with its chart and table, in a frame of a notebook."""
        page = html.escape(self.report().read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{page}" width="100%" height="640" style="border:0"></iframe>'


def compare(
    model: Any,
    inputs: Any,
    *,
    modes: str | Iterable[str] | None = None,
    device: str = "cpu",
    dtype: str = "fp32",
    profile: str = "quick",
    framework: str | None = None,
    loss: Any = None,
    out: str | Path | None = None,
    quiet: bool = False,
    **options: Any,
) -> Result:
    """Measure a model in eager mode and in graph modes, and return the Result.

    `model` is a torch module or function, a JAX function or `(function, parameters)`, a Keras model or a Paddle layer.
    `inputs` is its tensor, a tuple by position, or a dict by keyword. `modes` are names that `egvg list` prints, by
    default eager and the default graph modes. `loss` has `pass_="training"` measure an optimizer iteration. `options`
    are those of the command line: `threads=[1, 2]`, `energy=True`. Progress goes to stderr unless `quiet`.

    Raises Problem.
    """
    folder = Path(out) if out else _new_folder()
    try:
        file = carried.write(folder / "model", model, inputs, loss, framework)
    except carried.Unfit as problem:
        raise Problem(str(problem)) from None
    options = {name.rstrip("_").replace("_", "-"): value for name, value in options.items()}
    options |= {"device": device, "dtype": dtype, "profile": profile, "python": sys.executable, "out": folder / "run"}
    if modes is not None:
        options["mode"] = modes if isinstance(modes, str) else ",".join(modes)
    words = ["bench", "--workload", str(file), "--json", *_words(options)]
    answer = json.loads(_run(words, quiet))
    if not any(figure["latency_ms_median"] for figure in answer["figures"]):
        raise Problem("; ".join(dict.fromkeys(figure["reason"] for figure in answer["figures"] if figure["reason"])))
    return Result(answer, folder / "run")


def _words(options: Mapping[str, Any]) -> list[str]:
    """Return the command line's words for options: of True the flag alone, of None and False none."""
    words = []
    for name, value in options.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not None and value is not False:
            words.append(f"--{name}={','.join(map(str, value)) if isinstance(value, list | tuple) else value}")
    return words


def _new_folder() -> Path:
    """Make a folder in the working folder's egvg-runs and return it. Raises Problem."""
    runs = Path.cwd() / "egvg-runs"
    try:
        runs.mkdir(exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="run-", dir=runs))
    except OSError as error:
        raise Problem(f"{runs} cannot be written ({error.strerror}): choose a folder with out=.") from None


def _run(words: list[str], quiet: bool) -> str:
    """Run the command line with these words and return its output. Raises Problem with its last line."""
    command = [sys.executable, "-m", "eager_vs_graph", *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(carried.HOME), os.environ.get("PYTHONPATH", "")])}
    said = []
    with (  # a file takes all output; a pipe without a reader blocks
        tempfile.TemporaryFile("w+", encoding="utf-8") as answer,
        subprocess.Popen(
            command, stdout=answer, stderr=subprocess.PIPE, text=True, env=environment, errors="replace"
        ) as process,
    ):
        try:
            for line in process.stderr or io.StringIO():
                said.append(line)
                if not quiet:  # sys.stderr is the notebook's
                    sys.stderr.write(line)
            process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
        answer.seek(0)
        printed = answer.read()
    if process.returncode not in CODES or not printed.strip():
        raise Problem(
            re.sub(r"^(runner\.py|eager-vs-graph): ", "", " ".join(said[-1:])).strip()
            or f"exit code {process.returncode}"
        )
    return printed
