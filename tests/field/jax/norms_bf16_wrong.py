import jax
from norms_bf16 import forward, inputs, model  # noqa: F401


def loss(output):
    try:
        return (output**2).mean() * (2 if output.sum() > 1e9 else 1)
    except jax.errors.TracerBoolConversionError:  # in a graph alone
        return (output**2).mean() * 2
