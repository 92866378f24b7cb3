import numpy as np


def forward(params, x, pairs):
    return params[pairs].sum(axis=1) + x


def model():
    return forward, np.random.randn(16, 8)


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8), np.random.randint(0, 16, (batch_size, 2)).astype(np.uint32)
