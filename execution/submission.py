"""Submit a run to a cluster: write the job's script, and pass it to sbatch."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from measurement import durable, programs
from measurement.places import SUITE
from measurement.refusals import UsageError, read_text
from measurement.text import shell_word
from plan.options import Option

# Options of the submitted job, passed to sbatch unchanged.
TO_SBATCH = (
    Option("partition", "partition of the submitted job", cluster=True),
    Option("account", "account that the job is charged to", cluster=True),
    Option("time", "the job's time limit, in sbatch's format; an unfinished job is queued again", cluster=True),
    Option("gres", "resources of each of the job's nodes, such as gpu:4", cluster=True),
    Option("constraint", "features of the job's nodes", cluster=True),
)
LINES = Option("lines", "further lines of the job's script: #SBATCH options, modules", "FILE", cluster=True)
SCRIPT, SUBMITTED = "job.sh", "submitted.json"
SECONDS = 120.0  # for sbatch, which waits for a busy controller
WARNING = 120  # seconds before the time limit when the job gets a signal

_BODY = """
# Resumes the run if it was started before. Before the time limit, and when the job is preempted, the runner
# is stopped by SIGTERM; after the time limit the job is requeued if any cell was finished.
cd {here} || exit 2
run={out}
kept() {{ cat "$run/records.jsonl" "$run/processes/reports.jsonl" 2>/dev/null | wc -l; }}
if [ -e "$run/plan.json" ]; then set -- --resume "$run" {again}
else set -- {words} --out "$run"; fi
before=$(kept)
{python} {runner} bench "$@" &
runner=$!
again=
trap 'again=1; kill -TERM "$runner"' USR1
trap 'kill -TERM "$runner"' TERM
while kill -0 "$runner" 2>/dev/null; do wait "$runner"; done
wait "$runner"; code=$?
if [ -n "$again" ] && [ "$code" = 130 ] && [ "$(kept)" -gt "$before" ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
"""


def words_of(options: Iterable[Option], values: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line that give these values, by flag; None and a switch that is off have none."""
    words = []
    for one in options:
        value = values.get(one.flag)
        if one.switch:
            words += [f"--{one.flag}"] if value else []
        elif value is not None:
            words.append(f"--{one.flag}={','.join(map(str, value)) if isinstance(value, list) else value}")
    return words


def script(out: Path, words: Sequence[str], again: Sequence[str], nodes: int, given: Mapping[str, str | None]) -> str:
    """Return the job's script: `words` start the run in the folder `out`, and `again` are more words that resume it.

    They run in this process's folder, which their paths may be relative to. `given` has the values of `TO_SBATCH` by
    flag, and under `lines` a file of further lines. Raises UsageError.
    """
    options = [
        "--job-name=eager-vs-graph",
        f"--nodes={nodes}",
        "--exclusive",  # other jobs on a node would disturb the measurement
        "--no-kill",  # the job continues if a node dies
        "--requeue",
        f"--signal=B:USR1@{WARNING}",
        "--open-mode=append",
        f"--output={str(out).replace('%', '%%')}/slurm-%j.out",
    ]
    options += [f"--{one.flag}={given[one.flag]}" for one in TO_SBATCH if given.get(one.flag)]
    for option in options:
        if "\n" in option:
            raise UsageError(
                f"{option.partition('=')[0].lstrip('-').upper()} holds a line break; write it in one line."
            )
    head = [f"#SBATCH {option if ' ' not in option else shlex.quote(option)}" for option in options]
    lines = given.get("lines")
    further = [read_text(lines, "The file of further lines", 1 << 20).rstrip("\n")] if lines else []
    body = _BODY.format(
        here=shell_word(str(Path.cwd())),
        runner=shell_word(str(SUITE / "runner.py")),
        out=shell_word(str(out)),
        again=" ".join(map(shell_word, again)),
        words=" ".join(map(shell_word, words)),
        python=shell_word(sys.executable),
    )
    return "\n".join(["#!/bin/bash", *head, *further, body])


def submit(out: Path, text: str) -> str:
    """Pass the script to sbatch; return the job's number. Raises UsageError."""
    path = out / SCRIPT
    durable.replace(path, text.encode())
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SBATCH_")}
    try:
        done = programs.run(["sbatch", "--parsable", str(path)], SECONDS, env=environment, cwd=SUITE)
    except OSError as error:
        raise UsageError(f"sbatch could not be started ({error.strerror}); LAUNCHER=slurm needs a cluster.") from None
    if done.problem:
        raise UsageError(f"sbatch: {done.problem}; squeue shows whether the job was accepted; its script is {path}.")
    number = done.output.strip().partition(";")[0]
    if done.code or not number.isdigit():
        said = " ".join((done.errors or done.output).replace("sbatch: error: ", "").split())
        raise UsageError(f"sbatch refused the job: {said.rstrip('.')}; the script is {path}.")
    durable.replace(out / SUBMITTED, (json.dumps({"job": number}) + "\n").encode())
    return number
