"""A Mamba block: a causal convolution, and a selective scan as a loop over the positions."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width=64, inner=128, states=16, rank=4):
        super().__init__()
        self.norm, self.enter, self.leave = nn.LayerNorm(width), nn.Linear(width, 2 * inner), nn.Linear(inner, width)
        self.convolution = nn.Conv1d(inner, inner, 4, padding=3, groups=inner)
        self.selective, self.step = nn.Linear(inner, rank + 2 * states), nn.Linear(rank, inner)
        self.log_decay = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(inner, 1))
        self.direct, self.sizes = nn.Parameter(torch.ones(inner)), (rank, states, states)

    def forward(self, x):
        length = x.shape[1]
        y, gate = self.enter(self.norm(x)).chunk(2, -1)
        y = F.silu(self.convolution(y.transpose(1, 2))[..., :length].transpose(1, 2))
        step, write, read = self.selective(y).split(self.sizes, -1)
        step = F.softplus(self.step(step))
        decay = torch.exp(-step[..., None] * self.log_decay.exp())
        written = (step * y)[..., None] * write[:, :, None]
        state, outputs = torch.zeros_like(decay[:, 0]), []
        for position in range(length):
            state = decay[:, position] * state + written[:, position]
            outputs.append((state * read[:, position, None]).sum(-1))
        y = torch.stack(outputs, 1) + self.direct * y
        return x + self.leave(y * F.silu(gate))


def model():
    return Block()


def inputs(batch_size, seq_len=32):
    return torch.randn(batch_size, seq_len, 64)
