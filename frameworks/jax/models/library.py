"""`FlaxBertModel` of transformers with the canonical weights, called as its users call it."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from frameworks.adapter import Unsupported
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

try:
    from flax.traverse_util import flatten_dict, unflatten_dict
    from transformers import BertConfig, FlaxBertModel
except ImportError as error:
    raise Unsupported(
        f"the library model needs flax, and transformers 4.57, the last with FlaxBertModel ({error}): install them, or "
        "measure IMPL=plain."
    ) from None


def flax_name(name: str, array: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Return a checkpoint tensor's path in the Flax model, and its values there: linear kernels are (in, out)."""
    *path, leaf = name.split(".")
    if leaf == "weight" and path[-1] == "LayerNorm":
        return (*path, "scale"), array
    if leaf == "weight" and path[0] == "embeddings":
        return (*path, "embedding"), array
    if leaf == "weight":
        return (*path, "kernel"), array.T
    return (*path, leaf), array


def bert(workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    """Return `(params, forward, detail)` as in `plain`; raises ValueError if weights and model do not match one to one.

    The model adds the arguments that the caller omits, on each call: a mask of ones, position and token type ids, a
    head mask of ones. So `mask=none` still adds an attention bias here.
    """
    config = BertConfig(**workload.library_config())
    # Shapes only: initialising 110M random values to throw them away takes longer than everything else here.
    model = FlaxBertModel(config, dtype=dtype, _do_init=False)
    expected = {path: leaf.shape for path, leaf in flatten_dict(model.params_shape_tree).items()}
    host = dict(flax_name(name, array) for name, array in weights.items())
    if expected != {path: array.shape for path, array in host.items()}:
        wrong = sorted(set(expected) ^ set(host)) or [path for path in host if host[path].shape != expected[path]]
        raise ValueError(f"weights and FlaxBertModel do not match, first at {'.'.join(wrong[0])}")
    params = unflatten_dict({path: load(array) for path, array in host.items()})

    def forward(params: dict, input_ids: jax.Array, attention_mask: jax.Array | None = None) -> dict:
        output = model(input_ids, attention_mask=attention_mask, params=params)  # (B, S, H), (B, H)
        return {"last_hidden_state": output.last_hidden_state, "pooler_output": output.pooler_output}

    return params, forward, ""


MODELS = {"bert": bert}
