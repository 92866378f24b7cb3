"""User models in TensorFlow by kind: what they are given, what is compared, what is cast, and what is refused.

Run in TensorFlow's environment: `python user_models_tensorflow.py FOLDER` writes files there and prints what was found
as JSON.
"""

import json
import sys
from pathlib import Path

import numpy as np

import workloads
from frameworks import program
from frameworks.tensorflow.adapter import Adapter
from measurement.cells import Cell
from measurement.parity import difference
from worker import user_model as examining
from worker.channel import classify

HEAD = "import collections, dataclasses, os, random\nimport keras\nimport numpy as np\nimport tensorflow as tf\n"
FLOATS = "\ndef inputs(batch_size=4):\n    return np.random.randn(batch_size, 8).astype('float32')\n"
MODELS = {
    "scalars": """
def net(x, *, limit, names, options):
    assert names == ["a", "b"] and options["flag"] is True
    return x * limit
def inputs(batch_size=2):
    return {"x": np.ones(batch_size, "float32"), "limit": random.uniform(1, 2), "names": ["a", "b"],
            "options": {"flag": True}}
""",
    "same lengths": "def net(x):\n    return x + 1.0\n" + FLOATS,
    "writes": """
def net(x, count):
    count.assign_add(1.0)
    return x * count
def inputs(batch_size=2):
    return np.ones(batch_size, "float32"), tf.Variable(0.0)
""",
    "writes to a list": """
def net(x, seen):
    seen.append(x)
    return x * float(len(seen))
def inputs(batch_size=2):
    return np.ones(batch_size, "float32"), []
""",
    "sparse": """
def net(x):
    return tf.sparse.map_values(tf.square, x), tf.sparse.sparse_dense_matmul(x, tf.ones((4, 2), x.dtype))
def inputs(batch_size=4):
    return tf.sparse.from_dense(np.eye(batch_size, 4, dtype="float32"))
""",
    "words": """
def net(words):
    return tf.strings.length(words), tf.strings.upper(words)
def inputs(batch_size=2):
    return np.array(["a", "bcd"] * (batch_size // 2))
""",
    "extension": """
class Masked(tf.experimental.ExtensionType):
    values: tf.Tensor
    scale: float
def net(given):
    return Masked(given.values * given.scale, 3.0)
def inputs(batch_size=2):
    return {"given": Masked(tf.ones(batch_size), 2.0)}
""",
    "containers": """
Point = collections.namedtuple("Point", "x y")
@dataclasses.dataclass(eq=False)
class Given:
    x: tf.Tensor
def net(given):
    x = given.x
    rows = tf.TensorArray(x.dtype, 2).write(0, x).write(1, x * 2.0)
    return {"both": Point(x, x + 1.0), "rows": rows.stack(), "nothing": None}
def inputs(batch_size=2):
    return [Given(np.ones(batch_size, "float32"))]
""",
    "a record": """
@dataclasses.dataclass
class Record:
    x: tf.Tensor
    scale: float
def net(x):
    return Record(x + 1.0, 2.0)
"""
    + FLOATS,
    "control": """
w = tf.ones((8, 8))
def net(x):
    if tf.reduce_sum(x) > 1e9:
        return tf.nn.softmax(x)
    count = tf.constant(0.0)
    while tf.reduce_sum(count) < 3.0:
        x, count = tf.tanh(x @ w), count + 1.0
    return tf.switch_case(tf.constant(1), [lambda: x, lambda: tf.sigmoid(x), lambda: tf.nn.softmax(x)])
"""
    + FLOATS,
    "lstm 2": """
def model():
    return tf.keras.Sequential([tf.keras.layers.LSTM(4), tf.keras.layers.Dense(2)])
def inputs(batch_size=4):
    return np.random.randn(batch_size, 3, 6).astype("float32")
""",
    "functions": """
@tf.function
def hot(x):
    return x * 2.0
class Part(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(4)
        self.user_model = tf.function(lambda x: x + 1.0)
    @tf.function
    def call(self, x):
        return self.user_model(self.dense(hot(x)))
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.parts = [Part()]
    def call(self, x):
        return self.parts[0](x)
def model():
    return Net()
"""
    + FLOATS,
    "a function": """
@tf.function(jit_compile=True)
def net(x):
    return x * 2.0
"""
    + FLOATS,
    "a hidden function": """
table = [tf.function(lambda x: x * 2.0)]
def net(x):
    return table[0](x)
"""
    + FLOATS,
    "a graph": """
def model():
    return tf.function(lambda x: x * 2.0).get_concrete_function(tf.TensorSpec((4, 8)))
"""
    + FLOATS,
    "mixed 2": """
def model():
    layers = tf.keras.layers
    policy = tf.keras.mixed_precision.Policy("mixed_bfloat16")
    return tf.keras.Sequential([layers.Input((8,)), layers.Dense(64, "gelu", dtype=policy), layers.Dense(8)])
"""
    + FLOATS,
    "backend": "os.environ['KERAS_BACKEND'] = 'jax'\ndef net(x):\n    return x\n" + FLOATS,
    "closure": """
def model():
    weights, calls = tf.Variable(tf.random.normal((8, 4))), tf.Variable(0.0)
    def net(x):
        calls.assign_add(1.0)
        return x @ weights * calls
    return net
"""
    + FLOATS,
    "plain class": """
class Net:
    def __init__(self):
        self.w = tf.Variable(tf.random.normal((8, 4)))
    def __call__(self, x):
        return x @ self.w
def model():
    return Net()
def loss(output):
    return tf.reduce_mean(output**2)
"""
    + FLOATS,
    "complex": """
class Net(tf.Module):
    def __init__(self):
        self.turn = tf.Variable(tf.exp(tf.complex(0.0, tf.range(8.0))))
    def __call__(self, x):
        return tf.complex(x, x) * self.turn
def model():
    return Net()
def inputs(batch_size=2):
    return np.ones((batch_size, 8), "float32")
""",
    "compiled keras": """
def model():
    net = keras.Sequential([keras.layers.Dense(4), keras.layers.BatchNormalization()])
    net.compile("adam", "mse", metrics=["accuracy"], jit_compile=True)
    return net
"""
    + FLOATS,
    "solves": "def net(x):\n    return tf.linalg.cholesky(x @ tf.transpose(x) + tf.eye(4) * 10)\n" + FLOATS,
}  # fmt: skip


