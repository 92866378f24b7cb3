import torch
from torch import nn


@torch.library.custom_op("field::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("field::add_one", mutates_args=("x",))
def add_one(x: torch.Tensor) -> None:
    x += 1


class CustomOperators(nn.Module):
    """Operators of one's own: one that returns, one that writes."""

    def forward(self, x):
        y = twice(x) + 1.0
        add_one(y)
        return y


def model():
    return CustomOperators()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
