"""The steps of the GitHub Action (action.yml): measure, compare with a baseline, write the summary and the comment.

Inputs come as INPUT_* variables, as the action hands them on; GITHUB_* are the runner's.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

DONE, SLOWER, REFUSED, INCONCLUSIVE = range(4)
BY_GRAVITY = (DONE, INCONCLUSIVE, SLOWER, REFUSED)
FAILURES = ("mismatch", "error", "crash", "timeout", "oom")  # statuses of a figure
SECONDS = 30.0


def main(env: Mapping[str, str] = os.environ) -> int:
    """Run all steps; return 1 where the change is slower than allowed or a mode fails, 2 without a result, else 0."""
    out = Path(tempfile.mkdtemp(prefix="eager-vs-graph-", dir=env.get("RUNNER_TEMP")))
    code, answer = measured(env, env["INPUT_MODEL"], Path.cwd(), out / "change")
    texts, before = [described(answer)], Compared(DONE, "")
    if answer and env.get("INPUT_BASELINE"):
        before = compared(env, out)
        texts.append(before.text)
    broken = failing(answer) - failing(before.answer) if answer else set()
    code = max(code, before.code, SLOWER if broken else DONE, key=BY_GRAVITY.index)
    summary = "\n\n".join([mark(env), "### eager-vs-graph", *texts]) + "\n"
    if path := env.get("GITHUB_STEP_SUMMARY"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(summary)
    if env.get("INPUT_TOKEN") and (number := pull_request(env)):
        try:
            comment(env, number, summary)
        except (OSError, HTTPException, ValueError) as error:  # such as the read-only token of a fork's pull request
            warn(f"The comment was not written ({error}); the job's summary has its text.")
    if code == INCONCLUSIVE:
        warn("Some results are inconclusive; the job's summary has the intervals.")
        return DONE
    return code


def warn(text: str) -> None:
    """Print a warning that GitHub shows with the job."""
    print(f"::warning title=eager-vs-graph::{' '.join(text.split())}")


def mark(env: Mapping[str, str]) -> str:
    """Return the invisible first line of a comment, by which later pushes find that of the same model and options."""
    asked = f"{env['INPUT_MODEL']}\n{env.get('INPUT_OPTIONS', '')}"
    return f"<!-- eager-vs-graph {hashlib.sha256(asked.encode()).hexdigest()[:12]} -->"


def measured(env: Mapping[str, str], model: str, folder: Path, out: Path) -> tuple[int, dict[str, Any] | None]:
    """Measure the model in a folder; return the exit code and the JSON object that `--json` printed, or None."""
    words = [model, "--json", "--out", str(out), *shlex.split(env.get("INPUT_OPTIONS", ""))]
    done = _suite(words, folder)
    answer = None
    with contextlib.suppress(ValueError):  # no JSON, as of a dry run
        answer = json.loads(done.stdout)
    if not isinstance(answer, dict) or done.returncode not in BY_GRAVITY:
        return REFUSED, None
    return done.returncode, answer


def failing(answer: Mapping[str, Any] | None) -> set[str]:
    """Return the cells that failed."""
    return {figure["cell"] for figure in answer["figures"] if figure["status"] in FAILURES} if answer else set()


def failures(answer: Mapping[str, Any]) -> list[str]:
    """Return a line of Markdown for each figure that failed."""
    failed = [figure for figure in answer["figures"] if figure["status"] in FAILURES]
    return [f"`{one['cell']}`: {one['status']}: `{_one_line(one['reason'] or 'no reason given')}`" for one in failed]


def _one_line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())


def described(answer: Mapping[str, Any] | None) -> str:
    """Return the verdicts and failures as a Markdown list."""
    lines = [*answer["verdicts"], *failures(answer)] if answer else []
    return "\n".join(f"- {line}" for line in lines) or "Nothing was measured: see the job's log."


class Compared(NamedTuple):
    """The exit code and Markdown of a comparison, and the baseline's figures."""

    code: int
    text: str
    answer: Mapping[str, Any] | None = None


