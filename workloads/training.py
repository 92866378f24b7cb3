"""The training pass of a workload: forward, loss, backward and an AdamW step, and the reference that does the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from workloads.autograd import Variable
from workloads.reference import cross_entropy
from workloads.spec import (
    BYTES_PER_VALUE,
    Arrays,
    Cost,
    OperatorCost,
    Parameter,
    Parameters,
    PassOf,
    Weights,
    Workload,
    fields_of,
)

# AdamW as nanoGPT sets it; every weight decays.
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY = 6e-4, (0.9, 0.95), 1e-8, 0.1
STEPS_COMPARED = 3
AT_ONCE = 1 << 14  # weights
UPDATED = 7  # values a weight: it, its gradient and two moments read, all but the gradient written
# Relative error of mean losses after two updates; fp32 reaches 2e-6.
TOLERANCE = {"fp32": 1e-3, "tf32": 5e-3, "bf16": 2e-2}
# Relative error of the fall after one update, to which 2 % of the loss is added: rounding changes small falls most.
FALL, ADDED_TO_FALL = "fall", 0.02
FALL_TOLERANCE = {"fp32": 1e-2, "tf32": 2e-2, "bf16": 8e-2}
_ACCUMULATE = Parameter(
    "accumulate", "accumulate", 1, "micro-batches whose gradients are summed before an optimizer step (training)",
    implementations=("plain",),
)  # fmt: skip


_OF_RANKS = (
    Parameter(
        "ranks", "ranks", 1, "processes or devices that train together, one per GPU; BATCH is each one's batch "
        "(training)", maximum=1024, implementations=("plain",),
    ),
    Parameter(
        "strategy", "strategy", "ddp", "ddp (each rank holds all parameters) or fsdp (each holds a shard)",
        choices=("ddp", "fsdp"), implementations=("plain",),
    ),
    Parameter(
        "checkpoint", "checkpoint", "none", "none, full (backward computes the activations of each block again) or "
        "selective (all but matrix products and fused attention)", choices=("none", "selective", "full"),
        implementations=("plain",),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Training(PassOf):
    """One call is one optimizer iteration on `model`: its outputs are the loss before the update, and its state.

    An iteration takes `accumulate` micro-batches and averages their gradients. With more than one, every input has a
    leading axis of that length. With several `ranks`, inputs and references belong to the global batch, which the ranks
    divide among themselves; sizes and costs belong to one rank.
    """

    def named(self, parameters: Parameters) -> Parameters:
        alone, kept = parameters.get("ranks", 1) == 1, parameters.get("checkpoint", "none") != "none"
        wide = parameters.get("states", "fp32") == "fp32"
        silent = {"ranks": alone, "strategy": alone, "states": wide, "checkpoint": not kept}
        return {name: value for name, value in parameters.items() if not silent.get(name)}

    def reference_parameters(self, parameters: Parameters) -> Parameters:
        kept = super().reference_parameters(parameters)
        return {name: value for name, value in kept.items() if name not in ("strategy", "states", "checkpoint")}

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        return super().weight_shapes(parameters) | self.model.head_shapes(parameters)

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        return self.model.seeded_weights(parameters, seed) | self.seeded_head(parameters, seed)

    def kept_weights(self, parameters: Parameters, seed: int) -> Arrays:
        return self.model.kept_weights(parameters, seed) | self.seeded_head(parameters, seed)

    def weights_from(self, parameters: Parameters, kept: Weights) -> Weights:
        return self.model.weights_from(parameters, kept)

    def seeded_head(self, parameters: Parameters, seed: int) -> Arrays:
        """Return the weights that training adds to the model, normal with deviation 0.02; no checkpoint has them."""
        rng = np.random.default_rng([seed, 1])
        shapes = self.model.head_shapes(parameters)
        return {name: rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02) for name, shape in shapes.items()}

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        count, parameters = int(parameters["accumulate"]), of_all_ranks(parameters)
        if count == 1:
            return self.model.training_inputs(parameters, seed)
        sets = [self.model.training_inputs(parameters, seed * 1000 + index) for index in range(count)]
        return {name: np.stack([arrays[name] for arrays in sets]) for name in sets[0]}

    def sets(self, parameters: Parameters, seed: int) -> list[Arrays]:
        return first_twice(super().sets(parameters, seed))

    def dynamic_axes(self, parameters: Parameters) -> tuple[tuple[int, ...], ...]:
        """Return a micro-batch's axes, which graphs capture unless they hold the whole iteration."""
        return super().dynamic_axes({**parameters, "accumulate": 1})

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        return self.references(parameters, weights, [inputs])[0]

    def references(self, parameters: Parameters, weights: Weights, sets: list[Arrays]) -> list[Arrays]:
        """Return the losses of consecutive iterations and the state after each, in float64, each on the next set."""
        state = {name: np.array(weights[name], np.float64) for name in self.model.state(parameters)}
        variables = {
            name: Variable(np.array(weights[name], np.float64, order="C")) for name in weights.keys() - state.keys()
        }
        moments = {name: (np.zeros(v.shape), np.zeros(v.shape)) for name, v in variables.items()}
        count, outputs, early = int(parameters["accumulate"]), [], parameters.get("adamw_epsilon") == "uncorrected"
        parts = int(parameters.get("ranks", 1)) if parameters.get("batch_statistics") == "rank" else 1
        parameters = parameters if parts > 1 else of_all_ranks(parameters)
        for step, inputs in enumerate(sets, start=1):
            total = 0.0
            for index in range(count):
                batch = inputs if count == 1 else {name: value[index] for name, value in inputs.items()}
                before = variables | state
                for part in range(parts):  # only BatchNorm differs from the whole batch
                    given = {name: np.split(value, parts)[part] for name, value in batch.items()}
                    # A reference treats variables as arrays, and its loss is then a variable.
                    of_batch, after = self.model.loss_and_state(parameters, cast(Arrays, before), given)
                    loss = cast(Variable, of_batch) * (1 / count / parts)
                    loss.backward()
                    total += float(loss.value)
                    state = state if part else after  # rank 0's statistics are every rank's
            outputs.append({"loss": np.float64(total).reshape(1), **state})
            for name, variable in variables.items():
                assert variable.gradient is not None, f"the loss does not depend on {name}"
                adamw(variable.value, variable.gradient, moments[name], step, early)
                variable.gradient = None
        return outputs

    def comparable(
        self, parameters: Parameters, outputs: Arrays, reference: Arrays, dtype: str
    ) -> tuple[Arrays, Arrays]:
        """Return each iteration's state as a separate output, in which an error persists, and add the loss's fall."""

        def by_iteration(arrays: Arrays) -> Arrays:
            named = {key if key.endswith(".loss") else f"{key} {key.partition('.')[0]}": arrays[key] for key in arrays}
            return with_fall(named, reference)

        return by_iteration(outputs), by_iteration(reference)

    def tolerance_of(self, output: str, dtype: str) -> float:
        if output == FALL:
            return FALL_TOLERANCE[dtype]
        allowed = {} if output.endswith("loss") else self.model.state_tolerance
        return allowed.get(dtype, self.tolerance[dtype])

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        """Count forward and backward, three times the forward pass (Kaplan et al. 2020, section 2.1), and the update.

        An AdamW step takes 14 operations a weight, reads weight, gradient and two moments and writes all but the
        gradient, in the dtype of `states`. Fusion does not change that traffic. Transcendentals are the forward pass's.
        With the strategy fsdp a rank updates its share of the weights.
        """
        forward = self.model.training_forward_cost(parameters, dtype, fused_attention)
        count = int(parameters["accumulate"])
        weights = sum(int(np.prod(shape)) for shape in self.weight_shapes(parameters).values())
        weights //= int(parameters["ranks"]) if parameters.get("strategy") == "fsdp" else 1
        operators = [
            OperatorCost(o.operator_class, 3 * count * o.flops, 3 * count * o.bytes, count * o.transcendentals)
            for o in forward.operators
        ]
        traffic = UPDATED * BYTES_PER_VALUE[str(parameters.get("states", "fp32"))] * weights
        update = OperatorCost("pointwise", 14 * weights, traffic)
        repeated = 2 * count * forward.repeated_bytes  # gradients of weights are products over all positions
        return Cost(tuple(operators), count * forward.compulsory_bytes + update.bytes, repeated).plus(update)

    def items_per_call(self, parameters: Parameters) -> int:
        return int(parameters["accumulate"]) * self.model.items_per_call(parameters)

    def tokens_per_call(self, parameters: Parameters) -> int | None:
        tokens = self.model.tokens_per_call(parameters)
        return None if tokens is None else int(parameters["accumulate"]) * tokens

    def real_tokens_per_call(self, parameters: Parameters) -> int | None:
        tokens = self.model.real_tokens_per_call(parameters)
        return None if tokens is None else int(parameters["accumulate"]) * tokens

    def real_flops(self, parameters: Parameters, fused_attention: bool = False) -> int:
        """Count as `cost`, less forward and backward passes over padding; the update does not depend on it."""
        model = self.model.cost(parameters, "fp32", fused_attention).flops
        padding = model - self.model.real_flops(parameters, fused_attention)
        return super().real_flops(parameters, fused_attention) - 3 * int(parameters["accumulate"]) * padding

    def from_checkpoint(
        self, tensors: Callable[[Workload, Parameters], Arrays], parameters: Parameters, seed: int
    ) -> Arrays:
        return tensors(self.model, parameters) | self.seeded_head(parameters, seed)

    def conventions(self, parameters: Parameters) -> tuple[str, ...]:
        of_ranks = ["batch_statistics"] if parameters.get("ranks", 1) != 1 else []
        return ("adamw_epsilon", *(["running_variance", *of_ranks] if self.model.state(parameters) else []))


