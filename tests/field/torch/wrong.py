import torch


def model():
    return 3


def inputs(batch_size=1):
    return torch.ones(batch_size)
