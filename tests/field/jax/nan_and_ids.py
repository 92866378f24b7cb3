import numpy as np


def model():
    return lambda params, x: {"logits": x * params["scale"] * float("nan"), "ids": x.argmax(-1)}, {"scale": np.ones(8)}


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8)
