import torch
from torch import nn


def model():
    net = nn.Linear(16, 16)
    optimizers = {one: torch.optim.SGD([one], lr=0.1) for one in net.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for one in net.parameters():
        one.register_post_accumulate_grad_hook(step)
    return net


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)


def loss(output):
    return output.square().mean()
