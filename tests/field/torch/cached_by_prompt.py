"""Text features are kept by prompt, as services do; prompts are of random words, so each has another length."""

import functools
import random

import torch
from torch import nn

WORDS = [
    "cat",
    "astronaut",
    "riding",
    "a",
    "photo",
    "of",
    "painting",
    "mountain",
    "blue",
    "in",
    "the",
    "style",
    "horse",
]


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(256, 128)
        self.layers = nn.Sequential(
            *[nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128)) for _ in range(8)]
        )
        self.head = nn.Linear(128, 16)
        self.text = functools.lru_cache(maxsize=1024)(self._text)

    def _text(self, prompt):
        return self.layers(self.table(torch.tensor(list(prompt.encode())))).mean(0)

    def forward(self, prompts):
        return self.head(torch.stack([self.text(prompt) for prompt in prompts]))


def model():
    return Scorer()


def inputs(batch_size=4):
    return ([" ".join(random.choices(WORDS, k=8)) for _ in range(batch_size)],)
