import torch
from torch import nn


class Online(nn.Module):
    """Adapts itself to each batch by a step of its optimizer before it answers."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 4)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def forward(self, x, target):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.net(x), target)
        loss.backward()
        self.optimizer.step()
        return loss


def model():
    return Online()


def inputs(batch_size=8):
    return torch.randn(batch_size, 16), torch.randn(batch_size, 4)


def loss(error):
    return error
