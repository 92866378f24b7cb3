"""The recipes for continuous integration: they are YAML, and every command in them is one that the suite takes."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml
from conftest import ROOT

import runner
from commands import compare

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
    assert content["permissions"]["contents"] == "read"
    for job in jobs(recipe):
        assert {"runs-on", "timeout-minutes", "steps"} <= job.keys()
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
        used = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(re.fullmatch(r"actions/[a-z-]+@v\d+|YOUR-FORK/eager-vs-graph@main", name) for name in used)


def test_the_recipe_gives_the_action_inputs_that_it_has():
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    (given,) = [
        step["with"] for job in jobs(RECIPES[0]) for step in job["steps"] if "eager-vs-graph" in step.get("uses", "")
    ]
    assert given.keys() <= inputs.keys()
    assert {name for name, entry in inputs.items() if entry.get("required")} <= given.keys()
    options = ["--workload", given["model"], *shlex.split(given["options"])]
    assert runner.parse(["bench", *options])[1].profile == "standard"


def test_its_commands_are_the_suite_s():
    command_lines = commands(scripts(RECIPES[1]), "runner.py ")
    assert command_lines
    for words in command_lines:
        assert runner.parse(words)[0] is compare
    for first, *rest in commands(scripts(RECIPES[1]), "make "):
        assert runner.parse([first, *rest])


def test_what_a_job_does_with_an_exit_code_is_what_docs_say():
    assert "if [ $code -ne 3 ]; then exit $code; fi" in TEXT
    assert "| 3 | inconclusive | no answer was decided" in (ROOT / "docs/robustness.md").read_text()
