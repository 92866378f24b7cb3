"""Serve calls of different lengths by one strategy: time each call, then report compilations, memory and parity."""

from __future__ import annotations

import contextlib
import math
import re
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import worker
from frameworks import stream as strategies
from frameworks.adapter import Step, Unsupported
from frameworks.user_model import Subject, kept
from frameworks.values import Values
from measurement.cells import Cell
from measurement.flags import EAGER_ERROR
from measurement.host import loop_seconds
from measurement.noise import NoiseMeter
from measurement.parity import Difference, Parity, Sample, by_output, differences
from measurement.protocol import OUTPUTS, Filled, Phase, Streamed
from measurement.streams import STRATEGIES, Stream, StreamJob
from measurement.text import listed
from worker import user_model_reference
from worker.channel import classify
from worker.context import Context
from worker.group import GroupWork
from workloads.spec import Arrays, places_kept

SIGN_OF_LIFE_S = 60.0  # between messages to the parent, which ends a silent worker
NO_MASK = f"inputs() gives nothing with {strategies.MASK!r} in its name"
OTHER_MASK = f"padding is neither 0, 1 nor {strategies.LOW:g} in {{}}"
NEAR = 0.02  # of what padding may change: such changes are alike, and the first way to mark padding is taken
FAILS = "a call padded to {} positions fails"
DEVICE_FAILED = re.compile(r"(?i)(cuda|hip)[ _]?error")
LOOPS = 5  # of the host's control, before and after the stream
PAGE = resource.getpagesize()


