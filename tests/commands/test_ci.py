"""The recipes for continuous integration: they are YAML, and every command in them is one that the suite takes."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml
from conftest import ROOT

import runner
from commands import ab, compare

TEXT = (ROOT / "docs/ci.md").read_text()
RECIPES = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


def jobs(recipe: str) -> list[dict]:
    return list(yaml.safe_load(recipe)["jobs"].values())


def scripts(recipe: str) -> str:
    return "\n".join(step["run"] for job in jobs(recipe) for step in job["steps"] if "run" in step)


def commands(text: str, name: str) -> list[list[str]]:
    """The words of every call of `name` in a script, its lines joined."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line.partition(name)[2]) for line in lines if name in line]


def test_there_are_recipes_for_a_change_and_a_machine_of_one_s_own():
    assert [yaml.safe_load(recipe)["name"] for recipe in RECIPES] == ["speed", "history"]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: yaml.safe_load(recipe)["name"])
def test_a_recipe_is_a_workflow(recipe):
    content = yaml.safe_load(recipe)
    assert content[True]  # YAML 1.1 reads `on` so; GitHub does not
    assert content["permissions"] == {"contents": "read"}
    for job in jobs(recipe):
        assert {"runs-on", "timeout-minutes", "steps"} <= job.keys()
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
        assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)
    assert '>> "$GITHUB_STEP_SUMMARY"' in recipe and "comparison.md" in recipe and "code=$?" in recipe


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: yaml.safe_load(recipe)["name"])
def test_its_commands_are_the_suite_s(recipe):
    command_lines = commands(scripts(recipe), "runner.py ")
    assert command_lines
    for words in command_lines:
        assert runner.parse(words)[0] in (ab, compare)
    for first, *rest in commands(scripts(recipe), "make "):
        assert first in ("test", ".venvs/runner/.stamp") or runner.parse([first, *rest])


def test_cached_environments_hang_on_what_decides_them():
    keys = [step["with"] for job in map(jobs, RECIPES) for step in job[0]["steps"] if "cache" in step.get("uses", "")]
    assert len(keys) == 1
    assert all(".venvs" in key["path"] and "requirements*.txt" in key["key"] for key in keys)


def test_what_a_job_does_with_an_exit_code_is_what_docs_say():
    assert "3) echo" in TEXT and "if [ $code -ne 3 ]; then exit $code; fi" in TEXT
    assert "| nothing could be decided |" in (ROOT / "docs/robustness.md").read_text()
