"""The training pass: loss and gradients from eager or compiled code, and torch's own AdamW."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from frameworks.adapter import DTYPES, Adapter, Step
from frameworks.torch.inspect import program
from frameworks.torch.models import llama, plain
from frameworks.torch.modes import cuda_graph, graphs, whole_iteration
from frameworks.torch.modes.state import State
from frameworks.user_file import Fault
from frameworks.user_model import Subject
from measurement.cells import Cell
from workloads import training
from workloads.spec import Arrays, Workload

SETTINGS = {
    "inference": None,
    "dtype": "parameters, gradients and moments in fp32 (or STATES); bf16 by torch.autocast",
    "optimizer": "torch.optim.AdamW(fused=True, but for complex parameters), outside the graph",
}
OWN_STEP = "the suite runs backward and the optimizer, so leave them out of the model, and detach"
NO_GRADIENT = f"the loss has no gradient to compute: {OWN_STEP} nothing that it returns, nor turn gradients off."
FREED = f"backward reaches a graph that an earlier backward freed: {OWN_STEP} what it keeps between calls."
ATEN = torch.ops.aten
BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # integers as long as a parameter's values
PIECE = 1 << 20  # values: a sum converts its input to int64
KEPT = [  # by CHECKPOINT=selective: results of products, and of attention that is one operator
    *(ATEN.mm.default, ATEN.addmm.default, ATEN.bmm.default, ATEN._scaled_dot_product_flash_attention.default),
    *(ATEN._scaled_dot_product_efficient_attention.default, ATEN._scaled_dot_product_cudnn_attention.default),
    ATEN._scaled_dot_product_flash_attention_for_cpu.default,
]


def _mlp(model: nn.Module, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.mse_loss(model(x)["output"], target)


def _bert(model: nn.Module, *inputs: torch.Tensor) -> torch.Tensor:
    *given, labels = inputs
    return F.cross_entropy(model.classifier(model(*given)["pooler_output"]), labels)


def _gpt(model: nn.Module, input_ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model.logits(input_ids, last=False).flatten(0, 1), targets.flatten())


def _llama(model: nn.Module, input_ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model.every_logit(input_ids).flatten(0, 1), targets.flatten())


def _classes(model: nn.Module, given: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(given)["logits"], labels)


LOSSES = {"mlp": _mlp, "bert": _bert, "gpt": _gpt, "llama": _llama} | dict.fromkeys(("resnet", "vit", "lstm"), _classes)


class Objective(nn.Module):
    """A model and its loss, which a graph captures.

    `loss` takes the model and the inputs. `places` are those of the model's floating-point buffers by name: running
    statistics, which no gradient reaches, and which a call may bind as new tensors.
    """

    def __init__(self, model: nn.Module, loss: Callable[..., torch.Tensor], device: torch.device, bf16: bool):
        super().__init__()
        self.model, self._loss = model, loss
        self.device_type, self.bf16 = device.type, bf16
        self.places = {
            f"{path}.{name}".strip("."): (part._buffers, name)
            for path, part in model.named_modules()
            for name, buffer in part._buffers.items()
            if buffer is not None and buffer.is_floating_point()
        }

    @property
    def state(self) -> dict[str, torch.Tensor]:
        """The present buffers of `places`."""
        return {name: buffers[key] for name, (buffers, key) in self.places.items()}

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Map the model's inputs, and last the target of the loss -> the loss, a scalar."""
        with torch.autocast(self.device_type, torch.bfloat16, enabled=self.bf16):
            return self._loss(self.model, *inputs)


