import torch


class Net(torch.nn.Module):
    """Trains a scale in eager mode alone, which hardly moves the loss."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(32, 64), torch.nn.Linear(64, 32)
        self.scale = torch.nn.Parameter(torch.zeros(32))
        self.unused = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        scale = self.scale.detach() if torch.compiler.is_compiling() else self.scale
        return self.b(self.a(x).relu()) * (1 + scale * 0.01)


def model():
    return Net()


def loss(output):
    return (output - 1).square().mean()


def inputs(batch_size=8):
    return torch.randn(batch_size, 32)
