import numpy as np


def forward(weight, x):
    return {"logits": x @ weight, "head": "linear"}


def model():
    return forward, np.random.randn(16, 4).astype("float32")


def inputs(batch_size):
    return np.random.randn(batch_size, 16).astype("float32")
