"""The claims on energy, on records that make each hold, fail, and inconclusive."""

from __future__ import annotations

import pytest
from doubles.synthetic import FAILS, HOLDS, OPEN, timed, verdict


def measured(milliseconds: float, joules: float, **columns):
    """A GPU's record with an energy; `saving` is eager mode's over it, with 1 % to either side."""
    factors = {"energy_saving": columns.pop("saving", None)}
    row = {"energy_j_per_call": joules, "energy_ci_low": joules * 0.99, "energy_ci_high": joules * 1.01}
    row |= {"power_w": joules / (milliseconds / 1e3)}
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
        ([*LINE[:10], (11.0, 4.0), (12.0, 3.5)], OPEN),  # two of twelve are out of order
        ([(ms, 1 / ms) for ms, _ in LINE], FAILS),
        (LINE[:4], OPEN),
        (LINE[:9], OPEN),  # too few for an exchange of two neighbours to stay above the limit
        (LINE[:10], HOLDS),
        ([*LINE[:3], *[LINE[3]] * 9], OPEN),  # modes of one shape are one
    ],
)
def test_energy_follows_time_where_both_rank_cells_alike(cells, expected):
    found = [measured(*cell, workload=f"w{cell[0]}") for cell in cells]
    assert verdict("energy", "Energy and time", found) == expected


@pytest.mark.parametrize(("savings", "expected"), [((1.1, 4.0), HOLDS), ((1.1, 2.0), FAILS), ((1.1, 3.7), OPEN)])
def test_the_most_that_a_mode_saves_in_any_cell_decides(savings, expected):
    mode = {"mode": "inductor-reduce-overhead"}
    cells = [measured(0.5, 0.2, saving=saving, workload=f"w{saving}", **mode) for saving in savings]
    assert verdict("energy", "Replayed graphs", cells) == expected
    slowed = [cells[0], cells[1] | {"flags": "host_slowed"}]
    assert verdict("energy", "Replayed graphs", slowed) == OPEN  # it may be the cell that saves most
    other = measured(0.5, 0.2, saving=9.0, mode="inductor")
    assert verdict("energy", "Replayed graphs", [*cells, other]) == expected
