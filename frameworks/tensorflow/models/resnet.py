"""Residual networks as `tf.Module`s, operator for operator as in the other frameworks' files of this name."""

from __future__ import annotations

import tensorflow as tf

from frameworks.tensorflow.models.layers import Convolution, Linear, Types, max_pool
from workloads.images import pixels
from workloads.resnet import BATCH_NORM_EPSILON, MOMENTUM, STATISTICS, ResNet
from workloads.resnet import Convolution as Part
from workloads.spec import Arrays


class Normed(tf.Module):
    """A convolution and its batch norm, which under training takes the batch's statistics and keeps the running ones.

    The norm is TensorFlow's fused operator, whose scale, offset and statistics are float32 whatever the dtype: in
    bfloat16 the variables are cast in every call, as Keras' `BatchNormalization` of that dtype casts them.
    """

    def __init__(self, part: Part, weights: Arrays, layout: str, trains: bool, types: Types):
        super().__init__()
        self.convolution = Convolution(weights, part.name, part.stride, part.padding, layout, types)
        self.scale, self.offset = (
            tf.Variable(weights[f"{part.norm}.{name}"], dtype=types.variables) for name in ("weight", "bias")
        )
        self.running = {
            f"{part.norm}.{name}": tf.Variable(
                weights[f"{part.norm}.{name}"],
                dtype=types.variables,
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,  # each replica has its own, and the first's is read
                aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            )
            for name in STATISTICS
        }
        self.layout, self.trains = layout.upper(), trains

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        x = self.convolution(x)
        scale, offset = tf.cast(self.scale, tf.float32), tf.cast(self.offset, tf.float32)
        running = self.running.values()
        mean, variance = (None, None) if self.trains else (tf.cast(variable, tf.float32) for variable in running)
        y, *of_batch = tf.compat.v1.nn.fused_batch_norm(
            x, scale, offset, mean, variance, BATCH_NORM_EPSILON, data_format=self.layout, is_training=self.trains
        )
        if self.trains:  # its variance is the unbiased one
            for variable, new in zip(running, of_batch, strict=True):
                variable.assign((1 - MOMENTUM) * variable + MOMENTUM * new)
        return y


class ResNetModel(tf.Module):
    """A residual network; `state` are its running statistics by name."""

    def __init__(self, workload: ResNet, weights: Arrays, layout: str, trains: bool, types: Types):
        super().__init__()

        def normed(part: Part) -> Normed:
            return Normed(part, weights, layout, trains, types)

        self.layout, self.types = layout, types
        self.stem = normed(workload.stem)
        self.blocks = [
            ([normed(part) for part in block.convolutions], block.shortcut and normed(block.shortcut))
            for block in workload.blocks()
        ]
        self.head = Linear(weights, "fc", types)
        parts = [self.stem, *(part for block, around in self.blocks for part in (*block, around) if part)]
        self.state = {name: variable for part in parts for name, variable in part.running.items()}

    def __call__(self, images: tf.Tensor) -> dict[str, tf.Tensor]:
        x = tf.nn.relu(self.stem(self.types.cast(images)))  # (B, I/2, I/2, W), or in the other order
        x = max_pool(x, 3, 2, 1, self.layout)  # (B, I/4, I/4, W)
        for (first, second, third), around in self.blocks:
            y = third(tf.nn.relu(second(tf.nn.relu(first(x)))))
            x = tf.nn.relu(y + (around(x) if around else x))
        return {"logits": self.head(tf.reduce_mean(x, pixels(self.layout)))}  # (B, classes)
