"""GPUs that a library has code for, read from the library: not every framework reports them."""

from __future__ import annotations

import mmap
import struct

REGION = struct.pack("<I", 0xBA55ED50)  # begins a fat binary, the container of one compilation's GPU code
PTX, BINARY = 1, 2


def architectures(library: str) -> list[str]:
    """Return the targets of the GPU code in a library, as nvcc names them: `sm_80` is a binary, `compute_80` is PTX.

    NVIDIA does not document the layout, little-endian in both parts. A fat binary is its magic number (4 bytes),
    version (2), header size (2) and size (8), then images: kind (2), version (2), header size (4), size (8), and at
    byte 28 the architecture (4). Images may be compressed, headers are not.
    """
    targets = set()
    with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(REGION)
        while 0 <= at <= len(data) - 16:
            _, header, size = struct.unpack_from("<HHQ", data, at + 4)
            end = at + header + size
            if header == 16 and end <= len(data):
                targets |= _targets(data, at + header, end)
            else:
                end = at + len(REGION)  # the same bytes by chance
            at = data.find(REGION, end)
    return [f"{name}_{number}" for number, name in sorted(targets)]


def _targets(data: mmap.mmap, at: int, end: int) -> set[tuple[int, str]]:
    targets = set()
    while at + 32 <= end:
        kind, _, header, size = struct.unpack_from("<HHIQ", data, at)
        (architecture,) = struct.unpack_from("<I", data, at + 28)
        if kind in (PTX, BINARY):
            targets.add((architecture, "sm" if kind == BINARY else "compute"))
        at += max(32, header + size)
    return targets
