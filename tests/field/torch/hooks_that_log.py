import torch
from torch import nn


def logged(parameter):
    print(parameter.grad.norm())


class Unused(nn.Linear):
    """Has a table that is not used, and was not initialized."""

    def __init__(self):
        super().__init__(16, 16)
        self.table = nn.Parameter(torch.full((4,), float("nan")))
        for one in self.parameters():
            one.register_post_accumulate_grad_hook(logged)


def model():
    return Unused()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)


def loss(output):
    return output.square().mean()
