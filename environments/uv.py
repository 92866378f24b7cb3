"""Find or install uv, which makes the environments, and run it with the user's settings of pip."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from environments import locks, offline
from measurement import programs
from measurement.places import INSTALLED, SUITE, VENVS

# pip's settings, which uv does not read, and uv's variables of the same meaning, with uv's separator.
PIP_TO_UV = {
    "find-links": ("UV_FIND_LINKS", ","),
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
}
# Patterns in a failure's output, and the way out.
HINTS = {
    "Hash mismatch|DO NOT MATCH THE HASHES": "A file's hash is not the locked one: download the file again.",
    "ensurepip is not available": "Python's venv is missing: on Debian and Ubuntu, apt install python3-venv.",
    "No space left": f"The disk is full: delete unneeded environments in {VENVS}.",
    "dns error|onnection|timed out|error sending request|name resolution": "No package index can be reached: check the "
    "network, or name a mirror, a proxy or a folder of wheels in pip's settings (PIP_INDEX_URL, PIP_PROXY, "
    "PIP_FIND_LINKS).",
    "no wheel|No solution found|No matching distribution|ompatible": "No package file fits Python "
    f"{sys.version_info[0]}.{sys.version_info[1]} on this machine: try another Python"
    f"{'.' if INSTALLED else ', such as BOOTSTRAP_PYTHON=python3.11.'}",
    r"lib(cu\w+|nv\w+|nccl)\.so\S*: cannot open shared object": "Your package indexes offer a CUDA build for a CPU "
    "environment: name an index with CPU builds in PIP_EXTRA_INDEX_URL (PyTorch: "
    "https://download.pytorch.org/whl/cpu), or choose another version.",
}


class SetupError(Exception):
    """An environment is unavailable: one sentence, and the way out."""


def uv(
    arguments: list[str],
    env: dict[str, str],
    failed: str,
    *,
    stdin: str | None = None,
    report: Callable[[str], None] = print,
) -> None:
    """Run uv: the project's own, else the one on PATH, else the project's own made first. Raises SetupError."""
    home, pins = VENVS / "uv", (SUITE / "requirements-uv.txt").read_text()
    digest, stamp = hashlib.sha256(pins.encode()).hexdigest(), home / ".stamp"
    command = str(home / "bin" / "uv")
    if not home.exists() and (on_path := shutil.which("uv")):
        command = on_path
    elif not _holds(stamp, digest):
        with exclusive(home, report):
            if not _holds(stamp, digest):
                report("uv: installing requirements-uv.txt …")
                _install_uv(home, digest)
                stamp.write_text(digest)
    run([command, *arguments], {"UV_HTTP_TIMEOUT": "180", **env, "UV_PYTHON_DOWNLOADS": "never"}, failed, stdin)


def _install_uv(home: Path, digest: str) -> None:
    failed, wheelhouse = "uv could not be installed", offline.folder()
    if wheelhouse and (why := offline.problem(wheelhouse, home.name, digest)):
        raise SetupError(f"{failed}: {why}")
    env = offline.without_sources(dict(os.environ), wheelhouse)
    run([sys.executable, "-m", "venv", "--clear", str(home)], env, failed)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--require-hashes"]
    run([*pip, *offline.arguments(wheelhouse), "-r", "requirements-uv.txt"], env, failed)


def environment() -> dict[str, str]:
    """Return this process's environment variables, and pip's settings as uv's; variables already set stay."""
    values: dict[str, str] = {}
    for python in (VENVS / "uv" / "bin" / "python", Path(sys.executable)):  # the runner's environment has no pip
        if not python.exists():
            continue
        listed = programs.answer([str(python), "-m", "pip", "config", "list"])
        listed_values = dict(re.findall(r"^(\S+?)=(['\"].*)$", listed or "", re.MULTILINE))
        for section in ("global", "install", ":env:"):  # the later wins
            there = {key: f"{section}.{key}" for key in PIP_TO_UV if f"{section}.{key}" in listed_values}
            values |= {key: ast.literal_eval(listed_values[name]) for key, name in there.items()}
        if listed is not None:
            break
    for key in PIP_TO_UV:  # without pip
        values.setdefault(key, os.environ.get("PIP_" + key.upper().replace("-", "_"), ""))
    settings = {
        name: separator.join(values[key].split()) for key, (name, separator) in PIP_TO_UV.items() if values[key]
    }
    # uv takes each package from the first index that has it; `environments` allows any index for hashed packages. pip
    # would take the best match of all: any index could then supply an unhashed package.
    return {**settings, **os.environ}


def run(
    command: list[str],
    env: dict[str, str],
    failed: str,
    stdin: str | None = None,
    limits: tuple[float, int] = (programs.LONG, programs.MUCH),
) -> str:
    """Run a command in the checkout and return its output. Raises SetupError that ends in its last lines.

    `limits` are on its seconds and on the bytes that it prints.
    """
    try:
        done = programs.run(command, *limits, words=stdin or "", cwd=SUITE, env=env)
    except OSError as error:
        raise SetupError(f"{failed}: {error}.") from None
    if done.problem:
        raise SetupError(f"{failed}: {done.problem}.")
    if done.code == 0:
        return done.output
    output = (done.output + done.errors).strip()
    lines = output.splitlines()
    kept = lines if len(lines) <= 16 else [*lines[:4], "…", *lines[-12:]]  # uv names the package first
    tail = "\n".join("  " + line for line in kept)
    hint = next((hint for pattern, hint in HINTS.items() if re.search(pattern, output)), "")
    hint = f"{hint} {offline.hint(offline.folder())}".strip()
    words = f":\n{tail}\n{hint}".rstrip() if output or hint else "."
    raise SetupError(f"{failed}, exit status {done.code}{words}")


@contextlib.contextmanager
def exclusive(home: Path, report: Callable[[str], None] = print) -> Iterator[None]:
    """Lock `home` against processes that make it or measure in it; the kernel unlocks if this one dies."""
    VENVS.mkdir(parents=True, exist_ok=True)
    waiting = f"{home.name}: another process is using it, waiting until it is done …"
    with locks.exclusive(VENVS / f".{home.name}.lock", lambda: report(waiting)):
        yield


def use(home: Path, report: Callable[[str], None] = print) -> None:
    """Keep others from changing `home` until this process ends."""
    locks.share(VENVS / f".{home.name}.lock", lambda: report(f"{home.name}: another process is making it, waiting …"))


def _holds(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text() == text
