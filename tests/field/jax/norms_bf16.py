import jax
import numpy as np

LAYERS = 12


def forward(params, x):
    for weight in params[:LAYERS]:
        x = jax.nn.relu(x @ weight)
        x = (x - x.mean(0)) * jax.lax.rsqrt(x.var(0) + 1e-5)
    return x @ params[LAYERS]


def model():
    return forward, [jax.random.normal(key, (64, 64)) / 8 for key in jax.random.split(jax.random.key(0), LAYERS + 1)]


def inputs(batch_size=8):
    return np.random.randn(batch_size, 64).astype("float32")


def loss(output):
    return (output**2).mean()
