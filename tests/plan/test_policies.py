"""Settings that users may not have: one table, obeyed by workers, named in records and in the documentation."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from conftest import ROOT

import frameworks
from frameworks import policies
from measurement.cells import Cell, Effective
from measurement.profiles import PROFILES
from measurement.protocol import Hello
from measurement.refusals import UsageError
from plan import sweep
from records import assemble
from records.cell_result import CellResult, Context


@pytest.mark.parametrize("policy", policies.POLICIES, ids=lambda policy: policy.name)
def test_a_policy_has_the_users_way_and_others(policy):
    assert policy.framework in frameworks.NAMES
    assert policy.suite in policy.choices
    assert policy.choices[policy.users] == policies.DEFAULT  # users set nothing
    assert len({json.dumps([dict(c.variables), c.pinned]) for c in policy.choices.values()}) == len(policy.choices) > 1
    row = next(line for line in documented() if line[0] == policy.name)
    assert row[1:4] == [policy.users, "`, `".join(policy.others), policy.suite]


def documented() -> list[list[str]]:
    """The rows of methodology's table."""
    text = (ROOT / "docs/methodology.md").read_text()
    lines = [line.split("|")[1:5] for line in text.splitlines() if re.match(r"\| `[a-z]+-[a-z-]+` \| `", line)]
    return [[cell.strip().strip("`") for cell in line] for line in lines]


def test_the_documentation_has_no_policy_that_is_gone():
    assert [row[0] for row in documented()] == [policy.name for policy in policies.POLICIES]


@pytest.mark.parametrize(
    ("words", "variables", "pinned"),
    [
        (None, {"KMP_BLOCKTIME": "20"}, True),
        ("users", {}, False),
        ("users,paddle-cpus=pinned", {}, True),
        ("paddle-stride=off,users", {}, False),
        ("paddle-stride=off,paddle-cpus=any", {"FLAGS_use_stride_kernel": "0", "KMP_BLOCKTIME": "20"}, False),
        ("paddle-openmp-idle=sleep", {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}, True),
    ],
)
def test_what_is_asked_for_reaches_the_workers_variables(words, variables, pinned):
    choices = policies.parse(words)
    given = policies.variables("paddle", "cpu", choices)
    assert variables.items() <= given.items()
    assert bool(given) == bool(variables)
    assert policies.pinned("paddle", "cpu", choices) == pinned


def test_a_gpus_workers_keep_what_concerns_cpus_alone():
    assert "TF_NUM_INTEROP_THREADS" in policies.variables("tensorflow", "cpu", {})
    assert policies.variables("tensorflow", "gpu", {}) == {}


@pytest.mark.parametrize("words", ["jax-cpu=any", "jax-cpus=some", "jax-cpus", "nobody"])
def test_a_policy_that_is_none_is_a_usage_error(words):
    with pytest.raises(UsageError):
        sweep.resolve({"policy": words})


def test_a_record_names_the_policies_it_ran_under():
    cell = Cell("jax", "mlp", "plain", "inference", "cpu", "fp32", 1, (("batch_size", 1),), "eager")
    context = Context("run", "", "", None, PROFILES["quick"], "cold", {})
    hello = Hello({}, Effective(settings={"x": 1}))
    result = CellResult(cell, hello=hello)
    assert assemble._settings(result, hello, context) == {"x": 1, "policies": {"jax-cpus": "pinned"}}
    users = replace(context, policies=sweep.resolve({"policy": "users"}).policies)
    assert assemble._settings(result, hello, users) == {"x": 1, "policies": {"jax-cpus": "any"}}
