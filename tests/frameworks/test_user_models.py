"""User models by kind: inputs as they are given, comparison by kind of value, casts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from doubles.environment import answers_of

from frameworks.user_file import as_call
from frameworks.values import BEYOND, MOST_PARTS, Rules, read

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def torch_answers(tmp_path_factory):
    return answers_of("torch", "user_models_torch.py", str(tmp_path_factory.mktemp("own")))


def test_torch_gets_every_input_set_as_the_user_made_it(torch_answers):
    eager, compiled = torch_answers["scalars"]["eager"], torch_answers["scalars"]["inductor"]
    assert eager == compiled and len({str(output) for output in eager}) == 3


def test_torch_gets_new_inputs_where_a_call_writes_to_them(torch_answers):
    assert torch_answers["writes"] == [["argument 1"], {"output": [2.0, 2.0]}, True, True]
    assert torch_answers["writes to an object"] == [["argument 2"], {"output": [0.0, 0.0, 0.0, 1.0, 1.0]}, True, True]
    assert torch_answers["another buffer"][::3] == [[], False] and torch_answers["another buffer"][2] is True


def test_torch_keeps_complex_numbers_complex(torch_answers):
    turned = [[c - s, s + c] for c, s in zip(np.cos(range(4)), np.sin(range(4)), strict=True)]
    for dtype in ("fp32", "bf16"):
        assert np.allclose(torch_answers[f"complex {dtype}"], turned, atol=1e-3), dtype


def test_torch_counts_no_kernel_of_others(torch_answers):
    costs = torch_answers["costs"]
    assert costs["own kernel"] == [{}, "not counted: no rule for check::twice"]
    assert costs["sparse"][0] == {} and "aten::_sparse" in costs["sparse"][1]
    assert costs["parametrized"][0]["flops"] == 2 * 2 * 4 * 3
    # Norms read what they sum up, and are no products: x twice, the norm twice, and the quotient; no copy of x.
    assert costs["lock"][0] and costs["norm"][0]["unfused_bytes"] == 4 * (12 + 4 + 12 + 4 + 12)


def test_torch_prices_no_break_where_forward_records_gradients_and_names_places_without_folders(torch_answers):
    breaks, unpriced = torch_answers["breaks with gradients"]
    reason = dict(breaks)["breaks_with_gradients.py:11"]
    assert unpriced and "`save` in file `torch/serialization.py`" in reason, breaks


def test_torch_says_where_eager_mode_alone_branches_on_data(torch_answers):
    found = torch_answers["branches"]
    assert found["program"] == "differs"
    assert "Python branches on the value of all, in the graph" in found["program_difference"]


def test_torch_compares_every_kind_of_value(torch_answers):
    arrays, not_compared = torch_answers["kinds"]
    assert arrays["ids"] == ["i", [2**60 + 1]] and arrays["flags"] == ["b", [True]] and arrays["word"] == ["U", ["yes"]]
    assert arrays["turn"] == ["f", [1.0, 2.0]] and arrays["half"] == ["f", [1.5]]
    assert arrays["sparse.indices"][1] == [0, 1] and arrays["sparse.values"][1] == [3.0, 3.0]
    assert arrays["nested.1"][1] == [1.0] * 3 and arrays["distribution.scale"][1] == [1.0, 1.0]
    assert arrays["record.x"][1] == [1.0] and "none" not in arrays
    assert not_compared == ["generator (list_iterator)", "model (Linear)"]


def test_torch_replays_each_input_set_and_refuses_what_a_recording_holds(torch_answers):
    found = torch_answers["replayed"]
    assert (
        len({str(output) for output in found["keywords"][:3]}) == 3 and found["keywords"][:3] == found["keywords"][3:]
    )
    for name in ("writes", "differentiates inputs", "nothing", "twice"):
        assert found[name] == [[2.0, 2.0]] * 6, name
    assert "other scalars" in found["scalars"] and "Cache among the inputs" in found["writes to an object"]


def test_torch_keeps_weights_constant_at_every_shape_of_nested_inputs(torch_answers):
    assert torch_answers["frozen"] == [True, True, True]


def test_a_reference_that_does_not_fit_into_memory_is_left_and_named(torch_answers):
    name = torch_answers["without room"]
    assert name.startswith("its own eager mode in float32 (float64 failed: MemoryError: a copy takes 2 GB"), name


def test_torch_calls_a_model_for_training_where_its_inputs_are(torch_answers):
    assert torch_answers["trained on"] == "meta"


def test_only_a_plain_tuple_list_or_dict_is_a_call():
    from collections import OrderedDict, namedtuple

    point = namedtuple("Point", "x y")(1, 2)
    assert as_call(point) == ((point,), {}) and as_call((1, 2)) == ((1, 2), {}) and as_call({"x": 1}) == ((), {"x": 1})
    assert as_call(OrderedDict(x=1)) == ((OrderedDict(x=1),), {})


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
