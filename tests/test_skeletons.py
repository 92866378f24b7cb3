"""The file of an own model to begin with."""

import runner
from workloads import signature


def test_a_skeleton_is_written_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert runner.main(["new-workload", "--name", "mine", "--framework", "jax"]) == 0
    assert signature.read("mine.py").frameworks == ("jax",)
    for words in (["--name", "mine"], ["--name", "../mine"], ["--name", "other", "--framework", "mxnet"], []):
        assert runner.main(["new-workload", *words]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py"]
