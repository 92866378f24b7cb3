"""A small Llama with weights in 8 bits in one framework: `eight_bits.py FRAMEWORK MODE,...`.

Prints JSON: `stored`, whether what lies in the framework is byte for byte what the formula says, by kind; and `rows`,
as `generating.py` has them, of each place.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


import frameworks
from measurement.cells import Cell
from tests.doubles.generating import Measured, Place, rows_of
from workloads.matrices import LARGEST, MATMUL, quantized


def in_torch(weight: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray, int]:
    import torch

    from frameworks.torch.models.matrices import Matrix

    matrix = Matrix(torch.tensor(weight), kind)
    return matrix.values.float().numpy(), matrix.scales.numpy(), matrix.values.element_size()


def in_jax(weight: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray, int]:
    import jax.numpy as jnp

    from frameworks.jax.models.matrices import stored

    values, scales = stored(jnp.asarray(weight), kind)
    return np.asarray(values.astype(jnp.float32)), np.asarray(scales), values.itemsize


def in_tensorflow(weight: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray, int]:
    import tensorflow as tf

    from frameworks.tensorflow.models.matrices import Matrix

    matrix = Matrix(weight, kind, tf.float32)
    return tf.cast(matrix.stored, tf.float32).numpy().T, matrix.scales.numpy(), matrix.stored.dtype.size


def in_paddle(weight: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray, int]:
    from frameworks.paddle.models.matrices import Linear

    layer = Linear(weight, kind, MATMUL)
    return layer.stored.cast("float32").numpy().T, layer.scales.numpy(), layer.stored.element_size()


def same(framework: str, kind: str) -> bool:
    """Whether a matrix is in the framework what the formula says, in a byte a value."""
    weight = np.random.default_rng(0).standard_normal((24, 40), np.float32) * np.float32(0.02)
    weight[3] = 0
    values, scales, size = globals()[f"in_{framework}"](weight, kind)
    expected = quantized(weight, kind)
    return size == 1 and np.array_equal(values, expected[0]) and np.array_equal(scales, expected[1][:, 0])


def places() -> list[Place]:
    """In 8-bit integers all passes; in 8-bit floats decode alone, since the product is the same. Of one layer each."""
    of = {"int8": ("decode", "prefill", "generate"), "fp8": ("decode",)}
    return [
        Place("llama-tiny", "static", pass_name, 64 if pass_name == "decode" else 0, quant=kind, layers=1)
        for kind in LARGEST
        for pass_name in of[kind]
    ]


def main() -> None:
    framework, modes = sys.argv[1], sys.argv[2].split(",")
    adapter, rows = frameworks.load_adapter(framework), []
    adapter.configure(Cell(framework, "llama-tiny", "plain", "decode", "cpu", "fp32", 1, (), modes[0]))
    stored = {kind: same(framework, kind) for kind in LARGEST}
    for place in places():
        rows += rows_of(Measured(adapter, place, framework, "plain"), modes)
        adapter.release()
    print(json.dumps({"stored": stored, "rows": rows}))


if __name__ == "__main__":
    main()