class StreamWork(GroupWork):
    """The one cell of a job that serves a stream, or makes its reference."""

    def __init__(self, context: Context, cell: Cell):
        super().__init__(context, context.job.groups[0])
        self.cell, self.job = cell, context.job.stream or StreamJob("", (), (), (), 1, 1)
        self.step: Step
        self.server: strategies.Server

    def run(self) -> None:
        """Run the stream, or make the reference; the cell ends in one message."""
        kind = strategies.load(self.context.job.framework, self.job.strategy, self.cell.device_kind)
        self.channel.phase(self.cell, "prepare")
        lengths, batches = sorted({*self.job.lengths, self.job.longest}), sorted(set(self.job.batches))
        sizes = [(lengths[-1], batches[-1]), (self.job.shortest, batches[-1])]
        if len(batches) > 1:
            sizes.append((lengths[-1], batches[0]))
        arrays = [self.arrays(*size) for size in sizes]
        self.step = self.prepared(self.cell, self.weights(), arrays[:1])
        self.server = kind(
            strategies.Place(
                self.adapter,
                self.workload,
                self.cell,
                self.weights(),
                self.step,
                lengths,
                batches,
                STRATEGIES[self.job.strategy],
                [self.adapter.place(self.cell, ones) for ones in arrays],
                lambda length: self.adapter.place(self.cell, self.arrays(length, batches[-1])),
            )
        )
        self.channel.send(self.refer() if self.job.refers else self.serve())

    def arrays(self, length: int, batch: int) -> dict[str, np.ndarray]:
        """Return the inputs of a call of this length and batch size."""
        sizes = {"seq_len": length, "batch_size": batch}
        given = dict(self.cell.parameters)
        return self.workload.inputs(
            {name: sizes.get(name, value) for name, value in given.items()}, self.context.job.seed + length
        )

    def inputs(self, length: int, padded: int, batch: int) -> tuple:
        """Return a call's inputs on the device in the strategy's form, with a mask if it pads and the model has one."""
        arrays = self.arrays(length, batch)
        pads = bool(STRATEGIES[self.job.strategy].pads) or padded > length
        if pads and self.workload.has_reference:
            if self.workload.padding is not None:
                arrays |= {self.workload.padding: np.ones((batch, length), np.int64)}
            arrays = {key: np.pad(array, ((0, 0), (0, padded - length))) for key, array in arrays.items()}
        placed = self.adapter.place(self.cell, arrays)
        if pads and not self.workload.has_reference:
            placed = self.server.pad(placed, length, padded)
        return self.server.mark(placed)

    def serve(self) -> Streamed:
        """Run the stream; return its seconds of each call, compilations, memory and fallback."""
        server = self.server
        if STRATEGIES[self.job.strategy].pads:
            self.refuse_padding()
        with self.refusing_lengths():
            kept = {call: self.inputs(*call) for call in dict.fromkeys(self.calls)}
        loops = [loop_seconds(time.perf_counter) for _ in range(LOOPS)]
        memory, device = resident_bytes(), server.device_bytes()
        before = server.counts()
        self.channel.phase(self.cell, "stream")
        meter, begin = NoiseMeter(whole=True), time.perf_counter()
        server.setup()
        setup = time.perf_counter() - begin
        with self.refusing_lengths():
            seconds, fell_back = self.timed([kept[call] for call in self.calls])
        noise, after = meter.stop(), server.counts()
        refuse_unrecorded(self.job.strategy, after.recorded - before.recorded)
        memory_after, device_after = resident_bytes(), server.device_bytes()
        loops += [loop_seconds(time.perf_counter) for _ in range(LOOPS)]
        self.channel.phase(self.cell, "compare")
        if not self.workload.has_reference:
            server.refuse_python(kept[self.calls[-1]])
        parity = self.parity()
        return Streamed(
            self.cell.id,
            Stream(
                calls_s=tuple(seconds),
                setup_s=setup,
                compilations=after.compilations - before.compilations,
                reported=None if after.reported is None else after.reported - (before.reported or 0),
                recorded=after.recorded - before.recorded,
                compile_s=None if after.seconds is None else max(0.0, after.seconds - (before.seconds or 0.0)),
                fell_back=fell_back,
                parity=parity.needed if math.isfinite(parity.needed) else None,
                tolerance=parity.tolerance,
                right=parity.holds,
                eager_error=parity.eager > EAGER_ERROR,
                partial=server.is_partial,
                memory_before_bytes=memory,
                memory_bytes=memory_after,
                device_before_bytes=device,
                device_bytes=device_after,
                host_loop_s=tuple(loops),
                noise=noise,
            ),
        )

    @contextlib.contextmanager
    def refusing_lengths(self) -> Iterator[None]:
        """Raise Unsupported for an error in the block where eager mode does not take a padded call either."""
        try:
            yield
        except Exception as error:
            padding = {call[1:]: call for call in self.calls if call[1] > call[0]}
            if self.workload.has_reference or classify(error)[0] != "error":
                raise
            for call in padding.values():
                try:
                    self.step.call(*self.inputs(*call))
                except Exception as found:
                    if DEVICE_FAILED.search(classify(found)[1]):  # and so does all that follows in this process
                        break
                    raise Unsupported(
                        f"{FAILS.format(call[1])} in eager mode, too ({classify(found)[1]}): measure "
                        "STRATEGY=quantiles,longest, which pad to lengths of the stream."
                    ) from error
            raise

    @property
    def calls(self) -> list[tuple[int, int, int]]:
        """Return each call's length, padded length and batch size."""
        return list(zip(self.job.lengths, self.job.padded, self.job.batches, strict=True))

    def timed(self, calls: list[tuple]) -> tuple[list[float], int | None]:
        """Return each call's seconds, and the first call, from 0, that ran no graph; None if all ran one."""
        clock, synchronize, server, fresh = time.perf_counter, self.adapter.synchronize, self.server, self.step.fresh
        seconds: list[float] = []
        fell_back, alive = None, clock()
        for number, given in enumerate(calls):
            inputs = fresh(given) if fresh else given
            begin = clock()
            synchronize(server(inputs))
            end = clock()
            seconds.append(end - begin)
            if fell_back is None and not server.ran_graph:
                fell_back = number
            if end - alive > SIGN_OF_LIFE_S:
                self.channel.send(Phase(self.cell.id, f"call {number + 1}"))
                alive = end
        return seconds, fell_back

    def outputs(self, calls: Sequence[tuple[int, int, int]]) -> Iterator[Values]:
        """Yield the outputs of the compared ones among calls, from the model's first state on."""
        self.server.restore()
        subject = self.step.user_model
        for number in self.job.compared:
            inputs = self.inputs(*calls[number])
            output = self.server(self.step.fresh(inputs) if self.step.fresh else inputs)
            self.adapter.synchronize(output)
            yield Values(self.adapter.to_numpy(output)) if subject is None else subject.values(output)

    def refer(self) -> Filled:
        """Save the outputs that strategies are compared with, of unpadded calls, and how calls can be padded.

        Raises Unsupported for a user model whose modes cannot be compared.
        """
        subject: Any = self.step.user_model
        folder = Path(self.context.job.folder) / OUTPUTS
        unpadded = list(zip(self.job.lengths, self.job.lengths, self.job.batches, strict=True))
        eager = None
        if subject is None:
            found = list(map(kept, self.outputs(unpadded)))
        else:
            self.refuse_one_length(subject)
            tolerance = self.workload.tolerance[self.cell.dtype]
            user_model_reference.refuse_what_modes_cannot_share(subject, self.workload.parity_calls, tolerance)
            subject.sets = [self.inputs(*unpadded[number]) for number in self.job.compared]
            _, found, eager = user_model_reference.referred(subject, len(subject.sets), tolerance)
        self.job = replace(
            self.job,
            reference=user_model_reference.saved(found, folder / "reference.npz"),
            eager=user_model_reference.saved(eager, folder / "eager.npz") if eager else "",
            settings={"shapes": user_model_reference.shapes_of(found)},
        )
        why = self.unfit_for_padding()
        settings = self.job.settings | {"unfit": why, "masking": astuple(self.server.masking)}
        return Filled(self.cell.id, time.monotonic() - worker.BEGAN, self.job.reference, self.job.eager, settings)

    def refuse_one_length(self, subject: Subject) -> None:
        """Raise Unsupported for inputs of the same sizes at all lengths: each call would be the same."""
        longest, other, *_ = (subject.values(example).arrays for example in self.server.place.examples)
        sizes = [sorted((name, array.shape) for name, array in given.items()) for given in (longest, other)]
        if self.job.shortest < self.job.longest and sizes[0] == sizes[1]:
            raise Unsupported(
                f"inputs() gives tensors of the same sizes for seq_len={self.job.longest} and {self.job.shortest}: let "
                "their lengths be seq_len."
            )

    def unfit_for_padding(self) -> str:
        """Return why calls cannot be padded, not even with other masks; else empty, with the server's choice of one."""
        if self.job.padded == self.job.lengths or (self.workload.has_reference and self.workload.padding is not None):
            return ""
        maskings = [strategies.Masking(), *(() if self.workload.has_reference else self.server.maskings())]
        changes: list[float] = []
        reasons_against: list[str] = []
        for masking in maskings:
            if changes and min(changes) <= (1 if masking.is_several else NEAR):
                break
            self.channel.send(Phase(self.cell.id, f"way {len(changes) + 1} to pad"))
            change, reason = self.changed_by_padding(masking)
            changes.append(change)
            reasons_against.append(reason)
        chosen = first_alike(changes)
        self.server.masking = maskings[chosen]
        return reasons_against[chosen]

    def changed_by_padding(self, masking: strategies.Masking) -> tuple[float, str]:
        """Return how much padding to the longest changes eager mode's calls, and why they cannot be padded if above 1.

        A change is in units of what it may be; infinite for calls that fail.
        """
        self.server.masking = masking
        masks = [] if self.workload.has_reference else list(self.server.masks(self.server.place.examples[0]))
        lacks = f"{self.workload.name} takes no mask" if self.workload.has_reference else NO_MASK
        lacks = OTHER_MASK.format(listed(masks)) if masks else lacks
        with np.load(self.job.reference) as reference:
            shown = masks or any(reference[key].dtype.kind in "fc" for key in reference)
        if not shown:
            return math.inf, f"{lacks}, and whole numbers do not show whether padding changes the outputs."
        try:
            change = self.change_by_padding()
        except Unsupported as error:
            return math.inf, str(error)
        except Exception as error:  # such as of a fixed length in the model
            return math.inf, f"{FAILS.format(self.job.longest)}: {classify(error)[1]}"
        return change, "" if change <= 1 else f"padding changes the outputs at real positions, and {lacks}."

    def change_by_padding(self) -> float:
        """Return the largest change of eager mode's outputs at real positions, in units of what it may be.

        That is the tolerance, or eager mode's own error where this is more: not a multiple of it, as for a graph, since
        the calls differ in nothing but padding. Of whole numbers twice the share may differ that rounding changes.
        """
        outputs, reference, eager, samples = self.compared()
        unpadded = eager or reference
        own = differences(unpadded, reference) if eager else {}
        changes = []
        for name, change in differences(outputs, unpadded, None, self.cell.dtype, samples).items():
            error = own.get(name, Difference())
            allowed = max(self.workload.tolerance_of(name, dtype=self.cell.dtype), error.needed)
            changes.append(change.needed / (allowed or NEAR) if change.unequal <= 2 * error.unequal else math.inf)
        return max(changes, default=math.inf)

    def refuse_padding(self) -> None:
        """Raise Unsupported where the reference shows that calls cannot be padded; else take its choice of a mask."""
        if reason := self.job.settings["unfit"]:
            raise Unsupported(reason)
        self.server.masking = strategies.Masking(*self.job.settings["masking"])

    @property
    def rows_are_flat(self) -> bool:
        """Whether an output's axis of batch × length has the positions of a sequence next to each other, as inputs."""
        if self.workload.has_reference:
            return False
        tokens = self.server.tokens(self.server.flatten(self.server.place.examples[0])[0])
        return bool(tokens) and tokens[0][1] > 0

    def parity(self) -> Parity:
        """Return the parity of the output nearest to its limit, at real positions."""
        outputs, reference, eager, samples = self.compared()
        allowed = partial(self.workload.tolerance_of, dtype=self.cell.dtype)
        found = by_output(outputs, reference, eager, allowed, self.cell.dtype, samples=samples)
        return Parity.nearest(found.values())

    def compared(self) -> tuple[Arrays, Arrays, Arrays, dict[str, Sample]]:
        """Return the compared calls' outputs at real positions, the reference's, eager mode's, and their samples."""
        shapes = {key: tuple(shape) for key, shape in self.job.settings["shapes"].items()}
        flat = self.job.padded != self.job.lengths and self.rows_are_flat
        calls = [self.calls[number] if flat else None for number in self.job.compared]
        found = [
            at_real_positions(values, place, shapes, calls[place])
            for place, values in enumerate(self.outputs(self.calls))
        ]
        reference, eager = (dict(np.load(path)) if path else {} for path in (self.job.reference, self.job.eager))
        samples = {key: Sample(shape, places_kept(shape)) for key, shape in shapes.items()}
        return user_model_reference.flat(found), reference, eager, samples


