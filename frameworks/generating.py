"""A generation by two steps of a mode: one reads a prompt, and one takes a token and returns the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from frameworks.adapter import Capture, Step
from frameworks.program import Program

NEXT = "tokens"  # in the output of either step: the token chosen for each sequence, the next input
LARGEST = "largest"  # its logit


class Generation:
    """Calls of both steps in turn, as in a user's Python loop.

    `read` maps a prompt to the first token, `proceed` a token and its place to the next token; each returns `NEXT` and
    `LARGEST`, (B,). `kept` returns a copy that the next call does not overwrite; `stacked` maps N of (B,) to (B, N).
    """

    def __init__(
        self,
        read: Step,
        proceed: Step,
        places: Sequence[Any],
        stacked: Callable[[list[Any]], Any],
        kept: Callable[[Any], Any] = lambda tensor: tensor,
    ):
        self._read, self._proceed, self._places, self._stacked, self._kept = read, proceed, places, stacked, kept

    def step(self, inputs: Sequence[tuple]) -> Step:
        """Return the step of whole generations, one for each prompt in `inputs`."""
        loads = [part.load for part in (self._read, self._proceed) if part.load]

        def load() -> None:
            for each in loads:
                each()

        return Step(self, inputs, self._captured, program=self._program, load=load if loads else None, parts=self.parts)

    def parts(self, prompt: Any) -> Iterator[dict[str, Any]]:
        """Yield the outputs of either step, token by token."""
        output = self._token(self._read.call(prompt))
        yield output
        for place in self._places:
            output = self._token(self._proceed.call(output[NEXT], place))
            yield output

    def __call__(self, prompt: Any) -> dict[str, Any]:
        """Return the last token's output; its `cache`, when called, returns those of all tokens, (B, N)."""
        outputs = list(self.parts(prompt))

        def every_token() -> dict[str, Any]:
            return {name: self._stacked([output[name] for output in outputs]) for name in (NEXT, LARGEST)}

        return {**outputs[-1], "cache": every_token}

    def _token(self, output: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._kept(output[name]) for name in (NEXT, LARGEST)}

    def _captured(self) -> Capture:
        return both(self._read.capture(), self._proceed.capture())

    def _program(self) -> Program | str | None:
        read, proceed = self._read.program(), self._proceed.program()
        if read is None or isinstance(read, str):
            return read
        return proceed if proceed is None or isinstance(proceed, str) else [*read, *proceed]


class Growth:
    """A cache that grows between calls of a model's steps, whose outputs hold the longer cache as `layers`.

    `mark` receives the initial and each prompt's cache.
    """

    def __init__(self, mark: Callable[[Any], None] = lambda layers: None):
        self._mark = mark
        self.begin((), None)

    def begin(self, layers: Any, period: int | None) -> None:
        """Set the cache before the first call, and again after `period` calls."""
        self._first, self._period = layers, period
        self._mark(layers)
        self.restore()

    def restore(self) -> None:
        """Restore the initial cache."""
        self.layers, self._calls = self._first, 0

    def reading(self, call: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """Return `call(prompt)`, whose keys and values are the cache from then on."""

        def called(prompt: Any) -> dict[str, Any]:
            output = call(prompt)
            self.layers = output.pop("layers")
            self._mark(self.layers)
            return output

        return called

    def proceeding(self, call: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """Return `call(tokens, place, layers)` as a call of tokens and place alone."""

        def called(*inputs: Any) -> dict[str, Any]:
            if self._calls == self._period:
                self.restore()
            self._calls += 1
            output = call(*inputs, self.layers)
            self.layers = output.pop("layers")
            return output

        return called


def with_cache(
    call: Callable[..., dict[str, Any]], cached: Callable[[Any], dict[str, Any]]
) -> Callable[..., dict[str, Any]]:
    """Return `call` with the cache's content in its output: `cached(last input)`, computed on demand."""

    def called(*inputs: Any) -> dict[str, Any]:
        return {**call(*inputs), "cache": partial(cached, inputs[-1])}

    return called


def both(read: Capture, proceed: Capture) -> Capture:
    """Return the joint capture of two graphs, both of which a call needs."""
    details = {"prompt": read.detail, "token": proceed.detail}
    loaded = [part.loaded for part in (read, proceed) if part.loaded is not None]
    return Capture(
        whole=read.whole and proceed.whole,
        graphs=_sum(read.graphs, proceed.graphs),
        graph_breaks=_sum(read.graph_breaks, proceed.graph_breaks),
        compilations=_sum(read.compilations, proceed.compilations),
        backend=proceed.backend or read.backend,
        detail="; ".join(f"{part}: {detail}" for part, detail in details.items() if detail),
        loaded=all(loaded) if loaded else None,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
