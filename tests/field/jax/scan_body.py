import jax
import jax.numpy as jnp
import numpy as np


def forward(params, x):
    def step(state, row):
        state = jnp.tanh(state @ params + row)
        return state, state

    return jax.lax.scan(step, jnp.zeros(16), x)[1]


def model():
    return forward, np.random.randn(16, 16).astype("float32") / 4


def inputs(batch_size=4):
    return np.random.randn(batch_size, 16).astype("float32")
