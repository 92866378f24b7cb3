"""The command `ladder`: `bench` with MODE=ladder."""

from __future__ import annotations

import argparse

from commands import bench
from plan.options import Option, chosen


def options() -> list[Option]:
    """Return the options of `ladder`."""
    (mode,) = chosen(bench.options(), "mode", help="modes, as in bench (default: ladder)", default="ladder")
    return [mode if option.flag == "mode" else option for option in bench.options()]


def run(arguments: argparse.Namespace) -> int:
    """Measure a framework's way from eager mode to its last graph, stage by stage."""
    return bench.run(arguments)
