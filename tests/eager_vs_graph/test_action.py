"""The GitHub Action's steps against a server that answers as GitHub's API does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.environment import FEW_PROCESSES

sys.path.insert(0, str(ROOT))
from eager_vs_graph import action
from records.statuses import MEASURED, STATUSES

# Of the framework that compiles it in the shortest time.
MODEL = """
import jax
import numpy as np

def model():
    return lambda w, x: jax.nn.relu(x @ w), np.random.randn(8, 8).astype("float32")

def inputs(batch_size):
    return np.random.randn(batch_size, 8).astype("float32")
"""


class GitHub(HTTPServer):
    """Comments of one pull request, 100 a page."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[dict] = []
        self.tokens: set[str | None] = set()
        self.status, self.page = 200, ""


class Handler(BaseHTTPRequestHandler):
    server: GitHub

    def do_GET(self):
        page = int(self.path.rpartition("page=")[2])
        self._answer(self.server.comments[100 * (page - 1) : 100 * page])

    def do_POST(self):
        self.server.comments.append({"id": len(self.server.comments), **self._content()})
        self._answer(self.server.comments[-1])

    def do_PATCH(self):
        entry = self.server.comments[int(self.path.rpartition("/")[2])]
        entry |= self._content()
        self._answer(entry)

    def _content(self) -> dict:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, content) -> None:
        self.server.tokens.add(self.headers["Authorization"])
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write((self.server.page or json.dumps(content)).encode())

    def log_message(self, *words) -> None:
        pass


@pytest.fixture
def github():
    server = GitHub()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()


@pytest.fixture
def env(github, tmp_path):
    (tmp_path / "temp").mkdir()
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    return {
        "GITHUB_API_URL": f"http://127.0.0.1:{github.server_port}",
        "GITHUB_REPOSITORY": "someone/something",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "INPUT_TOKEN": "secret",
        "INPUT_MODEL": "model.py",
    }


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """The working folder: a repository whose first commit has no model, and whose second has one."""
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("other.py", "model.py"):
        (folder / name).write_text(MODEL)
        for words in (
            ["init", "-q"],
            ["add", name],
            ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", name],
        ):
            subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.fixture
