from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from flax.training import train_state


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(8)(nn.relu(nn.Dense(32)(x)))


class State(train_state.TrainState):
    batch_stats: Any


def forward(state, x):
    return state.apply_fn({"params": state.params}, x)


def model():
    net = Net()
    params = net.init(jax.random.key(0), jnp.ones((1, 16)))["params"]
    adam = optax.adam(1e-3)
    return forward, State.create(apply_fn=jax.jit(net.apply), params=params, tx=adam, batch_stats={})


def inputs(batch_size=4):
    return jax.random.normal(jax.random.key(1), (batch_size, 16))
