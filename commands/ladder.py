"""The command `ladder`: `bench` with MODE=ladder."""

from __future__ import annotations

import argparse
from dataclasses import replace

from commands import bench
from plan.options import Option


def options() -> list[Option]:
    """Return the options of `ladder`."""
    return [replace(option, default="ladder") if option.flag == "mode" else option for option in bench.options()]


def run(arguments: argparse.Namespace) -> int:
    """Measure a framework's way from eager mode to its last graph, stage by stage."""
    return bench.run(arguments)