class Trainer:
    """Calling it runs one optimizer iteration on `objective`, which `loss` computes, eager or compiled.

    Gradients are set to None after each update, or summed into separate memory (`keep_gradients`): where `loss` runs in
    CUDA graphs, those that backward returns are in a graph's memory, which the next replay overwrites. Where the whole
    iteration is to be captured (`capturable`), AdamW counts its steps on the device.
    """

    def __init__(
        self, objective: Objective, loss: nn.Module, accumulate: int, keep_gradients: bool, capturable: bool = False
    ):
        self._objective, self._loss = objective, loss
        self._accumulate, self._keep_gradients = accumulate, keep_gradients
        self._first = State(objective)
        trained = [parameter for parameter in objective.parameters() if parameter.requires_grad]
        if keep_gradients:
            for parameter in trained:
                parameter.grad = torch.zeros_like(parameter)
        self._optimizer = torch.optim.AdamW(
            trained, lr=training.LEARNING_RATE, betas=training.BETAS, eps=training.EPSILON,
            weight_decay=training.WEIGHT_DECAY, capturable=capturable,
            fused=not any(map(torch.is_complex, trained)),  # AdamW refuses complex parameters
        )  # fmt: skip

    def __call__(self, *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        count, total = self._accumulate, 0.0
        for index in range(count):
            loss = self._loss(*inputs) if count == 1 else self._loss(*(x[index] for x in inputs)) / count
            _differentiate(loss)
            total = loss.detach() if count == 1 else total + loss.detach()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=not self._keep_gradients)
        return {"loss": total.reshape(1), **self._objective.state}

    def tensors(self) -> list[torch.Tensor]:
        """Return parameters, and moments where a first step has made them."""
        moments = (tensor for state in self._optimizer.state.values() for tensor in state.values())
        return [*self._objective.parameters(), *moments]

    def first_gradients(self) -> Iterator[tuple[nn.Parameter, torch.Tensor]]:
        """Yield parameters with the first iteration's gradients, from AdamW's means; nothing after a later one."""
        for parameter, state in self._optimizer.state.items():
            if state["step"] == 1:
                yield parameter, state["exp_avg"] / (1 - training.BETAS[0])

    def checksum(self) -> int:
        """Return a number that almost surely differs if parameters do; a few megabytes at a time are converted."""
        sums = [
            piece.sum(dtype=torch.int64)
            for parameter in self._objective.parameters()
            for piece in parameter.detach().reshape(-1).view(BITS[parameter.element_size()]).split(PIECE)
        ]
        return hash(tuple(torch.stack(sums).tolist()))

    def restore(self) -> None:
        """Put the first weights and statistics back and make the moments those before a first step.

        In place: a graph that holds the optimizer's step reads and writes the same memory.
        """
        self._first.restore()
        with torch.no_grad():
            for state in self._optimizer.state.values():
                for tensor in state.values():
                    tensor.zero_()


def _differentiate(loss: torch.Tensor) -> None:
    """Run backward. Raises Fault where the model has done so itself, detached the loss, or keeps a graph."""
    try:
        loss.backward()
        return
    except RuntimeError as error:
        if loss.requires_grad and "a second time" not in str(error):
            raise
    torch.set_grad_enabled(True)  # which the model may have turned off for whatever follows
    raise Fault(FREED if loss.requires_grad else NO_GRADIENT)


