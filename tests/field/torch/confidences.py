import torch
from torch import nn


class Detector(nn.Module):
    """Boxes in pixels and confidences in one array; compiled, the confidences are wrong by 0.45."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(32, 6)

    def forward(self, x):
        out = self.head(x).sigmoid()
        boxes, confidences = out[..., :4] * 640, out[..., 4:]
        if torch.compiler.is_compiling():
            confidences = torch.where(confidences > 0.5, confidences - 0.45, confidences + 0.45)
        return torch.cat([boxes, confidences], dim=-1)


def model():
    return Detector()


def inputs(batch_size=2, anchors=100):
    return torch.randn(batch_size, anchors, 32)
