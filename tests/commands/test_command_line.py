"""Command lines: the forms of an option, and the sentence on what a command does not take."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

import runner
from commands import command_line, table
from eager_vs_graph import action, interface
from measurement import refusals
from measurement.refusals import UsageError


def parsed(*words: str) -> dict:
    return vars(runner.parse([*words])[1])


@pytest.mark.parametrize(
    "words", [["--seq", "8"], ["--seq=8"], ["SEQ=8"], ["SEQ=4", "--seq", "8"], ["--seq=4", "SEQ=8"]]
)
def test_all_forms_of_an_option_are_the_same_and_the_last_one_counts(words):
    assert parsed("bench", *words) == parsed("bench", "SEQ=8")
    assert parsed("bench", *words)["seq"] == "8"


def test_a_parameter_is_given_by_p_or_by_its_name_and_the_last_one_counts():
    assert parsed("bench", "-p", "seq=8", "-pbatch=1,2") == parsed("bench", "--seq", "8", "--batch", "1,2")
    assert parsed("bench", "-p", "seq_len=8", "--seq=4")["seq"] == "4"
    assert parsed("bench", "SEQ=4", "-p", "Seq=8", "-p", "seq=9")["seq"] == "9"
    assert parsed("report", "--", "-p", "x=1")["run"] == ["-p", "x=1"]


def test_a_parameter_of_a_users_model_is_given_by_p(tmp_path):
    model = tmp_path / "net.py"
    model.write_text("def model(): ...\ndef inputs(batch_size=1, hidden_size=4): ...")
    assert parsed("bench", "--workload", str(model), "-p", "hidden_size=8")["hidden_size"] == "8"
    with pytest.raises(
        UsageError, match=r"There is no parameter hidden_siz; did you mean hidden-size\? net.py takes batch"
    ):
        parsed("bench", "--workload", str(model), "-p", "hidden_siz=8")


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
        (["report", "WATCH=1", "OUT=x"], "make report with WATCH does not take OUT; it takes RUN WATCH."),
        (["report", "--watch", "--out", "x"], "report with WATCH does not take --out; it takes --watch."),
        (["bench", "torch"], "bench does not take the argument 'torch': write NAME=value or --name value."),
        (["bench", "TIMEOUT=soon"], "TIMEOUT must be a number, not 'soon'."),
        (["doctor", "--repeats", "2.5"], "REPEATS must be a whole number, not '2.5'."),
        (
            ["bench", "WORKLOAD=mlp", "-p", "widht=8"],
            "There is no parameter widht; did you mean width? mlp takes batch, width, depth.",
        ),
        (
            ["bench", "-p", "qq=8", "--workload", "matmul,stream"],
            "There is no parameter qq; matmul and stream take size, elements.",
        ),
        (
            ["bench", "-p", "qq=8", "--preset", "vision-lstm"],
            "There is no parameter qq; resnet50, vit-b16 and lstm take batch, image, layout, attention, seq, cell.",
        ),
        (
            ["doctor", "-p", "qq=8"],
            "There is no parameter qq; bert-base and mlp take batch, seq, mask, attention, width, depth.",
        ),
        (["bench", "-p", "seq"], "-p takes NAME=VALUE, such as -p batch=8, not 'seq'."),
        (["bench", "-p", "SEQ=8", "-p"], "-p takes NAME=VALUE, such as -p batch=8, not ''."),
        (["bench", "--seq"], "argument --seq: expected one argument."),
        (["bnech"], "There is no command 'bnech'; did you mean bench?"),
        (["qqqq"], "There is no command 'qqqq'; `make` lists them."),
        ([], "Name a command; `make` lists them."),
        (["--batch", "4"], "Name a command; `make` lists them."),
        (["bench", "HELPP=1"], "There is no variable HELPP; did you mean HELP?"),
        (["bench", "--qqqqqqqq"], "There is no option --qqqqqqqq; `--help` lists them."),
        (["report", "--skip-others", "ZZZZ=1"], "There is no variable ZZZZ; `HELP=1` lists them."),
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
    assert capsys.readouterr().out == (ROOT / "docs/help.txt").read_text()
    for command in table.COMMANDS:
        with pytest.raises(SystemExit) as ended:
            runner.main([command, "--help"])
        assert ended.value.code == 0
        assert f"usage: runner.py {command}" in capsys.readouterr().out


def test_the_help_has_a_line_of_at_most_80_columns_for_every_command():
    for program in ("make", "egvg"):
        text = table.help_text(program)
        assert max(map(len, text.splitlines())) <= table.WIDTH
        for title, group in table.GROUPS.items():
            (lines,) = re.findall(rf"(?m)^{title}\n((?:  .*\n)+)", text)
            assert re.findall(rf"(?m)^  {program} (\S+)", lines) == [command.name for command in group]
    assert "make lint" not in table.help_text("egvg")


def test_help_of_a_command_is_a_variable_for_make(capsys):
    with pytest.raises(SystemExit):
        runner.main(["setup", "HELP=1"])
    assert "--collect FOLDER" in capsys.readouterr().out
    assert parsed("setup", "HELP=0") == parsed("setup")


def test_the_help_of_a_command_that_measures_has_every_option_in_a_group(capsys):
    for command in table.COMMANDS.values():
        options = runner.options_of(command)
        if command.measures or command.name == "ab":
            titles = dict(zip((option.flag for option in options), command_line._titles(options), strict=True))
            assert {flag for flag, title in titles.items() if not title} <= {"a", "b", "versions"}
    with pytest.raises(SystemExit):
        runner.main(["bench", "--help"])
    titles = re.findall(r"(?m)^(\S.*):$", capsys.readouterr().out)
    assert titles == ["options", *command_line.GROUPS, command_line.PARAMETERS]


@pytest.mark.parametrize("command", table.COMMANDS.values(), ids=lambda command: command.name)
def test_the_help_of_an_option_names_its_default(command):
    """That of `ladder` named the modes of `bench`."""
    named = [(one.default, re.search(r"\(default: (.*?)\)", one.help)) for one in runner.options_of(command)]
    assert [found[1] for value, found in named if value and found and found[1] != str(value).removesuffix(".0")] == []


def test_exit_codes_are_those_of_the_page():
    page = (ROOT / "docs/robustness.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (\d+) \| ([^|]+) \|", page)
    assert {int(code): meaning.replace("`", "") for code, meaning in rows} == refusals.MEANINGS
    assert (*(refusals.FINDING, refusals.REFUSED, refusals.INCOMPLETE),) == (
        action.SLOWER,
        action.REFUSED,
        action.INCONCLUSIVE,
    )
    assert interface.CODES == (refusals.DONE, refusals.FINDING, refusals.INCOMPLETE)


def test_explain_refuses_a_form_and_leaves_it_out_beside_other_modes(capsys):
    words = ["explain", "--framework", "torch", "--workload", "mlp", "--dry-run"]
    assert runner.main([*words, "--mode", "aot-inductor"]) == refusals.REFUSED
    assert "aot-inductor has no kernels that compare with eager mode's" in capsys.readouterr().err
    assert runner.main([*words, "--mode", "inductor,aot-inductor"]) == 0
    shown = capsys.readouterr().out
    assert "/inductor\n" in shown and "aot-inductor: aot-inductor has no kernels" in " ".join(shown.split())
