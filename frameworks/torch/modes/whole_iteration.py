"""Training with the optimizer inside torch.compile's one graph, as `jax.jit` and a TensorFlow function hold it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch
from torch.func import functional_call, grad_and_value
from torch.optim.adamw import adamw

from frameworks.torch.modes.state import State
from workloads import training

MODE = "inductor-whole-iteration"
SETTINGS = {"optimizer": "torch.optim.adamw.adamw(foreach=True, capturable=True), inside the graph"}

PROGRAM = "the graph also contains backward and update, which eager mode does not list"  # why it is not listed


class Trainer:
    """Calling it runs one optimizer iteration on `objective`, all of it by one compiled function.

    The gradients come from `torch.func.grad_and_value`, since Dynamo does not trace `Tensor.backward` into one graph.
    The update is AdamW's functional form, which writes weights and moments in place. `compiled` maps a function to the
    compiled one and its report of the capture, which is `capture` here. Parameters that are not `trained` stay as they
    are: `torch.func` gives zeros for those without a gradient in eager mode, and weight decay would change them.
    """

    def __init__(
        self,
        objective: torch.nn.Module,
        accumulate: int,
        compiled: Callable[[Callable], tuple],
        trained: Collection[str],
    ):
        self._objective, self._accumulate = objective, accumulate
        self._first = State(objective)
        self._trained = {name: p for name, p in objective.named_parameters() if name in trained}
        # Detached: else a caller might differentiate this function again, and keep all that this needs.
        self._weights = {name: p.detach() for name, p in self._trained.items()}
        self._buffers = dict(objective.named_buffers())
        weights = list(self._weights.values())
        # First and second moments, and how many steps were taken, one tensor per weight each.
        self._state = (
            [torch.zeros_like(tensor) for tensor in weights],
            [torch.zeros_like(tensor) for tensor in weights],
            [torch.zeros((), device=tensor.device) for tensor in weights],
        )
        self._iteration, self.capture, _ = compiled(self._iterate)

    def __call__(self, *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        return {**self._iteration(self._weights, self._buffers, self._state, *inputs), **self._objective.state}

    def first_gradients(self) -> Iterator[tuple[torch.nn.Parameter, torch.Tensor]]:
        """Yield parameters with the first iteration's gradients, from AdamW's means; nothing after a later one."""
        means, _, steps = self._state
        for parameter, mean, step in zip(self._trained.values(), means, steps, strict=True):
            if step == 1:
                yield parameter, mean / (1 - training.BETAS[0])

    def restore(self) -> None:
        """Put the first weights and statistics back and make the moments those before a first step, in place."""
        self._first.restore()
        with torch.no_grad():
            for tensors in self._state:
                for tensor in tensors:
                    tensor.zero_()

    def _iterate(
        self, weights: dict, buffers: dict, state: tuple[list, list, list], *inputs: torch.Tensor
    ) -> dict[str, Any]:
        """Compute forward, loss and backward of every micro-batch, and the update; return outputs by name."""
        count = self._accumulate
        gradients, total = self._gradients(weights, buffers, *(inputs if count == 1 else (x[0] for x in inputs)))
        for index in range(1, count):
            more, loss = self._gradients(weights, buffers, *(x[index] for x in inputs))
            gradients, total = {name: gradients[name] + more[name] for name in more}, total + loss
        means, squares, steps = state
        # Where torch gives up to compile, eager mode runs this, which takes no such steps on a CPU.
        capturable = self._objective.device_type != "cpu" or torch.compiler.is_compiling()
        with torch.no_grad():
            adamw(
                list(weights.values()), [gradients[name] for name in weights], means, squares, [], steps,
                foreach=True, capturable=capturable, amsgrad=False, maximize=False, lr=training.LEARNING_RATE,
                beta1=training.BETAS[0], beta2=training.BETAS[1], eps=training.EPSILON,
                weight_decay=training.WEIGHT_DECAY,
            )  # fmt: skip
        return {"loss": total.reshape(1)}

    def _gradients(self, weights: dict, buffers: dict, *inputs: torch.Tensor) -> tuple[dict, torch.Tensor]:
        """Return a micro-batch's gradients and its loss; buffers are written to once the gradients are there."""
        gradients, (loss, after) = grad_and_value(self._loss, has_aux=True)(weights, buffers, *inputs)
        with torch.no_grad():
            for name, buffer in buffers.items():
                buffer.copy_(after[name])
        return gradients, loss

    def _loss(self, weights: dict, buffers: dict, *inputs: torch.Tensor) -> tuple[torch.Tensor, dict]:
        """Return the loss and copies of the buffers after it: a differentiated function may write only to its own."""
        held = weights | {name: buffer.clone() for name, buffer in buffers.items()}
        loss = functional_call(self._objective, held, inputs)  # puts buffers that the model bound into `held`
        after = {name: held[name] for name in buffers}
        return loss if self._accumulate == 1 else loss / self._accumulate, after
