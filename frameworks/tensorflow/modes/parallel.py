"""Training on several devices of one process: `tf.distribute.MirroredStrategy`, with one replica per device."""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow as tf

from frameworks.adapter import Adapter, part
from measurement.cells import Cell
from workloads.spec import Arrays


@functools.lru_cache(maxsize=1)
def mirrored(first: str, count: int) -> tf.distribute.MirroredStrategy:
    """Return the strategy over `count` devices, from `first` ("/CPU:0") on."""
    kind = first.rpartition(":")[0]
    return tf.distribute.MirroredStrategy([f"{kind}:{index}" for index in range(count)])


def placed(adapter: Adapter, cell: Cell, arrays: Arrays) -> tuple:
    """Return one global batch, an equal part of each input on every device."""
    strategy = mirrored(adapter.device, cell.ranks)

    def of_rank(context: tf.distribute.ReplicaContext, name: str) -> tf.Tensor:
        rank = context.replica_id_in_sync_group
        with tf.device(strategy.extended.worker_devices[rank]):
            return adapter.tensor(part(cell, arrays, rank)[name], "float32")

    distribute = strategy.experimental_distribute_values_from_function
    return tuple(distribute(functools.partial(of_rank, name=name)) for name in arrays)


def on_every_device(strategy: tf.distribute.Strategy, iterate: Callable) -> Callable:
    """Return an iteration of all replicas, whose loss is the mean of theirs."""

    def iterate_all(*inputs) -> dict[str, tf.Tensor]:
        return {"loss": strategy.reduce("MEAN", strategy.run(iterate, inputs)["loss"], axis=None)}

    return iterate_all
