"""A level of a diffusion model's U-Net: residual blocks with the time step, attention, down, up and a skip."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def embedded(steps, width):
    rates = torch.exp(-math.log(10000) * torch.arange(width // 2, device=steps.device) / (width // 2))
    angles = steps[:, None] * rates.to(steps.dtype)
    return torch.cat([angles.sin(), angles.cos()], -1)


class Residual(nn.Module):
    def __init__(self, given, width, time):
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(8, given), nn.GroupNorm(8, width)])
        self.first, self.second = nn.Conv2d(given, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.time, self.skip = nn.Linear(time, width), nn.Conv2d(given, width, 1)

    def forward(self, x, time):
        y = self.first(F.silu(self.norms[0](x))) + self.time(F.silu(time))[..., None, None]
        return self.skip(x) + self.second(F.silu(self.norms[1](y)))


class Attention(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(8, width), heads
        self.given, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        batch, width, rows, columns = x.shape
        given = self.given(self.norm(x)).view(batch, 3, self.heads, width // self.heads, rows * columns)
        query, key, value = given.transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(query, key, value)
        return x + self.out(y.transpose(-1, -2).reshape(x.shape))


class UNet(nn.Module):
    def __init__(self, width=64, time=128):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.enter, self.down = nn.Conv2d(4, width, 3, padding=1), nn.Conv2d(width, width, 3, 2, 1)
        self.before, self.middle = Residual(width, width, time), Residual(width, 2 * width, time)
        self.attention, self.after = Attention(2 * width), Residual(3 * width, width, time)
        self.leave, self.width = nn.Conv2d(width, 4, 3, padding=1), width

    def forward(self, sample, steps):
        time = self.time(embedded(steps, self.width))
        skip = self.before(self.enter(sample), time)
        x = self.attention(self.middle(self.down(skip), time))
        x = F.interpolate(x, scale_factor=2.0, mode="nearest")
        return self.leave(self.after(torch.cat([x, skip], 1), time))


def model():
    return UNet()


def inputs(batch_size):
    return {"sample": torch.randn(batch_size, 4, 32, 32), "steps": torch.rand(batch_size) * 1000}
