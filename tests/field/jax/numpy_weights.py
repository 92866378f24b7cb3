import numpy as np

WEIGHT = np.random.randn(64, 64).astype("float32")
GAIN = np.full(64, 2, "float32")


def model():
    return lambda x: (x @ WEIGHT.T.reshape(64, 64)) * GAIN


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
