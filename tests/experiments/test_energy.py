"""The claims on energy, on records that make each hold, fail, and inconclusive."""

from __future__ import annotations

import pytest
from doubles.synthetic import FAILS, HOLDS, OPEN, timed, verdict


def measured(milliseconds: float, joules: float, **columns):
    """A GPU's record with an energy; `saving` and `power` are factors over eager mode's, with 1 % to either side."""
    factors = {"energy_saving": columns.pop("saving", None), "power_ratio": columns.pop("power", None)}
    row = {"energy_j_per_call": joules, "energy_ci_low": joules * 0.99, "energy_ci_high": joules * 1.01}
    for name, factor in factors.items():
        if factor is not None:
            row |= {f"{name}_vs_eager": factor, f"{name}_ci_low": factor * 0.99, f"{name}_ci_high": factor * 1.01}
    gain = None if factors["energy_saving"] is None else 50
    return timed(milliseconds, gain, device="gpu:0", batch_size=1, **row, **columns)


LINE = [(float(ms), ms * 0.5) for ms in range(1, 31)]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (LINE, HOLDS),
        ([*LINE[:6], (7.0, 4.0), (8.0, 3.5)], OPEN),  # two of eight change places
        ([(ms, 1 / ms) for ms, _ in LINE], FAILS),
        (LINE[:4], OPEN),
    ],
)
def test_energy_follows_time_where_both_rank_cells_alike(cells, expected):
    assert verdict("energy", "Energy and time", [measured(*cell) for cell in cells]) == expected


@pytest.mark.parametrize(("power", "expected"), [(1.0, HOLDS), (1.9, FAILS), (1.05, OPEN)])
def test_energy_falls_as_time_does_at_equal_power(power, expected):
    graph = measured(0.5, 0.2, saving=2.0, power=power)
    assert verdict("energy", "Energy falls", [measured(1.0, 0.4), graph]) == expected
    slowed = graph | {"flags": "host_slowed"}
    assert verdict("energy", "Energy falls", [measured(1.0, 0.4), slowed]) == OPEN


@pytest.mark.parametrize(("savings", "expected"), [((1.1, 4.0), HOLDS), ((1.1, 2.0), FAILS), ((1.1, 3.7), OPEN)])
def test_the_most_that_a_mode_saves_in_any_cell_decides(savings, expected):
    cells = [measured(0.5, 0.2, saving=saving, workload=f"w{saving}") for saving in savings]
    assert verdict("energy", "Replayed graphs", cells) == expected
    assert verdict("energy", "Replayed graphs", [cell | {"flags": "host_slowed"} for cell in cells]) == OPEN
