"""Passes of a model: the purpose of a call."""

WITH_CACHE = ("prefill", "decode", "generate")
PASSES = ("inference", "training", *WITH_CACHE)
