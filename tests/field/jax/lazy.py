import jax.numpy as jnp
import numpy as np

ROWS = None


def table(width):
    return jnp.sin(jnp.arange(width)[:, None] * jnp.arange(width)[None] / 10)


class Net:
    """Makes tables in its first call: in attributes with a flag, in a closure and in a global."""

    def __init__(self):
        self.w = jnp.asarray(np.random.randn(64, 64), "float32") / 8
        self.ready, self.folded = False, None
        self.after = closure()

    def __call__(self, x):
        global ROWS
        if ROWS is None:
            ROWS = table(64) @ table(64)
        if not self.ready:
            self.folded, self.ready = self.w @ table(64) @ self.w, True
        return self.after(jnp.tanh(x @ self.folded)) @ ROWS


def closure():
    kept = None

    def after(x):
        nonlocal kept
        if kept is None:
            kept = table(64) @ table(64)
        return jnp.tanh(x @ kept)

    return after


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
