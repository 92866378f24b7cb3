import dataclasses

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass
class Batch:
    x: jax.Array


def model():
    return lambda first, second: first.x + second.x


def inputs(batch_size=2):
    return tuple(Batch(jnp.asarray(np.random.randn(batch_size, 3))) for _ in range(2))
