"""What the registry says of every mode, for reports, which know no framework."""

from __future__ import annotations

import frameworks
from reports.verdict import Words


def words() -> dict[tuple[str, str], Words]:
    """What a user types for each mode of each framework, by their names."""
    by_mode = {}
    for name in frameworks.NAMES:
        framework = frameworks.describe(name)
        for place, mode in enumerate(framework.modes):
            default = mode.name in framework.default_graph[:1]
            words = Words(mode.call, default, mode.deployed, framework.colour, place, mode.is_rung)
            by_mode[framework.name, mode.name] = words
    return by_mode
