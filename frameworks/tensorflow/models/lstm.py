"""LSTMs in TensorFlow: its operator for whole sequences, `tf.while_loop` over positions, and written out."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from frameworks.adapter import Unsupported
from frameworks.tensorflow.models.layers import Linear, Types, lengths
from measurement.cells import Cell
from workloads.lstm import LAYERS, Lstm
from workloads.spec import Arrays


class Layer(tf.Module):
    """One LSTM layer. Sequences are (S, B, H), so that a position is one piece of memory."""

    def __init__(self, weights: Arrays, layer: int, scans: bool, types: Types):
        super().__init__()
        self.scans = scans
        self.of_input, self.of_state = (
            Linear(
                {f"{kind}.{tensor}": weights[f"lstm.{tensor}_{kind}_l{layer}"] for tensor in ("weight", "bias")},
                kind,
                types,
            )
            for kind in ("ih", "hh")
        )

    def __call__(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return all states (S, B, H), and the last one (B, H)."""
        length, batch, hidden = lengths(x)
        inputs = tf.reshape(self.of_input(tf.reshape(x, (-1, hidden))), (length, batch, 4 * hidden))
        zeros = tf.zeros((batch, hidden), x.dtype)
        if not self.scans:
            states, state, memory = [], zeros, zeros
            for given in tf.unstack(inputs, num=length):
                state, memory = self.step(given, state, memory)
                states.append(state)
            return tf.stack(states), state

        def advance(place: tf.Tensor, state: tf.Tensor, memory: tf.Tensor, states: tf.TensorArray) -> tuple:
            state, memory = self.step(inputs[place], state, memory)
            return place + 1, state, memory, states.write(place, state)

        states = tf.TensorArray(x.dtype, length, element_shape=zeros.shape)
        _, state, _, states = tf.while_loop(
            lambda place, *_: place < length, advance, (tf.constant(0), zeros, zeros, states), maximum_iterations=length
        )
        return states.stack(), state

    def step(self, given: tf.Tensor, state: tf.Tensor, memory: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Map `given` (B, 4H), the product of a position's input -> the next state and memory, both (B, H)."""
        taken, kept, new, shown = tf.split(given + self.of_state(state), 4, axis=1)
        memory = tf.sigmoid(kept) * memory + tf.sigmoid(taken) * tf.tanh(new)
        return tf.sigmoid(shown) * tf.tanh(memory), memory


class FusedLayer(tf.Module):
    """One LSTM layer by `BlockLSTM`, which takes the kernels of inputs and states as one, and gates in its own order.

    Not by `BlockLSTMV2`: its gradient takes the gates in `BlockLSTM`'s order, not its own, and is wrong
    (TensorFlow 2.21, tensorflow/python/ops/rnn_grad.py).
    """

    def __init__(self, weights: Arrays, layer: int, types: Types):
        super().__init__()
        self.types = types
        kernels, biases = (
            [_reordered(weights[f"lstm.{tensor}_{kind}_l{layer}"]) for kind in ("ih", "hh")]
            for tensor in ("weight", "bias")
        )
        self.kernel = tf.Variable(np.concatenate([kernel.T for kernel in kernels]), dtype=types.variables)  # (2H, 4H)
        self.biases = [tf.Variable(bias, dtype=types.variables) for bias in biases]  # two of (4H,), trained separately

    def __call__(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return all states (S, B, H), and the last one (B, H)."""
        length, batch, hidden = lengths(x)
        zeros, no_peephole = tf.zeros((batch, hidden), x.dtype), tf.zeros((hidden,), x.dtype)
        states = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.cast(length, tf.int64), x=x, cs_prev=zeros, h_prev=zeros, w=self.types.cast(self.kernel),
            wci=no_peephole, wcf=no_peephole, wco=no_peephole, b=tf.add_n(list(map(self.types.cast, self.biases))),
            forget_bias=0.0, cell_clip=-1.0,
        ).h  # fmt: skip
        return states, states[-1]


def _reordered(weights: np.ndarray) -> np.ndarray:
    """Reorder gates along the first axis: input, cell, forget, output; torch has the forget gate before the cell."""
    taken, kept, new, shown = np.split(weights, 4)
    return np.concatenate([taken, new, kept, shown])


def refuse_fused(cell: Cell, dtype: tf.DType) -> None:
    """Raise `Unsupported` where the operator for a whole LSTM cannot run the cell in this dtype."""
    refused = {
        "the suite measures it on CPUs only": cell.device_kind != "cpu",
        "XLA has no kernel of it": cell.mode == "function-xla",
        f"it has no {dtype.name}": dtype not in (tf.float32, tf.float16),
    }
    for reason in (reason for reason, holds in refused.items() if holds):
        raise Unsupported(
            f"TensorFlow's operator for a whole LSTM is BlockLSTM, and {reason}: choose CELL=scan or CELL=unrolled."
        )


def build(workload: Lstm, cell: Cell, weights: Arrays, types: Types) -> LstmModel:
    """Return the model with the cell's recurrence."""
    return LstmModel(workload, weights, str(cell.parameter("cell")), types)


class LstmModel(tf.Module):
    """An embedding, two LSTM layers and a classifier of the last state."""

    def __init__(self, workload: Lstm, weights: Arrays, recurrence: str, types: Types):
        super().__init__()
        self.types = types
        self.words = tf.Variable(weights["embedding.weight"], dtype=types.variables)
        self.layers = [
            FusedLayer(weights, layer, types)
            if recurrence == "fused"
            else Layer(weights, layer, recurrence == "scan", types)
            for layer in range(LAYERS)
        ]
        self.classifier = Linear(weights, "classifier", types)

    def __call__(self, input_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        x = self.types.cast(tf.gather(self.words, tf.transpose(input_ids)))  # (S, B, H)
        for layer in self.layers:
            x, state = layer(x)
        return {"state": state, "logits": self.classifier(state)}  # (B, H), (B, classes)
