import jax.numpy as jnp
import numpy as np


def forward(params, x, seeds):
    """Add noise from a sequence of seeds, which has neither attributes in a dict nor slots."""
    noise = np.random.default_rng(seeds).standard_normal(16).astype("float32")
    return jnp.tanh(x @ params + noise)


def model():
    return forward, np.random.randn(16, 16).astype("float32") / 4


def inputs(batch_size=4):
    x = np.random.randn(batch_size, 16).astype("float32")
    return {"x": x, "seeds": np.random.SeedSequence(np.random.randint(1000))}
