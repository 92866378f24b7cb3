import weakref

import torch
from torch import nn


class FeatureExtractor(nn.Module):
    """Outputs of an inner layer, kept by a hook that finds its model by a weak reference, which every copy shares."""

    def __init__(self):
        super().__init__()
        self.net, self._features = nn.Sequential(nn.Linear(16, 16), nn.ReLU()), {}
        owner = weakref.ref(self)

        def keep(_, __, output):
            owner()._features["net"] = output

        self.net.register_forward_hook(keep)

    def forward(self, x):
        self.net(x)
        return dict(self._features)


def model():
    return FeatureExtractor()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
