"""LSTMs in torch: its operator for whole sequences, its loop operator, and written out position by position."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from frameworks.adapter import Unsupported
from workloads import lstm
from workloads.spec import Parameters


class Lstm(nn.Module):
    """An embedding, two LSTM layers and a classifier of the last state."""

    def __init__(self, workload: lstm.Lstm, cell: str):
        super().__init__()
        hidden = workload.hidden
        self.embedding = nn.Embedding(workload.vocabulary, hidden)
        # The weights of an nn.LSTM, whose calls Dynamo does not trace; `fused` calls its operator.
        self.lstm = nn.ParameterDict(dict(nn.LSTM(hidden, hidden, lstm.LAYERS).named_parameters()))
        self.classifier = nn.Linear(hidden, workload.classes)
        self.recurrence = {"fused": self.fused, "unrolled": self.unrolled}[cell]

    def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `input_ids` (B, S), int64 -> the last state (B, H) and logits (B, classes)."""
        state = self.recurrence(self.embedding(input_ids))
        return {"state": state, "logits": self.classifier(state)}

    def weights(self, layer: int) -> tuple[torch.Tensor, ...]:
        """Return kernels of inputs and states (4H, H), and their biases (4H,)."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return tuple(self.lstm[f"{name}_l{layer}"] for name in names)

    def fused(self, x: torch.Tensor) -> torch.Tensor:
        """Map (B, S, H) -> the last state (B, H)."""
        zeros = x.new_zeros(lstm.LAYERS, x.size(0), x.size(2))
        weights = [tensor for layer in range(lstm.LAYERS) for tensor in self.weights(layer)]
        # Biases, layers, dropout, whether training, one direction, batch first: as nn.LSTM calls it.
        states, _, _ = torch.lstm(x, (zeros, zeros), weights, True, lstm.LAYERS, 0.0, self.training, False, True)
        return states[:, -1]

    def unrolled(self, x: torch.Tensor) -> torch.Tensor:
        """Map (B, S, H) -> the last state (B, H)."""
        states = list(x.unbind(1))
        for layer in range(lstm.LAYERS):
            input_kernel, state_kernel, input_bias, state_bias = self.weights(layer)
            inputs = F.linear(torch.stack(states, 1), input_kernel, input_bias).unbind(1)  # of (B, 4H)
            state = memory = x.new_zeros(x.size(0), x.size(2))  # (B, H)
            for place, given in enumerate(inputs):
                state, memory = step(given + F.linear(state, state_kernel, state_bias), memory)
                states[place] = state
        return states[-1]


def step(gates: torch.Tensor, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Map `gates` (B, 4H) before their functions, `memory` (B, H) -> the next state and memory, both (B, H)."""
    taken, kept, new, shown = gates.chunk(4, 1)
    memory = torch.sigmoid(kept) * memory + torch.sigmoid(taken) * torch.tanh(new)
    return torch.sigmoid(shown) * torch.tanh(memory), memory


def build(workload: lstm.Lstm, parameters: Parameters, weights: dict[str, torch.Tensor]) -> nn.Module:
    """Return the model holding `weights`, on a GPU in the one block of memory that cuDNN needs.

    A missing or left-over tensor is a RuntimeError. Raises `Unsupported` for a scan.
    """
    cell = str(parameters["cell"])
    if cell == "scan":
        raise Unsupported("torch has no loop operator: choose CELL=fused or CELL=unrolled.")
    with torch.device("meta"):
        model = Lstm(workload, cell)
        holder = nn.LSTM(workload.hidden, workload.hidden, lstm.LAYERS)
    model.load_state_dict(weights, assign=True)
    holder.load_state_dict(dict(model.lstm), assign=True)  # the same parameters
    if cell == "fused":
        holder.flatten_parameters()  # as moving such a module to a GPU does; nothing on a CPU
    return model
