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
    from types import FrameType, ModuleType
    from typing import TYPE_CHECKING, NoReturn
except KeyboardInterrupt:  # before anything here could take it
    raise SystemExit(130) from None
if TYPE_CHECKING:
    from commands.table import Command
    from plan.options import Option


def parse(words: list[str]) -> tuple[ModuleType, argparse.Namespace]:
    """Return the module that executes the words, and its arguments. Raises UsageError."""
    from commands import command_line, table
    from measurement.refusals import UsageError
    from plan import user_models

    name, rest = (words or [""])[0], words[1:]
    if not name or name.startswith("-"):
        raise UsageError("Name a command; `make` lists them.")
    if name not in table.COMMANDS:
        raise UsageError(f"There is no command {name!r}; {command_line.suggestion(name, table.COMMANDS, 'make')}")
    user_models.register_named_in(rest)
    command = table.COMMANDS[name]
    module = importlib.import_module(command.module)
    arguments = command_line.parse(name, module.run.__doc__, options_of(command), rest, every_option)
    for flag in command.forms:
        if getattr(arguments, flag):
            module = importlib.import_module(command.forms[flag])
            label = f"{name} with {flag.upper()}"
            return module, command_line.parse(label, module.run.__doc__, module.options(), rest, every_option)
    return module, arguments


def options_of(command: Command) -> list[Option]:
    """Return the options of a command, and those that choose its other forms."""
    from plan.options import chosen

    others = {flag: importlib.import_module(module).options() for flag, module in command.forms.items()}
    own: list[Option] = importlib.import_module(command.module).options()
    return own + [option for flag, options in others.items() for option in chosen(options, flag)]


def every_option() -> list[Option]:
    """Return the options of all commands."""
    from commands import table

    return [option for command in table.COMMANDS.values() for option in options_of(command)]


def stop_politely() -> None:
    """Handle signals of a job scheduler or a closed terminal like Ctrl-C; ignored ones (nohup) stay ignored.

    Once: make passes its group's signal on, and a second one would cut short what the first began to save. Not while a
    module is loaded: Python may drop an exception raised there, and SciPy's C code takes it for another failure.
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
    from measurement import refusals

    refusals.prepare_streams()
    try:
        words = given() if callable(given) else sys.argv[1:] if given is None else given
        if words[:1] in (["-h"], ["--help"]):
            from commands import table

            print(table.help_text(), end="")
            return refusals.DONE
        if words[:1] == ["--print-completion"]:
            from commands import completion

            print(completion.script(" ".join(words[1:]), options_of))
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
    try:
        stop_politely()
        try:
            sys.exit(main(words))
        finally:  # what comes while Python shuts down stops nothing any more
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
    except KeyboardInterrupt:  # between the loading of two modules, or in the lines above
        sys.exit(130)


if __name__ == "__main__":
    run_and_exit(lambda: sys.argv[1:])
