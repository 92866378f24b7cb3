"""The command `setup`: make environments."""

from __future__ import annotations

import argparse

from environments import environments
from plan import sweep
from plan.options import Option, chosen
from reports import terminal


def options() -> list[Option]:
    """Return the options of `setup`."""
    frameworks = chosen(sweep.all_options(), "framework", help="frameworks, or all (default: all)")
    return [*frameworks, Option("device", "cpu (default) or gpu", default="cpu")]


def run(arguments: argparse.Namespace) -> int:
    """Make the environments of the frameworks named; the exit code is 1 if one could not be made."""
    console = terminal.PlainConsole()
    names = sweep.resolve({"framework": arguments.framework}).axes["framework"]
    device = sweep.choose(arguments.device, ("cpu", "gpu"), "device")
    failed = False
    for name in names:
        try:
            console.print(environments.ensure(name, device), highlight=False, soft_wrap=True)
        except environments.SetupError as error:
            console.print(f"{name}: {error}", style="red", markup=False, highlight=False)
            failed = True
    return int(failed)
