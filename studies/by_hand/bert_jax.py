"""BERT in JAX, timed by hand: weights are arguments of the compiled function. Threads are the environment's."""

from functools import partial

import jax
import jax.numpy as jnp
import loop
from transformers import BertConfig, FlaxBertModel


def build(options):
    dtype = jnp.bfloat16 if options.dtype == "bf16" else jnp.float32
    jax.config.update("jax_default_matmul_precision", "highest" if options.dtype == "fp32" else "default")
    model = FlaxBertModel(BertConfig(**loop.CONFIGS[options.workload]), dtype=dtype)
    weights = jax.tree_util.tree_map(lambda array: jax.device_put(array.astype(dtype)), model.params)
    keys = jax.random.split(jax.random.key(0), options.inputs)
    ids = [jax.random.randint(key, (options.batch, options.seq), 0, 30522) for key in keys]

    def forward(params, tokens):
        output = model(tokens, params=params)
        return output.last_hidden_state, output.pooler_output

    modes = {"eager": lambda: partial(forward, weights), "jit": lambda: partial(jax.jit(forward), weights)}
    return loop.Script(modes, ids, jax.block_until_ready)


if __name__ == "__main__":
    loop.main(build)
