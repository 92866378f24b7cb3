"""Training on several ranks with Paddle: losses of one process."""

from __future__ import annotations

import pytest
from doubles.environment import QUICKLY, bench

pytestmark = pytest.mark.slow


def test_losses_are_those_of_one_process(tmp_path):
    words = ("FRAMEWORK=paddle", "PASS=training", "WORKLOAD=mlp", "WIDTH=8", "DEPTH=2", "BATCH=2", "RANKS=2")
    found = bench(tmp_path / "run", *words, "MODE=to_static", *QUICKLY).records
    assert [line["mode"] for line in found] == ["eager", "to_static"]
    for line in found:
        assert (line["status"], line["parity_reference"]) == ("ok", "numpy"), line["reason"]
