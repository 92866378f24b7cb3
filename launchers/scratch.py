"""Run a worker from the node's own disk: `python -IS scratch.py SCRATCH INTERPRETER WORDS...`.

The first worker copies the virtual environment of INTERPRETER into SCRATCH. Workers run in the copy; their temporary
files go there, too. An interpreter outside a virtual environment runs in place.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
from pathlib import Path


def main(scratch: Path, command: list[str]) -> None:
    """Execute the command with a copied interpreter."""
    mine = scratch / f"eager-vs-graph-{os.getuid()}"
    temporary = mine / "tmp"
    temporary.mkdir(parents=True, exist_ok=True, mode=0o700)
    interpreter = copied(Path(command[0]), mine)
    os.execve(interpreter, [str(interpreter), *command[1:]], {**os.environ, "TMPDIR": str(temporary)})


def copied(interpreter: Path, mine: Path) -> Path:
    """Return the interpreter in a copy of its environment, which the first of several processes makes."""
    home = interpreter.parent.parent
    if not (home / "pyvenv.cfg").is_file():
        return interpreter
    stamp = home / ".stamp"
    made = stamp.read_bytes() if stamp.is_file() else str((home / "pyvenv.cfg").stat().st_mtime_ns).encode()
    copy = mine / f"{home.name}-{hashlib.sha256(str(home).encode() + made).hexdigest()[:12]}"
    with open(mine / ".lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # which the kernel releases, however the holder ends
        if not copy.exists():
            half = copy.with_suffix(".new")
            shutil.rmtree(half, ignore_errors=True)
            shutil.copytree(home, half, symlinks=True)
            half.rename(copy)
    return copy / "bin" / interpreter.name


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
