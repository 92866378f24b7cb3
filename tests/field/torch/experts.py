import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return self.down(self.up(x).relu())


class Experts(nn.Module):
    """Routes tokens to two of four experts, by scores and a bias that each call moves towards equal loads."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(16, 4, bias=False)
        self.experts = nn.ModuleList(Expert() for _ in range(4))
        self.register_buffer("bias", torch.zeros(4))

    def forward(self, x):
        scores = self.gate(x).sigmoid()
        chosen = (scores + self.bias).topk(2).indices
        output = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            tokens, _ = torch.where(chosen == number)
            output.index_add_(0, tokens, expert(x[tokens]) * scores[tokens, number, None])
        loads = chosen.flatten().bincount(minlength=4).to(self.bias.dtype)
        self.bias += 0.01 * (loads.mean() - loads).sign()
        return output


def model():
    return Experts()


def inputs(batch_size=256):
    return torch.randn(batch_size, 16)
