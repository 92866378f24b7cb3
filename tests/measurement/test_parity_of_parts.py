"""A part of an output is compared by itself: faults in small parts are found, and rounding in them is not."""

from __future__ import annotations

import numpy as np
import pytest

from measurement.parity import Difference, Sample, difference, differences
from workloads.rounding import stored
from workloads.spec import sampled, sampled_places
from workloads.user_model import TOLERANCE

UNIT = {"fp32": 2.0**-24, "tf32": 2.0**-11, "bf16": 2.0**-9, "fp16": 2.0**-12}
DTYPES = ["fp32", "tf32", "bf16", "fp16"]
Calls = list[np.ndarray]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def rounded(rng, calls: Calls, dtype: str, noise: float = 0.0) -> Calls:
    """Store each call's values in the dtype, after errors of `noise` in units of its rounding."""
    return [stored(call + UNIT[dtype] * noise * rng.standard_normal(call.shape), dtype) for call in calls]


def compared(expected: Calls, eager: Calls, graph: Calls, dtype: str, samples=None) -> Difference:
    sets = [{f"{call}.y": values for call, values in enumerate(calls)} for calls in (graph, expected, eager)]
    return differences(*sets, dtype, samples)["y"]


def boxes(rng, items: int, count: int) -> Calls:
    """Return two calls' boxes in pixels, with a confidence and a class as a number."""
    corners, scores = rng.uniform(0, 640, (2, items, count, 4)), rng.random((2, items, count, 1)) ** 2
    return list(np.concatenate([corners, scores, rng.integers(0, 80, (2, items, count, 1))], axis=-1))


def logits(rng, items: int) -> Calls:
    return [rng.uniform(0.5, 1.5, (items, 1000)) * rng.choice([-1, 1], (items, 1000)) for _ in range(2)]


@pytest.mark.parametrize("first", [False, True], ids=["channels last", "channels first"])
@pytest.mark.parametrize("items", [1, 8])
@pytest.mark.parametrize(("dtype", "off"), [("fp32", 0.45), ("fp32", 0.05), ("tf32", 0.45), ("bf16", 0.45)])
def test_wrong_confidences_among_boxes_are_found(rng, dtype, off, items, first):
    expected = boxes(rng, items, 200)
    eager, graph = (rounded(rng, expected, dtype) for _ in range(2))
    for values in graph:
        values[..., 4] += np.where(values[..., 4] > 0.5, -off, off)
    if first:
        expected, eager, graph = ([call.swapaxes(1, 2) for call in calls] for calls in (expected, eager, graph))
    found = compared(expected, eager, graph, dtype)
    assert not found.within(TOLERANCE[dtype])
    assert found.part.place == f"index 4 of axis {1 if first else 2}"
    assert compared(expected, eager, eager, dtype).within(TOLERANCE[dtype])


def negated(values: np.ndarray) -> None:
    values[:, 7] *= -1


def row_of_another(values: np.ndarray) -> None:
    values[0] = values[0][::-1].copy()


def last_zeroed(values: np.ndarray) -> None:
    values[:, -1] = 0


@pytest.mark.parametrize("fault", [negated, row_of_another, last_zeroed])
@pytest.mark.parametrize("items", [1, 8, 300])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_wrong_class_or_row_is_found(rng, dtype, items, fault):
    expected = logits(rng, items)
    eager, graph = (rounded(rng, expected, dtype, noise=3) for _ in range(2))
    for values in graph:
        fault(values)
    assert not compared(expected, eager, graph, dtype).within(TOLERANCE[dtype])


def test_a_part_of_a_sampled_output_is_found_by_its_index(rng):
    expected = boxes(rng, 4, 2000)
    eager, graph = (rounded(rng, expected, "bf16") for _ in range(2))
    for values in graph:
        values[..., 4] = 0.5
    kept = [[sampled(call, None, 10_000) for call in calls] for calls in (expected, eager, graph)]
    with_more = [[np.append(call, call.max()) for call in calls] for calls in kept]
    form = Sample(expected[0].shape, sampled_places(expected[0].size, 10_000))
    found = compared(*with_more, "bf16", {f"{call}.y": form for call in range(2)})
    assert found.part.place == "index 4 of axis 2" and not found.within(TOLERANCE["bf16"])


def right_parts(rng, items: int) -> Calls:
    """Return small parts beside others: scaled-down channels, zeros, constants, tails of a softmax, indices."""
    calls = []
    scale = 10.0 ** rng.uniform(-8, 2, 40)
    for _ in range(2):
        values = rng.standard_normal((items, 40)) * scale
        tails = np.exp(-np.abs(rng.standard_normal((items, 4))) * 60)
        same = np.broadcast_to([0.0, 0.0, 1.0, 1e3], (items, 4))
        calls.append(np.concatenate([values, tails, same, rng.integers(0, 9, (items, 1))], axis=1))
    return calls


@pytest.mark.parametrize("items", [1, 2, 16, 128])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_of_small_parts_passes(rng, dtype, items):
    """Errors of the size of the large values, as of sums whose terms cancel; a graph has up to twice eager mode's."""
    for _ in range(20):
        expected = right_parts(rng, items)
        eager, graph = (rounded(rng, expected, dtype, noise) for noise in (20, 40))
        for calls in (eager, graph):
            for values, right in zip(calls, expected, strict=True):
                values[:, 44:48] = right[:, 44:48]  # constants are exact
        assert compared(expected, eager, graph, dtype).part.error == 0


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_single_rows_that_go_another_way_pass_in_16_bits(rng, dtype):
    """As tokens that rounding sends to another expert, other ones in each mode."""
    for _ in range(20):
        expected = [rng.standard_normal((8, 128, 16)) for _ in range(2)]
        eager, graph = (rounded(rng, expected, dtype, noise=3) for _ in range(2))
        for values, place in ((eager[0], (1, 3)), (graph[1], (2, 50))):
            values[place] = rng.standard_normal(16)
        assert compared(expected, eager, graph, dtype).part.error == 0


def test_float32_sums_in_another_order_pass_where_eager_mode_is_exact():
    expected = [np.stack([np.full(8, 100.0 + call), np.zeros(8)], axis=1) for call in range(2)]
    graph = [call + np.array([0.0, 5e-4]) for call in expected]
    eager = [call + np.array([1e-5, 0.0]) for call in expected]
    assert compared(expected, eager, graph, "fp32").part.error == 0
    wrong = [call + np.array([0.0, 5e-3]) for call in expected]
    assert compared(expected, eager, wrong, "fp32").part.place == "index 1 of axis 1"


def test_without_eager_mode_s_errors_no_part_is_judged(rng):
    (expected, other) = boxes(rng, 2, 50)
    assert difference({"y": other}, {"y": expected}).part.error == 0
    assert compared([expected], [expected], [other], "bf16").part.error == 0


@pytest.mark.parametrize("shapes", [[(), ()], [(0, 4), (0, 4)], [(1,), (1,)], [(2, 3), (6,)], [(2, 3), (2, 5)]])
def test_outputs_without_common_axes_are_compared(rng, shapes):
    expected = [rng.standard_normal(shape) for shape in shapes]
    eager = [np.asarray(call + 1e-3) for call in expected]
    assert compared(expected, eager, eager, "fp32").part.error == 0