def suite(monkeypatch):
    """A suite that prints what `answers` gives for a run's folder, and notes where each model was measured.

    Its comparison ends with the code `comparison`; with None it writes no page.
    """

    class Suite:
        def __init__(self):
            self.answers = lambda name: (0, answered())
            self.comparison: int | None = 0
            self.models: list[Path] = []

        def run(self, words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
            if words[0] == "compare":
                if self.comparison is not None:
                    Path(words[-1]).write_text("compared")
                return subprocess.CompletedProcess(words, self.comparison or 0, "the table")
            out = Path(words[3])
            out.mkdir()
            self.models.append(folder / words[0])
            assert self.models[-1].is_file()
            return subprocess.CompletedProcess(words, *self.answers(out.name))

    suite = Suite()
    monkeypatch.setattr(action, "_suite", suite.run)
    return suite


def answered(*statuses: str) -> str:
    """What --json prints of figures with these statuses."""
    figures = [{"cell": f"torch/{name}", "status": name, "reason": f"no\n`{name}`"} for name in ("ok", *statuses)]
    return json.dumps({"verdicts": ["model.py: torch: use inductor."], "figures": figures})


def test_the_first_push_comments_and_later_ones_update_that_comment(github, env):
    github.comments = [{"id": number, "body": "words"} for number in range(150)]
    mark = action.mark(env)
    other = action.mark(env | {"INPUT_OPTIONS": "--device gpu"})  # of another step of the job
    for text in (f"{mark}\none", f"{other}\none", f"{mark}\ntwo"):
        action.comment(env, 7, text)
    assert [entry["body"] for entry in github.comments[150:]] == [f"{mark}\ntwo", f"{other}\none"]
    assert github.tokens == {"Bearer secret"}


@pytest.mark.parametrize(("status", "page", "closed"), [(403, "", False), (200, "<html>", False), (200, "", True)])
def test_a_comment_that_is_refused_is_a_warning(github, env, repository, suite, capsys, status, page, closed):
    """Pull requests of forks and of Dependabot have a token that reads only."""
    github.status, github.page = status, page
    assert action.main(env | ({"GITHUB_API_URL": "http://127.0.0.1:9"} if closed else {})) == 0
    assert "::warning title=eager-vs-graph::The comment was not written (" in capsys.readouterr().out


def test_only_a_pull_request_has_a_number(env, tmp_path):
    assert action.pull_request(env) == 7
    (tmp_path / "event.json").write_text("{}")
    assert action.pull_request(env) is None
    assert action.pull_request({}) is None


@pytest.mark.parametrize("printed", ["", "usage: egvg", "[]"])
@pytest.mark.parametrize("baseline", ["", "HEAD"])
def test_without_an_answer_summary_and_comment_say_so(github, env, repository, suite, tmp_path, printed, baseline):
    suite.answers = lambda name: (0, printed)
    assert action.main(env | {"INPUT_BASELINE": baseline}) == action.REFUSED
    (only,) = github.comments
    assert only["body"] == (tmp_path / "summary.md").read_text()
    assert only["body"].endswith("Nothing was measured: see the job's log.\n") and len(suite.models) == 1


@pytest.mark.parametrize(
    ("own", "statuses", "both", "code", "warned"),
    [
        (0, (), 0, 0, False),
        (0, ("unsupported",), 0, 0, False),
        (3, (), 0, 0, True),
        (0, (), 3, 0, True),
        (1, (), 0, 1, False),  # --max-slowdown among the options
        (1, (), 3, 1, False),
        (0, (), 1, 1, False),
        (0, (), None, 2, False),  # no page: the comparison died
        (130, (), 0, 2, False),
        *((3, (status,), 0, 1, False) for status in action.FAILURES),
    ],
)
def test_the_worse_code_counts_with_or_without_a_baseline(
    env, repository, suite, tmp_path, capsys, own, statuses, both, code, warned
):
    suite.answers = lambda name: (own, answered(*statuses)) if name == "change" else (3, answered())
    suite.comparison = both
    assert action.main(env | {"INPUT_BASELINE": "HEAD"}) == code
    assert ("::warning" in capsys.readouterr().out) == warned
    summary = (tmp_path / "summary.md").read_text()
    for status in statuses:
        assert (f"- `torch/{status}`: {status}: `no '{status}'`\n" in summary) == (status in action.FAILURES)
    if both == 0:
        assert action.main(env) == code
        assert ("::warning" in capsys.readouterr().out) == warned


@pytest.mark.parametrize("folder", [False, True])
def test_a_mode_that_failed_before_the_change_is_a_warning(env, repository, suite, capsys, tmp_path, folder):
    (tmp_path / "results.csv").write_text("cell,status\ntorch/crash,crash\n")
    suite.answers = lambda name: (3, answered("crash"))
    assert action.main(env | {"INPUT_BASELINE": str(tmp_path) if folder else "HEAD"}) == 0
    assert "::warning" in capsys.readouterr().out


def test_statuses_that_fail_are_those_of_code_3():
    assert {*action.FAILURES, *MEASURED, "unsupported"} == {*STATUSES}


@pytest.mark.parametrize("absolute", [False, True])
def test_a_runner_of_one_s_own_measures_again_and_a_job_uses_the_action_twice(
    env, repository, suite, tmp_path, absolute
):
    subprocess.run(["git", "worktree", "add", "-q", "--detach", tmp_path / "tree"], check=True)
    shutil.rmtree(tmp_path / "tree")  # as RUNNER_TEMP is emptied between jobs
    model = str(repository / "model.py") if absolute else "model.py"
    for _ in range(2):
        assert action.main(env | {"INPUT_BASELINE": "HEAD", "INPUT_MODEL": model}) == 0
    assert len({*suite.models}) == 3 and suite.models[0] == suite.models[2] == repository / "model.py"
    assert (tmp_path / "summary.md").read_text().count("compared") == 2
    trees = subprocess.run(["git", "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert len(trees.splitlines()) == 1


@pytest.mark.parametrize(("own", "code"), [(0, 0), (1, 1)])
def test_a_change_that_adds_the_model_has_nothing_to_be_compared_with(env, repository, suite, tmp_path, own, code):
    suite.answers = lambda name: (own, answered())
    assert action.main(env | {"INPUT_BASELINE": "HEAD~1"}) == code
    assert len(suite.models) == 1
    assert "`HEAD~1` has no `model.py`: there is nothing to compare with." in (tmp_path / "summary.md").read_text()


def test_a_baseline_that_is_nothing_is_said(env, repository, suite, tmp_path, monkeypatch):
    for path in (os.environ["PATH"], ""):  # without git as well
        monkeypatch.setenv("PATH", path)
        assert action.main(env | {"INPUT_BASELINE": "nowhere"}) == action.REFUSED
    assert (tmp_path / "summary.md").read_text().count("`nowhere` is neither a run's folder nor a revision") == 2


@pytest.mark.slow
def test_a_change_is_measured_and_compared_with_its_base(github, env, repository, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([FEW_PROCESSES, str(ROOT)]))  # as if installed
    options = "--python locked --threads 1 --budget 0.3 --mode jit"
    code = action.main(env | {"INPUT_OPTIONS": options, "INPUT_BASELINE": "HEAD"})
    summary = (tmp_path / "summary.md").read_text()
    assert code in (0, action.SLOWER), summary
    assert "model.py" in summary and "jax" in summary
    (only,) = github.comments
    assert only["body"] == summary
    assert list(tmp_path.glob("temp/*/comparison.md"))
