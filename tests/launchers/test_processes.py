"""A worker's process: nothing that it starts outlives the run, and how it ended is told at once and rightly.

Through `launchers.local` with scripts in the place of a framework's interpreter.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.suite import alive, processes_naming, wait_for

from launchers import guard, local

pytestmark = pytest.mark.slow

# Long where nothing should have to wait for it: a test that did would fail by pytest's own limit.
LONG = 600.0
BEGINNING = """\
#!{python} -IS
import json, os, signal, sys, time
from pathlib import Path
pipe = open(sys.argv[4], "w", buffering=1)
def send(**message): pipe.write("\\n" + json.dumps(message) + "\\n")
def note(name, value):
    path = Path({folder!r}, name)
    path.with_suffix(".new").write_text(str(value))
    path.with_suffix(".new").rename(path)
def child(leave):
    # A process that holds everything this one has open, and never ends by itself.
    process = os.fork()
    if process == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if leave == "fork":
            if os.fork(): os._exit(0)
        if leave in ("session", "fork"): os.setsid()
        note("child", os.getpid())
        while True: time.sleep(100)
    while not Path({folder!r}, "child").exists(): time.sleep(0.01)
"""
ESCAPES = ["stay", "session", "fork"]


@pytest.fixture
def worker(tmp_path):
    """Make a launch whose worker is a script: `worker(code, silence)`."""

    def make(code: str, timeout_s: float = LONG) -> local.Launch:
        script = tmp_path / "interpreter"
        script.write_text(BEGINNING.format(python=sys.executable, folder=str(tmp_path)) + textwrap.dedent(code))
        script.chmod(0o755)
        return local.Launch(script, tmp_path, dict(os.environ), sorted(os.sched_getaffinity(0)), timeout_s)

    return make


def failure(launch: local.Launch) -> local.WorkerFailure:
    """How the worker fails."""
    with pytest.raises(local.WorkerFailure) as caught:
        list(local.run(launch, {}))
    return caught.value


def noted(folder: Path, name: str) -> int:
    wait_for((folder / name).exists)
    return int((folder / name).read_text())


@pytest.mark.parametrize("leave", ESCAPES)
def test_a_worker_s_children_end_with_it(worker, tmp_path, leave):
    received = list(local.run(worker(f"child({leave!r}); send(type='done')"), {}))
    assert received == [{"type": "done"}]
    assert not alive(noted(tmp_path, "child"))


@pytest.mark.parametrize("leave", ESCAPES)
def test_a_crash_compares_at_once_though_a_child_holds_the_pipe(worker, tmp_path, leave):
    told = failure(worker(f"child({leave!r}); os.kill(os.getpid(), signal.SIGSEGV)"))
    assert (told.status, str(told)) == ("crash", "The worker was killed by SIGSEGV.")
    assert not alive(noted(tmp_path, "child"))
    assert "exited with code 3" in str(failure(worker(f"child({leave!r}); sys.exit(3)")))


def test_a_crash_names_the_line_that_ran(worker):
    launch = worker("""
        import ctypes, faulthandler
        faulthandler.enable()
        def load():
            ctypes.string_at(0)
        load()
    """)
    found = failure(launch)
    place = r"It ran string_at in .*ctypes/__init__\.py, line \d+\."
    assert re.fullmatch(rf"The worker was killed by SIGSEGV\. {place}", local.explained(found, launch.log))
    assert "Extension modules" not in local.log_tail(launch.log)


def test_places_of_crashes_are_relative_to_packages_and_the_suite(tmp_path):
    log, error = tmp_path / "log", local.WorkerFailure("crash", "Killed.")
    stack = "a line\nFatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n"
    for path, shown in (
        ("/x/lib/python3.12/site-packages/torch/a.py", "torch/a.py"),
        (f"{ROOT}/worker/start.py", "worker/start.py"),
    ):
        log.write_text(f'{stack}  File "{path}", line 7 in load\n  File "/y.py", line 8 in main\n')
        assert local.explained(error, log) == f"Killed. It ran load in {shown}, line 7."
    log.write_text("first\nlast")
    assert local.explained(error, log) == "Killed. Its last line: last"
    assert local.explained(error, tmp_path / "none") == "Killed."


@pytest.mark.parametrize("leave", ESCAPES)
@pytest.mark.parametrize("state", ["time.sleep(100)", "os.kill(os.getpid(), signal.SIGSTOP)", "note('busy', 1)"])
def test_nothing_is_left_when_the_parent_is_killed(worker, tmp_path, state, leave):
    """While the worker hangs, is stopped, or is busy; it heeds no signal."""
    launch = worker(f"""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child({leave!r})
        note("worker", os.getpid())
        while True: {state}
    """)
    parent = parent_of(launch)
    processes = [noted(tmp_path, "worker"), noted(tmp_path, "child")]
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(map(alive, processes)))
    wait_for(lambda: not processes_naming(str(tmp_path)))


def parent_of(launch: local.Launch) -> subprocess.Popen:
    """A process that runs the launch from a thread which has ended before the worker has."""
    code = f"""
        import sys, threading, time
        from pathlib import Path
        sys.path.insert(0, {str(ROOT)!r})
        from launchers import local
        launch = local.Launch(Path({str(launch.interpreter)!r}), Path({str(launch.folder)!r}), {{}}, {launch.cpus}, 1e9)
        messages = local.run(launch, {{}})
        threading.Thread(target=lambda: print(next(messages, None))).start()
        time.sleep(1000)
    """
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])


def test_a_worker_outlives_the_thread_that_started_it(worker):
    """As slots' threads may end; the death signal that Linux knows is of the parent's thread."""
    launch = worker(
        "send(type='first'); note('worker', os.getpid()); sys.stdin.read(); time.sleep(1); send(type='done')"
    )
    running = local.run(launch, {})
    first = threading.Thread(target=lambda: next(running))
    first.start()
    first.join()
    assert list(running) == [{"type": "done"}]


def test_a_worker_ends_when_its_guard_is_killed(worker, tmp_path):
    launch = worker("child('stay'); note('worker', os.getpid()); time.sleep(1000)")
    told: list[local.WorkerFailure] = []
    waiting = threading.Thread(target=lambda: told.append(failure(launch)))
    waiting.start()
    process = noted(tmp_path, "worker")
    os.kill(int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
    waiting.join()
    assert "guard process was killed" in str(told[0])
    wait_for(lambda: not any(map(alive, (process, noted(tmp_path, "child")))))


def test_a_worker_ends_when_its_guard_and_the_parent_are_killed(worker, tmp_path):
    launch = worker("note('worker', os.getpid()); note('guard', os.getppid()); time.sleep(1000)")
    parent = parent_of(launch)
    process, above = noted(tmp_path, "worker"), noted(tmp_path, "guard")
    os.kill(parent.pid, signal.SIGSTOP)  # so that it cannot clean up
    os.kill(above, signal.SIGKILL)
    parent.kill()
    parent.wait()
    wait_for(lambda: not alive(process))


def test_a_stopped_worker_is_ended_when_its_time_is_up(worker, tmp_path, monkeypatch):
    """Its time begins here once it has said who it is: how long it takes to start is the machine's."""
    real, note = time.monotonic, tmp_path / "worker"
    monkeypatch.setattr(local.time, "monotonic", lambda: real() if note.exists() else 0.0)
    told = failure(worker("note('worker', os.getpid()); os.kill(os.getpid(), signal.SIGSTOP)", timeout_s=0.5))
    assert told.status == "timeout"
    assert not alive(noted(tmp_path, "worker"))


