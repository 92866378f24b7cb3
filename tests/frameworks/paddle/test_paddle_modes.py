"""Paddle's modes are what they say: users' layers stay eager beside their graphs, CINN is used or refused."""

from __future__ import annotations

import re

import pytest
from doubles.environment import answers_of

pytestmark = pytest.mark.slow

# A setting to take, or what to do with the file or the machine.
WAY_OUT = re.compile(r"\b[A-Z]+=\S|: (write|have|stack|unset|install) ")


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> dict:
    return answers_of("paddle", "own_paddle.py", str(tmp_path_factory.mktemp("own")))


@pytest.fixture(scope="module")
def answers() -> dict:
    return answers_of("paddle", "paddle_refusals.py")


@pytest.fixture(scope="module")
def linear() -> dict:
    return answers_of("paddle", "paddle_linear.py")


@pytest.mark.parametrize("pass_name", ["inference", "training"])
def test_a_users_layer_stays_eager_beside_its_graphs_in_every_order(own, pass_name):
    """`to_static` replaces the forward of what it is given; so eager's samples ran a graph once one was prepared."""
    for found in own[pass_name]:
        assert found["ran"] == {mode: int(mode == "to_static") for mode in found["ran"]}, found
        assert found["graphs"] == {mode: int(mode != "eager") for mode in found["ran"]}, found
        assert len(set(found["backends"].values())) == len(found["ran"]), found
        assert found["listed"] > 5 and found["worst"] < 1e-5, found
        if pass_name == "inference":
            assert found["replaced"] == [] and found["shared"], found


def test_a_captured_layer_is_made_eager(own):
    assert own["captured"] == ["blocks.forward", 0]


def test_an_input_that_no_output_needs_is_named(own):
    assert len(own["unneeded"]) == 2
    assert all("inputs that no output needs, tensors of mask: change" in reason for reason in own["unneeded"])


@pytest.mark.parametrize("dtype", ["fp32", "tf32"])
def test_products_with_a_bias_are_counted_and_follow_the_switch_of_tf32(linear, dtype):
    """In builds for CUDA, `linear_v2` computes in strict float32."""
    operators = ["matmul", "add"] * 2 if dtype == "tf32" else ["linear_v2"] * 2
    found = linear[dtype]
    assert found["eager"] == found["graph"] == operators
    assert found["whole"] and found["flags"] == {"FLAGS_use_legacy_linear": dtype == "tf32"}


def test_a_warm_cache_is_switched_on(answers):
    assert answers["cache"] == ["", True]


def test_cinn_is_refused_wherever_paddle_would_leave_it_out(answers):
    found = answers["cinn"]
    assert found.pop("used") is None
    assert "for NVIDIA GPUs only" in found["cpu"] and "DEVICE=gpu" in found["cpu"]
    assert "built without CINN" in found["not built"]
    assert "ENABLE_CINN_IN_DY2ST" in found["switched off"] and "unset it" in found["switched off"]
    assert "FLAGS_enable_pir_api=1" in found["not available"]
    for reason in found.values():
        assert "would silently run plain to_static" in reason and "MODE=to_static" in reason


def test_why_a_predictor_with_a_cache_runs_without_onednn():
    """Paddle's own fault. Once it is mended, let `graphs.ExportedWithCache` have oneDNN, and its docs say so."""
    errors = answers_of("paddle", "paddle_onednn.py")
    assert errors.pop("as it is") > 1
    assert errors == {"without writing in place": 0, "without oneDNN": 0}


def test_the_calls_that_are_named_are_those_that_are_made(answers):
    """The default backend of Paddle 3.3 is CINN."""
    assert answers["calls"] == {
        mode: [{"full_graph": True, "backend": backend}] * 2
        for mode, backend in (("to_static", None), ("to_static-cinn", "CINN"))
    }


def test_every_refusal_names_a_way_out(answers):
    for name, reason in answers["refusals"].items():
        assert WAY_OUT.search(reason), (name, reason)
        assert reason.endswith(".") and "\n" not in reason
