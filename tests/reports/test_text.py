"""Texts of frameworks, paths and records stay texts: on the screen, in Markdown, in CSV, in what is to be typed."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT
from doubles.reported import small_set, write_run
from doubles.suite import TINY

from measurement.text import make_word, plain
from reports import terminal

# What rich would take for markup, or a terminal for a command, and what no encoding takes.
NASTY = [
    "[/job:localhost/replica:0] no such device",
    "[enforce fail at alloc_cpu.cpp:117] out of memory",
    "[bold]loud[/bold] :smile:",
    "\x1b]0;title\x07\x1b[2J\x1b[31mred",
    "in \udce4.so: no such file",
    "\u202egnp.exe",
    "line\rcarriage",
]


def shown(text: str) -> str:
    """The text as a console that writes UTF-8 strictly shows it, on one line."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
    console = terminal.PlainConsole(file=output, width=500, force_terminal=True, color_system=None)
    console.print(text)
    output.flush()
    return output.buffer.getvalue().decode()


@pytest.mark.parametrize("text", NASTY, ids=ascii)
def test_a_console_obeys_no_text(text):
    printed = shown(text)
    assert printed == plain(text) + "\n"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202a-\u202e\ud800-\udfff]", printed)
    for word in re.findall(r"[\[/:\w]{4,}", text):
        assert word in printed


@pytest.mark.parametrize("text", NASTY, ids=ascii)
def test_a_reason_is_shown_as_it_is_by_bench_s_summary_and_by_report(text, record, tmp_path, capsys):
    """It costs no run: a tag that closes nothing raised after everything had been measured."""
    import runner

    failed = [record(status="error", reason=text, latency_ms_median=None, mode=text, parameters=f"width={text}")]
    terminal.closing([], [record(), *failed], terminal.console())
    capsys.readouterr()
    folder = write_run(tmp_path / "run", [*small_set(), *(small_set()[0] | one.to_row() for one in failed)])
    assert runner.main(["report", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed and plain(text).split()[0][:30] in printed
    assert (folder / "report.html").exists()


def test_a_table_s_heading_and_cells_are_texts(tmp_path, capsys):
    import runner

    first, second = (write_run(tmp_path / name, small_set()) for name in ("a[red]x", "b[/red]y"))
    assert runner.main(["compare", str(first), str(second)]) in (0, 1)
    assert "b[/red]y" in capsys.readouterr().out.replace("\n", "")


def test_strict_output_takes_every_text(suite):
    """A name that is no UTF-8 under a strict encoding, and signs that ASCII lacks."""
    script = "import sys; from measurement.refusals import prepare_streams; prepare_streams(); print('\\udce4 \\u00d7')"
    for encoding in ("utf-8:strict", "ascii:strict"):
        how = dict(cwd=ROOT, capture_output=True, env={"PYTHONIOENCODING": encoding})
        done = subprocess.run([sys.executable, "-c", script], **how)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(b"\\udce4 ")


def test_the_encoding_of_the_runner_s_output_is_not_that_of_what_it_asks_others():
    script = "import sys; from measurement.refusals import prepare_streams; prepare_streams()\n"
    script += "from environments.environments import ensure; print(ensure('torch', 'cpu', python=sys.executable))"
    how = dict(cwd=ROOT, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "utf-16"})
    done = subprocess.run([sys.executable, "-c", script], **how)
    assert (done.returncode, done.stdout.decode("utf-16").strip()) == (0, sys.executable), done.stderr


@pytest.mark.slow
def test_markup_in_the_name_of_the_run_s_folder(suite, tmp_path):
    out = tmp_path / "c[/red]d [bold]$(touch PWNED)"
    done = suite.bench(out, *TINY, "--framework", "numpy", "--mode", "eager", "--out", str(out))
    assert done.code == 0, done.output
    assert f"Run {out}" in done.output and f"CSV: {out}/results.csv" in done.output


UNSEEN = ["tab\tx", "a\u2028b c", "\u202etxt.exe", "\x1b[31mit's\\n", "\udcff7", "ü\x7f$HOME"]


@pytest.mark.parametrize("name", UNSEEN, ids=ascii)
def test_what_a_terminal_does_not_show_can_be_pasted(name):
    """As a console prints it, which turns tabs into spaces, through a real shell, whatever the locale."""
    assert pasted(make_word("RESUME", name)) == [b"RESUME=" + os.fsencode(name)] * 2


def pasted(word: str) -> list[bytes]:
    """What bash makes of the word as a console prints it, in two locales."""
    printed = io.StringIO()
    terminal.PlainConsole(file=printed).print(word, soft_wrap=True)
    shell = ["bash", "-c", f"printf %s {printed.getvalue()}"]
    environments = [{**os.environ, "LC_ALL": locale} for locale in ("C", "C.UTF-8")]
    return [subprocess.run(shell, env=env, capture_output=True, check=True).stdout for env in environments]


def test_a_comma_in_a_folder_s_name_is_no_separator(tmp_path, capsys):
    import runner

    folder = write_run(tmp_path / "a,b", small_set())
    assert runner.main(["report", str(folder)]) == 0
    other = write_run(tmp_path / "c", small_set())
    assert runner.main(["report", f"{other},{folder}"]) == 2  # which of them is meant is ambiguous
    assert runner.main(["report", str(other), str(folder)]) == 0
    capsys.readouterr()


def test_make_s_own_settings_keep_their_defaults():
    """`unexport` defines what is not defined yet, as empty: no Python would be there to make environments with."""
    done = subprocess.run(["make", "-n", "lock"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "'python3' -m environments.environments lock" in done.stdout
