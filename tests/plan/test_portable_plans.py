"""How a plan names user models."""

from __future__ import annotations

import io

import pytest
from conftest import ROOT

from execution.campaign import Campaign, Request
from plan import user_models
from reports.terminal import PlainConsole

OURS = "transformers:experiments/edition/models/distilbert"


@pytest.mark.parametrize("word", [OURS, "examples/torch_mlp.py"])
def test_a_plan_names_files_of_the_suite_by_their_place_in_it(word, tmp_path, monkeypatch):
    """Plans are published, and their checkouts lie elsewhere; a file of this name in the working folder is another."""
    library, colon, path = ("", "", word) if word.endswith(".py") else word.partition(":")
    whole = f"{library}{colon}{ROOT / path}"
    begun = Campaign.start(Request({"workload": whole, "framework": "torch"}), PlainConsole(file=io.StringIO()))
    kept = user_models.kept(begun.given)
    assert (begun.given["workload"], kept["workload"]) == ([whole], [word])
    assert {entry["source"] for entry in user_models.digests(begun.sweep.user_models).values()} == {word}
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).symlink_to(ROOT / path)
    monkeypatch.chdir(tmp_path)
    assert user_models.found(kept) == {**kept, "workload": [whole]} == dict(begun.given)


@pytest.mark.parametrize("word", ["/elsewhere/net.py", "timm:resnet18", "transformers:google/bert", "bert-base"])
def test_a_plan_keeps_other_names(word):
    given = {"workload": [word, "mlp"], "batch": 1}
    assert user_models.kept(given) == given == user_models.found(given)
