"""Reasons of exceptions as frameworks write them: the final message, the user's line, the cause behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from frameworks.adapter import Unsupported
from worker.channel import classify
from worker.reasons import of_user_model

PADDLE = """In transformed code:

    File "{folder}/net.py", line 11, in forward
        flat = x.flatten()
        flat.scatter_(paddle.to_tensor([0, 1]), paddle.to_tensor([5.0, 6.0]))
        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE
        return x, flat

    File "{folder}/.venv/lib/python3.11/site-packages/paddle/base/wrapped_decorator.py", line 50, in wrapper
\treturn decorated(*args, **kwargs)
    File "{folder}/.venv/lib/python3.11/site-packages/paddle/utils/inplace_utils.py", line 75, in __impl__
\traise ValueError(

    ValueError: Sorry about what's happened. scatter_'s output variable is a viewed Tensor in dygraph.
"""
TENSORFLOW = """in user code:

    File "/venv/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 881, in error_handler  *
        filtered_tb = _process_traceback_frames(e.__traceback__)
    File "{folder}/net.py", line 21, in call
        raise ValueError("wrong shape\\nsecond line")

    ValueError: Exception encountered when calling Net.call().
    
    \x1b[1mwrong shape
    second line\x1b[0m
    
    Arguments received by Net.call():
      • x=tf.Tensor(shape=(2, 8), dtype=float32)
"""  # noqa: W293 - as TensorFlow writes it
TORCH = """Data-dependent branching
  Hint: Use `torch.cond`.

from user code:
   File "{folder}/net.py", line 9, in forward
    if x.sum() > 0:

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace
"""
BARE = """In transformed code:

    File "{folder}/net.py", line 4, in forward
        raise NotImplementedError

    NotImplementedError
"""


def reason_of(error: BaseException, folder: Path) -> str:
    return of_user_model(error, classify(error)[1], str(folder / "net.py"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            PADDLE,
            "ValueError: Sorry about what's happened. scatter_'s output variable is a viewed Tensor in dygraph. "
            "(net.py:11)",
        ),
        (TENSORFLOW, "ValueError: wrong shape second line (net.py:21)"),
        (TORCH, "ValueError: Data-dependent branching Hint: Use `torch.cond`. (net.py:9)"),
        (BARE, "ValueError (net.py:4)"),
        ("one\n  two", "ValueError: one two"),
    ],
    ids=["paddle", "tensorflow", "torch", "bare", "no frames"],
)
def test_a_reason_is_the_final_message_and_then_the_user_s_line(tmp_path, text, reason):
    assert reason_of(ValueError(text.format(folder=tmp_path)), tmp_path) == reason


def test_deep_frames_cut_off_neither_the_message_nor_the_line(tmp_path):
    frame = '    File "/venv/lib/python3.11/site-packages/paddle/a.py", line 5, in f\n\tf()\n'
    text = PADDLE.replace("    File", frame * 200 + "    File", 1)
    assert reason_of(ValueError(text.format(folder=tmp_path)), tmp_path).endswith("in dygraph. (net.py:11)")


def raised(shown: Exception, cause: Exception, how: str) -> Exception:
    """`shown`, raised while `cause` is handled: from it, from None, or without a word."""
    try:
        try:
            raise cause
        except type(cause):
            if how == "from None":
                raise shown from None
            if how == "from":
                raise shown from cause
            raise shown  # noqa: B904
    except type(shown) as error:
        return error


@pytest.mark.parametrize("how", ["from", "from None", "while"])
def test_a_cause_that_the_message_hides_follows_it(tmp_path, how):
    error = raised(Unsupported("the model cannot be copied."), TypeError("cannot pickle '_thread.lock' object"), how)
    expected = "the model cannot be copied. Cause: TypeError: cannot pickle '_thread.lock' object"
    assert reason_of(error, tmp_path) == expected


def test_a_cause_that_the_message_has_is_not_repeated(tmp_path):
    error = raised(Unsupported("not copied: no lock"), TypeError("no lock"), "from")
    assert reason_of(error, tmp_path) == "not copied: no lock"


def test_a_sentence_that_is_put_in_other_words_is_not_repeated(tmp_path):
    error = raised(Unsupported("choose STRATEGY=capture."), Unsupported("choose MODE=to_static."), "from")
    assert reason_of(error, tmp_path) == "choose STRATEGY=capture."


def test_a_long_cause_of_which_the_message_has_the_start_is_not_repeated(tmp_path):
    text = "no rule for this node " * 40
    error = raised(Unsupported(f"not exported ({text[:300]})."), TypeError(text), "from")
    assert "Cause" not in reason_of(error, tmp_path)