def test_bytes_that_are_no_message_do_not_count_as_a_sign_of_life(worker):
    trickle = """
        send(type="phase")
        while True:
            pipe.write({text!r}); pipe.flush(); time.sleep(0.01)
    """
    for text in ("x", "x\n"):
        told = failure(worker(trickle.format(text=text), timeout_s=0.5))
        silent = "The worker was silent for 0.5 s and was stopped; TIMEOUT=SECONDS sets a longer limit."
        assert (told.status, str(told)) == ("timeout", silent)


def test_each_message_is_a_sign_of_life_and_what_the_parent_does_between_two_no_silence(worker, monkeypatch):
    """Time passes between messages alone, and more of it than a worker may be silent."""
    silence, now = 0.5, [0.0]
    monkeypatch.setattr(local.time, "monotonic", lambda: now[0])
    beats = "for number in range(3): send(type='beat'); time.sleep(0.1)\nsend(type='done')"
    for _ in local.run(worker(beats, timeout_s=silence), {}):
        now[0] += 2 * silence
    assert now[0] == 4 * 2 * silence


def test_a_line_without_end_is_an_error_and_no_memory_is_lost_on_it(worker):
    told = failure(worker(f"while True: pipe.write('x' * {1 << 20})"))
    assert (told.status, str(told)) == ("error", "The worker wrote a line of more than 8 MiB to its results pipe.")


def test_what_is_no_message_compares_in_the_log(worker):
    launch = worker("pipe.write('Compiling 3 kernels...\\n' * 1000 + '{\"type\"'); send(type='done')")
    assert list(local.run(launch, {})) == [{"type": "done"}]
    log = launch.log.read_text()
    assert "no message on the results pipe: b'Compiling 3 kernels...'" in log
    assert log.count("Compiling") == local.NOTES