def compared(env: Mapping[str, str], out: Path) -> Compared:
    """Compare the change with the baseline, a run's folder or a revision to be measured."""
    baseline = env["INPUT_BASELINE"]
    if Path(baseline).is_dir():
        return Compared(*_comparison(env, baseline, out), {"figures": _rows(Path(baseline))})
    tree = out / "tree"
    _git("worktree", "prune")  # forgets trees whose folders are gone, as after an earlier job
    if not _git("worktree", "add", "--detach", str(tree), baseline):
        said = f"`{baseline}` is neither a run's folder nor a revision: check out with `fetch-depth: 0`."
        return Compared(REFUSED, said)
    try:
        return _compared_with(env, tree, out)
    finally:
        _git("worktree", "remove", "--force", str(tree))


def _rows(folder: Path) -> list[dict[str, str]]:
    """Return the rows of a run's table; none without one."""
    try:
        with open(folder / "results.csv", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError:
        return []


def _compared_with(env: Mapping[str, str], tree: Path, out: Path) -> Compared:
    """Measure the model in the baseline's tree and compare; a baseline without the file leaves the change alone."""
    baseline, model = env["INPUT_BASELINE"], env["INPUT_MODEL"]
    if Path(model).is_file():
        model = os.path.relpath(model)  # an absolute path would measure the change twice
        if not (tree / model).is_file():
            return Compared(DONE, f"`{baseline}` has no `{model}`: there is nothing to compare with.")
    _, answer = measured(env, model, tree, out / "baseline")
    if answer is None:
        return Compared(REFUSED, f"The model could not be measured at `{baseline}`.")
    return Compared(*_comparison(env, str(out / "baseline"), out), answer)


def _comparison(env: Mapping[str, str], baseline: str, out: Path) -> tuple[int, str]:
    """Compare the change's run with a baseline's; return code and Markdown."""
    page = out / "comparison.md"
    limit = env.get("INPUT_MAX_SLOWDOWN") or "5%"
    words = ["compare", baseline, str(out / "change"), "--max-slowdown", limit, "--out", str(page)]
    done = _suite(words, Path.cwd())
    print(done.stdout)
    if not page.exists() or done.returncode not in BY_GRAVITY:
        return REFUSED, "The runs could not be compared: see the job's log."
    return done.returncode, page.read_text(encoding="utf-8")


def _git(*words: str) -> bool:
    """Run git in the checkout; return whether it succeeded."""
    try:
        return subprocess.run(["git", *words]).returncode == 0
    except OSError:  # there is no git
        return False


def _suite(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the suite's command line in a folder; its progress goes to the job's log."""
    command = [sys.executable, "-m", "eager_vs_graph", *words]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True)


def pull_request(env: Mapping[str, str]) -> int | None:
    """Return the number of the pull request that the job runs for; None for another event."""
    path = env.get("GITHUB_EVENT_PATH")
    if not path or not Path(path).is_file():
        return None
    number = json.loads(Path(path).read_text(encoding="utf-8")).get("pull_request", {}).get("number")
    return int(number) if number else None


def comment(env: Mapping[str, str], number: int, text: str) -> None:
    """Write the comment of a pull request: the one that an earlier push made, else a new one.

    Its first line is its mark. Raises OSError, HTTPException or ValueError where GitHub does not take it.
    """
    issues = f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}/issues"
    page = 1
    while found := _request(env, "GET", f"{issues}/{number}/comments?per_page=100&page={page}"):
        for entry in found:
            if str(entry.get("body", "")).startswith(text.partition("\n")[0]):
                _request(env, "PATCH", f"{issues}/comments/{entry['id']}", {"body": text})
                return
        page += 1
    _request(env, "POST", f"{issues}/{number}/comments", {"body": text})


def _request(env: Mapping[str, str], method: str, address: str, content: Mapping[str, str] | None = None) -> Any:
    """Send a request to GitHub's API and return its JSON."""
    headers = {"Authorization": f"Bearer {env['INPUT_TOKEN']}", "Accept": "application/vnd.github+json"}
    data = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(address, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return json.loads(answer.read() or "null")


if __name__ == "__main__":
    sys.exit(main())
