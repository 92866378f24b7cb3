"""A SavedModel loaded again, and a frozen graph, beside the `tf.function` that they were made from."""

import tempfile

import tensorflow as tf
import turns
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from frameworks.tensorflow.models import plain
from frameworks.tensorflow.models.layers import Types


def trials(options):
    workload, parameters, weights, inputs = turns.model("bert-tiny")
    adapter = turns.adapter("tensorflow", parameters, options.threads)
    cell = turns.cell("tensorflow", parameters, options.threads)
    x = adapter.place(cell, inputs)[0]
    model = plain.MODELS["bert"](workload, cell, weights, Types(variables=tf.float32, compute=tf.float32))
    signature = [tf.TensorSpec(x.shape, x.dtype)]
    model.call = tf.function(lambda ids: model(ids), signature, autograph=False)
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(model, folder, {"serving_default": model.call})
        loaded = tf.saved_model.load(folder)
    served = loaded.signatures["serving_default"]
    frozen = convert_variables_to_constants_v2(model.call.get_concrete_function())
    xla = tf.function(lambda ids: model(ids), signature, autograph=False, jit_compile=True)
    expected = model(x)["pooler_output"]
    tf.debugging.assert_near(loaded.call(x)["pooler_output"], expected, 1e-4, 1e-4)
    yield (
        "bert-tiny",
        {
            "function": lambda: model.call(x),
            "SavedModel's function": lambda: loaded.call(x),
            "SavedModel's signature": lambda: served(x),
            "frozen": lambda: frozen(x),
            "function-xla": lambda: xla(x),
        },
    )


if __name__ == "__main__":
    turns.main(trials)
