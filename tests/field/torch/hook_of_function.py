import torch
from torch import nn


class FeatureExtractor(nn.Module):
    """Outputs of inner layers, kept by forward hooks that are plain functions."""

    def __init__(self, net, names):
        super().__init__()
        self.net, self._features = net, {}
        for name in names:
            net.get_submodule(name).register_forward_hook(self.keeping(name))

    def keeping(self, name):
        def fn(_, __, output):
            self._features[name] = output

        return fn

    def forward(self, x):
        self.net(x)
        return self._features


def model():
    net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
    return FeatureExtractor(net, ("0", "2"))


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)


def loss(output):
    return output["2"].square().mean()
