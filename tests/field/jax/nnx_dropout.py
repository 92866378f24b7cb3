import numpy as np
from flax import nnx


def model():
    rngs = nnx.Rngs(0)
    return nnx.Sequential(nnx.Linear(8, 4, rngs=rngs), nnx.Dropout(0.5, rngs=rngs))


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