def test_a_program_that_cannot_be_started_compares(worker):
    launch = worker("")
    launch.interpreter.chmod(0o644)
    assert str(failure(launch)) == "The worker could not be started: Permission denied."


def test_a_log_is_bounded(tmp_path, monkeypatch):
    """Its beginning goes, and what writes to it goes on at its new end."""
    monkeypatch.setattr(guard, "LOG_BYTES", 10_000)
    monkeypatch.setattr(guard, "KEPT_BYTES", 1_000)
    log = tmp_path / "worker.log"
    with open(log, "ab", buffering=0) as writer:
        writer.write(b"a" * 10_000)
        guard._shorten(log)
        assert log.stat().st_size == 10_000
        writer.write(b"last words")
        guard._shorten(log)
        writer.write(b", and more")
    text = log.read_bytes()
    assert len(text) < 2_000
    assert text.startswith(b"[the beginning")
    assert text.endswith(b"aalast words, and more")


def test_a_log_is_looked_at_while_the_worker_runs(worker, tmp_path):
    talk = f"""
        sys.stdout.buffer.write(b"x" * {guard.LOG_BYTES + 1}); sys.stdout.flush()
        while os.stat({str(tmp_path / "worker.log")!r}).st_size > {guard.LOG_BYTES}: time.sleep(0.05)
        send(type="done")
    """
    assert list(local.run(worker(talk), {}))
    assert (tmp_path / "worker.log").stat().st_size < 2 * guard.KEPT_BYTES


def test_signals_come_to_a_worker_as_its_parent_left_them(worker):
    """Under nohup, and in a script's background, some are ignored; here as this test sets them."""
    set_here = {signal.SIGQUIT: signal.SIG_DFL, signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_IGN}
    before = {sign: signal.signal(sign, how) for sign, how in set_here.items()}
    try:
        code = f"send(type='done', handled=[int(signal.getsignal(n)) for n in {[*map(int, set_here), 17]}])"
        (received,) = local.run(worker(code), {})
    finally:
        for sign, how in before.items():
            signal.signal(sign, how)
    assert received["handled"] == [signal.SIG_DFL, signal.SIG_DFL, signal.SIG_IGN, signal.SIG_DFL]


def test_nothing_but_its_pipe_is_handed_to_a_worker(worker):
    """Else a child could hold another worker's pipe, or the lifeline."""
    (received,) = local.run(worker("send(type='done', open=sorted(os.listdir('/proc/self/fd'), key=int))"), {})
    pipe_twice_and_the_listing = 3
    assert len(received["open"]) == 3 + pipe_twice_and_the_listing


def test_a_worker_is_pinned_and_its_parent_is_not(worker):
    before = os.sched_getaffinity(0)
    launch = worker("send(type='done', cpus=sorted(os.sched_getaffinity(0)))")
    one = [sorted(before)[-1]]
    (received,) = local.run(local.Launch(launch.interpreter, launch.folder, launch.environment, one, LONG), {})
    assert received["cpus"] == one
    assert os.sched_getaffinity(0) == before


def test_stopping_amid_the_messages_ends_the_worker(worker, tmp_path):
    launch = worker("child('session'); note('worker', os.getpid()); send(type='first'); time.sleep(1000)")
    with contextlib.closing(local.run(launch, {})) as running:
        assert next(running) == {"type": "first"}
    assert not any(map(alive, (noted(tmp_path, "worker"), noted(tmp_path, "child"))))


def test_a_readable_stop_ends_everything(worker, tmp_path):
    reader, writer = os.pipe()
    os.write(writer, b"x")
    with pytest.raises(KeyboardInterrupt):
        list(local.run(worker("note('worker', os.getpid()); time.sleep(1000)"), {}, stop=reader))
    os.close(reader)
    os.close(writer)
    assert not processes_naming(str(tmp_path))


def test_a_parent_that_was_stopped_takes_no_worker_for_silent(worker, monkeypatch):
    """A job or a container that is suspended: its worker did not run either, and says what it has to say later."""
    real, stopped = time.monotonic, [0.0]

    class Suspended(selectors.DefaultSelector):
        def select(self, timeout=None):
            if not stopped[0]:
                stopped[0] = 1e6  # seconds
                return []
            return super().select(timeout)

    monkeypatch.setattr(local.selectors, "DefaultSelector", Suspended)
    monkeypatch.setattr(local.time, "monotonic", lambda: real() + stopped[0])
    assert list(local.run(worker("send(type='done')"), {})) == [{"type": "done"}]
