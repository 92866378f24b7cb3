"""The training pass: loss and gradients from eager or captured code, and Paddle's own AdamW."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import partial

import paddle
import paddle.nn.functional as F
from paddle import nn

from frameworks import ranks
from frameworks.adapter import Adapter, Capture, Step, Unsupported
from frameworks.paddle.inspect import program
from frameworks.paddle.models import build, plain
from frameworks.paddle.modes import graphs
from frameworks.paddle.modes.state import State
from measurement.cells import Cell
from workloads import training
from workloads.spec import Arrays, Workload

SETTINGS = {
    "optimizer": "paddle.optimizer.AdamW, outside the captured program",
    "parameters": "fp32, moments too; bf16 by paddle.amp.auto_cast(level='O1')",
}


class Objective(nn.Layer):
    """A model and its loss, which a graph captures. `to_static` needs named inputs, so every family has its own."""

    def __init__(self, model: nn.Layer):
        super().__init__()
        self.model = model


class MlpObjective(Objective):
    def forward(self, x, target):
        return F.mse_loss(self.model(x), target)


class BertObjective(Objective):
    def forward(self, input_ids, mask_or_labels, labels=None):
        """Return the loss; the mask is optional."""
        mask = None
        if labels is None:
            labels = mask_or_labels
        else:
            mask = mask_or_labels
        _, pooled = self.model(input_ids, mask)
        return F.cross_entropy(self.model.classifier(pooled), labels)


class GptObjective(Objective):
    def forward(self, input_ids, targets):
        return F.cross_entropy(self.model.logits(input_ids, last=False).flatten(0, 1), targets.flatten())


class ImageObjective(Objective):
    def forward(self, images, labels):
        return F.cross_entropy(self.model(images), labels)


class LstmObjective(Objective):
    def forward(self, input_ids, labels):
        _, logits = self.model(input_ids)
        return F.cross_entropy(logits, labels)


OBJECTIVES = {"mlp": MlpObjective, "bert": BertObjective, "gpt": GptObjective, "lstm": LstmObjective}
OBJECTIVES |= dict.fromkeys(("resnet", "vit"), ImageObjective)


class Trainer:
    """Calling it runs one optimizer iteration on `objective`, which `loss` computes, eager or captured.

    `state` gives the tensors of the model that no gradient reaches, by canonical name; they join the outputs.
    """

    def __init__(self, objective: Objective, loss: Callable, accumulate: int, bf16: bool, state: Callable[[], dict]):
        self._objective, self._loss, self._state = objective, loss, state
        self._accumulate, self._bf16 = accumulate, bf16
        self._first = State(objective, trained=True)
        self._optimizer = self._new_optimizer()

    def __call__(self, *inputs):
        count, total = self._accumulate, 0.0
        for index in range(count):
            loss = self.loss(*inputs) if count == 1 else self.loss(*(x[index] for x in inputs)) / count
            loss.backward()
            total = loss.detach() if count == 1 else total + loss.detach()
        self._optimizer.step()
        self._optimizer.clear_grad()
        return {"loss": total, **self._state()}

    def loss(self, *inputs):
        """Return the loss of one micro-batch; updates nothing."""
        with paddle.amp.auto_cast(enable=self._bf16, level="O1", dtype="bfloat16"):
            return self._loss(*inputs)

    def checksum(self) -> int:
        """Return a number that almost surely differs if parameters do."""
        return hash(tuple(zlib.crc32(parameter.numpy().tobytes()) for parameter in self._objective.parameters()))

    def restore(self) -> None:
        """Put the first weights back, in place, and forget the moments."""
        self._first.restore()
        self._optimizer = self._new_optimizer()

    def _new_optimizer(self) -> paddle.optimizer.AdamW:
        first, second = training.BETAS
        return paddle.optimizer.AdamW(
            training.LEARNING_RATE, beta1=first, beta2=second, epsilon=training.EPSILON,
            parameters=self._objective.parameters(), weight_decay=training.WEIGHT_DECAY,
        )  # fmt: skip


def data_parallel(layer: nn.Layer) -> paddle.DataParallel:
    """Return a layer, eager or captured, whose gradients are averaged over the ranks during backward."""
    if not paddle.distributed.is_initialized():
        raise Unsupported(ranks.ALONE)
    return paddle.DataParallel(layer)


def prepare(adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
    """Return an iteration; parameters stay in float32, and the captured program holds the loss and its gradients."""
    model = build.build(workload.model, cell, weights)
    state = plain.state(workload.model, model, workload.model.state(dict(cell.parameters)))
    objective = OBJECTIVES[workload.family](model)
    objective.train()
    tensors = [adapter.place(cell, arrays) for arrays in inputs]
    accumulate, bf16 = int(cell.parameter("accumulate")), cell.dtype == "bf16"
    # A micro-batch is captured; several are stacked along a first axis.
    micro = tensors[0] if accumulate == 1 else tuple(tensor[0] for tensor in tensors[0])
    loss, capture, operators = objective, partial(Capture, whole=False, graphs=0), None
    if cell.mode != "eager":
        signature = graphs.specification(workload, cell, micro) if cell.shapes == "dynamic" else None
        loss, capture, operators = graphs.to_static(objective, cell, signature)
    if cell.ranks > 1:
        loss, operators = data_parallel(loss), lambda: ranks.PROGRAM
    trainer = Trainer(objective, loss, accumulate, bf16, lambda: state)
    operators = operators or partial(program.executed, trainer.loss, micro, cell)
    return Step(trainer, tensors, capture, trainer.restore, operators)
