"""Memory of a GPU as TensorFlow counts it."""

from __future__ import annotations

import tensorflow as tf

from frameworks import adapter as boundary


class Meter(boundary.Meter):
    """Memory of the one GPU that TensorFlow sees."""

    def allocated_bytes(self) -> int:
        return tf.config.experimental.get_memory_info("GPU:0")["current"]

    def reset_peak(self) -> None:
        tf.config.experimental.reset_memory_stats("GPU:0")

    def peak_bytes(self) -> int:
        return tf.config.experimental.get_memory_info("GPU:0")["peak"]
