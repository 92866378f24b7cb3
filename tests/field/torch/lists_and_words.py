import torch
from torch import nn


class ListsAndWords(nn.Module):
    """A dict of lists with strings among the inputs, strings among the outputs."""

    def forward(self, batch):
        pairs = zip(batch["words"], batch["rows"], strict=True)
        rows = [x * 2.0 if word == "double" else x + 1.0 for word, x in pairs]
        return {"rows": rows, "words": batch["words"]}


def model():
    return ListsAndWords()


def inputs(batch_size=4):
    rows = [torch.randn(batch_size, 8) for _ in range(3)]
    return {"batch": {"words": ["double", "add", "double"], "rows": rows}}
