"""Where a mode compiled again: how often, which guard failed, and in which line."""

from __future__ import annotations

import json
from collections.abc import Iterable

from measurement.text import times
from records.record import Record

MOST_PLACES = 2  # in a sentence; report.md has all


def sentence(record: Record) -> str:
    """Return `inductor recompiled 5 times: x.size(0) == 3 (net.py:12).`; empty where nothing was compiled again."""
    count, text = record.recompilations or 0, record.recompiled_places
    places = json.loads(text) if text else []
    if not count and not places:
        return ""
    if count and count >= _calls(record):
        done = "compiles at every call"
    else:
        done = f"recompiled {times(count, 'time')}" if count else "recompiled"
    shown = "; ".join(f"{why} ({place})" for place, why in places[:MOST_PLACES])
    more = f"; and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
    return f"{record.mode} {done}{f': {shown}{more}' if shown else ''}."


def sentences(records: Iterable[Record]) -> list[str]:
    """Return each sentence once, in the order of the records."""
    return list(dict.fromkeys(filter(None, map(sentence, records))))


def _calls(record: Record) -> float:
    """Return the calls in the samples of a record; infinite where it does not say."""
    calls = (record.samples or 0) * (record.calls_per_sample or 0)
    return calls or float("inf")
