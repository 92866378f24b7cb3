"""What a call is made of a model for."""

WITH_CACHE = ("prefill", "decode", "generate")
PASSES = ("inference", "training", *WITH_CACHE)
