"""Users' models that break the process that measures them, on torch: each costs its own cell.

Beside each a good file is measured, in the same run. The promise: the good one is measured, the bad one has
one record with a status and a sentence, no figure is false, no process is left, and the run ends.
"""

from __future__ import annotations

import resource

from studies.faults.signals import real_words
from studies.faults.trial import DONE, REFUSED, Trial

SLEPT_MS = 5.0  # that a call of either file takes at least
MOST_MS = 5000.0
FILE = """
import atexit, builtins, ctypes, gc, os, signal, subprocess, sys, threading, time
import torch

HERE = os.path.abspath(__file__)
ONCE = {once!r}
_sleep = time.sleep
{first}


class Net(torch.nn.Linear):
    def forward(self, x):
        _sleep({seconds})
        {line}
        return super().forward(x)


def model():
    {made}
    return Net(8, 8)


def inputs(batch_size):
    {given}
    return torch.randn(batch_size, 8)
"""
SECOND = "n = len(open(ONCE, 'a+').read()) if os.path.exists(ONCE) else 0; open(ONCE, 'a').write('x'); "
COMPILING = "torch.compiler.is_compiling()"
FAILED, ANY = ("error", "crash", "timeout", "oom"), ("measured", "error", "crash", "timeout", "oom", "unsupported")
GOOD = ("measured",)
# name: (where, Python, statuses of the bad file). `line` is of forward, `made` of model(), `given` of inputs().
BAD: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "print gone": ("first", "builtins.print = None", ANY),
    "open gone": ("first", "builtins.open = None", ANY),
    "len is wrong": ("line", "builtins.sorted = lambda *a, **k: []", ANY),
    "streams None": ("first", "sys.stdout = sys.stderr = None", GOOD),
    "modules cleared": ("line", "sys.modules.clear()", ANY),
    "path cleared": ("first", "sys.path.clear()", ANY),
    "environment cleared": ("first", "os.environ.clear()", ANY),
    "elsewhere": ("first", "os.chdir('/')", GOOD),
    "folder gone": ("first", "import tempfile; p = tempfile.mkdtemp(); os.chdir(p); os.rmdir(p)", ANY),
    "default dtype": ("first", "torch.set_default_dtype(torch.float64)", ANY),
    "threads changed": ("line", "torch.set_num_threads(7)", ANY),
    "gradients off": ("first", "torch.set_grad_enabled(False)", ANY),
    "seed patched": ("first", "torch.manual_seed = lambda *a: None", ANY),
    "json patched": ("line", "import json; json.dumps = lambda *a, **k: 'x'", ANY),
    "collector frozen": ("line", "gc.disable(); gc.freeze()", GOOD),
    "warnings raise": ("first", "import warnings; warnings.simplefilter('error')", ANY),
    "clock stands": ("first", "time.perf_counter = time.perf_counter_ns = time.monotonic = lambda: 0", ANY),
    "clock back": ("first", "_p = time.perf_counter; time.perf_counter = lambda: -_p()", ANY),
    "clock halved": ("first", "_p = time.perf_counter; time.perf_counter = lambda: _p() / 2", ANY),
    "clock of ns": ("first", "_p = time.perf_counter_ns; time.perf_counter_ns = lambda: _p() // 1000", ANY),
    "sleep patched": ("first", "time.sleep = lambda s: None", ANY),
    "streams closed": ("first", "[os.close(n) for n in (0, 1, 2)]", ANY),
    "descriptors closed": ("line", "os.closerange(3, 4096)", ANY),
    "descriptors full": ("first", "f = []\nwhile len(f) < 900:\n    f.append(os.open('/dev/null', 0))", ANY),
    "writes to descriptors": ("line", "[_w(n) for n in range(3, 20)]", ANY),
    "fork": ("line", "os.fork()", FAILED),
    "fork at import": ("first", "if os.fork() == 0:\n    time.sleep(1000)", ANY),
    "child left": ("first", "subprocess.Popen(['sleep', '1000'], start_new_session=True)", ANY),
    "child holds pipes": ("first", "subprocess.Popen(['sleep', '1000'], close_fds=False)", ANY),
    "double fork": ("first", "if os.fork() == 0:\n    os.setsid()\n    os.fork() or _sleep(99)\n    os._exit(0)", ANY),
    "segfault": ("line", "ctypes.string_at(0)", ("crash",)),
    "segfault later": ("line", "Net.n = getattr(Net, 'n', 0) + 1; Net.n > 20 and ctypes.string_at(0)", ("crash",)),
    "segfault at import": ("first", "ctypes.string_at(0)", ("crash",)),
    "segfault in the graph": ("line", f"{COMPILING} and ctypes.string_at(0)", ANY),
    "segfault in the second process": ("first", SECOND + "n == 1 and ctypes.string_at(0)", ANY),
    "killed in the second process": ("first", SECOND + "n == 1 and os.kill(os.getpid(), 9)", ANY),
    "raises in the second process": ("first", SECOND + "assert n != 1", ANY),
    "abort": ("line", "os.abort()", ("crash",)),
    "exits at once": ("line", "os._exit(0)", ("crash",)),
    "exits 3": ("made", "os._exit(3)", ("crash",)),
    "exits at import": ("first", "os._exit(0)", ("crash",)),
    "sys.exit": ("line", "sys.exit(0)", FAILED),
    "sys.exit in inputs": ("given", "sys.exit('bye')", FAILED),
    "sys.exit at import": ("first", "sys.exit(2)", FAILED),
    "interrupt": ("line", "raise KeyboardInterrupt", FAILED),
    "interrupts itself": ("line", "os.kill(os.getpid(), signal.SIGINT)", ANY),
    "terminates itself": ("line", "os.kill(os.getpid(), signal.SIGTERM)", ANY),
    "terminates its parent": ("line", "os.kill(os.getppid(), signal.SIGTERM)", ANY),
    "signals blocked": ("first", "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))", ANY),
    "signals ignored": ("first", "[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 13, 15, 17)]", ANY),
    "blocked and hangs": ("line", "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); _sleep(9999)", ("timeout",)),
    "stops": ("line", "os.kill(os.getpid(), signal.SIGSTOP)", ANY),
    "alarm": ("first", "signal.alarm(1)", ANY),
    "hangs": ("line", "_sleep(10000)", ("timeout",)),
    "hangs at import": ("first", "_sleep(10000)", ("timeout",)),
    "thread left": ("first", "threading.Thread(target=_sleep, args=(10000,)).start()", ANY),
    "thread at exit": ("first", "atexit.register(_sleep, 10000)", ANY),
    "exit raises": ("first", "atexit.register(lambda: 1 / 0)", GOOD),
    "threads": ("first", "[threading.Thread(target=_sleep, args=(999,), daemon=True).start() for _ in 'x' * 99]", GOOD),
    "leak": ("line", "Net.kept = (getattr(Net, 'kept', []) + [torch.zeros(300_000_000)])", FAILED),
    "huge": ("given", "torch.zeros(1 << 40)", FAILED),
    "recursion": ("line", "self(x)", FAILED),
    "deep recursion": ("line", "sys.setrecursionlimit(10**9); self(x)", FAILED),
    "prints": ("line", "print('x' * 200_000)", GOOD),
    "prints errors": ("line", "os.write(2, b'x' * 200_000)", GOOD),
    "output huge": ("line", "return torch.zeros(40_000_000)", ANY),
    "output odd": ("line", "return object()", ANY),
    "output None": ("line", "return None", ANY),
    "output NaN": ("line", "return x * float('nan')", ANY),
    "output random": ("line", "return torch.rand(4)", ANY),
    "inputs None": ("given", "return None", FAILED),
    "raises oddly": ("line", "raise type('E', (Exception,), {'__str__': lambda s: 1 / 0})()", FAILED),
    "raises long": ("line", "raise ValueError('x' * 10_000_000)", FAILED),
    "raises bytes": ("line", "raise ValueError('\\ud800 \\x1b]0;x\\x07 [red]')", FAILED),
    "raises StopIteration": ("line", "raise StopIteration", FAILED),
    "raises nothing known": ("line", "raise type('B', (BaseException,), {})()", FAILED),
    "no model": ("first", "raise ImportError('nothing')", FAILED),
    "deletes itself": ("line", "os.path.exists(HERE) and os.unlink(HERE)", ANY),
    "changes itself": ("line", "open(HERE, 'a').write('#')", ANY),
    "renice": ("first", "os.nice(19)", GOOD),
    "limits itself": ("first", "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))", ANY),
    "no files": ("line", "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))", ANY),
    "file size": ("line", "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))", ANY),
}  # fmt: skip
CHANGING = ("deletes itself", "changes itself")
LIMITED = ("leak", "huge", "deep recursion", "output huge")
MEMORY = 12 << 30
WRITER = "\ndef _w(n):\n    try:\n        os.write(n, b'{\"phase\": 1}\\n')\n    except OSError:\n        pass\n"


