"""What is too long, too deep or no file is refused in one sentence before anything is made of it."""

from __future__ import annotations

import os

import pytest

import runner
from measurement.refusals import UsageError
from plan import user_models


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("never")


def test_the_root_of_all_folders_is_no_run(capsys):
    for dry in ([], ["--dry-run"]):
        assert runner.main(["bench", "--framework", "numpy", "--impl", "plain", "--out", "/", *dry]) == 2
        assert "OUT=/ has no folder name" in capsys.readouterr().err


def test_a_pipe_or_a_device_is_no_model(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "device.py").symlink_to("/dev/zero")
    for name in ("pipe.py", "device.py"):
        with pytest.raises(UsageError, match=f"{name} is not a model file: it is not a file, but a device"):
            user_models.register([str(tmp_path / name)])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = " + "-" * 100_000 + "1", "is not valid Python: "),
        ("#" * (1 << 20 | 1), "is not a model file: it has more than 1 MiB."),
    ],
    ids=["deep", "long"],
)
def test_a_model_s_file_is_as_long_and_deep_as_one_that_was_written(tmp_path, text, words):
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(UsageError, match=words) as refused:
        user_models.register([str(tmp_path / "bad.py")])
    assert "\n" not in str(refused.value)


def test_an_exception_whose_text_raises_is_an_error():
    from frameworks.user_file import in_a_line
    from worker.channel import classify

    assert in_a_line(Wordless()) == "Wordless: its text is unknown: __str__ raises RuntimeError"
    assert classify(Wordless()) == ("error", "Wordless: its text is unknown: __str__ raises RuntimeError")
