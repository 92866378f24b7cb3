"""Run one command so that nothing it started outlives it, or the process that started the guard.

`python -IS guard.py LIFELINE STATUS KEPT LOG CPUS COMMAND...`: the first three are descriptors. LIFELINE is a pipe to
which only the parent process writes. A byte there ends the command by SIGTERM. If it closes, the parent is gone or in a
hurry, and the guard kills the command. KEPT is for the command. Once all processes are gone, the guard writes the
command's end to STATUS. It is `exit 3`, `signal 9`, `failed` and why it could not be started, or `stuck`, if it did not
end even when killed. Start the guard in a new session.

All processes that the command starts stay below this process, new sessions and double forks included: Linux gives
orphans to the nearest ancestor that is a subreaper. The lifeline is a pipe and not PR_SET_PDEATHSIG, which would kill
the command at the end of the thread that started it. The guard has one thread, so for the command it uses
PR_SET_PDEATHSIG.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
KILL_SECONDS = 5.0  # for processes that survive SIGKILL, in a system call that never returns
LOG_SECONDS, LOG_BYTES, KEPT_BYTES = 1.0, 64 << 20, 1 << 20  # check interval of a log, its limit, and the size kept
_HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # left to the parent: the guard ends after the command


def main(words: list[str]) -> None:
    """Guard the command until it has ended."""
    lifeline, status, kept = map(int, words[:3])
    log, cpus, command = Path(words[3]), {int(cpu) for cpu in words[4].split(",")}, words[5:]
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    usual = {sign: signal.signal(sign, signal.SIG_IGN) for sign in _HEEDED}
    child_ended, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    os.set_inheritable(lifeline, False)
    os.set_inheritable(status, False)
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEEDED)  # or the child might miss one before it resets handlers
    process = os.fork()
    if process == 0:
        _become(command, cpus, usual, status)
    os.close(kept)
    ended = _watch(process, lifeline, child_ended, log)
    ended |= _end_all(child_ended)
    with contextlib.suppress(BrokenPipeError):
        os.write(status, _name_end(ended.get(process)).encode())


def _become(command: list[str], cpus: set[int], usual: dict, status: int) -> None:
    """Turn this process, the guard's child, into the command. It is killed when the guard is."""
    try:
        guard = os.getppid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(1)
        signal.set_wakeup_fd(-1)
        for sign, handler in {**usual, signal.SIGCHLD: signal.SIG_DFL}.items():
            signal.signal(sign, signal.SIG_IGN if handler == signal.SIG_IGN else signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the command would inherit that
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
        os.sched_setaffinity(0, cpus)
        os.environ["EAGER_VS_GRAPH_EXEC"] = str(time.monotonic())  # when the command begins, for `make start`
        os.execvp(command[0], command)
    except OSError as error:
        os.write(status, f"failed {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _watch(process: int, lifeline: int, child_ended: int, log: Path) -> dict[int, int]:
    """Wait until the command ends or the parent is gone; return wait statuses by process, of all that ended."""
    ended: dict[int, int] = {}
    while process not in ended:
        ready = select.select([lifeline, child_ended], [], [], LOG_SECONDS)[0]
        if lifeline in ready:
            if not os.read(lifeline, 1):
                break
            for sign in (signal.SIGTERM, signal.SIGCONT):  # SIGCONT, or a stopped process would not react
                os.killpg(0, sign)
        _shorten(log)
        ended |= _reap(child_ended)
    return ended


def _end_all(child_ended: int) -> dict[int, int]:
    """Kill all remaining processes. Each round kills this process's children and so adopts their children.

    Only children: their ids cannot be reused before this process waits for them.
    """
    ended: dict[int, int] = {}
    deadline = time.monotonic() + KILL_SECONDS
    while (left := children()) and time.monotonic() < deadline:
        for child in left:
            _kill(child, signal.SIGKILL)
        select.select([child_ended], [], [], 0.05)
        ended |= _reap(child_ended)
    return ended


def children() -> list[int]:
    """Return the processes whose parent is this one."""
    me, numbers = os.getpid(), []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if name.isdigit() and int(Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()[1]) == me:
                numbers.append(int(name))
    return numbers


def _reap(child_ended: int) -> dict[int, int]:
    """Return the wait statuses of ended children, orphans included, by process."""
    with contextlib.suppress(BlockingIOError):
        while os.read(child_ended, 1 << 10):
            pass
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while (one := os.waitpid(-1, os.WNOHANG))[0]:
            ended[one[0]] = one[1]
    return ended


def _shorten(log: Path) -> None:
    """Keep the end of a log that has become too long; its writer appends."""
    with contextlib.suppress(OSError):
        if log.stat().st_size <= LOG_BYTES:
            return
        with open(log, "r+b") as file:
            file.seek(-KEPT_BYTES, os.SEEK_END)
            end = file.read()
            file.truncate(0)
        with open(log, "ab") as file:
            file.write(b"[the beginning was longer than a log may be]\n" + end)


def _name_end(wait_status: int | None) -> str:
    if wait_status is None:
        return "stuck\n"
    code = os.waitstatus_to_exitcode(wait_status)
    return f"signal {-code}\n" if code < 0 else f"exit {code}\n"


def _kill(process: int, sign: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, sign)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, ctypes.c_ulong(value), 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    main(sys.argv[1:])