def text_of(name: str, once: str, seconds: float = SLEPT_MS / 1e3) -> str:
    """The bad file."""
    where, code, _ = BAD[name]
    parts = {"first": "", "line": "pass", "made": "pass", "given": "pass"}
    parts[where] = code if where == "first" else code.replace("\n", "\n    ")
    parts["first"] += WRITER if "_w(" in code else ""
    return FILE.format(once=once, seconds=seconds, **parts)


def breaks(trial: Trial, name: str) -> None:
    """The bad file first, then the good one; then a resume, which changes no record."""
    bad, good = trial.folder / "bad.py", trial.folder / "good.py"
    text = text_of(name, str(trial.folder / "once"))
    bad.write_text(text)
    good.write_text(FILE.format(once="", seconds=SLEPT_MS / 1e3, first="", line="pass", made="pass", given="pass"))
    trial.model = f"{bad},{good}"
    words = real_words(trial, "torch")
    trial.silence = 40.0
    trial.patience = 600.0
    python = ("--python", trial.python, "--timeout", f"{trial.silence:g}", "--threads", "1", "--budget", "0.1")
    modes = ("--mode", "eager,dynamo" if "graph" in name else "eager")
    words = ("--workload", trial.model, "--framework", "torch", *python, *modes, "--out", str(trial.out))
    limit = (resource.RLIMIT_AS, (MEMORY, MEMORY)) if name in LIMITED else None
    process = trial.begin(*words, limit=limit)
    ended = trial.end(process, DONE | REFUSED if name in CHANGING else DONE)
    bad.write_text(text)
    if ended.code in REFUSED:
        trial.resume(*([] if trial.begun else words), codes=DONE | REFUSED)
    judged(trial, name)
    before = trial.lines()
    if name not in CHANGING:
        trial.resume()
        if trial.lines()[: len(before)] != before:
            trial.saw("finished cells changed", f"{len(before)} lines before")


