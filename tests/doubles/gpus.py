"""A machine with two GPUs, as far as `nvidia-smi` tells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from measurement import machine

two_cpus = pytest.mark.skipif(machine.usable_cpus() < 2, reason="two slots need two CPUs")


def install(folder: Path, compute_mode: str = "Default") -> str:
    """The PATH of a process that finds such a program in `folder`."""
    script = folder / "nvidia-smi"
    folder.mkdir(parents=True)
    rows = [f"{index}, Some GPU, 1024 MiB, 9.0, 555.55, GPU-{index}, 00000000:0{index}:00.0" for index in (0, 1)]
    listing = "".join(f"echo '{row}'\n" for row in rows)
    script.write_text(f'#!/bin/sh\ncase "$*" in *compute_mode*) echo {compute_mode}; exit;; esac\n{listing}')
    script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
