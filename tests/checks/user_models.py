"""Users' own models of a framework through its adapter, in its environment: `python user_models.py FRAMEWORK FOLDER`.

Writes files into the folder and prints as JSON what was found of each in every mode.
"""

import json
import sys
from pathlib import Path

import frameworks
import workloads
from commands import new_workload
from measurement.cells import Cell
from worker import user_model as examining
from worker.channel import classify

INPUTS = "\n\ndef inputs(batch_size=2):\n    return np.random.randn(batch_size, 8).astype('float32')\n"
JAX = "import jax, numpy as np\nimport jax.numpy as jnp\n\ndef model():\n"
KERAS = "import keras, numpy as np\nimport tensorflow as tf\n\ndef model():\n"
PADDLE = "import paddle, numpy as np\nfrom paddle import nn\n\n"
MODELS = {
    "jax": {
        "function": JAX + "    w = np.random.randn(8, 4).astype('float32')\n"
        "    return lambda p, x, scale, flag: {'y': jnp.tanh(x @ p['w']) * scale if flag else x}, {'w': w}\n\n"
        "def inputs(batch_size=2):\n"
        "    return {'x': np.random.randn(batch_size, 8).astype('float32'), 'scale': 2.0, 'flag': True}\n",
        "nnx": JAX + "    from flax import nnx\n    rngs = nnx.Rngs(0)\n"
        "    return nnx.Sequential(nnx.Linear(8, 4, rngs=rngs), nnx.Dropout(0.5, rngs=rngs))" + INPUTS,
        "linen": JAX + "    from flax import linen\n    return linen.Dense(4)" + INPUTS,
        "bare": JAX + "    return lambda x: (jax.nn.relu(x), x.sum())" + INPUTS,
        "trained": JAX
        + "    from flax import linen\n    return linen.Dense(4)"
        + INPUTS
        + "\n\ndef loss(output):\n    return (output**2).mean()\n",
        "draws": JAX + "    return lambda x: x + np.random.randn()" + INPUTS,
        "wrong": JAX + "    return 3" + INPUTS,
    },
    "tensorflow": {
        "keras3": KERAS
        + "    x = keras.Input((8,))\n    y = keras.layers.BatchNormalization()(keras.layers.Dense(4)(x))\n"
        "    return keras.Model(x, {'y': keras.layers.Dropout(0.5)(y), 'x': x})" + INPUTS,
        "keras2": KERAS + "    import tf_keras\n    return tf_keras.Sequential([tf_keras.layers.Dense(4)])" + INPUTS,
        "module": KERAS + "    class Net(tf.Module):\n        def __init__(self):\n            super().__init__()\n"
        "            self.w = tf.Variable(tf.random.normal((8, 4)))\n"
        "        def __call__(self, x, scale=1.0):\n            return x @ self.w * scale, tf.reduce_sum(x)\n"
        "    return Net()\n\ndef inputs(batch_size=2):\n"
        "    return {'x': tf.random.normal((batch_size, 8)), 'scale': 2.0}\n",
        "calls_back": KERAS + "    return lambda x: tf.py_function(lambda y: y + 1, [x], tf.float32)" + INPUTS,
        "trained": KERAS
        + "    return keras.Sequential([keras.layers.Dense(4), keras.layers.BatchNormalization()])"
        + INPUTS
        + "\n\ndef loss(output):\n    return tf.reduce_mean((output - 1.0) ** 2)\n",
        "draws": KERAS + "    return lambda x: x + tf.random.normal((8,))" + INPUTS,
        "wrong": KERAS + "    return 3" + INPUTS,
    },
    "paddle": {
        "layer": PADDLE + "class Net(nn.Layer):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a, self.unused = nn.Linear(8, 8), nn.Linear(8, 8)\n"
        "    def forward(self, x, scale=1.0):\n"
        "        y = nn.functional.relu(self.a(x)) * scale\n        return {'y': y, 'sums': (y.sum(axis=1), y + 1)}\n\n"
        "def model():\n    return Net()\n\ndef inputs(batch_size=2):\n"
        "    return {'x': paddle.randn([batch_size, 8]), 'scale': 2.0}\n",
        "lstm": PADDLE + "class Net(nn.Layer):\n    def __init__(self):\n        super().__init__()\n"
        "        self.lstm, self.out = nn.LSTM(8, 4, direction='bidirect'), nn.Linear(8, 2)\n"
        "    def forward(self, x):\n        return self.out(self.lstm(x.unsqueeze(1))[0])\n\n"
        "def model():\n    return Net()" + INPUTS,
        "norm": PADDLE + "def model():\n    return nn.Sequential(nn.BatchNorm1D(8), nn.Dropout(0.5))" + INPUTS,
        "trained": PADDLE
        + "def model():\n    return nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1D(4))"
        + INPUTS
        + "\n\ndef loss(output):\n    return ((output - 1.0) ** 2).mean()\n",
        "draws": PADDLE
        + "class Net(nn.Layer):\n    def forward(self, x):\n        return x + paddle.randn(x.shape)\n\n"
        "def model():\n    return Net()" + INPUTS,
        "wrong": PADDLE + "def model():\n    return 3" + INPUTS,
    },
}
MODES = {
    "jax": ("eager", "jit"),
    "tensorflow": ("eager", "function", "function-xla"),
    "paddle": ("eager", "to_static", "inference"),
}


