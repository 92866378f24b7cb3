"""Messages that do not fit: each costs its own cell, the run goes on, and a resumed run is none the worse."""

from __future__ import annotations

import json
import math
import sys

import pytest
from doubles.suite import Finished

from measurement import protocol
from measurement.cells import Cell, Effective
from measurement.checked import Misfit, data_of, read
from measurement.profiles import PROFILES
from measurement.protocol import Control, Explained, GroupJob, Hello, Job, OtherShape, ProtocolError, Unseen
from measurement.refusals import INCOMPLETE
from records.statuses import MEASURED

pytestmark = pytest.mark.slow

# mode -> its status, and what its reason says.
LIES = {
    "nan-sample": ("error", "with wrong content: samples is nan, which is not a number"),
    "infinite-sample": ("error", "with wrong content: samples is inf, which is not a number"),
    "zero-sample": ("error", "with wrong content: samples is 0, not above 0"),
    "negative-sample": ("error", "with wrong content: samples is -0.1, not above 0"),
    "no-fields": ("error", "with wrong content: samples is missing"),
    "unknown-status": ("error", "with wrong content: status 'fine' is not known"),
    "no-reason": ("error", "with wrong content: reason is NoneType, not str"),
    "silent-refusal": ("unsupported", "does not say why"),
    "long-refusal": ("unsupported", "No. No. No."),
    "null-hello": ("error", "a hello message with wrong content: versions is not an object"),
    "list-of-seconds": ("error", "with wrong content: seconds is not an object"),
    "deep-message": ("error", "with wrong content: compiler.a is nested too deeply or is too long"),
    "twice": ("error", "was not requested or was already reported"),
    "torn-outputs": ("error", "could not be turned into a record: BadZipFile"),
}


@pytest.fixture(scope="session")
def told(run) -> Finished:
    """A good mode and all that lie, in one group."""
    return run("--framework", "fake", "--mode", ",".join(["eager", "graph", *LIES]))


@pytest.mark.parametrize("mode", LIES)
def test_a_message_that_does_not_fit_costs_its_own_cell(told, mode):
    status, reason = LIES[mode]
    record = told.record(mode)
    assert record["status"] == status
    assert reason in record["reason"]
    assert len(record["reason"]) <= 3000


def test_all_else_is_measured(told):
    assert told.code == INCOMPLETE
    assert told.complete()
    assert "Traceback" not in told.output
    assert told.record("eager")["status"] in MEASURED
    assert told.record("graph")["status"] in MEASURED


def test_a_resumed_run_measures_anew_what_does_not_fit(run, suite):
    """Reports that were kept and are not whole: lists, nulls, no numbers, a failure without a reason."""
    first = run("--framework", "fake", "--mode", "eager,graph")
    eager, graph = (json.loads(line)["cell"] for line in first.lines)
    entries = (
        {"cell": eager, "report": {"cell": eager, "samples": [math.nan]}, "hello": None},
        {"cell": graph, "failure": {"status": "error", "reason": None}},
        {"cell": graph, "hello": {"versions": None}},
        {"cell": None},
        {},
    )
    (first.folder / "processes/reports.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (first.folder / "records.jsonl").write_bytes(b"")
    again = suite.bench(first.folder, "--resume", str(first.folder), "--python", sys.executable)
    assert again.code == 0, again.output
    assert again.complete()
    assert all(record["status"] in MEASURED for record in again.records)


def sent(message) -> dict:
    """What arrives of a message."""
    return json.loads(json.dumps(message.to_json()))


def test_messages_come_back_as_they_were(report):
    explained = Explained(
        "a", 0.1, (0.1, 0.2), 3, (("gemm", 0.1, 2.0, "mm"),), 0.4, 0.3, attention=({"call": "x", "count": 2},)
    )
    for message in (
        protocol.Phase(None, "import"),
        protocol.Phase("a", "sampling"),
        protocol.Progress(3, {"a": 0.1}),
        protocol.Provisional("a", 0.1, 2.0),
        protocol.Done(),
        protocol.Primed("a"),
        protocol.Failed("a", "oom", "No room."),
        Hello({"x": "1"}, Effective(2, settings={"deep": {"list": [1, None, "a"]}}), {"y": "2"}),
        report(cell="a", unseen=Unseen(7, first_call_s=0.1, outputs="x"), process=2, worker="0003"),
        explained,
    ):
        assert protocol.message(sent(message)) == message


def test_a_job_comes_back_as_it_was(cell):
    group = GroupJob((cell(), cell(mode="jit")), "w", "i", (Control("a~b", "a", 0.1),), OtherShape("o", 7))
    job = Job("explain", "torch", (group,), PROFILES["quick"], "folder", 3, 1, (group,), {"torch": "2"}, True, (0, 1))
    assert read(Job, json.loads(json.dumps(data_of(job)))) == job
    assert isinstance(job.cells[0], Cell)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"samples": []}, "samples holds none"),
        ({"samples": [True]}, "samples is bool, not float"),
        ({"samples": "0.1"}, "samples is not a list"),
        ({"samples": [10**400]}, "samples is int, not float"),
        ({"samples": [0.1] * 1_000_001}, "samples is not a list, or is too long"),
        ({"calls_per_sample": 0}, "calls_per_sample is below 1"),
        ({"calls_per_sample": 1.5}, "calls_per_sample is float, not int"),
        ({"steady": 1}, "steady is int, not bool"),
        ({"first_call_s": -1}, "first_call_s is -1, not 0 or above"),
        ({"host_loop_s": [0.0]}, "host_loop_s is 0, not above 0"),
        ({"capture": {"whole": None}}, "capture.whole is NoneType"),
        ({"noise": None}, "noise is not an object"),
        ({"noise": {"seconds": math.nan}}, "noise.seconds is nan"),
        ({"compiler": {"flags": math.inf}}, "compiler.flags is inf"),
        ({"outputs": 3}, "outputs is int, not str"),
    ],
)
def test_a_report_that_does_not_fit_is_one_sentence(report, changes, reason):
    good = sent(report(cell="a"))
    assert protocol.message(good).cell == "a"
    with pytest.raises(ProtocolError, match="with wrong content") as caught:
        protocol.message(good | changes)
    assert reason in str(caught.value)
    assert str(caught.value).endswith(".")
    assert caught.value.cell == "a"


@pytest.mark.parametrize("data", [{"type": "fine"}, {"type": None}, {"type": ["cell"]}, {}])
def test_a_message_of_no_known_kind(data):
    with pytest.raises(ProtocolError, match="of an unknown kind"):
        protocol.message(data)


def test_a_reason_is_a_sentence_and_bounded():
    for reason in ("", " \n", None, "x" * 10_000):
        with pytest.raises(ProtocolError, match="reason"):
            protocol.message({"type": "cell", "cell": "a", "status": "error", "reason": reason})


def test_depth_is_bounded():
    deep: list = []
    for _ in range(40):
        deep = [deep]
    with pytest.raises(Misfit, match="too deep"):
        read(Effective, {"settings": {"a": deep}})
    assert read(Effective, {"settings": {"a": [[[1]]]}}) == Effective(settings={"a": [[[1]]]})


def test_what_has_no_field_is_left_out():
    assert read(Effective, data_of(Effective(1)) | {"later": 1}) == Effective(1)
