import torch
from torch import nn


class Compiled(nn.Module):
    """Holds compiled methods and functions as attributes of the instance."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)
        self.hot = torch.compile(self._hot)
        self.activation = torch.compile(lambda x: nn.functional.gelu(x) * 2.0)

    def _hot(self, x):
        return torch.relu(self.layer(x))

    def forward(self, x):
        return self.activation(self.hot(x))


def model():
    net = Compiled()
    net.forward = torch.compile(net.forward)
    return net


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)


def loss(output):
    return output.square().mean()
