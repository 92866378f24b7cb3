import torch
from torch import nn


class Distillation(nn.Module):
    """Trains a student on the outputs of a frozen teacher, whose statistics stay as they were made."""

    def __init__(self):
        super().__init__()
        self.teacher = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8)).requires_grad_(False)
        self.student = nn.Linear(16, 8)

    def train(self, mode=True):
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, x):
        return nn.functional.mse_loss(self.student(x), self.teacher(x))


def model():
    return Distillation()


def inputs(batch_size=8):
    return torch.randn(batch_size, 16)


def loss(distance):
    return distance
