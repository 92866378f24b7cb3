"""Command lines: the forms of an option, and the sentence on what a command does not take."""

from __future__ import annotations

import pytest

import runner
from measurement.refusals import UsageError


def parsed(*words: str) -> dict:
    return vars(runner.parse([*words])[1])


@pytest.mark.parametrize(
    "words", [["--seq", "8"], ["--seq=8"], ["SEQ=8"], ["SEQ=4", "--seq", "8"], ["--seq=4", "SEQ=8"]]
)
def test_all_forms_of_an_option_are_the_same_and_the_last_one_counts(words):
    assert parsed("bench", *words) == parsed("bench", "SEQ=8")
    assert parsed("bench", *words)["seq"] == "8"


def test_a_switch_is_off_with_0_and_a_variable_without_a_value_is_not_given():
    assert parsed("bench", "DRY_RUN=1")["dry_run"] and parsed("bench", "--dry-run")["dry_run"]
    assert parsed("bench", "DRY_RUN=0", "DRY_RUN=", "SEQ=", "RESUME=") == parsed("bench")
    assert parsed("bench", "--resume")["resume"] == "newest"


def test_values_without_a_flag_may_have_their_name():
    assert parsed("report", "a,b", "./c=d/e")["run"] == ["a,b", "./c=d/e"]
    assert parsed("report", "RUN=-x y")["run"] == ["-x y"]
    assert parsed("report", "--", "A=x", "--out")["run"] == ["A=x", "--out"]
    arguments = parsed("compare", "B=x")
    assert (arguments["a"], arguments["b"]) == (None, "x")


def test_what_follows_a_flag_is_its_value():
    assert parsed("bench", "--filter", "SEQ=8")["filter"] == "SEQ=8"
    assert parsed("bench", "--filt", "SEQ=8")["filter"] == "SEQ=8"
    assert parsed("bench", "--dry-run", "SEQ=8")["seq"] == "8"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["bench", "FRAMWORK=x"], "There is no variable FRAMWORK; did you mean FRAMEWORK?"),
        (["bench", "SEQUENCE=8"], "There is no variable SEQUENCE; did you mean SEQ?"),
        (["bench", "Batch=1"], "There is no variable Batch; did you mean BATCH?"),
        (["bench", "--framwork=x"], "There is no option --framwork; did you mean --framework?"),
        (["bench", "WHEELHOUS=x"], "There is no variable WHEELHOUS; did you mean WHEELHOUSE?"),
        (["watch", "OUT=x"], "make watch does not take OUT; it takes RUN."),
        (["watch", "--out", "x"], "watch does not take --out; it takes none."),
        (["bench", "torch"], "bench takes no word 'torch': write NAME=value or --name value."),
        (["bench", "TIMEOUT=soon"], "TIMEOUT is a number, not 'soon'."),
        (["selfcheck", "--repeats", "2.5"], "REPEATS is a whole number, not '2.5'."),
        (["bench", "--seq"], "argument --seq: expected one argument."),
        (["bnech"], "There is no command 'bnech'; did you mean bench?"),
        ([], "There is no command ''; `make` lists them."),
        (["report", "--skip-others", "ZZZZ=1"], "There is no variable ZZZZ; `make` lists them."),
    ],
)
def test_what_a_command_does_not_take_is_answered_in_a_sentence(words, sentence):
    with pytest.raises(UsageError) as refused:
        parsed(*words)
    assert str(refused.value) == sentence


def test_of_several_commands_each_skips_the_variables_of_the_others():
    assert parsed("report", "--skip-others", "SEQ=8", "UPGRADE=1", "RUN=a")["run"] == ["a"]


def test_the_help_is_that_of_make_and_of_each_command(capsys):
    assert runner.main(["--help"]) == 0
    assert capsys.readouterr().out == runner.HELP.read_text()
    for command in runner.COMMANDS:
        with pytest.raises(SystemExit) as ended:
            runner.main([command, "--help"])
        assert ended.value.code == 0
        assert f"usage: runner.py {command}" in capsys.readouterr().out
