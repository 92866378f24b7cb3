"""The command line: `runner.py bench | report | compare | …`. Imports little before it is needed."""

from __future__ import annotations

try:
    import argparse
    import os
    import signal
    import sys
    import threading
    from types import FrameType
except KeyboardInterrupt:  # before anything here could take it
    raise SystemExit(130) from None


def bench(arguments: argparse.Namespace) -> int:
    """Measure a sweep, or resume one."""
    from commands.bench import bench as run
    from execution.campaign import Request

    return run(Request.of(arguments))


def list_everything(arguments: argparse.Namespace) -> int:
    """Print frameworks, modes and workloads, and what this machine can run."""
    from commands.inventory import show

    return show(arguments)


def selfcheck(arguments: argparse.Namespace) -> int:
    """Check that this machine is fit for measuring, and that the suite measures right on it."""
    from commands.selfcheck import selfcheck as run

    return run(arguments)


def explain(arguments: argparse.Namespace) -> int:
    """Profile a call in each mode, and print by class of kernel where the time goes and what differs."""
    from commands.explain import explain as run
    from execution.campaign import Request

    return run(Request.of(arguments))


def reproduce(arguments: argparse.Namespace) -> int:
    """Measure a published table again and answer its claims; without a table, list them."""
    from commands.reproduce import reproduce as run

    return run(arguments)


def report(arguments: argparse.Namespace) -> int:
    """Show what runs have found: a table here, report.md and report.html in the first run's folder."""
    from commands.report import report as run

    return run(arguments)


def compare(arguments: argparse.Namespace) -> int:
    """Compare run B with run A cell by cell; exit code 1: B is too slow or broke, 3: nothing could be decided."""
    from commands.compare import compare as run

    return run(arguments)


def ab(arguments: argparse.Namespace) -> int:
    """Measure A and B in turn, process by process, and compare them; exit codes as of compare."""
    from commands.ab import ab as run

    return run(arguments)


def watch(arguments: argparse.Namespace) -> int:
    """Show how far a run is, from any machine that sees its folder; on a terminal until it ends."""
    from commands.watch import watch as run

    return run(arguments)


def history(arguments: argparse.Namespace) -> int:
    """Show how every cell went over several runs, with intervals, and where it stepped."""
    from commands.history import history as run

    return run(arguments)


def gather(arguments: argparse.Namespace) -> int:
    """Merge the records of runs, of one machine or many, into one CSV."""
    from commands.report import gather as run

    return run(arguments)


def site(arguments: argparse.Namespace) -> int:
    """Write the published runs as a folder of pages that any static host serves."""
    from publish.site import site as run

    return run(arguments)


def setup(arguments: argparse.Namespace) -> int:
    """Make the environments of some frameworks."""
    from commands.bench import set_up

    return set_up(arguments)


def wheelhouse(arguments: argparse.Namespace) -> int:
    """Collect what a machine without internet needs to make the runner's and some frameworks' environments."""
    from commands.wheelhouse import wheelhouse as run

    return run(arguments)


