"""Probe an installed framework: `python -m worker.probe FRAMEWORK DEVICE RESULTS` writes JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import frameworks
from frameworks import smoke_test


def probe(name: str, device: str) -> dict[str, Any]:
    """Return `versions`, `obstacle` (why the device is unusable, or None) and `modes` with their own obstacles."""
    adapter = frameworks.load_adapter(name)
    obstacle = adapter.obstacle(device) or smoke_test.obstacle(adapter, device)
    modes = {}
    if obstacle is None:
        for mode in frameworks.describe(name).modes:
            kind = device.split(":")[0]
            if kind not in mode.devices:
                continue
            if reason := frameworks.lacking(name, mode.name, kind) or adapter.obstacle(device, mode.name):
                modes[mode.name] = reason
    return {"versions": frameworks.versions(name), "obstacle": obstacle, "modes": modes}


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(json.dumps(probe(*sys.argv[1:3])))
