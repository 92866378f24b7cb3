"""An executor whose launches a test says, in a folder of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from execution.early_checks import NOTHING
from execution.execute import Executor
from execution.launcher import Launcher
from execution.recorder import Recorder
from execution.worker_run import Display
from measurement.profiles import PROFILES
from plan import sweep
from records.cell_result import Context
from records.runs import Run

Kind = TypeVar("Kind", bound=Executor)


class Silent(Display):
    """A display that shows nothing."""


def executor_in(folder: Path, profile: str = "quick", kind: type[Kind] = Executor) -> Kind:
    """Return an executor of a run in the folder, without peak benchmarks."""
    run, context = Run(folder), Context("run", "", "", None, PROFILES[profile], "cold", {})
    launcher = Launcher(run, sweep.resolve({}), PROFILES[profile], {}, lambda group: NOTHING, timeout_s=900.0)
    return kind(launcher, Recorder(run, context, Silent(), launcher.reference_data, with_peaks=False), Silent())
