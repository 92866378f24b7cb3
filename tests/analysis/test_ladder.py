"""What a ladder says of samples: steps, what they multiply to, which is the largest, and rungs that are missing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from doubles.ladders import ADDS, DESCRIPTION, NAMES, TIMES, named, samples
from doubles.reported import failed, record

import frameworks
import runner
from analysis import ladders
from analysis.ladders import Series
from frameworks.description import Rung
from measurement.cells import Cell
from plan.plan import modes_of
from reports.ladder import sentences


def measured(times=TIMES, without=(), description=DESCRIPTION, **how):
    """The ladder of these milliseconds; modes in `without` crashed."""
    records = {
        mode: failed("alpha", mode, "crash", f"{mode} died.") if mode in without else record("alpha", mode, latency=ms)
        for mode, ms in times.items()
    }
    cells = {row.cell: mode for mode, row in records.items()}
    taken = [entry for entry in samples(times, **how) if cells[entry["cell"]] not in without]
    return ladders.ladder(records, description, Series.from_samples(taken, cells))


def test_steps_multiply_to_the_whole():
    ladder = measured()
    assert [step.ratio.value for step in ladder.steps] == pytest.approx([2, 4 / 5, 5 / 6, 3])
    assert [since.value for since in ladder.since] == pytest.approx([1, 2, 8 / 5, 8 / 6, 4])
    assert ladder.product == pytest.approx(4) and ladder.end_to_end.value == pytest.approx(4)
    assert ladder.products == pytest.approx([since.value for since in ladder.since])
    assert [rung.adds for rung in ladder.rungs] == list(ADDS)


def test_with_noise_the_product_lies_in_the_interval_of_the_whole_and_intervals_hold_the_truth():
    ladder = measured(noise=0.03)
    assert ladder.end_to_end.low < ladder.product < ladder.end_to_end.high
    for step, truth in zip(ladder.steps, (2, 4 / 5, 5 / 6, 3), strict=True):
        assert step.ratio.low < truth < step.ratio.high
        assert 0 < step.ratio.relative_half_width < 0.1


def test_what_slows_a_whole_round_moves_no_step():
    """Neighbours are taken round by round: medians of each rung's own samples would be off by the scatter."""
    ladder = measured(shared=0.5)
    assert all(step.ratio.relative_half_width < 1e-9 for step in ladder.steps)


def test_rounds_are_paired_where_the_host_slowed_other_turns_of_each_mode():
    """Each mode has another slow turn, and one has two: the others of these rounds count in no pair with it."""
    cells = {named(mode): mode for mode in TIMES}
    taken = samples(shared=0.5)
    for entry in taken:
        first = NAMES.index(cells[entry["cell"]])
        for place in (first, first + 5)[: 1 + (first == 2)]:
            entry["host_loop_s"][place] = 6e-4
            entry["seconds_per_call"][place] *= 2
    records = {mode: replace(record("alpha", mode), latency_ms_median=ms) for mode, ms in TIMES.items()}
    ladder = ladders.ladder(records, DESCRIPTION, Series.from_samples(taken, cells))
    assert [step.ratio.value for step in ladder.steps] == pytest.approx([2, 4 / 5, 5 / 6, 3])
    assert all(step.ratio.relative_half_width < 1e-9 for step in ladder.steps)


def test_the_largest_step_is_named():
    ladder = measured({"eager": 8.0, "captured": 6.0, "split": 7.0, "fused": 5.0, "replayed": 2.0}, noise=0.01)
    assert ladder.largest.after.mode == "replayed" and ladder.rivals == ()
    told = " ".join(sentences(ladder))
    assert "The largest step is replayed (one launch), 2.5" in told and "it saves 3 ms." in told


def test_what_only_regains_a_loss_is_no_gain():
    """`split` and `fused` lose, and of what `replayed` saves only what is below the rung before them counts."""
    ladder = measured({"eager": 8.0, "captured": 6.5, "split": 20.0, "fused": 25.0, "replayed": 6.0}, noise=0.01)
    assert ladder.largest.after.mode == "captured" and ladder.rivals == ()
    assert [step.ratio.value for step in ladder.steps] == pytest.approx([8 / 6.5, 0.325, 0.8, 25 / 6], rel=0.03)
    lower = measured({"eager": 8.0, "captured": 7.9, "split": 20.0, "fused": 25.0, "replayed": 4.0}, noise=0.01)
    told = f"replayed ({'; '.join(ADDS[2:])}), 1.9"
    assert f"The largest step is {told}" in sentences(lower)[1] and "it saves 3.9 ms." in sentences(lower)[1]


def test_steps_that_the_intervals_cannot_tell_apart_are_both_named():
    ladder = measured({"eager": 8.0, "captured": 4.0, "split": 4.0, "fused": 2.0, "replayed": 2.0}, noise=0.05)
    names = {ladder.largest.after.mode, *(step.after.mode for step in ladder.rivals)}
    assert names == {"captured", "fused"}
    assert "The largest step cannot be determined" in " ".join(sentences(ladder))


def test_where_nothing_is_shown_nothing_is_largest():
    ladder = measured(dict.fromkeys(NAMES, 3.0), noise=0.05)
    assert ladder.largest is None
    assert "No step is shown to bring a speedup." in sentences(ladder)


def test_a_rung_that_failed_is_passed_over_with_what_it_adds():
    ladder = measured(without=("split",))
    assert [rung.mode for rung in ladder.rungs] == ["eager", "captured", "fused", "replayed"]
    assert ladder.rungs[2].adds == "smaller operators; fusion"
    assert ladder.steps[1].ratio.value == pytest.approx(4 / 6)
    assert ladder.product == pytest.approx(4)
    assert "split is missing: split died." in sentences(ladder)


