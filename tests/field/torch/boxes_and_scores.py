import torch
from torch import nn


class BoxesAndScores(nn.Module):
    """Boxes in pixels beside scores, whose error is small beside the boxes: wrong in the graph."""

    def forward(self, x):
        boxes, scores = x[:, :4] * 640.0, x[:, 4:].softmax(-1)
        if torch.compiler.is_compiling():
            scores = scores.flip(-1)
        return torch.cat([boxes, scores], dim=-1)


def model():
    return BoxesAndScores()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