def compared_with(subject, tolerance: float) -> tuple[str, list[dict]]:
    """What outputs of the first two calls are compared with, by name, after all that a worker asks of a model."""
    examining.refuse_what_changes(subject, tolerance)
    reference, outputs = examining.reference(subject, subject.eager(2), 2)
    return reference, [found.arrays for found in outputs]


def measured(adapter, framework: str, source: Path, pass_name: str) -> dict:
    """By mode the outputs' names, how far they are from the reference's, and whether the graph is whole."""
    name, modes = source.name, {}
    workloads.add({name: str(source)})
    workload, common = workloads.get(name, pass_name), {}
    sets = [workload.inputs({"batch_size": 2}, seed) for seed in (1, 2)]
    for mode in MODES[framework][: 2 if pass_name == "training" else None]:
        cell = Cell(framework, name, "own", pass_name, "cpu", "fp32", 1, (("batch_size", 2),), mode)
        try:
            step = adapter.prepare(workload, cell, workload.seeded_weights({}, 0), sets)
            if step.load:
                step.load()
            step()  # compiled, and trained once
            step.rewind()
            taken = [
                {key: value.copy() for key, value in step.user_model.values(step()).arrays.items()} for _ in range(2)
            ]
            reference, outputs = compared_with(step.user_model, workload.tolerance["fp32"])
            cost, captured = step.user_model.cost(), step.capture()
        except Exception as error:
            return {"ended": list(classify(error))}
        pairs = [(took[key], right[key]) for took, right in zip(taken, outputs, strict=True) for key in right]
        worst = max(float(abs(one - other).max()) for one, other in pairs)
        modes[mode] = {"outputs": sorted(taken[0]), "worst": worst, "whole": captured.whole, "why": captured.detail}
        common = {"reference": reference, "flops": cost and cost.flops, "bytes": cost and cost.bytes}
    adapter.release()
    return common | {"modes": modes}


def main() -> None:
    framework, folder = sys.argv[1], Path(sys.argv[2])
    adapter, answers = frameworks.load_adapter(framework), {}
    adapter.configure(Cell(framework, "x", "own", "inference", "cpu", "fp32", 1, (), "eager"))
    for name, text in {**MODELS[framework], "skeleton": new_workload.text(framework, "skeleton.py")}.items():
        path = folder / f"{framework}_{name}.py"
        path.write_text(text)
        answers[name] = measured(adapter, framework, path, "training" if name.startswith("trained") else "inference")
    print("\n" + json.dumps(answers))


if __name__ == "__main__":
    main()