def add_readers(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The commands that read what was measured."""
    what = "folders of runs (names in results/runs will do), CSV or JSONL files of records, or newest"
    command = commands.add_parser("report", help="what runs have found", description=report.__doc__)
    command.add_argument("runs", nargs="*", metavar="RUN", help=f"{what} (default: newest); or A,B")
    for name in ("framework", "workload", "impl", "mode", "pass", "dtype", "device"):
        command.add_argument(f"--{name}", metavar="A,B", help="only these")
    command.add_argument("--filter", metavar="TEXT", help="only cells whose name contains TEXT or matches it")
    command.add_argument("--across", action="store_true", help="compare different machines with each other")
    command.add_argument("--out", metavar="FOLDER", help="where the files go (default: the first run's folder)")
    command.set_defaults(run=report)

    command = commands.add_parser("compare", help="two runs cell by cell", description=compare.__doc__)
    for name in ("a", "b"):
        command.add_argument(name, nargs="?", metavar=name.upper(), help=what)
    command.add_argument("--max-slowdown", default="5%", metavar="PERCENT", help="how much slower B may be (5%%)")
    command.add_argument("--filter", metavar="TEXT", help="only cells whose name contains TEXT or matches it")
    command.add_argument("--out", metavar="FILE", help="where the Markdown goes (default: comparison.md in B's folder)")
    command.set_defaults(run=compare)

    command = commands.add_parser("history", help="many runs as a trend", description=history.__doc__)
    command.add_argument("runs", nargs="*", metavar="RUN", help=f"{what}; a folder of runs is each of them; or A,B,C")
    command.add_argument("--filter", metavar="TEXT", help="only cells whose name contains TEXT or matches it")
    command.add_argument("--out", metavar="FOLDER", help="where the files go (default: the last run's folder)")
    command.set_defaults(run=history)

    command = commands.add_parser("watch", help="how far a run is", description=watch.__doc__)
    command.add_argument("folder", nargs="?", metavar="RUN", help="a run's folder, or its name in results/runs")
    command.set_defaults(run=watch)

    command = commands.add_parser("site", help="the published runs as pages", description=site.__doc__)
    command.add_argument("--out", metavar="FOLDER", default="site", help="where the pages go (default: site)")
    command.set_defaults(run=site)

    command = commands.add_parser("gather", help="several runs in one CSV", description=gather.__doc__)
    command.add_argument("runs", nargs="*", metavar="RUN", help=f"{what}; or A,B")
    command.add_argument("--out", metavar="FILE", help="the CSV (default: results/runs/gathered.csv)")
    command.set_defaults(run=gather)


def parser() -> argparse.ArgumentParser:
    """The command line's parser."""
    from commands import flags, skeletons

    top = argparse.ArgumentParser(prog="runner.py", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    steps = "Measure a framework's way from eager mode to its last graph, rung by rung: `bench` with MODE=ladder."
    for name, text, modes in (("bench", bench.__doc__, {}), ("ladder", steps, {"mode": "ladder"})):
        command = commands.add_parser(name, help="each step" if modes else "measure a sweep", description=text)
        flags.add_all(command)
        command.add_argument("--requirements", metavar="FILE", help=flags.REQUIREMENTS)
        command.set_defaults(run=bench, **modes)

    command = commands.add_parser("ab", help="two environments in turn", description=ab.__doc__)
    flags.add_axes(command)
    flags.add_profile(command)
    for name in ("a", "b"):
        command.add_argument(f"--{name}", metavar="PYTHON|VERSION", help="by default the suite's own environment")
    command.add_argument("--versions", metavar="A,B", help="both as versions: torch==2.12,torch==2.13")
    command.add_argument("--max-slowdown", default="5%", metavar="PERCENT", help="as of compare (default: 5%%)")
    command.set_defaults(run=ab)

    command = commands.add_parser("explain", help="where the time goes", description=explain.__doc__)
    flags.add_axes(command)
    command.add_argument("--requirements", metavar="FILE", help=flags.REQUIREMENTS)
    command.set_defaults(run=explain, resume=None)

    command = commands.add_parser("list", help="what there is, and what this machine can run")
    for name in ("framework", "workload"):
        command.add_argument(f"--{name}", metavar="A,B", help="only these")
    command.add_argument("--python", help="ask this interpreter instead of the locked environments")
    command.set_defaults(run=list_everything)

    command = commands.add_parser("selfcheck", help="is this machine fit?", description=selfcheck.__doc__)
    for name in ("framework", "device", "threads", "profile", "budget"):
        command.add_argument(f"--{name}", help=f"as in bench; by default bench's own {name}")
    for name in ("workload", "impl", "mode", "seq"):
        command.add_argument(
            f"--{name}", help=f"repeat whole runs of this {name} instead; --profile may be a list then"
        )
    command.add_argument("--repeats", type=int, default=1, help="trials of each framework, or whole runs (default: 1)")
    command.add_argument("--load", type=int, default=0, help="other processes kept busy meanwhile (default: 0)")
    command.add_argument("--python", help="check with this interpreter instead of the locked environments")
    command.add_argument(
        "--out",
        metavar="PATH",
        help="write the checks into this file as JSON; with --workload: keep the runs in this folder",
    )
    command.set_defaults(run=selfcheck)

    command = commands.add_parser("reproduce", help="a published table", description=reproduce.__doc__)
    command.add_argument("--table", help="which one; without, they are listed")
    command.add_argument("--device", help="cpu (default), gpu, gpu:<index>")
    for name in ("framework", "mode", "threads", "profile", "budget", "compile-cache"):
        command.add_argument(f"--{name}", help=f"as in bench, instead of the sweep files' {name}")
    for name in ("isolate", "force"):
        command.add_argument(f"--{name}", action="store_true", default=None, help="as in bench")
    command.add_argument("--out", metavar="FOLDER", help="where its files go (default: a new folder in results/runs)")
    command.add_argument("--resume", metavar="RUN", nargs="?", const="newest", help="resume a run (default: newest)")
    command.add_argument(
        "--from", dest="from_run", metavar="RUN", help="measure nothing: tables and claims from that folder (into OUT)"
    )
    command.add_argument("--timeout", type=float, default=900, help="seconds a worker may be silent (default: 900)")
    command.add_argument("--python", help="measure this interpreter's packages instead of a locked environment")
    command.add_argument("--dry-run", action="store_true", help="print the plan, check it as the run does, and end")
    command.set_defaults(run=reproduce)

    add_readers(commands)

    command = commands.add_parser("setup", help="make environments", description=setup.__doc__)
    command.add_argument("--framework", metavar="A,B", help="frameworks, or all (default: all)")
    command.add_argument("--device", default="cpu", help="cpu (default) or gpu")
    command.set_defaults(run=setup)

    skeletons.add_command(commands)

    command = commands.add_parser("wheelhouse", help="files for a machine offline", description=wheelhouse.__doc__)
    command.add_argument("--framework", metavar="A,B", help="frameworks, or all (default: all)")
    command.add_argument("--device", help="cpu (default) or gpu")
    command.add_argument("--out", metavar="FOLDER", help="where the files go (default: wheelhouse)")
    command.set_defaults(run=wheelhouse)
    return top


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
    """Whether a module is being loaded where this frame is at work."""
    while frame and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def main(words: list[str] | None = None) -> int:
    """Run the command line; returns the exit code (docs/storage.md). What cannot be done is one sentence."""
    from measurement import refusals

    refusals.prepare_streams()
    try:
        from plan import user_models

        user_models.on_the_command_line(sys.argv[1:] if words is None else words)
        arguments = parser().parse_args(words)
        code = arguments.run(arguments)
        sys.stdout.flush()  # what the system refuses of it is told here, not after the last line
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


if __name__ == "__main__":
    if sys.flags.safe_path:  # which leaves the script's folder out of the path, also in processes that inherit it
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        os.environ.pop("PYTHONSAFEPATH", None)
    stop_politely()
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # between the loading of two modules
        sys.exit(130)
    finally:  # what comes while Python shuts down stops nothing any more
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
