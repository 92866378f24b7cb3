import numpy as np
from flax import linen


class Net(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.BatchNorm(use_running_average=False)(linen.Dense(16)(x))


def model():
    return Net()


def inputs(batch_size=8):
    return np.random.randn(batch_size, 16).astype("float32")
