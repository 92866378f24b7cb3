"""Models of torch's libraries by name, with random weights, and inputs for them."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from frameworks import obstacles, user_file
from frameworks.adapter import Unsupported
from frameworks.user_file import Fault


class Library:
    """`torchvision:resnet50`, `timm:vit_base_patch16_224` or `transformers:<folder or hub name>` as a user's file.

    Raises `Unsupported` where the library is not installed.
    """

    def __init__(self, source: str):
        self.name = source
        self._library, _, self._name = source.partition(":")
        self.module = _installed(self._library)

    def call(self, function: str, **arguments: Any) -> Any:
        """Return the value that a file's `model()` or `inputs(…)` would return."""
        return _without_zeros(_MODELS[self._library](self)) if function == "model" else self._inputs(**arguments)

    def _torchvision(self) -> torch.nn.Module:
        try:
            return self.module.models.get_model(self._name, weights=None)
        except ValueError as error:
            raise Fault(f"torchvision has no model {self._name!r}: {error}.") from error

    def _timm(self) -> torch.nn.Module:
        try:
            return self.module.create_model(self._name, pretrained=False)
        except RuntimeError as error:
            raise Fault(f"timm has no model {self._name!r}: {error}.") from error

    @functools.cached_property
    def _configuration(self) -> Any:
        try:
            found = self.module.AutoConfig.from_pretrained(self._name)
        except (OSError, ValueError) as error:
            tool = Path(sys.executable).with_name("hf")
            hub = f"a folder, or a hub name that `{tool} download {self._name} config.json` has cached"
            where = "a folder with a config.json" if Path(self._name).is_absolute() else hub
            text = " ".join(str(error).split())[:200]
            raise Fault(f"transformers finds no configuration {self._name}, which must be {where}: {text}") from error
        found.use_cache = False  # a cache in the outputs would be state from call to call
        return found

    def _transformers(self) -> torch.nn.Module:
        architectures = getattr(self._configuration, "architectures", None) or ()
        named = [model_class for name in architectures if (model_class := getattr(self.module, name, None))]
        if named:
            return named[0](self._configuration)
        return self.module.AutoModel.from_config(self._configuration)

    def _inputs(self, batch_size: int, image_size: int = 0, seq_len: int = 0) -> Any:
        if self._library != "transformers":
            return torch.randn(batch_size, 3, image_size, image_size)
        vocabulary = getattr(self._configuration.get_text_config(), "vocab_size", None)
        if vocabulary is None:
            raise Fault(f"{self._name} has no vocabulary and therefore no token inputs: write a file with inputs().")
        return {"input_ids": torch.randint(1, vocabulary, (batch_size, seq_len))}


_MODELS: dict[str, Callable[[Library], torch.nn.Module]] = {
    "torchvision": Library._torchvision,
    "timm": Library._timm,
    "transformers": Library._transformers,
}


def _without_zeros(model: torch.nn.Module) -> torch.nn.Module:
    """Return the model with other numbers in weights of zeros: random ones in matrices, ones in norms.

    torchvision's vision transformers classify with such a matrix, and the last norm of each block of timm's ResNets
    starts so. The layers before it would not affect the outputs, and a comparison of these would not check them.
    """
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if isinstance(weight, torch.nn.Parameter) and weight.is_floating_point() and not torch.any(weight):
            if weight.dim() > 1:
                torch.nn.init.normal_(weight, std=0.02)
            else:
                torch.nn.init.ones_(weight)
    return model


def _installed(library: str) -> ModuleType:
    if library not in _MODELS:
        raise Unsupported(f"{library} is not a library of torch models.")
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise Unsupported(
            f"{library} is not installed in torch's environment ({error}): {user_file.INSTALLING}"
        ) from error
    except (RuntimeError, OSError) as error:  # torchvision for CUDA with torch for the CPU, for one
        why = obstacles.from_words(str(error)) or "install matching builds of both."
        raise Unsupported(f"{library} does not load with torch {torch.__version__} ({error}): {why}") from error
