"""A detector of one stage: scores and boxes at every place, those above a threshold, and the best of what overlaps."""

from itertools import pairwise

import torch
from torch import nn


def overlaps(boxes):
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    common = (high - low).clamp(min=0).prod(-1)
    areas = (boxes[:, 2:] - boxes[:, :2]).clamp(min=0).prod(-1)
    return common / (areas[:, None] + areas[None, :] - common + 1e-6)


class Detector(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        sizes = (3, 16, 32, 64)
        stages = [
            nn.Sequential(nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
            for a, b in pairwise(sizes)
        ]
        self.backbone = nn.Sequential(*stages)
        self.scores, self.boxes = nn.Conv2d(64, classes, 3, padding=1), nn.Conv2d(64, 4, 3, padding=1)

    def forward(self, images):
        features = self.backbone(images)
        scores = self.scores(features).flatten(2).transpose(1, 2).softmax(-1)
        rows, columns = features.shape[-2:]
        places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).repeat(1, 2).to(images)
        sizes = self.boxes(features).flatten(2).transpose(1, 2).exp() * places.new_tensor([-1, -1, 1, 1])
        return [self.select(*one) for one in zip(scores, places + sizes, strict=True)]

    def select(self, scores, boxes):
        best, label = scores.max(-1)
        found = best > 0.25
        best, label, boxes = best[found], label[found], boxes[found]
        order = best.argsort(descending=True, stable=True)[:32]
        best, label, boxes = best[order], label[order], boxes[order]
        alike, kept = overlaps(boxes) > 0.5, []
        for index in range(len(boxes)):
            if not any(alike[index, other] for other in kept):
                kept.append(index)
        return {"boxes": boxes[kept], "scores": best[kept], "labels": label[kept]}


def model():
    return Detector()


def inputs(batch_size):
    return torch.randn(batch_size, 3, 64, 64)
