"""The file of an own model to begin with."""

import re

import pytest
from doubles.environment import run_in

import runner
from commands import new
from workloads import signature


def test_a_skeleton_is_written_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert runner.main(["new", "--name", "mine", "--framework", "jax"]) == 0
    assert signature.read("mine.py").frameworks == ("jax",)
    assert runner.main(["new", "NAME=other", "FRAMEWORK=tf"]) == 0
    assert signature.read("other.py").frameworks == ("tensorflow",)
    for words in (["--name", "mine"], ["--name", "../mine"], ["--name", "third", "--framework", "mxnet"], []):
        assert runner.main(["new", *words]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py", "other.py"]


@pytest.mark.slow
@pytest.mark.parametrize("framework", new.having())
def test_a_skeleton_holds_a_loss_to_train_with(tmp_path, framework):
    """PASS=training needs one, which no skeleton had."""
    file = tmp_path / "mine.py"
    file.write_text(new.text(framework, "mine.py"))
    assert not signature.read(file).trains  # before its marks are taken away
    begin = "# def loss(output):"
    before, _, rest = file.read_text().partition(begin)
    file.write_text(before + re.sub(r"(?m)^# ", "", begin + rest))
    assert signature.read(file).trains
    run_in(
        framework,
        f"""
import runpy

mine = runpy.run_path({str(file)!r})
model, inputs = mine["model"](), mine["inputs"](2)
output = model[0](model[1], inputs) if isinstance(model, tuple) else model(inputs)
assert tuple(output.shape) == (2, 256) and tuple(mine["loss"](output).shape) == ()
""",
    )
