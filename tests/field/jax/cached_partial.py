import numpy as np
from flax import nnx


@nnx.jit
def apply(net, x):
    return net(x)


def model():
    rngs = nnx.Rngs(0)
    net = nnx.Sequential(nnx.Linear(16, 16, rngs=rngs), nnx.Dropout(0.5, rngs=rngs), nnx.BatchNorm(16, rngs=rngs))
    return nnx.cached_partial(apply, net)


def inputs(batch_size=4):
    return np.random.randn(batch_size, 16).astype("float32")
