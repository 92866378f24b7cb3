import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.flat = torch.nn.Parameter(torch.randn(512) / 16)
        self.last = torch.nn.Linear(16, 16)
        self.w, self.v = self.flat[:256].view(16, 16), self.flat[256:].view(16, 16)

    def forward(self, x):
        return self.last(torch.nn.functional.gelu(x @ self.w) @ self.v)


def model():
    return Net()


def inputs(batch_size):
    return torch.randn(batch_size, 16)


def loss(y):
    return (y - 1).square().mean()
