"""User models: what is a call, and outputs as arrays by name."""

from __future__ import annotations

import numpy as np
import pytest

from frameworks.adapter import Unsupported
from frameworks.user_file import Fault, as_call
from frameworks.user_model import Subject
from frameworks.values import BEYOND, MOST_PARTS, Rules, Values, read
from measurement.flags import CONSTANT, ZERO
from measurement.parity import difference, emptiness
from worker import user_model_reference as examining
from workloads.spec import SAMPLED_VALUES, sampled


def test_only_a_plain_tuple_or_dict_is_a_call():
    from collections import OrderedDict, UserDict, deque, namedtuple

    point = namedtuple("Point", "x y")(1, 2)
    assert as_call(point) == ((point,), {}) and as_call((1, 2)) == ((1, 2), {}) and as_call({"x": 1}) == ((), {"x": 1})
    assert as_call(OrderedDict(x=1)) == ((OrderedDict(x=1),), {})
    assert as_call(type("Encoding", (UserDict,), {})(x=1)) == ((), {"x": 1})  # of a tokenizer
    assert as_call(([1, 2],)) == (([1, 2],), {}) and as_call("words") == (("words",), {})
    with pytest.raises(Fault, match="an iterator, which gives its values once"):
        as_call(x for x in ())
    for given, one in (([1, 2], r"\(\[a, b\],\) if"), (deque([1]), r"\(it,\) if"), (range(2), r"\(it,\) if")):
        with pytest.raises(Fault, match=f"returned a {type(given).__name__}: return a tuple of the call's .*{one}"):
            as_call(given)


def test_an_output_of_too_many_parts_says_that_not_all_is_compared():
    found = read([1.0] * (MOST_PARTS + 2), Rules())
    assert len(found.arrays) == MOST_PARTS and found.not_compared == [BEYOND]


class Named:
    def __init__(self, **held):
        vars(self).update(held)


@pytest.mark.parametrize(
    ("output", "names"),
    [
        (Named(scores=1.0, _scores=2.0, _hidden=3.0), {"scores": 1.0, "_scores": 2.0, "hidden": 3.0}),
        ({"1": 1.0, 1: 2.0}, {"1": 1.0, "1~2": 2.0}),
        ({1: 2.0, "1": 1.0}, {"1": 1.0, "1~2": 2.0}),  # in the order of a graph
        ({"a.b": 1.0, "a": {"b": 2.0}}, {"a.b~2": 1.0, "a.b": 2.0}),
        ({"a": {"b": 2.0}, "a.b": 1.0}, {"a.b~2": 1.0, "a.b": 2.0}),
        ({"1": 1.0, 1: 2.0, "1~2": 3.0}, {"1": 1.0, "1~2": 2.0, "1~2~": 3.0}),
    ],
)
def test_outputs_of_one_name_are_all_kept_whatever_their_order(output, names):
    found = {name: float(array) for name, array in read(output, Rules()).arrays.items()}
    assert sorted(found.values()) == sorted(names.values()) and found == names


def test_a_list_of_numbers_is_one_array_where_graphs_leave_it_alone():
    rules = Rules()
    rules.lists_are_arrays = True
    found = read({"numbers": [0.5] * (MOST_PARTS + 1), "mixed": [1, "a"]}, rules)
    assert {name: array.shape for name, array in found.arrays.items()} == {
        "numbers": (MOST_PARTS + 1,), "mixed.0": (), "mixed.1": (),
    }  # fmt: skip


def test_an_object_that_holds_itself_is_read_once():
    class Node:
        def __init__(self):
            self.me, self.value = self, 3.0

    found = read({"node": Node(), "nothing": object()}, Rules())
    assert {name: array.tolist() for name, array in found.arrays.items()} == {"node.value": 3.0}
    assert found.not_compared == ["nothing (object)"]


class Large(Subject):
    """A model whose output of each call is one array, larger than the sample of it."""

    rules, precisions = Rules(), ("float64",)

    def __init__(self, *calls):
        self.calls = calls

    def repeated(self, seed):
        return self.compared(self.calls[0])

    def eager(self, calls):
        return [self.compared(call) for call in self.calls[:calls]]

    def precise(self, dtype, calls):
        return [self.compared(call.astype(dtype)) for call in self.calls[:calls]]