def prepare(adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
    """Return an iteration. Every mode changes its own copy of the parameters, unless they are sharded."""
    resident = [adapter.place(cell, arrays) for arrays in inputs]
    make = partial(objective_of, adapter, workload, cell, weights)
    if cell.ranks > 1:
        from frameworks.torch.modes import parallel

        trained = partial(Trainer, accumulate=1, keep_gradients=False)
        return parallel.prepare(adapter, cell, make, trained, resident)
    objective = make()
    compiled = partial(graphs.compile_model, mode=cell.mode, device=adapter.device, shapes=cell.shapes)
    return step(objective, cell, resident, adapter.device, compiled)


class Loaded:
    """Weights by name as tensors on the device; `pop` loads each one on demand, to save memory on the host."""

    def __init__(self, weights: Arrays, load: Callable[[Any], torch.Tensor]):
        self._weights, self._load = weights, load

    def pop(self, name: str) -> torch.Tensor:
        """Return a weight."""
        return self._load(self._weights[name])


def objective_of(
    adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, made: Callable[[nn.Module], object] | None = None
) -> Objective:
    """Return a cell's objective; `made` is called with each block, of a Llama before the next one is loaded."""
    parameters = dict(cell.parameters)
    load = partial(adapter.tensor, dtype=DTYPES[str(cell.parameter("states", "fp32"))])
    if workload.family == "llama":
        positions, fused = int(cell.parameter("seq_len")), cell.parameter("attention") == "fused"

        def trained(block: nn.Module) -> None:
            block.requires_grad_(True)  # before it is sharded
            if made:
                made(block)

        model = llama.LlamaModel(workload.model, Loaded(weights, load), positions, fused, trained).requires_grad_(True)
    else:
        model = plain.build(workload.model, parameters, {name: load(array) for name, array in weights.items()})
        for block in plain.blocks(model) if made else ():
            made(block)
    if (checkpointing := cell.parameter("checkpoint", "none")) != "none":
        checkpoint_blocks(model, selective=checkpointing == "selective")
    objective = Objective(model.train(), LOSSES[workload.family], adapter.device, cell.dtype == "bf16")
    objective.places = {name: objective.places[name] for name in workload.model.state(parameters)}
    return objective


def checkpoint_blocks(model: nn.Module, selective: bool) -> None:
    """Have backward compute the activations of every block again; if `selective`, all but those of `KEPT`."""
    kept = {"context_fn": partial(create_selective_checkpoint_contexts, KEPT)} if selective else {}
    for block in plain.blocks(model):
        block.forward = partial(checkpoint, block.forward, use_reentrant=False, **kept)


def step(
    objective: Objective,
    cell: Cell,
    resident: Sequence[tuple],
    device: torch.device,
    compiled: Callable[[Callable], tuple],
    user_model: Subject | None = None,
    replayed_by: Callable[..., Any] = cuda_graph.Replayed,
    trained: Collection[str] | None = None,
) -> Step:
    """Return the step of `cell`, on input sets on the device.

    `compiled` maps a function to the compiled one, the report of its capture, and the list of its operators. Where a
    call takes several micro-batches, every input stacks them along its first axis. `trained` names the parameters that
    get a gradient, by default all that require one.
    """
    accumulate = int(cell.parameter("accumulate") or 1)
    first = resident[0] if accumulate == 1 else [tensor[0] for tensor in resident[0]]
    listed = partial(program.executed, autograd=True)
    if cell.mode == cuda_graph.MODE:
        trainer = Trainer(objective, objective, accumulate, keep_gradients=False, capturable=True)
        replayed = replayed_by(trainer, cuda_graph.Recorder(device), trainer.restore)
        forward = partial(replayed.operations, listed, objective, first)
        return Step(replayed, resident, replayed.capture, trainer.restore, forward, user_model=user_model)
    if cell.mode == whole_iteration.MODE:
        every = [name for name, parameter in objective.named_parameters() if parameter.requires_grad]
        trainer = whole_iteration.Trainer(objective, accumulate, compiled, every if trained is None else trained)
        return Step(
            trainer, resident, trainer.capture, trainer.restore, lambda: whole_iteration.PROGRAM, user_model=user_model
        )
    shown = partial(program.shown, objective, first, autograd=True)  # the rest follows from it
    loss, fields = objective, {"program": shown}
    if cell.mode != "eager":
        loss, capture, graph = compiled(objective)
        fields = {"capture": capture, "program": graph}
    # Each replay overwrites the gradients that the last one returned: sums over micro-batches are elsewhere.
    keep = accumulate > 1 and graphs.uses_cuda_graphs(cell.mode, device)
    trainer = Trainer(objective, loss, accumulate, keep_gradients=keep)
    return Step(trainer, resident, restore=trainer.restore, user_model=user_model, **fields)
