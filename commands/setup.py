"""The command `setup`: make environments."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from environments import environments
from frameworks import describe
from plan import sweep
from plan.aliases import choose
from plan.options import Option, chosen
from reports import terminal


def options() -> list[Option]:
    """Return the options of `setup`."""
    frameworks = chosen(sweep.all_options(), "framework", help="frameworks, or all (default: all)")
    return [
        *frameworks,
        Option("device", "cpu (default) or gpu", default="cpu"),
        Option("mode", "modes whose own packages are installed as well"),
    ]


def modes_of(names: Sequence[str], given: str | None) -> list[str]:
    """Return the modes that the option names. Raises UsageError for one that none of the frameworks has."""
    known = [mode.name for name in names for mode in describe(name).modes]
    return [choose(mode, known, "mode") for mode in sweep.split_words(given or "")]


def run(arguments: argparse.Namespace) -> int:
    """Make the environments of the frameworks named; the exit code is 1 if one could not be made."""
    console = terminal.PlainConsole()
    names = sweep.resolve({"framework": arguments.framework}).axes["framework"]
    device = choose(arguments.device, ("cpu", "gpu"), "device")
    modes = modes_of(names, arguments.mode)
    failed = False
    for name in names:
        try:
            console.print(environments.ensure(name, device, modes=modes), soft_wrap=True)
        except environments.SetupError as error:
            console.print(f"{name}: {error}", style="red")
            failed = True
    return int(failed)
