"""The command line: `runner.py bench | report | compare | …`. Imports little before it is needed."""

from __future__ import annotations

try:
    import argparse
    import importlib
    import os
    import signal
    import sys
    import threading
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType, ModuleType
    from typing import TYPE_CHECKING, NoReturn
except KeyboardInterrupt:  # before anything here could take it
    raise SystemExit(130) from None
if TYPE_CHECKING:
    from plan.options import Option

# The module of each command: its `options()`, and `run(arguments)`, which returns the exit code.
COMMANDS = {
    "bench": "commands.bench",
    "ladder": "commands.ladder",
    "explain": "commands.explain",
    "reproduce": "commands.reproduce",
    "report": "commands.report",
    "compare": "commands.compare",
    "ab": "commands.ab",
    "history": "commands.history",
    "export": "commands.export",
    "watch": "commands.watch",
    "gather": "commands.gather",
    "site": "publish.site",
    "selfcheck": "commands.selfcheck",
    "list": "commands.inventory",
    "new-workload": "commands.new_workload",
    "setup": "commands.setup",
    "wheelhouse": "commands.wheelhouse",
}
HELP = Path(__file__).parent / "docs/help.txt"


def parse(words: list[str]) -> tuple[ModuleType, argparse.Namespace]:
    """Return the module of the command that the words name, and its arguments. Raises UsageError."""
    from commands import command_line
    from measurement.refusals import UsageError
    from plan import user_models

    command, rest = (words or [""])[0], words[1:]
    if command not in COMMANDS:
        raise UsageError(f"There is no command {command!r}; {command_line.suggestion(command, COMMANDS)}")
    user_models.register_named_in(rest)
    module = importlib.import_module(COMMANDS[command])
    return module, command_line.parse(command, module.run.__doc__, module.options(), rest, every_option)


def every_option() -> list[Option]:
    """Return the options of all commands."""
    return [option for name in COMMANDS.values() for option in importlib.import_module(name).options()]


def stop_politely() -> None:
    """Take what a job scheduler or a closed terminal sends like Ctrl-C; what is ignored (nohup) stays ignored.

    Once: make passes on what its whole group was sent, and a second one would cut short what the first began to save.
    Not while a module is loaded: what is raised there Python may drop, and SciPy's C code takes for another failure.
    """
    names = [name for name in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(name) == signal.SIG_DFL]

    def interrupt(number: int, frame: FrameType | None) -> None:
        if is_loading(frame):
            threading.Timer(0.02, os.kill, (os.getpid(), number)).start()  # then it is looked at again
            return
        for name in names if number in names else ():
            signal.signal(name, signal.SIG_IGN)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    for name in names:
        signal.signal(name, interrupt)


def is_loading(frame: FrameType | None) -> bool:
    """Return whether a module is being loaded where this frame is at work."""
    while frame and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def main(given: list[str] | Callable[[], list[str]] | None = None) -> int:
    """Run a command line and return the exit code (docs/robustness.md). Print user errors in one sentence."""
    from measurement import places, refusals

    refusals.prepare_streams()
    try:
        words = given() if callable(given) else sys.argv[1:] if given is None else given
        if words[:1] in (["-h"], ["--help"]):
            print(places.as_typed(HELP.read_text(encoding="utf-8")), end="")
            return refusals.DONE
        module, arguments = parse(words)
        code: int = module.run(arguments)
        sys.stdout.flush()  # what the system refuses of it is an error here, not after the last line
        return code
    except refusals.UsageError as error:
        return refusals.refused(str(error))
    except KeyboardInterrupt:  # before there was a run to keep
        return refusals.INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has seen enough
        refusals.silence(sys.stdout)
        return refusals.FINDING
    except OSError as error:
        return refusals.refused(refusals.sentence(error))
    except Exception as error:
        if why := refusals.unloaded(error):
            return refusals.refused(why)
        raise


def run_and_exit(words: Callable[[], list[str]]) -> NoReturn:
    """Run the words and exit the process. A signal between two of Python's own steps ends it quietly."""
    if sys.flags.safe_path:  # which leaves the script's folder out of the path, also in processes that inherit it
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        os.environ.pop("PYTHONSAFEPATH", None)
    stop_politely()
    try:
        sys.exit(main(words))
    except KeyboardInterrupt:  # between the loading of two modules
        sys.exit(130)
    finally:  # what comes while Python shuts down stops nothing any more
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    run_and_exit(lambda: sys.argv[1:])
