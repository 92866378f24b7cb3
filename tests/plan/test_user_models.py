"""How a plan names user models."""

from __future__ import annotations

import io

import pytest
from conftest import ROOT

from execution.campaign import Campaign, Request
from plan import user_models
from reports.terminal import PlainConsole

OURS = "transformers:experiments/edition/models/distilbert"


def plan_of(word: str) -> tuple[list[str], dict[str, str]]:
    begun = Campaign.start(Request({"workload": word, "framework": "torch"}), PlainConsole(file=io.StringIO()))
    return begun.given["workload"], begun.sweep.user_models


@pytest.mark.parametrize("word", [OURS, "examples/torch_mlp.py"])
def test_a_plan_names_files_of_the_suite_by_their_place_in_it_from_any_folder(word, tmp_path, monkeypatch):
    """Plans are published, and their checkouts lie elsewhere."""
    library, colon, path = ("", "", word) if word.endswith(".py") else word.partition(":")
    for folder in (ROOT, tmp_path):
        monkeypatch.chdir(folder)
        for spelling in (word, f"{library}{colon}{ROOT / path}"):
            kept, sources = plan_of(spelling)
            assert kept == [word] and list(sources.values()) == [f"{library}{colon}{ROOT / path}"]
            assert {entry["source"] for entry in user_models.digests(sources).values()} == {word}


def test_a_plan_names_a_file_elsewhere_by_its_whole_path(tmp_path, monkeypatch):
    """A file here precedes the suite's file of the same name."""
    text = (ROOT / "examples/torch_mlp.py").read_text()
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/torch_mlp.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    kept, _ = plan_of("examples/torch_mlp.py")
    assert kept == [str(tmp_path / "examples/torch_mlp.py")]
