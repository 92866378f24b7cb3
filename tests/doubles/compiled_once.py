"""`g++` for tests: copies what it compiled before from the same words and sources.

Every worker whose compile cache is empty compiles the header of Torch's kernels, 8 s, and most the same kernels.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = (".c", ".cc", ".cpp", ".h", ".hpp")


def install(folder: Path) -> Path:
    """Write the program `g++` into a folder, in which it keeps its outputs; return its path."""
    program, words = folder / "g++", (sys.executable, "-IS", __file__, str(folder))
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    program.chmod(0o755)
    return program


def key_of(words: list[str]) -> str:
    """Return a digest of a command's words, with a file's content in place of its path, without the output's path."""
    digest = hashlib.sha256()
    for before, word in zip(["", *words], words, strict=False):
        if before == "-o":
            word = Path(word).suffix
        elif word.endswith(SOURCES) and os.path.isfile(word):
            word = hashlib.sha256(Path(word).read_bytes()).hexdigest()
        digest.update(word.encode() + b"\0")
    return digest.hexdigest()


def main(folder: Path, words: list[str]) -> int:
    """Compile, or copy what was compiled; return the compiler's exit code. Commands that link objects always run."""
    compiler = shutil.which("g++")
    assert compiler, "there is no g++ on PATH"
    output = Path(words[words.index("-o") + 1]) if "-o" in words[:-1] else None
    inputs = [word for word in words if os.path.isfile(word) and Path(word) != output]
    if output is None or not inputs or not all(word.endswith(SOURCES) for word in inputs):
        os.execv(compiler, [compiler, *words])
    kept = folder / key_of(words)
    if kept.exists():
        shutil.copy(kept, output)
        return 0
    faster = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []
    code = subprocess.run([compiler, *words, *faster]).returncode
    if code == 0 and output.is_file():
        own = kept.with_suffix(f".{os.getpid()}")
        shutil.copy(output, own)
        own.replace(kept)
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