class Copied(Large):
    """A model whose copies give the `copied` outputs in every precision, and the outputs `same` in its own."""

    copied, same = None, None

    def precise(self, dtype, calls):
        return [self.compared(call) for call in self.copied[:calls]]

    def in_a_copy(self, calls):
        if self.same is None:
            raise MemoryError
        return [self.compared(call) for call in self.same[:calls]]


@pytest.mark.parametrize(
    ("copied", "same", "reason"),
    [
        (1.00001, None, ""),  # near enough, so no other copy is made
        (1.1, 1.0, ""),  # eager mode's own error
        (0.9, 0.9, " (a copy gives other outputs)"),
        (0.9, None, " (float64 failed: MemoryError:)"),
    ],
)
def test_a_copy_that_does_not_repeat_eager_mode_is_no_reference(copied, same, reason):
    calls = np.random.default_rng(0).uniform(-1, 1, (2, 3)).astype(np.float32)
    subject = Copied(*calls)
    subject.copied, subject.same = calls * np.float64(copied), same and calls * np.float32(same)
    name, found = examining.reference(subject, subject.eager(2), 2, 1e-4)
    assert name == ("its own eager mode" + reason if reason else "its own eager mode in float64")
    expected = calls if reason else subject.copied
    assert all(np.array_equal(one.arrays["output"], other) for one, other in zip(found, expected, strict=True))


@pytest.fixture
def large():
    """Two calls' outputs, and the places of the second one that are in no sample of it."""
    calls = np.random.default_rng(0).uniform(-1, 1, (2, 3, SAMPLED_VALUES)).astype(np.float32)
    places = np.arange(calls[1].size, dtype=np.float64)
    return calls, np.setdiff1d(places, Large().compared(places).arrays["output"][:-5]).astype(int)


def error_of(calls, changed, place, value):
    """The difference of outputs from the reference where a value of the second call is another one."""
    _, reference = examining.reference(Large(*calls), Large(*calls).eager(2), 2, 1e-4)
    calls = calls.copy()
    calls[changed].flat[place] = value
    return difference(examining._joined(Large(*calls).eager(2)), examining._joined(reference))


def test_a_large_output_is_compared_by_a_sample_and_wholly_for_values_that_are_not_finite(large):
    calls, outside = large
    place, inside = outside[1000], np.setdiff1d(np.arange(calls[1].size), outside)[1000]
    found = Large(*calls).eager(2)
    assert {array.size for each in found for array in each.arrays.values()} == {SAMPLED_VALUES}
    assert all(sampled(each.arrays["output"], None).tolist() == each.arrays["output"].tolist() for each in found)
    assert error_of(calls, 1, place, calls[1].flat[place] * 0.9).within(0)  # the limit of a sample
    assert not error_of(calls, 1, inside, calls[1].flat[inside] * 0.9).within(0)
    assert not error_of(calls[:, 0], 1, place % SAMPLED_VALUES, 0.5).within(0)  # of a size that is not sampled
    for value in (np.nan, np.inf, -np.inf, 7.0, -7.0):
        assert not error_of(calls, 1, place, value).within(1e-4), value


def test_a_large_output_without_a_finite_value_or_with_equal_values_is_seen(large):
    calls, outside = large
    calls[0] = np.nan
    with pytest.raises(Unsupported, match="every floating-point value"):
        examining.refuse_what_changes(Large(*calls), 1e-4)
    calls[0].flat[outside[0]] = 1.0
    examining.refuse_what_changes(Large(*calls), 1e-4)
    for value, flag in ((0.0, ZERO), (-3.0, CONSTANT)):
        calls[0] = value
        assert emptiness(Large(*calls).repeated(0).arrays) == flag
        calls[0].flat[outside[0]] = 1.0
        assert emptiness(Large(*calls).repeated(0).arrays) is None


def test_values_that_eager_mode_alone_loses_are_no_reason_for_a_mask_that_it_need_not_have():
    nan, inf = float("nan"), float("inf")
    eager = [Values({"scores": np.array([1.0, 2.0, 3.0, -1e4]), "ids": np.array([1, 2])}, (), {})]
    masked = [Values({"scores": np.array([1.0, 2.0, 3.0, -inf]), "ids": np.array([1, 3])}, (), {})]
    examining._refuse_what_is_far(eager, masked, 1e-3, "float64")
    lost = [Values({"scores": np.array([1.0, 2.0, 3.0, nan])}, (), {})]
    with pytest.raises(Unsupported, match="25 % of eager mode's values in scores are NaN or infinite where float64"):
        examining._refuse_what_is_far(lost, eager, 1e-3, "float64")
