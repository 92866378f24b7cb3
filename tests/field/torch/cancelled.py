import torch
from torch import nn


class Cancelled(nn.Module):
    """Parts that are only rounding errors, or nothing, beside others: right in every mode.

    Channels of a difference of equal sums, of zero, of a constant, of far tails of a softmax and of class indices.
    """

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)), nn.Linear(64, 100)
        self.norm = nn.BatchNorm1d(100)
        with torch.no_grad():
            self.head.weight[:20] *= torch.logspace(-6, -1, 20)[:, None]
            self.head.bias[:20] = 0
            self.norm.running_mean.uniform_(-3, 3)

    def forward(self, x):
        h = self.body(x)
        logits = self.head(h)
        tails = (logits * 30).softmax(-1)[..., :8]
        apart = (h * 3 + h - 4 * h)[..., :4]
        sums = (logits - logits.mean(-1, keepdim=True)).sum(-1, keepdim=True)
        ids = logits.argmax(-1, keepdim=True).to(x.dtype)
        zeros = torch.relu(-logits[..., :4].abs())
        return torch.cat([logits * 100, self.norm(logits), tails, apart, sums, ids, zeros, zeros + 0.1], dim=-1)


def model():
    return Cancelled()


def inputs(batch_size=32):
    return torch.randn(batch_size, 64)
