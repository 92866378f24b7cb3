import numpy as np

STEP = 0


def scaled(params, x):
    """Scale by the number of the call, in Python."""
    global STEP
    STEP += 1
    return (x @ params) * min(1.0, STEP / 10)


def model():
    return scaled, np.random.randn(8, 8).astype("float32")


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")


def loss(output):
    return (output**2).mean()
