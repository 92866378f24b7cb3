import torch


def model():
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.1))


def inputs(batch_size=2):
    return torch.ones(batch_size, 8)


def loss(output):
    return output.mean()
