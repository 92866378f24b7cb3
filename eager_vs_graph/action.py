"""The steps of the GitHub Action (action.yml): measure, compare with a baseline, write the summary and the comment.

Inputs come as INPUT_* variables, as the action hands them on; GITHUB_* are the runner's.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MARK = "<!-- eager-vs-graph -->"  # finds the comment that an earlier push made
SLOWER, REFUSED, INCONCLUSIVE = 1, 2, 3
SECONDS = 30.0


def main(env: Mapping[str, str] = os.environ) -> int:
    """Run all steps; return 1 where the change is slower than allowed, 2 where nothing was measured, else 0."""
    out = Path(env.get("RUNNER_TEMP", ".")) / "eager-vs-graph"
    code, answer = measured(env, Path.cwd(), out / "change")
    texts = (
        ["\n".join(f"- {sentence}" for sentence in answer["verdicts"])]
        if answer
        else ["Nothing was measured: see the job's log."]
    )
    if answer and env.get("INPUT_BASELINE"):
        code, text = compared(env, out)
        texts.append(text)
    summary = "\n\n".join([MARK, "### eager-vs-graph", *texts]) + "\n"
    if path := env.get("GITHUB_STEP_SUMMARY"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(summary)
    if env.get("INPUT_TOKEN") and (number := pull_request(env)):
        comment(env, number, summary)
    if code == INCONCLUSIVE:
        print("::warning title=eager-vs-graph::The comparison is inconclusive; the job's summary has the intervals.")
        return 0
    return code


def measured(env: Mapping[str, str], folder: Path, out: Path) -> tuple[int, dict[str, Any] | None]:
    """Measure the model in a folder; return the exit code and the JSON object that `--json` printed, or None."""
    words = [env["INPUT_MODEL"], "--json", "--out", str(out), *shlex.split(env.get("INPUT_OPTIONS", ""))]
    done = _suite(words, folder)
    answer = json.loads(done.stdout) if done.stdout.strip() else None
    return (0 if done.returncode in (0, INCONCLUSIVE) and answer else REFUSED), answer


def compared(env: Mapping[str, str], out: Path) -> tuple[int, str]:
    """Compare the change with the baseline, a run's folder or a revision to be measured; return code and Markdown."""
    baseline = env["INPUT_BASELINE"]
    if not Path(baseline).is_dir():
        tree = out / "tree"
        added = subprocess.run(["git", "worktree", "add", "--detach", str(tree), baseline], text=True)
        if added.returncode:
            return REFUSED, f"`{baseline}` is neither a run's folder nor a revision: check out with `fetch-depth: 0`."
        code, answer = measured(env, tree, out / "baseline")
        if answer is None:
            return code, f"The model could not be measured at `{baseline}`."
        baseline = str(out / "baseline")
    page = out / "comparison.md"
    limit = env.get("INPUT_MAX_SLOWDOWN") or "5%"
    words = ["compare", baseline, str(out / "change"), "--max-slowdown", limit, "--out", str(page)]
    done = _suite(words, Path.cwd())
    print(done.stdout)
    return done.returncode, page.read_text(encoding="utf-8") if page.exists() else "The runs could not be compared."


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
    """Write the comment of a pull request: the one that an earlier push made, else a new one."""
    issues = f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}/issues"
    page = 1
    while found := _request(env, "GET", f"{issues}/{number}/comments?per_page=100&page={page}"):
        for entry in found:
            if str(entry.get("body", "")).startswith(MARK):
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
