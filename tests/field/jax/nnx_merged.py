import numpy as np
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.dense, self.norm = nnx.Linear(16, 16, rngs=rngs), nnx.BatchNorm(16, momentum=0.5, rngs=rngs)

    def __call__(self, x):
        """Normalise by the running statistics after the batch has moved them."""
        h = self.dense(x)
        self.norm(h, use_running_average=False)
        return nnx.relu(self.norm(h, use_running_average=True))


def model():
    graphdef, state = nnx.split(Net(nnx.Rngs(0)))
    return lambda state, x: nnx.merge(graphdef, state)(x), state


def inputs(batch_size=8):
    return np.random.randn(batch_size, 16).astype("float32")
