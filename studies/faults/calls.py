"""A system call of the runner that fails: once, or from then on, the n-th of its kind below the run's folder."""

from __future__ import annotations

from studies.faults.trial import DONE, FAKE, REFUSED, Trial

WORDS = (*FAKE, "--mode", "eager,graph", "--batch", "1,2")
# About as many as a whole run makes.
MOST = {"open": 60, "fsync": 40, "replace": 12, "mkdir": 9, "unlink": 4, "flock": 1}
ERRORS = {"open": ("EIO", "ESTALE", "EMFILE"), "fsync": ("EIO", "ENOSPC", "EDQUOT", "ESTALE")}
ERRORS |= {"replace": ("EIO", "ESTALE"), "mkdir": ("ENOSPC", "EDQUOT"), "unlink": ("EACCES",)}
ERRORS |= {"flock": ("ENOLCK", "EOPNOTSUPP", "EIO")}  # as network disks do
# Loaded by every Python process of the trial; only the runner and the maker of reference data heed it.
SHIM = """
import builtins, errno, fcntl, io, os, sys
if any(word.endswith("runner.py") or word == "execution.reference_data" for word in sys.orig_argv):
    kind, number, name, lasting = os.environ["FAULT_CALL"].split(":")
    left, below = [int(number)], os.environ["FAULT_BELOW"]

    def refusing(real, concerns=lambda *a, **k: True):
        def call(path, *more, **named):
            path = path.fileno() if hasattr(path, "fileno") else path
            place = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.fsdecode(path)
            if os.path.abspath(place).startswith(below) and concerns(*more, **named):
                left[0] -= 1
                if left[0] == 0 or (left[0] < 0 and lasting == "lasting"):
                    raise OSError(getattr(errno, name), os.strerror(getattr(errno, name)), place)
            return real(path, *more, **named)
        return call

    def writes(mode="r", *more, **named):
        return any(letter in mode for letter in "wax+")

    if kind == "open":
        builtins.open = io.open = refusing(io.open, writes)
        os.open = refusing(os.open, lambda flags=0, *more, **named: flags & (os.O_WRONLY | os.O_RDWR))
    else:
        module = fcntl if kind == "flock" else os
        setattr(module, kind, refusing(getattr(module, kind)))
"""


def call_fails(trial: Trial, what: str) -> None:
    """Check that the run ends in a sentence or is complete; resumed without the fault it is completed exactly."""
    kind, error, lasting = what.split()
    shim = trial.folder / "shim"
    shim.mkdir()
    (shim / "sitecustomize.py").write_text(SHIM)
    number = trial.rng.randint(1, MOST[kind])
    variables = {"FAULT_CALL": f"{kind}:{number}:{error}:{lasting}", "FAULT_BELOW": str(trial.out)}
    words = (*WORDS, "--out", str(trial.out))
    ended = trial.run(*words, codes=DONE | REFUSED, environment={"PYTHONPATH": str(shim), **variables})
    if ended.code in DONE:
        trial.complete(trial.planned(), {})
    trial.go_on(words)


FAULTS = {
    "calls": {
        f"{kind} {error} {lasting}": call_fails
        for kind, errors in ERRORS.items()
        for error in errors
        for lasting in ("once", "lasting")
    },
}