def first_alike(changes: Sequence[float]) -> int:
    """Return the place of the first change that is about the least; the first of all where none is allowed."""
    least = min(changes)
    most = min(1.0, max(NEAR, 2 * least)) if least <= 1 else math.inf
    return next(place for place, change in enumerate(changes) if change <= most)


def refuse_unrecorded(strategy: str, recorded: int) -> None:
    """Raise Unsupported for a strategy with CUDA graphs that recorded none: its calls ran as another strategy's."""
    if STRATEGIES[strategy].cuda_graphs and not recorded:
        raise Unsupported("no CUDA graph was recorded: measure the strategy without them")


def at_real_positions(
    found: Values, place: int, shapes: Mapping[str, tuple[int, ...]], call: tuple[int, int, int] | None = None
) -> Values:
    """Return the outputs of a compared call as they are kept, cut to their `shapes` without padding, which follows.

    `shapes` are by place and name; an output that cannot be cut to its own is dropped. A `call` of a length, padded
    length and batch size may give the positions of all sequences in one axis.
    """
    cut = {}
    for name, array in found.arrays.items():
        shape = shapes.get(f"{place}.{name}", array.shape)
        length, padded, batch = call or (0, 0, 0)
        if batch > 1 and (shape[:1], array.shape[:1]) == ((batch * length,), (batch * padded,)):
            array = array.reshape(batch, padded, *array.shape[1:])[:, :length].reshape(-1, *array.shape[1:])
        inner = array[tuple(map(slice, shape))] if len(shape) == array.ndim else array
        if inner.shape == shape:
            cut[name] = inner
    return kept(Values(cut))


def resident_bytes() -> int:
    """Return resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def serve(context: Context, cells: list[Cell]) -> None:
    """Run one stream, or make its reference."""
    (cell,) = cells
    with context.reporting([cell]):
        StreamWork(context, cell).run()