def judged(trial: Trial, name: str) -> None:
    """Hold the table to the promise."""
    if name in CHANGING and trial.last_code in REFUSED:
        if trial.begun:
            trial.complete_once(trial.planned())
        return  # perhaps before there is a plan or a record, and so without a table
    rows = trial.rows()
    trial._exactly(trial.planned(), [row["cell"] for row in rows], "results.csv")
    for row in rows:
        measured = bool(row["latency_ms_median"])
        statuses = BAD[name][2] if row["workload"].startswith("bad") else GOOD
        if not (measured and "measured" in statuses) and row["status"] not in statuses:
            kind = "misclassified" if row["workload"].startswith("bad") else "others hit"
            trial.saw(kind, f"{row['cell']}: {row['status']}, not {' or '.join(statuses)}: {row['reason']}")
        if not measured and not row["reason"].strip():
            trial.saw("no reason", row["cell"])
        if measured and not SLEPT_MS <= float(row["latency_ms_median"]) <= MOST_MS:
            trial.saw("falsified", f"{row['cell']} takes {row['latency_ms_median']} ms")
        if len(row["reason"]) > 2000:
            trial.saw("reason", f"{len(row['reason'])} characters")
    if any(b"\x1b]0;" in output.read_bytes() for output in trial.outputs.values()):
        trial.saw("escape sequence", "on the terminal")


FAULTS = {"models": dict.fromkeys(BAD, breaks)}
