"""A GPT's training data on its way from a file to the device, as nanoGPT's training script takes it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

import numpy as np
import torch

from frameworks.adapter import Step, Unsupported
from workloads.spec import Arrays, Workload

MODE = "inductor-data-pipeline"
SETTINGS = {"data": "windows of a memory-mapped file of 16-bit tokens, stacked in int64 and copied, in each call"}


class TokenFile:
    """Calling it reads the batch whose sequences begin at `starts`, and puts it on the device.

    Every call maps the file anew, takes a window of T + 1 tokens for each sequence, widens and stacks them and copies
    token ids and targets, through pinned memory to a GPU. `starts` has, for each input set, where its sequences begin,
    (B,), or (A, B) where micro-batches are summed; drawing such places at random is left out, so that batches are those
    of the other modes. Raises Unsupported for anything but a GPT.
    """

    def __init__(self, workload: Workload, inputs: Sequence[Arrays], device: torch.device):
        if workload.family != "gpt":
            raise Unsupported(f"{MODE} reads a GPT's tokens; {workload.name} has none.")
        rows = [np.concatenate([each["input_ids"], each["targets"][..., -1:]], axis=-1) for each in inputs]
        self._length, self._device = rows[0].shape[-1] - 1, device
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (as long as this object)
        self._file.write(np.stack(rows).astype(np.uint16).tobytes())
        self._file.flush()
        places = np.arange(len(rows) * rows[0][..., 0].size) * (self._length + 1)
        self.starts = [(each,) for each in places.reshape(len(rows), *rows[0].shape[:-1])]

    def __call__(self, starts: np.ndarray) -> list[torch.Tensor]:
        tokens = np.memmap(self._file, np.uint16, "r")
        return [self._batch(tokens, starts + shift) for shift in (0, 1)]

    def _batch(self, tokens: np.ndarray, starts: np.ndarray) -> torch.Tensor:
        """The windows that begin at `starts`, (…, T), int64."""
        windows = [torch.from_numpy(tokens[start : start + self._length].astype(np.int64)) for start in starts.flat]
        batch = torch.stack(windows).reshape(*starts.shape, self._length)
        on_gpu = self._device.type == "cuda"
        return (batch.pin_memory() if on_gpu else batch).to(self._device, non_blocking=on_gpu)


def reading(step: Step, workload: Workload, inputs: Sequence[Arrays], device: torch.device) -> Step:
    """The step of an iteration, each call of which reads its batch first."""
    tokens = TokenFile(workload, inputs, device)
    return Step(lambda starts: step.call(*tokens(starts)), tokens.starts, step.capture, step.rewind, step.program)
