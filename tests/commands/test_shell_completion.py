"""Shell completion: commands, flags and values, as a shell gets them from the printed script."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

import frameworks
import runner
import workloads
from commands import completion, table


def printed(shell: str, capsys) -> str:
    assert runner.main(["--print-completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["b"], {"bench"}),
        (["bench", "--framework", ""], {"all", *frameworks.NAMES}),
        (["bench", "--mode", "inductor-max"], {name for name in completion.values()["mode"] if "inductor-max" in name}),
        (["explain", "--workload", "bert"], {name for name in workloads.names() if name.startswith("bert")}),
        (["report", "--wat"], {"--watch"}),
        (["report", "--out", ""], {"folder"}),
        (["bench", "--batch", ""], set()),
    ],
)
@pytest.mark.parametrize("program", ["eager-vs-graph", "egvg"])
def test_bash_completes(program, words, expected, capsys, tmp_path):
    (tmp_path / "script").mkdir()
    script = tmp_path / "script/completion.bash"
    script.write_text(printed("bash", capsys))
    inside = tmp_path / "inside"
    (inside / "folder").mkdir(parents=True)
    typed = " ".join(f"'{word}'" for word in (program, *words))
    ask = f"""
source {script}
function=$(complete -p {program} | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
COMP_WORDS=({typed}) COMP_CWORD={len(words)}
$function {program} "${{COMP_WORDS[-1]}}" "${{COMP_WORDS[-2]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", ask], cwd=inside, capture_output=True, text=True, check=True)
    assert set(filter(None, done.stdout.splitlines())) == expected


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_shell_gets_both_programs_all_commands_and_the_values(shell, capsys):
    text = printed(shell, capsys)
    assert all(re.search(rf"\b{program}\b", text) for program in (completion.PROGRAM, completion.SHORT))
    for word in (*table.COMMANDS, *frameworks.NAMES, *workloads.names(), "inductor-reduce-overhead", "vision-lstm"):
        assert re.search(rf"(?<![\w-]){word}(?![\w-])", text), word
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_a_shell_without_a_script_and_a_missing_package_are_one_sentence(capsys, monkeypatch):
    assert runner.main(["--print-completion"]) == 2
    assert "--print-completion takes bash, zsh or fish, not ''." in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert runner.main(["--print-completion", "bash"]) == 2
    assert "pip install 'eager-vs-graph[completion]'" in capsys.readouterr().err


def test_every_flag_with_values_is_one_of_a_command():
    flags = {option.flag for option in runner.every_option()}
    assert {*completion.values(), *completion.PATHS} - flags == set()
