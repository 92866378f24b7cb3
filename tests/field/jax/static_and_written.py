import numpy as np


class Config:
    def __init__(self):
        self.scale = 2.0


def step(params, x, cache, config):
    """Write to the cache, which is returned, and read a configuration."""
    cache["k"] = cache["k"] + x @ params
    return cache["k"] * config.scale, cache


def model():
    return step, np.random.randn(16, 16).astype("float32") / 4


def inputs(batch_size=2):
    x = np.random.randn(batch_size, 16).astype("float32")
    return {"x": x, "cache": {"k": x * 2}, "config": Config()}
