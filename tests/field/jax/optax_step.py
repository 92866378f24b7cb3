import jax
import jax.numpy as jnp
import numpy as np
import optax

optimizer = optax.adamw(1e-3)


def step(state, x, targets):
    parameters, moments = state

    def loss(parameters):
        return optax.l2_loss(jnp.tanh(x @ parameters["w"]) @ parameters["v"], targets).mean()

    value, gradients = jax.value_and_grad(loss)(parameters)
    updates, moments = optimizer.update(gradients, moments, parameters)
    return (optax.apply_updates(parameters, updates), moments), value


def model():
    first, second = jax.random.split(jax.random.key(0))
    parameters = {"w": jax.random.normal(first, (16, 32)) / 4, "v": jax.random.normal(second, (32, 4)) / 6}
    return jax.jit(step, donate_argnums=0), (parameters, optimizer.init(parameters))


def inputs(batch_size):
    return np.random.randn(batch_size, 16).astype("float32"), np.random.randn(batch_size, 4).astype("float32")
