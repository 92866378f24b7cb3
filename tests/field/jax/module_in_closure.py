import jax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.a, self.bn = nnx.Linear(8, 16, rngs=rngs), nnx.BatchNorm(16, rngs=rngs)

    def __call__(self, x):
        assert self.bn.use_running_average
        return self.bn(self.a(x))


def model():
    net = Net(nnx.Rngs(0))
    return lambda x: jax.nn.softmax(net(x))


def inputs(batch_size):
    return jax.random.normal(jax.random.key(0), (batch_size, 8))
