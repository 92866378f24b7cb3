import torch
from torch.utils.data import DataLoader, TensorDataset


def model():
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))


def inputs(batch_size=8):
    data = TensorDataset(torch.randn(64, 32))
    (batch,) = next(iter(DataLoader(data, batch_size=batch_size, shuffle=True, num_workers=1)))
    return batch
