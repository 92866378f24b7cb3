"""Distributions of lengths: those that come with the suite, and files of counts."""

from __future__ import annotations

import pytest

from workloads import lengths
from workloads.lengths import Lengths, NoLengths

FEW = Lengths("few", ((2, 50), (5, 30), (8, 15), (100, 5)))


@pytest.mark.parametrize(
    ("name", "calls", "above", "address"),
    [("chat", 4_338, 0.0, "gunthercox/chatterbot-corpus"), ("retrieval", 1_245, 0.2554, "pandas.pydata.org")],
)
def test_a_distribution_of_the_suite_names_its_source(name, calls, above, address):
    found = lengths.read(name)
    assert sum(count for _, count in found.counts) == calls
    assert found.share_above(512) == pytest.approx(above, abs=5e-4)
    assert any(address in line for line in found.source) and any("licence" in line for line in found.source)


def test_longer_calls_are_cut_and_none_is_lost():
    cut = FEW.clipped(6)
    assert cut.counts == ((2, 50), (5, 30), (6, 15), (6, 5))
    assert FEW.share_above(6) == pytest.approx(0.2)
    assert FEW.clipped(100) == FEW


def test_quantiles_divide_the_calls():
    assert FEW.quantiles(2) == (2, 100)
    assert FEW.quantiles(4) == (2, 5, 100)
    assert FEW.quantiles(10) == (2, 5, 8, 100)


def test_a_stream_is_the_same_for_a_seed_and_follows_the_counts():
    stream = FEW.stream(4000, 1)
    assert stream == FEW.stream(4000, 1) != FEW.stream(4000, 2)
    assert stream.count((2, 1)) / 4000 == pytest.approx(0.5, abs=0.05)
    assert stream.count((100, 1)) / 4000 == pytest.approx(0.05, abs=0.02)
    assert FEW.clipped(6).stream(100, 1, batch=4) == tuple((min(length, 6), 4) for length, _ in stream[:100])


def test_a_file_of_counts_is_read(tmp_path):
    (tmp_path / "own.csv").write_text("# mine\nlength,count\n7,2\n3,1\n")
    assert lengths.read(str(tmp_path / "own.csv")) == Lengths("own", ((3, 1), (7, 2)), ("mine",))


@pytest.mark.parametrize(
    "text",
    [
        '"length","count"\n"3","1"\n"7","2"\n',
        "\ufefflength,count\n3,1\n7,2\n",
        "length, count\n 3 , 1\n\t\n7, 2\n",
        "length,count\r\n3,1\r\n7,2\r\n",
    ],
)
def test_a_file_as_spreadsheets_write_it_is_read(text, tmp_path):
    (tmp_path / "own.csv").write_bytes(text.encode())
    assert lengths.read(str(tmp_path / "own.csv")).counts == ((3, 1), (7, 2))


def test_a_file_may_hold_batch_sizes(tmp_path):
    (tmp_path / "own.csv").write_text("length,batch,count\n7,4,2\n3,1,1\n7,1,1\n")
    found = lengths.read(str(tmp_path / "own.csv"))
    assert (found.counts, found.batches) == (((3, 1), (7, 1), (7, 2)), (1, 1, 4))
    assert set(found.clipped(5).stream(100, 1)) == {(3, 1), (5, 1), (5, 4)}
    assert found.quantiles(4) == (3, 7)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no counts"),
        ("length,count\n", "write rows of length,count below its first line"),
        ("tokens,count\n1,2\n", "the first line must be length,count"),
        ("length,count\n1\n", "give 2 whole numbers"),
        ("length,count\n1,-2\n", "give 2 whole numbers"),
        ("length,batch,count\n1,2\n", "give 3 whole numbers, length,batch,count"),
        ("length,count\n0,2\n", "write numbers from 1, and each shape once"),
        (f"length,count\n5,{'9' * 5000}\n", "whole numbers, length,count, of at most 12 digits"),
        (f"length,count\n{'5' * 200_000},2\n", "whole numbers, length,count, of at most 12 digits"),
        ("length,count\n3,2\n3,1\n", "write numbers from 1, and each shape once"),
    ],
)
def test_a_file_that_holds_no_counts_is_refused(text, sentence, tmp_path):
    (tmp_path / "own.csv").write_text(text)
    with pytest.raises(NoLengths, match=sentence):
        lengths.read(str(tmp_path / "own.csv"))


@pytest.mark.parametrize(
    ("word", "sentence"), [("news", "LENGTHS must be chat, retrieval"), ("gone.csv", "cannot be read")]
)
def test_a_distribution_that_is_not_there_is_refused(word, sentence):
    with pytest.raises(NoLengths, match=sentence):
        lengths.read(word)
