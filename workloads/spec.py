"""Declaration of a workload: its parameters, weights, inputs, reference, cost and tolerance. NumPy only."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

Parameters = dict[str, int | str]
Arrays = dict[str, np.ndarray]
Weights = Mapping[str, np.ndarray]  # which may be made on access

# More than any dimension of an array that fits in memory.
LARGEST = 1 << 40
# How many values of each output are compared. Every value of BERT's hidden states up to batch 1 x sequence 341.
SAMPLED_VALUES = 1 << 18
VALUES_OF_ALL = 5  # of a user model's sample: its last values, which are extremes of the whole array
# Workloads of operators one after another, which TensorFlow's Grappler merges: it computes less than eager mode.
MERGED_CHAINS = ("pointwise-chain", "op-overhead")
BYTES_PER_VALUE = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True)
class Parameter:
    """One axis of a workload's sweep: an integer with bounds, or one of a few words."""

    name: str
    flag: str
    default: int | str
    help: str
    minimum: int = 1
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    implementations: tuple[str, ...] = ("library", "plain")

    def problem(self, value: int | str) -> str | None:
        """Return one sentence on why `value` cannot be used, or None."""
        if self.choices:
            known = ", ".join(self.choices)
            return None if value in self.choices else f"{self.name} must be one of {known}, not {value!r}."
        if not isinstance(value, int):
            return f"{self.name} must be a whole number, not {value!r}."
        if value < self.minimum:
            return f"{self.name} must be at least {self.minimum}, not {value}."
        maximum = LARGEST if self.maximum is None else self.maximum
        if value > maximum:
            return f"{self.name} can be at most {maximum}, not {str(value)[:40]}."
        return None


@dataclass(frozen=True)
class OperatorCost:
    """FLOPs and bytes of one class of operators, analytic.

    `flops` counts one multiply-add as two and every other arithmetic operation, transcendental ones included, as one.
    `bytes` is the traffic when each operator reads its operands and writes its result once (nothing fused).
    `transcendentals` counts the exponentials, error functions, tangents and cosines among the `flops`: each takes a
    processor several to a hundred times as long as a multiplication.
    """

    operator_class: str  # matmul, attention, normalisation, pointwise, copy
    flops: int
    bytes: int
    transcendentals: int = 0

    def plus(self, more: OperatorCost, times: int = 1) -> OperatorCost:
        """Add `more`, `times` times."""
        flops, traffic = self.flops + times * more.flops, self.bytes + times * more.bytes
        return replace(
            self, flops=flops, bytes=traffic, transcendentals=self.transcendentals + times * more.transcendentals
        )


@dataclass(frozen=True)
class Cost:
    """The cost of one call: per operator class, and the bytes that move regardless of fusion."""

    operators: tuple[OperatorCost, ...]
    compulsory_bytes: int  # each weight and input read once, each output written once
    repeated_bytes: int = 0  # weights that dependent products read again, fused or not

    @property
    def flops(self) -> int:
        return sum(o.flops for o in self.operators)

    @property
    def transcendentals(self) -> int:
        return sum(o.transcendentals for o in self.operators)

    @property
    def unfused_bytes(self) -> int:
        return sum(o.bytes for o in self.operators)

    @property
    def fused_bytes(self) -> int:
        """Return the bytes that move with all possible fusion."""
        return self.compulsory_bytes + self.repeated_bytes

    def plus(self, more: OperatorCost) -> Cost:
        """Add work of an existing operator class."""
        operators = tuple(o.plus(more) if o.operator_class == more.operator_class else o for o in self.operators)
        return replace(self, operators=operators)

    def and_then(self, more: Cost, times: int) -> Cost:
        """Add `times` further calls with the same operator classes."""
        pairs = zip(self.operators, more.operators, strict=True)
        operators = tuple(one.plus(other, times) for one, other in pairs)
        compulsory = self.compulsory_bytes + times * more.compulsory_bytes
        return Cost(operators, compulsory, self.repeated_bytes + times * more.repeated_bytes)

    def with_loss(self, values: int, bytes_per_value: int) -> Cost:
        """Add a loss on `values` outputs: a reduction with one read and about four operations each."""
        return self.plus(OperatorCost("normalisation", 4 * values, bytes_per_value * values, transcendentals=values))


