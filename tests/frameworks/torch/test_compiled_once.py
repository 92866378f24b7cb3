"""The compiler of the tests: the same words and sources give the same file, and any other ones are compiled."""

from __future__ import annotations

import os
import subprocess

import pytest
from doubles import compiled_once

pytestmark = pytest.mark.slow


def test_what_was_compiled_once_is_copied_and_anything_else_is_compiled(tmp_path):
    """The second compiler on PATH fails, so that whatever is compiled again is seen."""
    program = compiled_once.install(tmp_path)
    fails = tmp_path / "fails" / "g++"
    fails.parent.mkdir()
    fails.write_text("#!/bin/sh\nexit 7\n")
    fails.chmod(0o755)

    def compiled(name: str, text: str, *words: str, path: str = os.environ["PATH"]) -> int | bytes:
        source, output = tmp_path / f"{name}.cpp", tmp_path / f"{name}.so"
        source.write_text(text)
        command = [str(program), str(source), "-shared", *words, "-o", str(output)]
        code = subprocess.run(command, env={**os.environ, "PATH": path}, stderr=subprocess.DEVNULL).returncode
        return code or output.read_bytes()

    broken = str(fails.parent)
    first = compiled("a", "int one() { return 1; }")
    assert isinstance(first, bytes) and len(first) > 1000
    assert compiled("b", "int one() { return 1; }", path=broken) == first
    assert compiled("c", "int one() { return 2; }", path=broken) == 7
    assert compiled("d", "int one() { return 1; }", "-DNDEBUG", path=broken) == 7
    assert compiled("e", "int one() { return") == 1
    assert compiled("f", "int one() { return 2; }") not in (first, 7)
