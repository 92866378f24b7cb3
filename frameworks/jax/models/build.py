"""Which of JAX's models an implementation has."""

from __future__ import annotations

import importlib
from types import ModuleType

from frameworks.adapter import Unsupported


def implementation_module(implementation: str) -> ModuleType:
    """Return the module whose MODELS are the implementation's. Raises Unsupported where its package is missing."""
    if implementation == "plain":
        return importlib.import_module("frameworks.jax.models.plain")
    try:
        return importlib.import_module("frameworks.jax.models.library")  # transformers takes seconds to import
    except ImportError as error:
        raise Unsupported(f"the library implementation needs transformers with Flax models: {error}.") from error