@dataclass(frozen=True)
class Workload(ABC):
    """A computation that every framework runs from the same weights on the same inputs.

    `family` names the model code that adapters select (several workloads may be sizes of one family). `tolerance` maps
    a dtype to the largest root mean square of errors, relative to that of the reference's outputs
    (`measurement.parity`).
    """

    name: str
    family: str
    implementations: tuple[str, ...]  # the default one first
    parameters: tuple[Parameter, ...]
    tolerance: dict[str, float] = field(hash=False)
    passes: tuple[str, ...] = ("inference",)
    input_sets: int = 4  # same-shape inputs that calls take in turn; fewer if one already exceeds every cache
    parity_calls: int = 2  # how many consecutive calls' outputs are compared
    restart: int | None = None  # the call of these before which the first weights are put back
    padding: str | None = None  # the input (B, S) that is 1 where a position counts and 0 where it is padding
    state_tolerance: dict[str, float] = field(default_factory=dict, hash=False)  # of `state` in training, if another
    # Parameters that change no value of inputs and outputs: the form of operators, the layout of arrays.
    same_values: ClassVar[tuple[str, ...]] = ()
    has_reference: bool = True  # else the worker's report holds the reference outputs and the cost of a call

    def named(self, parameters: Parameters) -> Parameters:
        """Return the parameters in a cell's name: all but redundant ones."""
        return parameters

    @abstractmethod
    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        """Return the shapes of weights under the checkpoint's own tensor names; linear weights are (out, in)."""

    @abstractmethod
    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """Return a seeded initialisation, float32, with the names and shapes of `weight_shapes`."""

    def kept_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """Return the stored part of the seeded weights, from which `weights_from` makes them: all or much less."""
        return self.seeded_weights(parameters, seed)

    def weights_from(self, parameters: Parameters, kept: Weights) -> Weights:
        """Return the weights by name, in the precision of the stored part (or of a checkpoint)."""
        return kept

    @abstractmethod
    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        """Return one seeded set of inputs, in the order of the model's arguments."""

    def sets(self, parameters: Parameters, seed: int) -> list[Arrays]:
        """Return the input sets that calls take in turn, in their order."""
        return [self.inputs(parameters, seed + 1 + index) for index in range(self.input_sets)]

    @abstractmethod
    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        """Return the right outputs by name, in the precision of weights and inputs."""

    @abstractmethod
    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        """Return the analytic cost of one call in `dtype`.

        With `fused_attention`, attention is one operator, as flash attention (Dao et al. 2022): its scores never reach
        memory, heads are not transposed, and causal attention computes the half of the scores that it uses.
        """

    def items_per_call(self, parameters: Parameters) -> int:
        """Return how many independent items (sequences, rows) one call handles."""
        return int(parameters.get("batch_size", 1))

    def tokens_per_call(self, parameters: Parameters) -> int | None:
        """Return how many tokens one call handles, or None if the workload has no tokens."""
        length = parameters.get("seq_len")
        return None if length is None else self.items_per_call(parameters) * int(length)

    def tokens_made(self, parameters: Parameters) -> int | None:
        """Return how many tokens one call generates in all sequences; None if it generates none."""
        return None

    def comparable(
        self, parameters: Parameters, outputs: Arrays, reference: Arrays, dtype: str
    ) -> tuple[Arrays, Arrays]:
        """Return both in the form for errors; keys are `<call>.<name>`, arrays 1-D as `sampled` makes them."""
        return outputs, reference

    def tolerance_of(self, output: str, dtype: str) -> float:
        """Return the tolerance of one output, by its name in the result of `comparable`."""
        return self.tolerance[dtype]

    def first_differing(self, parameters: Parameters, outputs: Arrays, reference: Arrays) -> int | None:
        """Return the first step, from 1, with another token than the reference's; None if there is none."""
        return None

    def real_tokens_per_call(self, parameters: Parameters) -> int | None:
        """Return the number of real tokens; the same for every input set."""
        return self.tokens_per_call(parameters)

    def real_flops(self, parameters: Parameters, fused_attention: bool = False) -> int:
        """Return the FLOPs of one call without padding, in any dtype; all of `cost` if nothing is padded."""
        return self.cost(parameters, "fp32", fused_attention).flops

    def references(self, parameters: Parameters, weights: Weights, sets: list[Arrays]) -> list[Arrays]:
        """Return the reference's outputs of consecutive calls, one per input set."""
        return [self.reference(parameters, weights, inputs) for inputs in sets]

    # For workloads with a training pass.

    @property
    def training_parameters(self) -> tuple[Parameter, ...]:
        """The model's parameters in training."""
        return self.parameters

    def training_inputs(self, parameters: Parameters, seed: int) -> Arrays:
        """Return one seeded micro-batch: the model's inputs, and last the target of the loss."""
        raise NotImplementedError(f"{self.name} has no training pass")

    def loss(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> np.ndarray:
        """Return the reference's loss on a micro-batch, a scalar; also on weights that are `autograd.Variable`s."""
        raise NotImplementedError(f"{self.name} has no training pass")

    def state(self, parameters: Parameters) -> tuple[str, ...]:
        """Return weights changed only by the forward pass (running statistics): outputs of a training call."""
        return ()

    def loss_and_state(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> tuple[np.ndarray, Arrays]:
        """Return the reference's loss, and the weights that `state` names after the forward pass."""
        return self.loss(parameters, weights, inputs), {}

    def conventions(self, parameters: Parameters) -> tuple[str, ...]:
        """Return formulas in which frameworks differ (`Framework.conventions`), parameters of the reference.

        `running_variance` is the `biased` or else the unbiased variance of a batch; `adamw_epsilon` is added to the
        `uncorrected` or else the corrected root of the second moment; `batch_statistics` are those of each `rank`'s
        batch or else of the global one.
        """
        return ()

    def head_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        """Return shapes of the weights that the loss needs in addition to the model's."""
        return {}

    def training_forward_cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        """Return the analytic cost of the forward pass on a micro-batch, loss included."""
        raise NotImplementedError(f"{self.name} has no training pass")

    def canonical_name(self, checkpoint_name: str) -> str:
        """Return the canonical name of a tensor found in a checkpoint (undoes prefixes and historical spellings)."""
        return checkpoint_name

    def from_checkpoint(
        self, tensors: Callable[[Workload, Parameters], Arrays], parameters: Parameters, seed: int
    ) -> Arrays:
        """Return the weights, as `tensors` finds them in a checkpoint; weights that no checkpoint holds are seeded."""
        return tensors(self, parameters)

    def weight_parameters(self, parameters: Parameters) -> Parameters:
        """Return the parameters on which the weights depend (width, depth; not batch or sequence length)."""
        return {}

    def dynamic_axes(self, parameters: Parameters) -> tuple[tuple[int, ...], ...]:
        """Return for each input the axes whose length changes with batch size or sequence length."""
        usual = [array.shape for array in self.inputs(parameters, 0).values()]
        free: list[set[int]] = [set() for _ in usual]
        for name in ("batch_size", "seq_len"):
            if name in parameters:
                other = self.inputs({**parameters, name: int(parameters[name]) % 7 + 1}, 0).values()
                for axes, shape, array in zip(free, usual, other, strict=True):
                    axes |= {axis for axis, (a, b) in enumerate(zip(shape, array.shape, strict=True)) if a != b}
        return tuple(tuple(sorted(axes)) for axes in free)

    def reference_parameters(self, parameters: Parameters) -> Parameters:
        """Return the parameters on which the values of inputs and outputs depend."""
        return {name: value for name, value in parameters.items() if name not in self.same_values}


@dataclass(frozen=True)
class PassOf(Workload):
    """A pass of `model`, which has the weights; the pass may add its own."""

    model: Workload = field(kw_only=True)

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        return self.model.weight_shapes(parameters)

    def kept_weights(self, parameters: Parameters, seed: int) -> Arrays:
        return self.model.kept_weights(parameters, seed)

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        return dict(self.weights_from(parameters, self.kept_weights(parameters, seed)))

    def weight_parameters(self, parameters: Parameters) -> Parameters:
        return self.model.weight_parameters(parameters)

    def canonical_name(self, checkpoint_name: str) -> str:
        return self.model.canonical_name(checkpoint_name)

    def reference_parameters(self, parameters: Parameters) -> Parameters:
        return self.model.reference_parameters(parameters)


def fields_of(model: Workload) -> dict[str, Any]:
    """Return the fields that every pass of a model shares with it."""
    names = ("name", "family", "implementations", "tolerance", "passes")
    return {name: getattr(model, name) for name in names} | {"model": model}


def sampled(values: np.ndarray, dtype: type | None = np.float32, most: int = SAMPLED_VALUES) -> np.ndarray:
    """Return up to `most` values, spread by the array's size; 1-D. None keeps the kind."""
    flat = np.asarray(values).reshape(-1)
    if flat.size > most:
        flat = flat[sampled_places(flat.size, most)]
    return flat.astype(flat.dtype if dtype is None else dtype)


def sampled_places(size: int, most: int) -> np.ndarray:
    """Return the places of a sample of `most` of `size` values: steps of a golden section, even over every axis."""
    step = int(size * 0.6180339887498949)
    while math.gcd(step, size) > 1:  # a step coprime to the size repeats no value
        step += 1
    return (np.arange(most, dtype=np.int64) * step) % size


def places_kept(shape: Sequence[int]) -> np.ndarray:
    """Return the places, in C order, of the values that are kept of a user model's output: all if it is small."""
    size = math.prod(shape)
    return np.arange(size) if size <= SAMPLED_VALUES else sampled_places(size, SAMPLED_VALUES - VALUES_OF_ALL)


def without_padding(outputs: Arrays, counts: np.ndarray | None) -> Arrays:
    """Return outputs of one call where they are defined: those by position, (B, S, …), without padded positions.

    `counts` (B, S) is 1 at real positions; None keeps everything. Frameworks may return anything at padded positions
    (PaddleNLP zeroes the embedding of token 0, others do not), and no user reads it.
    """
    if counts is None:
        return outputs
    by_position = {name: value.ndim == 3 and value.shape[:2] == counts.shape for name, value in outputs.items()}
    return {name: value[counts > 0] if by_position[name] else value for name, value in outputs.items()}


def linear_cost(rows: int, inputs: int, outputs: int, width: int) -> tuple[int, int]:
    """Count (FLOPs, bytes) of `rows x inputs @ inputs x outputs`, `width` bytes a value, without the bias."""
    return 2 * rows * inputs * outputs, width * (rows * inputs + inputs * outputs + rows * outputs)
