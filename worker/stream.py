"""Serve calls of different lengths by one strategy: time each call, then report compilations, memory and parity."""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import worker
from frameworks import stream as strategies
from frameworks.adapter import Step, Unsupported
from measurement.cells import Cell
from measurement.host import loop_seconds
from measurement.noise import NoiseMeter
from measurement.parity import differences, tolerance_needed
from measurement.protocol import OUTPUTS, Filled, Phase, Streamed
from measurement.streams import STRATEGIES, Stream, StreamJob
from worker import reasons, user_model_reference, writing
from worker.context import Context
from worker.group import GroupWork

SIGN_OF_LIFE_S = 60.0  # between messages to the parent, which ends a silent worker
PADDING = "padding"  # in the reference: why calls cannot be padded; empty where they can
MASK = "mask"  # in the reference: the keyword by which padded calls pass a mask that inputs() does not give
NO_MASK = f"inputs() gives no {strategies.MASKS[0]!r} by keyword"
OTHER_MASK = f"0 in {strategies.MASKS[0]!r} must mean padding"
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
        longest, largest = self.job.longest, max(self.job.batches)
        sizes = [(longest, largest), (max(1, longest - 1), largest)]
        if min(self.job.batches) < largest:
            sizes.append((longest, largest - 1))
        arrays = [self.arrays(*size) for size in sizes]
        self.step = self.prepared(self.cell, self.weights(), arrays[:1])
        examples = [self.adapter.place(self.cell, ones) for ones in arrays]
        self.server = kind(
            strategies.Place(
                self.adapter,
                self.workload,
                self.cell,
                self.weights(),
                self.step,
                self.job.shortest,
                longest,
                largest,
                STRATEGIES[self.job.strategy],
                examples,
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

    @property
    def gives_mask(self) -> bool:
        """Return whether the inputs of a user model hold a mask by keyword."""
        return not self.workload.has_reference and self.server.gives_mask(self.server.place.examples[0])

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
        kept = {call: self.inputs(*call) for call in dict.fromkeys(self.calls)}
        loops = [loop_seconds(time.perf_counter) for _ in range(LOOPS)]
        memory, device = resident_bytes(), server.device_bytes()
        before = server.counts()
        self.channel.phase(self.cell, "stream")
        meter, begin = NoiseMeter(whole=True), time.perf_counter()
        server.setup()
        setup = time.perf_counter() - begin
        seconds, fell_back = self.timed([kept[call] for call in self.calls])
        noise, after = meter.stop(), server.counts()
        refuse_unrecorded(self.job.strategy, after.recorded - before.recorded)
        memory_after, device_after = resident_bytes(), server.device_bytes()
        loops += [loop_seconds(time.perf_counter) for _ in range(LOOPS)]
        self.channel.phase(self.cell, "compare")
        if not self.workload.has_reference:
            server.refuse_python(kept[self.calls[-1]])
        parity, tolerance = self.parity()
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
                parity=parity if math.isfinite(parity) else None,
                tolerance=tolerance,
                right=parity <= tolerance,
                memory_before_bytes=memory,
                memory_bytes=memory_after,
                device_before_bytes=device,
                device_bytes=device_after,
                host_loop_s=tuple(loops),
                noise=noise,
            ),
        )

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

    def outputs(self, calls: Sequence[tuple[int, int, int]]) -> dict[str, np.ndarray]:
        """Return the outputs of the compared ones among calls from the model's first state on, by `<call>.<name>`."""
        self.server.restore()
        found: dict[str, np.ndarray] = {}
        for number in self.job.compared:
            inputs = self.inputs(*calls[number])
            output = self.server(self.step.fresh(inputs) if self.step.fresh else inputs)
            self.adapter.synchronize(output)
            subject = self.step.user_model
            arrays = self.adapter.to_numpy(output) if subject is None else subject.values(output).arrays
            found |= {f"{number}.{name}": array for name, array in arrays.items()}
        return found

    def refer(self) -> Filled:
        """Save eager mode's outputs of the calls that are compared, unpadded, and why padding changes them, if so.

        Raises Unsupported for a user model whose modes cannot be compared.
        """
        if self.step.user_model is not None:
            subject, calls = self.step.user_model, self.workload.parity_calls
            user_model_reference.refuse_what_modes_cannot_share(
                subject, calls, self.workload.tolerance[self.cell.dtype]
            )
        found = self.outputs(list(zip(self.job.lengths, self.job.lengths, self.job.batches, strict=True)))
        expected = dict(found)
        found[PADDING] = np.array(self.unfit_for_padding(expected))
        found[MASK] = np.array(self.server.mask)
        path = Path(self.context.job.folder) / OUTPUTS / "reference.npz"
        saved = writing.save(path, found)
        return Filled(self.cell.id, time.monotonic() - worker.BEGAN, saved)

    def unfit_for_padding(self, expected: dict[str, np.ndarray]) -> str:
        """Return why calls cannot be padded, not even with a mask that the suite makes; else empty."""
        if self.job.padded == self.job.lengths or (self.workload.has_reference and self.workload.padding is not None):
            return ""
        why = self.changed_by_padding(expected)
        for name in self.server.masks() if why and not self.workload.has_reference else ():
            self.server.mask = name
            if not self.changed_by_padding(expected):
                return ""
        self.server.mask = ""
        return why

    def changed_by_padding(self, expected: dict[str, np.ndarray]) -> str:
        """Return why calls cannot be padded so, by eager mode's calls padded to the longest; else empty."""
        name = self.workload.name
        lacks = f"{name} takes no mask" if self.workload.has_reference else NO_MASK
        if not any(array.dtype.kind in "fc" for array in expected.values()):
            if self.gives_mask:
                return ""
            return f"{lacks}, and whole numbers do not show whether padding changes the outputs."
        if self.gives_mask:
            lacks = OTHER_MASK
        try:
            needed, tolerance = self.compared(expected, self.calls)
        except Unsupported as error:
            return str(error)
        except Exception as error:  # such as of a fixed length in the model
            return f"a call padded to {self.job.longest} positions fails: {reasons.message(error)}"
        return "" if needed <= tolerance else f"padding changes the outputs at real positions, and {lacks}."

    def refuse_padding(self) -> None:
        """Raise Unsupported where the reference shows that calls cannot be padded; else take its choice of a mask."""
        with np.load(self.job.reference) as reference:
            if reason := str(reference[PADDING]):
                raise Unsupported(reason)
            self.server.mask = str(reference[MASK])

    def parity(self) -> tuple[float, float]:
        """Return the smallest tolerance that all outputs meet at real positions, and their own."""
        with np.load(self.job.reference) as reference:
            return self.compared(
                {key: reference[key] for key in reference.files if key not in (PADDING, MASK)}, self.calls
            )

    def compared(self, expected: dict[str, np.ndarray], calls: Sequence[tuple[int, int, int]]) -> tuple[float, float]:
        """Return the smallest tolerance that outputs of the compared ones among calls meet, and their own."""
        found = {key: at_real_positions(array, expected.get(key)) for key, array in self.outputs(calls).items()}
        tolerance_of = self.workload.tolerance_of
        return tolerance_needed(differences(found, expected), lambda name: tolerance_of(name, self.cell.dtype))


def refuse_unrecorded(strategy: str, recorded: int) -> None:
    """Raise Unsupported for a strategy with CUDA graphs that recorded none: its calls ran as another strategy's."""
    if STRATEGIES[strategy].cuda_graphs and not recorded:
        raise Unsupported("no CUDA graph was recorded: measure the strategy without them")


def at_real_positions(array: np.ndarray, expected: np.ndarray | None) -> np.ndarray:
    """Return an output cut to its size without padding, which follows the real values."""
    if expected is None or expected.ndim != array.ndim:
        return array
    return array[tuple(slice(0, size) for size in expected.shape)]


def resident_bytes() -> int:
    """Return resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def serve(context: Context, cells: list[Cell]) -> None:
    """Run one stream, or make its reference."""
    (cell,) = cells
    with context.reporting([cell]):
        StreamWork(context, cell).run()