def first_twice(sets: list[Arrays]) -> list[Arrays]:
    """Return the input sets of training: the second equals the first, so the first update lowers its loss.

    Losses of random targets on other batches hardly show updates. The third set shows inputs that a graph ignores.
    """
    return [*sets[:1] * 2, *sets[2:]]


def with_fall(outputs: Arrays, reference: Arrays) -> Arrays:
    """Add the fall of the loss from the first call to the second one, on the same inputs.

    It is enlarged by a share of the reference's loss, in the direction of the reference's fall.
    """
    if not all({"0.loss", "1.loss"} <= arrays.keys() for arrays in (outputs, reference)):
        return outputs
    ours, right = (arrays["0.loss"].astype(np.float64) - arrays["1.loss"] for arrays in (outputs, reference))
    return outputs | {f"1.{FALL}": ours + np.copysign(ADDED_TO_FALL * reference["0.loss"], right)}


def of_all_ranks(parameters: Parameters) -> Parameters:
    """Return the parameters of the global batch, which all ranks share."""
    if (ranks := int(parameters.get("ranks", 1))) == 1:
        return parameters
    return {**parameters, "batch_size": ranks * int(parameters["batch_size"])}


class Classifier(Workload):
    """A model whose output `logits` (B, classes) is trained to the class of each item."""

    classes: int  # a field of each, or a constant

    def training_inputs(self, parameters: Parameters, seed: int) -> Arrays:
        """Return the model's inputs, and the class of each item (B,)."""
        drawn = np.random.default_rng([seed, 1])
        labels = drawn.integers(0, self.classes, int(parameters["batch_size"]), dtype=np.int64)
        return self.inputs(parameters, seed) | {"labels": labels}

    def loss(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> np.ndarray:
        """Return the mean cross-entropy of the items' classes."""
        return cross_entropy(self.reference(parameters, weights, inputs)["logits"], inputs["labels"])


def adamw(
    weight: np.ndarray,
    gradient: np.ndarray,
    moments: tuple[np.ndarray, np.ndarray],
    step: int,
    early: bool = False,
) -> None:
    """Update in place once (Loshchilov and Hutter 2019, algorithm 2), `step` counting from 1.

    With `early`, epsilon is added before the correction of the second moment's bias, which then scales it too. Kingma
    and Ba (2015, the end of section 2) and Keras do so.

    Weight and moments lie in C order. The update runs in parts whose intermediate values fit in a cache, since memory
    traffic limits it.
    """
    flat = [array.reshape(-1) for array in (weight, *moments)]  # views: all of them are contiguous
    gradient = np.ascontiguousarray(gradient).reshape(-1)
    for start in range(0, weight.size, AT_ONCE):
        part = slice(start, start + AT_ONCE)
        weight, mean, square = (array[part] for array in flat)
        mean += (1 - BETAS[0]) * (gradient[part] - mean)
        square += (1 - BETAS[1]) * (gradient[part] * gradient[part] - square)
        correction = math.sqrt(1 - BETAS[1] ** step)
        denominator = np.sqrt(square) / correction + EPSILON / (correction if early else 1.0)
        weight *= 1 - LEARNING_RATE * WEIGHT_DECAY
        weight -= LEARNING_RATE * (mean / (1 - BETAS[0] ** step)) / denominator


def training_of(model: Workload) -> Training:
    """Return the training pass of `model`."""
    common = fields_of(model) | {"implementations": ("plain",), "tolerance": TOLERANCE}
    parameters = (*model.training_parameters, _ACCUMULATE, *_OF_RANKS)
    return Training(parameters=parameters, input_sets=model.input_sets, parity_calls=STEPS_COMPARED, **common)