def test_a_rung_that_later_ones_do_not_have_is_not_added_to_them():
    rungs = tuple(Rung(name, text, kept=name != "split") for name, text in zip(NAMES, ADDS, strict=True))
    ladder = measured(without=("split",), description=replace(DESCRIPTION, ladders={"cpu": rungs}))
    assert ladder.rungs[2].adds == "fusion"


def test_the_first_rung_may_be_missing_and_all_may():
    ladder = measured(without=("eager",))
    assert [rung.mode for rung in ladder.rungs] == list(NAMES[1:]) and ladder.rungs[0].adds == "a graph"
    assert ladder.end_to_end.value == pytest.approx(2) and ladder.crossed is None
    nothing = measured(without=NAMES)
    assert (nothing.rungs, nothing.steps, nothing.product, nothing.end_to_end) == ((), (), None, None)
    assert len(sentences(nothing)) == len(NAMES)


def test_rungs_of_another_process_are_not_paired():
    """A launch that was started again has modes that no process timed beside the others."""
    ladder = measured(worker=lambda mode, launch: "again" if mode == "fused" else "w")
    assert [step.ratio is None for step in ladder.steps] == [False, False, True, True]
    assert ladder.products == [1, pytest.approx(2), pytest.approx(8 / 5), None, None]
    assert ladder.product is None and ladder.end_to_end.value == pytest.approx(4)
    assert "multiply" not in " ".join(sentences(ladder))
    assert ladder.largest is None and "The largest step is unknown, because one step has no interval." in sentences(
        ladder
    )


def test_few_rounds_have_no_interval():
    ladder = measured(launches=1, rounds=4)
    assert [step.ratio for step in ladder.steps] == [None] * 4
    assert ladder.largest is None


def test_of_a_launch_that_was_measured_again_the_later_counts():
    cells = {named(mode): mode for mode in TIMES}
    both = [*samples(worker=lambda mode, launch: "first"), *samples({"eager": 16.0} | TIMES)]
    assert Series.from_samples(both, cells).ratio({"eager": 1, "replayed": -1}).value == pytest.approx(4)


def test_two_things_in_both_orders():
    crossed = measured(noise=0.001).crossed
    assert [part.value for part in crossed.first] == pytest.approx([2, 3], rel=0.01)
    assert [part.value for part in crossed.second] == pytest.approx([8 / 6, 2], rel=0.01)
    assert crossed.whole.value == pytest.approx(4, rel=0.01)
    assert crossed.interaction.value == pytest.approx(1.5, rel=0.01) and crossed.interaction.low > 1
    told = " ".join(sentences(measured(noise=0.001)))
    assert "Launching alone (captured) 2.00× (" in told and "together 4.0" in told
    assert "each brings more with the other" in told


def test_every_declared_ladder_can_be_climbed():
    """Its modes exist, run on the device, begin with eager mode, and end in a mode that users deploy."""
    climbed = 0
    for name in frameworks.NAMES:
        description = frameworks.describe(name)
        for kind, rungs in description.ladders.items():
            modes = [description.mode(rung.mode) for rung in rungs]
            usual = [mode for mode in modes if "inference" in mode.passes]  # others have a cache of their own
            assert usual[0] is description.baseline and modes[-1].deployed
            assert modes.index(description.baseline) == sum(bool(mode.cache) for mode in modes)
            assert all(kind in mode.devices for mode in modes) and all(rung.adds for rung in rungs)
            assert {description.mode(mode).name for mode in description.ladder_modes(kind, "training")}
            climbed += 1
    assert climbed == 8


def test_eager_mode_alone_is_the_baseline_and_not_the_rung_with_another_cache():
    cell = Cell("torch", "gpt-tiny", "plain", "decode", "cpu", "fp32", 1, (), "eager-dynamic-cache")
    assert not frameworks.is_baseline(cell)
    assert frameworks.is_baseline(replace(cell, mode="eager"))
    rungs = [rung.mode for rung in frameworks.describe("torch").ladder("cpu", "decode")]
    assert rungs[:2] == ["eager-dynamic-cache", "eager"]


def test_rungs_that_nobody_deploys_are_measured_only_where_they_are_named():
    for name in frameworks.swept():
        rungs = {mode.name for mode in frameworks.describe(name).modes if mode.is_rung}
        assert rungs and rungs.isdisjoint(modes_of(name, ["all", "graph", "eager"]))
        assert rungs & set(modes_of(name, ["ladder"], "cpu"))
    assert modes_of("torch", ["ladder"], "cpu", "training") == [
        "eager", "inductor", "inductor-whole-iteration", "dynamo", "aot-eager",
    ]  # fmt: skip
    assert {"cuda-graph", "inductor-max-autotune"} <= set(modes_of("torch", ["ladder"], "gpu"))
    assert "cuda-graph" not in modes_of("torch", ["ladder"], "cpu")


def test_what_is_there_for_debugging_nobody_deploys():
    """torch's `cudagraphs` was among those of MODE=all, beside `cuda-graph`, which users have."""
    described = [mode for name in frameworks.NAMES for mode in frameworks.describe(name).modes]
    debugging = [mode for mode in described if "debugging" in mode.summary]
    assert debugging and not any(mode.deployed for mode in debugging)
    assert "cuda-graph" in modes_of("torch", ["all"], "gpu")


def test_the_command_measures_the_rungs(capsys, tmp_path):
    words = ["ladder", "--framework", "jax", "--workload", "mlp", "--dry-run", "--out", str(tmp_path / "run")]
    assert runner.main(words) == 0
    planned = [line.rpartition("/")[2] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert planned == ["eager", "jit", "jit-blocks", "jit-unfused"]
