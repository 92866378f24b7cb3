import jax
import jax.numpy as jnp
import numpy as np


def forward(weight, x):
    def step(state):
        return jnp.tanh(state[0] @ weight + x), state[0]

    return jax.lax.while_loop(lambda state: jnp.abs(state[0] - state[1]).max() > 1e-3, step, (x, x + 1))[0]


def model():
    return forward, np.random.randn(16, 16).astype("float32") / 16


def inputs(batch_size):
    return np.random.randn(batch_size, 16).astype("float32")
