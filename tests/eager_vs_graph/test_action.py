"""The GitHub Action's steps against a server that answers as GitHub's API does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from conftest import ROOT
from doubles.environment import FEW_PROCESSES

sys.path.insert(0, str(ROOT))
from eager_vs_graph import action

MODEL = """
import torch

def model():
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())

def inputs(batch_size):
    return torch.randn(batch_size, 8)
"""


class GitHub(HTTPServer):
    """Comments of one pull request, 100 a page."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[dict] = []
        self.tokens: set[str | None] = set()


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
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *words) -> None:
        pass


@pytest.fixture
def github():
    server = GitHub()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()


@pytest.fixture
def env(github, tmp_path):
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    return {
        "GITHUB_API_URL": f"http://127.0.0.1:{github.server_port}",
        "GITHUB_REPOSITORY": "someone/something",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "INPUT_TOKEN": "secret",
    }


def test_the_first_push_comments_and_later_ones_update_that_comment(github, env):
    github.comments = [{"id": number, "body": "words"} for number in range(150)]
    action.comment(env, 7, f"{action.MARK}\none")
    action.comment(env, 7, f"{action.MARK}\ntwo")
    assert [entry["body"] for entry in github.comments[150:]] == [f"{action.MARK}\ntwo"]
    assert github.tokens == {"Bearer secret"}


def test_only_a_pull_request_has_a_number(env, tmp_path):
    assert action.pull_request(env) == 7
    (tmp_path / "event.json").write_text("{}")
    assert action.pull_request(env) is None
    assert action.pull_request({}) is None


@pytest.mark.slow
def test_a_change_is_measured_and_compared_with_its_base(github, env, tmp_path, monkeypatch):
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "model.py").write_text(MODEL)
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "base"]):
        subprocess.run(["git", *words], cwd=repository, check=True)
    monkeypatch.chdir(repository)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([FEW_PROCESSES, str(ROOT)]))  # as if installed
    options = "--python locked --threads 1 --budget 0.3 --mode inductor"
    code = action.main(env | {"INPUT_MODEL": "model.py", "INPUT_OPTIONS": options, "INPUT_BASELINE": "HEAD"})
    summary = (tmp_path / "summary.md").read_text()
    assert code in (0, action.SLOWER), summary
    assert "model.py" in summary and "torch" in summary
    (only,) = github.comments
    assert only["body"] == summary
    assert (tmp_path / "temp/eager-vs-graph/comparison.md").exists()
