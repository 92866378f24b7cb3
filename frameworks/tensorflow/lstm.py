"""LSTMs in TensorFlow: `tf.while_loop` over positions, and written out."""

from __future__ import annotations

import tensorflow as tf

from frameworks.adapter import Unsupported
from frameworks.tensorflow.layers import Linear, Types, lengths
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
        """All states (S, B, H), and the last one (B, H)."""
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
        """`given` (B, 4H), the product of a position's input -> the next state and memory, both (B, H)."""
        taken, kept, new, shown = tf.split(given + self.of_state(state), 4, axis=1)
        memory = tf.sigmoid(kept) * memory + tf.sigmoid(taken) * tf.tanh(new)
        return tf.sigmoid(shown) * tf.tanh(memory), memory


class LstmModel(tf.Module):
    """An embedding, two LSTM layers and a classifier of the last state. Raises `Unsupported` for the fused operator."""

    def __init__(self, workload: Lstm, weights: Arrays, cell: str, types: Types):
        super().__init__()
        if cell == "fused":
            raise Unsupported(
                "TensorFlow's operators for a whole LSTM (BlockLSTMV2 on CPUs, cuDNN's on GPUs) are not measured here: "
                "take CELL=scan or CELL=unrolled."
            )
        self.types = types
        self.words = tf.Variable(weights["embedding.weight"], dtype=types.variables)
        self.layers = [Layer(weights, layer, cell == "scan", types) for layer in range(LAYERS)]
        self.classifier = Linear(weights, "classifier", types)

    def __call__(self, input_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        x = self.types.cast(tf.gather(self.words, tf.transpose(input_ids)))  # (S, B, H)
        for layer in self.layers:
            x, state = layer(x)
        return {"state": state, "logits": self.classifier(state)}  # (B, H), (B, classes)
