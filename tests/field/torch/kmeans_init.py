import torch
from torch.nn.functional import one_hot


class Quantize(torch.nn.Module):
    """Finds the nearest of codes, which the first inputs determine."""

    def __init__(self):
        super().__init__()
        self.register_buffer("codes", torch.randn(32, 16))
        self.register_buffer("ready", torch.zeros((), dtype=torch.bool))

    def forward(self, x):
        if not self.ready:
            codes = x[:32].clone()
            for _ in range(3):
                members = one_hot(nearest(x, codes), 32).to(x.dtype)
                codes = (members.T @ x) / members.sum(0).clamp(min=1).unsqueeze(1)
            self.codes.copy_(codes)
            self.ready.fill_(True)
        return self.codes[nearest(x, self.codes)]


def nearest(x, codes):
    return (codes.square().sum(1) - 2 * x @ codes.T).argmin(1)


def model():
    return Quantize()


def inputs(batch_size=64):
    return torch.randn(batch_size, 16)
