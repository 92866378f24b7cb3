"""Plans: what doubling a batch needs, shapes that modes meet for the first time, dynamic shapes."""

from __future__ import annotations

import json

import pytest

from execution.preparation import estimate
from measurement.places import SUITE
from measurement.refusals import UsageError
from plan.plan import COMPILE_SECONDS, LOAD_SECONDS, START_SECONDS, at_unseen_length, plan
from plan.sweep import resolve

TINY = {"framework": "torch", "workload": "bert-tiny", "mode": "eager,graph", "threads": "1"}


def groups(**given) -> list:
    return [group for bundle in plan(resolve({**TINY, **given})).bundles for group in bundle.groups]


def test_twice_a_batch_is_recorded_before_the_batch():
    batches = [group.parameters["batch_size"] for group in groups(batch="1,4,2", seq="16,32")]
    assert batches == [4, 4, 2, 2, 1, 1]


def test_an_unseen_length_changes_nothing_but_the_length():
    (group,) = groups(seq="16", batch="2")
    other = at_unseen_length(group, 24)
    assert [cell.mode for cell in other.cells] == [cell.mode for cell in group.cells]
    assert other.parameters == {**group.parameters, "seq_len": 24}
    assert at_unseen_length(group, None) is None


@pytest.mark.parametrize(("length", "hint"), [(0, "at least 1"), (513, "at most 512"), (16, "choose another length")])
def test_senseless_unseen_lengths_are_refused(length, hint):
    (group,) = groups(seq="16")
    with pytest.raises(UsageError, match=hint):
        at_unseen_length(group, length)


def test_dynamic_shapes_are_cells_of_their_own():
    static, dynamic = groups(shapes="static,dynamic")
    assert static.cells[0].group_id + "/shapes=dynamic" == dynamic.cells[0].group_id
    assert [cell.shapes for cell in dynamic.cells] == ["dynamic", "dynamic"]


@pytest.mark.parametrize(
    ("framework", "words", "modes"),
    [
        ("jax", {}, ["jit"]),
        ("jax", {"mode": "ladder"}, ["jit", "jit-blocks", "jit-unfused"]),
        ("torch", {"device": "gpu", "mode": "eager,inductor,cuda-graph"}, ["cuda-graph"]),
        ("tensorflow", {}, ["function-xla"]),
        ("paddle", {}, []),
    ],
)
def test_a_mode_that_serves_one_shape_is_refused_before_anything_is_measured(framework, words, modes):
    made = plan(resolve({**TINY, "framework": framework, **words, "shapes": "static,dynamic"}))
    assert [cell.rpartition("/")[2] for cell in made.impossible] == modes
    for cell, reason in made.impossible.items():
        assert "shapes=dynamic" in cell and "serves one shape (" in reason and "use SHAPES=static" in reason


AXES = "the axes of user inputs that may change are unknown"


@pytest.mark.parametrize(
    ("framework", "reasons"),
    [("torch", {}), ("tensorflow", {"function": AXES, "function-xla": "XLA compiles for each shape"})],
)
def test_which_axes_of_a_user_s_inputs_may_change_torch_alone_knows(framework, reasons, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(f"import {framework}\n\n\ndef model(): ...\n\n\ndef inputs(batch_size): ...\n")
    made = plan(resolve({"workload": str(file), "shapes": "dynamic", "threads": "1"}))
    assert [cell.rpartition("/")[2] for cell in made.impossible] == list(reasons)
    assert all(words in given for words, given in zip(reasons.values(), made.impossible.values(), strict=True))


def estimated(**given) -> float:
    resolved = resolve({"framework": "torch", "workload": "lstm", "threads": "1", "seq": "128"} | given)
    return sum(estimate(plan(resolved), resolved).values())


def test_an_estimate_counts_an_artefact_s_build_in_each_of_three_processes():
    assert estimated(mode="aot-inductor") - estimated(mode="inductor") == 2 * (COMPILE_SECONDS - LOAD_SECONDS)


def test_an_estimate_counts_the_start_of_the_process_that_profiles():
    jit = {"framework": "jax", "mode": "jit"}  # no mode there replays eager's kernels
    assert estimated(**jit) == estimated(**jit, device="gpu")
    assert estimated(mode="cuda-graph", device="gpu") - estimated(mode="inductor") == START_SECONDS


def test_an_estimate_counts_the_positions_of_an_unrolled_loop():
    """Two H200 records have first calls of 40 and 64 s."""
    inductor, replayed = (estimated(mode=mode, device="gpu") for mode in ("inductor", "cuda-graph"))
    assert 40 < COMPILE_SECONDS + inductor - replayed < 64


@pytest.mark.parametrize(("table", "minutes"), [("gpu-bert-short-torch", 6.5), ("gpu-bert-long-torch", 6)])
def test_a_run_of_many_processes_takes_about_as_long_as_estimated(table, minutes):
    """The minutes are those of the committed run, with one interruption for the second."""
    given = json.loads((SUITE / "results" / "2026-12" / "h100" / table / "plan.json").read_text())["given"]
    resolved = resolve({**given, "threads": 1})
    seconds = sum(estimate(plan(resolved), resolved).values())
    assert 0.7 * minutes < seconds / 60 < 1.3 * minutes
