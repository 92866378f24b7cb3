"""Whether page faults of fresh outputs explain what a chain of multiplications costs JAX op by op.

A vector of 30 MB is multiplied 1, 4 and 16 times: op by op, op by op with each input's memory given to its output
(donated), compiled as a whole, and in NumPy into memory that is there already. How much of freed memory glibc keeps
depends on what else is alive, so op by op is also called with the last results kept: one, and three as in the suite.
"""

from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import turns

ELEMENTS = 7_500_000


def trials(options):
    x, factor = jnp.ones(ELEMENTS), jnp.float32(1.0001)
    fresh, reusing = jax.jit(jnp.multiply), jax.jit(jnp.multiply, donate_argnums=0)
    host, out = np.ones(ELEMENTS, np.float32), np.empty(ELEMENTS, np.float32)
    wait = jax.block_until_ready

    def op_by_op(repeat, results=None):
        y = x
        for _ in range(repeat):
            y = y * factor
        if results is not None:
            results.append(y)
        return wait(y)

    def waiting(repeat):
        y = x
        for _ in range(repeat):
            y = wait(y * factor)
        return y

    def donated(repeat):
        y = fresh(x, factor)
        for _ in range(repeat - 1):
            y = reusing(y, factor)
        return wait(y)

    def in_numpy(repeat):
        np.multiply(host, np.float32(1.0001), out=out)
        for _ in range(repeat - 1):
            np.multiply(out, np.float32(1.0001), out=out)

    for repeat in (1, 4, 16):

        def chain(y, factor, repeat=repeat):
            for _ in range(repeat):
                y = y * factor
            return y

        whole, one, three = jax.jit(chain), deque(maxlen=1), deque(maxlen=3)
        yield (
            f"{repeat} multiplications",
            {
                "op by op": lambda repeat=repeat: op_by_op(repeat),
                "op by op, a result kept": lambda repeat=repeat, kept=one: op_by_op(repeat, kept),
                "op by op, three kept": lambda repeat=repeat, kept=three: op_by_op(repeat, kept),
                "op by op, each waited for": lambda repeat=repeat: waiting(repeat),
                "op by op, donated": lambda repeat=repeat: donated(repeat),
                "jit": lambda whole=whole: wait(whole(x, factor)),
                "numpy in place": lambda repeat=repeat: in_numpy(repeat),
            },
        )


if __name__ == "__main__":
    turns.main(trials)
