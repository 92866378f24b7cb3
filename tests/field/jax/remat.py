import jax
import jax.numpy as jnp
import numpy as np


@jax.custom_vjp
def scaled(x):
    return x * 2.0


scaled.defvjp(lambda x: (scaled(x), None), lambda _, g: (g * 2.0,))


@jax.checkpoint
def layer(h, weights):
    h = h + jax.nn.gelu(h @ weights["w"] + weights["b"])
    return jax.lax.cond(h.sum() > 0, scaled, jnp.tanh, h)


def forward(params, x):
    for index in range(3):
        x = layer(x, jax.tree.map(lambda stacked: stacked[index], params))  # noqa: B023
    return x


def model():
    random = np.random.default_rng(0)
    return forward, {"w": random.normal(size=(3, 8, 8)) / 4, "b": np.zeros((3, 8))}


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")


def loss(output):
    return (output**2).mean()
