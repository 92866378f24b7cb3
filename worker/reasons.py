"""The reason of an exception: the framework's own final message, the place in the user's file, and a hidden cause."""

from __future__ import annotations

import re

from frameworks.adapter import Unsupported
from frameworks.user_file import Fault, place_of, text_of
from measurement.protocol import REASON_CHARACTERS

# Paddle and TensorFlow write a traceback into the message: frames, each with lines of its source, then the exception.
FRAME = re.compile(r'\s*File "[^"]+", line \d+')
FINAL = re.compile(r"\s*(?:\w+\.)*\w+(?::\s|:?$)")
_BEFORE = re.compile(r"\s*(?:in|from) (?:user|transformed) code:\s*$", re.IGNORECASE)
_STYLE = re.compile(r"\x1b\[[\d;]*m")
_KERAS = re.compile(r"Exception encountered when calling [^\n]*\n\s*\n|\n\s*Arguments received by .*", re.DOTALL)
SENTENCES = (Unsupported, Fault)  # of the suite, with the way out
CAUSE_CHARACTERS = 300


def message(error: BaseException) -> str:
    """Return an exception's text in one line, without its class and stack frames."""
    return " ".join(_KERAS.sub("", _after_frames(_STYLE.sub("", text_of(error)))).split())


def _after_frames(text: str) -> str:
    """Return the exception at the end of a traceback, without its class; text without a traceback unchanged."""
    lines = text.split("\n")
    frames = [number for number, line in enumerate(lines) if FRAME.match(line)]
    if not frames:
        return text
    last = lines[frames[-1] + 1 :]
    indent = len(lines[frames[-1]]) - len(lines[frames[-1]].lstrip())
    for number, line in enumerate(last):  # source is indented more
        if len(line) - len(line.lstrip(" ")) == indent and not line.startswith("\t") and (final := FINAL.match(line)):
            return "\n".join([line[final.end() :], *last[number + 1 :]])
    return _BEFORE.sub("", "\n".join(lines[: frames[0]]))


def hidden(error: BaseException) -> str:
    """Return ` Cause: …` with the first cause of an exception, suppressed or not; empty if the message has it.

    A sentence of the suite's that another one of these causes is the same in other words.
    """
    first = error
    seen = {id(first)}
    while (cause := first.__cause__ or first.__context__) and id(cause) not in seen:
        first = cause
        seen.add(id(first))
    text = message(first)
    same = isinstance(error, SENTENCES) and isinstance(first, SENTENCES)
    if same or first is error or isinstance(first, SystemExit) or not text or text[:CAUSE_CHARACTERS] in message(error):
        return ""
    return f" Cause: {type(first).__name__}: {text[:CAUSE_CHARACTERS]}"


def of_user_model(error: BaseException, reason: str, source: str) -> str:
    """Return the reason, its place in the user's folder (`net.py:12`), and its hidden cause."""
    place = "" if isinstance(error, SENTENCES) else place_of(error, source)
    end = (f" ({place})" if place else "") + hidden(error)
    return reason[: REASON_CHARACTERS - len(end)] + end
