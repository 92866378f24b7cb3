"""LSTMs in Paddle: its operator for whole sequences, and written out position by position."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import nn

from frameworks.adapter import Unsupported
from workloads.lstm import LAYERS, Lstm


class LstmModel(nn.Layer):
    """An embedding, two LSTM layers and a classifier of the last state. Raises `Unsupported` for a scan."""

    def __init__(self, workload: Lstm, cell: str):
        super().__init__()
        if cell == "scan":
            raise Unsupported("Paddle has no operator that scans over positions: choose CELL=fused or CELL=unrolled.")
        self.hidden, self.fused = workload.hidden, cell == "fused"
        self.embedding = nn.Embedding(workload.vocabulary, workload.hidden)
        self.lstm = nn.LSTM(workload.hidden, workload.hidden, LAYERS)
        self.classifier = nn.Linear(workload.hidden, workload.classes)

    def forward(self, input_ids):
        """Map `input_ids` (B, S), int64 -> the last state (B, H) and logits (B, classes)."""
        x = self.embedding(input_ids)  # (B, S, H)
        state = self.lstm(x)[0][:, -1] if self.fused else self.unrolled(x)
        return state, self.classifier(state)

    def unrolled(self, x):
        """Map (B, S, H) -> the last state (B, H)."""
        states = x.unbind(1)
        for layer in range(LAYERS):
            kernel, state_kernel = (getattr(self.lstm, f"weight_{kind}_l{layer}") for kind in ("ih", "hh"))
            bias, state_bias = (getattr(self.lstm, f"bias_{kind}_l{layer}") for kind in ("ih", "hh"))
            inputs = paddle.matmul(paddle.stack(states, 1), kernel, transpose_y=True) + bias
            inputs, states = inputs.unbind(1), []  # of (B, 4H)
            state = memory = paddle.zeros([x.shape[0], self.hidden], x.dtype)
            for given in inputs:
                gates = given + (paddle.matmul(state, state_kernel, transpose_y=True) + state_bias)
                taken, kept, new, shown = gates.split(4, axis=1)
                memory = F.sigmoid(kept) * memory + F.sigmoid(taken) * F.tanh(new)
                state = F.sigmoid(shown) * F.tanh(memory)
                states.append(state)
        return states[-1]
