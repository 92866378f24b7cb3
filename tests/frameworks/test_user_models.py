"""User models: what is a call, and outputs as arrays by name."""

from __future__ import annotations

import pytest

from frameworks.user_file import Fault, as_call
from frameworks.values import BEYOND, MOST_PARTS, Rules, read


def test_only_a_plain_tuple_list_or_dict_is_a_call():
    from collections import OrderedDict, namedtuple

    point = namedtuple("Point", "x y")(1, 2)
    assert as_call(point) == ((point,), {}) and as_call((1, 2)) == ((1, 2), {}) and as_call({"x": 1}) == ((), {"x": 1})
    assert as_call(OrderedDict(x=1)) == ((OrderedDict(x=1),), {})
    with pytest.raises(Fault, match="an iterator, which gives its values once"):
        as_call(x for x in ())


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