def prepared(adapter: Adapter, source: str, mode: str = "eager", dtype: str = "fp32", pass_name: str = "inference"):
    name = f"{Path(source).stem}.py"
    workloads.add({name: source})
    workload = workloads.get(name, pass_name)
    parameters = tuple((parameter.name, parameter.default) for parameter in workload.parameters)
    cell = Cell("tensorflow", name, "own", pass_name, "cpu", dtype, 1, parameters, mode)
    adapter.configure(cell)
    sets = [workload.inputs(dict(parameters), seed) for seed in (1, 2, 3)]
    return adapter.prepare(workload, cell, workload.seeded_weights({}, 0), sets)


def outputs(step, calls: int = 3) -> list[dict[str, list]]:
    step.rewind()
    return [
        {name: array.tolist() for name, array in step.user_model.values(step()).arrays.items()} for _ in range(calls)
    ]


def compared(adapter: Adapter, source: str) -> dict:
    """What each mode gives of the first input set, how its program differs, and how often it was traced again."""
    try:
        step = prepared(adapter, source)
        examining.refuse_what_changes(step.user_model, 1e-4)
        name, right = examining.reference(step.user_model, step.user_model.eager(3), 3)
    except Exception as error:
        return {"ended": ": ".join(classify(error))}
    answer = {"reference": name, "not compared": right[0].not_compared, "settings": dict(step.user_model.settings)}
    answer |= {
        "writes": step.user_model.writes,
        "computes in": step.user_model.computes_in(),
        "output": outputs(step, 1)[0],
    }
    try:
        answer["counted"] = bool(examining.cost_of(step.user_model)[0])
    except Exception as error:
        answer["counted"] = repr(error)
    eager = step.program()
    answer["alike"], answer["program"] = {}, {}
    for mode in ("eager", "function", "function-xla"):
        step = prepared(adapter, source, mode)
        try:
            outputs(step)
            step.rewind()
            found = {f"{call}.{k}": v for call in range(3) for k, v in step.user_model.values(step()).arrays.items()}
        except Exception as error:
            answer["alike"][mode] = ": ".join(classify(error))
            continue
        expected = {f"{call}.{k}": v for call in range(3) for k, v in right[call].arrays.items()}
        error = difference(found, expected)
        answer["alike"][mode] = error.within(2e-2 if "mixed" in source else 1e-5)
        captured = step.capture()
        if mode == "function":
            answer["again"] = [captured.whole, captured.recompilations, [reason for _, reason in captured.recompiled]]
        try:
            answer["program"][mode] = program.difference(eager, step.program())
        except Exception as error:
            answer["program"][mode] = repr(error)
    return answer


def main() -> None:
    folder, adapter, answers = Path(sys.argv[1]), Adapter(), {}
    for name, text in MODELS.items():
        path = folder / f"{name.replace(' ', '_')}.py"
        path.write_text(HEAD + text + ("" if "def model" in text else "\ndef model():\n    return net\n"))
        answers[name] = compared(adapter, str(path))
        adapter.release()
    step = prepared(adapter, str(folder / "plain_class.py"), "function", pass_name="training")
    answers["trained"] = [float(np.asarray(output["loss"])[0]) for output in outputs(step)]
    print("\n" + json.dumps(answers))


if __name__ == "__main__":
    main()
