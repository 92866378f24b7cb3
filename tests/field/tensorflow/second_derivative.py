import keras
import tensorflow as tf


class Pinn(tf.Module):
    """Burgers' equation: derivatives by place and time, and a second one by place."""

    def __init__(self):
        super().__init__()
        layers = [keras.layers.Dense(32, "tanh"), keras.layers.Dense(32, "tanh"), keras.layers.Dense(1)]
        self.net = keras.Sequential([keras.Input((2,)), *layers])

    def __call__(self, x, t):
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape(persistent=True) as first:
                first.watch([x, t])
                u = self.net(tf.concat([x, t], 1))
            u_x, u_t = first.gradient(u, x), first.gradient(u, t)
        u_xx = second.gradient(u_x, x)
        return u, u_t + u * u_x - 0.01 * u_xx


def model():
    return Pinn()


def inputs(batch_size=64):
    return tf.random.uniform((batch_size, 1)), tf.random.uniform((batch_size, 1))


def loss(output):
    value, residual = output
    return tf.reduce_mean(value**2) + tf.reduce_mean(residual**2)
