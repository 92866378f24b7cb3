"""BERT in TensorFlow, timed by hand.

GPU memory grows as in a worker (TF_FORCE_GPU_ALLOW_GROWTH). With the suite's adapter in the same process, TensorFlow is
already initialised, and refuses the call for it.
"""

import os
from functools import partial

import loop

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # TFBertModel needs Keras 2

import tensorflow as tf
import tf_keras
from transformers import BertConfig, TFBertModel


def build(options):
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.experimental.enable_tensor_float_32_execution(False)
    tf_keras.mixed_precision.set_global_policy("bfloat16" if options.dtype == "bf16" else "float32")
    model = TFBertModel(BertConfig(**loop.CONFIGS[options.workload]))
    ids = [tf.random.uniform((options.batch, options.seq), 0, 30522, tf.int64) for _ in range(options.inputs)]

    def forward(tokens):
        output = model(input_ids=tokens, training=False)
        return output.last_hidden_state, output.pooler_output

    def synchronize(output):
        if options.device == "gpu":
            tf.test.experimental.sync_devices()

    forward(ids[0])
    modes = {"eager": lambda: forward, "function": partial(tf.function, forward)}
    return loop.Script(modes | {"function-xla": partial(tf.function, forward, jit_compile=True)}, ids, synchronize)


if __name__ == "__main__":
    loop.main(build)
