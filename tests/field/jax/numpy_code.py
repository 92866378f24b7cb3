import numpy as np

W = np.random.default_rng(0).normal(size=(64, 64)).astype("float32") / 8


def forward(x):
    return np.tanh(x @ W)


def model():
    return forward


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
