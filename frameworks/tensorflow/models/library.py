"""BERT as transformers has it for TensorFlow: `TFBertModel`, Keras 2."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from frameworks.adapter import Unsupported
from frameworks.tensorflow.models.layers import Types
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

try:
    import tf_keras
    from transformers import BertConfig, TFBertModel
    from transformers.modeling_tf_pytorch_utils import load_pytorch_state_dict_in_tf2_model
except ImportError as error:
    raise Unsupported(
        f"the library model needs tf-keras, and transformers 4.57, the last with TFBertModel ({error}): install them, "
        "or measure IMPL=plain."
    ) from None


class Bert(tf.Module):
    """`TFBertModel` under the suite's signature: `(input_ids[, attention_mask])`."""

    def __init__(self, model: TFBertModel):
        super().__init__()
        self.model = model

    def __call__(self, input_ids: tf.Tensor, attention_mask: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        output = self.model(input_ids=input_ids, attention_mask=attention_mask, training=False)
        return {"last_hidden_state": output.last_hidden_state, "pooler_output": output.pooler_output}


def bert(workload: Workload, cell: Cell, weights: Arrays, types: Types) -> Bert:
    """Return `TFBertModel` of the workload's size with the canonical weights, variables and arithmetic in one type.

    Raises AttributeError for a variable that has no tensor and ValueError for a tensor that has no variable.
    """
    config = BertConfig(**workload.library_config())
    # Layers take the global policy when they are made. The pure one, not `mixed_*`, which keeps float32 variables and
    # casts all of them in every call.
    policy = tf_keras.mixed_precision.global_policy()
    tf_keras.mixed_precision.set_global_policy(types.variables.name)
    try:
        model = TFBertModel(config)
        with tf.variable_creator_scope(_zeros):
            model.build_in_name_scope()
    finally:
        tf_keras.mixed_precision.set_global_policy(policy)
    # The library's own converter from checkpoint names; empty `tf_inputs` because the model is built already.
    _, report = load_pytorch_state_dict_in_tf2_model(model, weights, tf_inputs={}, output_loading_info=True)
    left_over = report["missing_keys"] + report["unexpected_keys"] + report["mismatched_keys"]
    if left_over:
        raise ValueError(f"TFBertModel and the canonical weights do not match: {left_over}")

    return Bert(model)


def _zeros(next_creator: Callable[..., tf.Variable], **arguments) -> tf.Variable:
    """Start a variable at zero instead of drawing its values, seconds for 110M of them; all are overwritten."""
    shape, dtype = arguments["shape"], arguments["dtype"]
    return next_creator(**arguments | {"initial_value": lambda: tf.zeros(shape, dtype)})


MODELS = {"bert": bert}
