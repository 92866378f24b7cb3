"""The answers to objections: ratios over processes, and that every question has its script."""

from __future__ import annotations

import argparse
import json
import math
import sys

import pytest

from tests.benchmarks import objections


def told(way: str, us: list[float], faults: float = 0.0) -> dict:
    return {"trial": "chain", "way": way, "us": us, "faults": [faults] * len(us)}


def test_a_ratio_is_of_rounds_with_students_interval_over_processes():
    ratios = [2.0, 2.2, 1.9]
    # Rounds that slow down tenfold, both ways alike: the ratio of each round stands.
    base = [10.0 * 10 ** (n / 12) for n in range(12)]
    processes = [[told("fresh", base), told("reused", [us * ratio for us in base], 7.0)] for ratio in ratios]
    figures = objections.compared(processes)["chain"]
    logs = [math.log(ratio) for ratio in ratios]
    mean = sum(logs) / 3
    half = 4.302653 * math.sqrt(sum((value - mean) ** 2 for value in logs) / 2 / 3)  # t(0.975, 2)
    assert figures["reused"]["ratio"] == pytest.approx(2.0)
    assert figures["reused"]["interval"] == pytest.approx((math.exp(mean - half), math.exp(mean + half)), rel=1e-6)
    assert figures["reused"]["faults"] == 7.0
    assert figures["fresh"]["interval"] == (1.0, 1.0)
    assert "chain, times fresh (" in objections.line("jax-chain", {"chain": figures})
    assert f"reused 2.000 ({math.exp(mean - half):.3f} to" in objections.line("jax-chain", {"chain": figures})


def test_every_script_answers_a_question():
    files = {path.name for path in objections.SCRIPTS.glob("*.py")} - {"turns.py"}
    assert files == {question.script for question in objections.QUESTIONS.values()}


def test_an_addition_to_the_environment_is_a_trial_of_its_own_and_all_is_kept(monkeypatch, tmp_path, capsys):
    seen = []
    monkeypatch.setattr(objections, "facts", lambda: {"machine_id": "here"})

    def run(command, env, stdout, text, preexec_fn):
        seen.append(env.get("GLIBC_TUNABLES"))
        lines = [json.dumps(told(way, [10.0, 11.0, 12.0])) for way in ("op by op", "jit")]
        return argparse.Namespace(returncode=0, stdout="\n".join(["a warning", *lines]))

    monkeypatch.setattr(objections.subprocess, "run", run)
    out = tmp_path / "all.jsonl"
    monkeypatch.setattr(sys, "argv", ["objections.py", "jax-chain", "--processes", "2", "--out", str(out)])
    objections.main()
    printed = capsys.readouterr().out
    assert seen == [None, None, objections.HUGE["GLIBC_TUNABLES"]] * 2
    for trial in ("| chain |", "| chain; glibc keeps freed memory |", "| chain; glibc takes huge pages |"):
        assert trial in printed
    kept = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(kept) == 2 * 3 * 2
    assert {line["process"] for line in kept} == {1, 2}


def test_a_script_that_fails_ends_it_all(monkeypatch):
    monkeypatch.setattr(objections.subprocess, "run", lambda *_, **__: argparse.Namespace(returncode=1, stdout=""))
    options = argparse.Namespace(threads=1, seconds=0.1, device="cpu")
    with pytest.raises(SystemExit, match="ended with exit code 1"):
        objections.ask(objections.QUESTIONS["jax-leaves"], "", options)
