"""The results pipe: whole messages however the bytes come, and a bound on all that a worker may write."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from conftest import ROOT

from launchers import messages
from measurement.cells import Cell
from measurement.protocol import Done
from worker.channel import Channel


def test_memory_and_work_are_bounded():
    incoming, longest = messages.Messages(lambda line: None), 0
    with pytest.raises(messages.TooLong, match="a line of more than 8 MiB"):
        while True:
            incoming.feed(b"x" * 4096)
            longest = max(longest, len(incoming._pending))
    assert longest <= messages.LINE_BYTES
    with pytest.raises(messages.TooLong, match="a line of more than 8 MiB"):
        messages.Messages(lambda line: None).feed(b"x" * messages.LINE_BYTES + b"x\n")
    incoming, message = messages.Messages(lambda line: None), b'{"type": "' + b"x" * (1 << 20) + b'"}\n'
    with pytest.raises(messages.TooLong, match="more than 256 MiB"):
        while True:
            assert len(incoming.feed(message)) == 1
    with pytest.raises(messages.TooLong, match="more than 100000 lines that are not messages"):
        messages.Messages(lambda line: None).feed(b"x\n" * (messages.STRAYS + 1))


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_messages_are_whole_however_the_bytes_come(size):
    strays: list[bytes] = []
    incoming = messages.Messages(strays.append)
    text = (
        b'\n{"type": "a"}\n' + b'{"type": "b' + b'\n{"type": "c", "text": "\xc3\xa9"}\n' + b"[1]\nnull\n" + b"[" * 9999
    )
    text += b'\n{"type": 1}\n\xff\n\n{"type": "d"}\n{"type":'
    received = [one for start in range(0, len(text), size) for one in incoming.feed(text[start : start + size])]
    assert [message["type"] for message in received] == ["a", "c", "d"]
    assert strays == [b'{"type": "b', b"[1]", b"null", b"[" * 9999, b'{"type": 1}', b"\xff"]


def test_half_a_line_on_the_pipe_spoils_itself_alone(tmp_path):
    """And a child that is started gets no descriptor of the pipe, which it would keep open."""
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    channel = Channel(f"/dev/fd/{writer}", str(tmp_path / "marker"))
    assert not os.get_inheritable(writer)
    os.write(writer, b'{"type": "ce')
    channel.send(Done())
    assert messages.Messages(lambda line: None).feed(os.read(reader, 1 << 16)) == [{"type": "done"}]


def test_a_mode_that_closes_its_streams_costs_the_next_one_nothing(tmp_path):
    """A file that is opened next would get the number of one, and be written into."""
    reader, writer = os.pipe()
    cell = Cell("numpy", "mlp", "plain", "inference", "cpu", "fp32", 1, (), "eager")
    code = f"""
        import os
        from measurement.cells import Cell
        from worker.channel import Channel
        channel = Channel("/dev/fd/{writer}", {str(tmp_path / "marker")!r})
        os.closerange(0, 3)
        channel.phase({cell!r}, "prepare")
        assert os.open({str(tmp_path / "file")!r}, os.O_CREAT) > 2
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, pass_fds=[writer], check=True)
    received = messages.Messages(lambda line: None).feed(os.read(reader, 1 << 16))
    assert received == [{"type": "phase", "cell": cell.id, "phase": "prepare"}]
