"""What a library's module was given in place of tensors without storage."""

from __future__ import annotations

from torch import nn


def check_filled(model: nn.Module) -> None:
    """Raises RuntimeError where a module that was made without storage still has a tensor of that kind."""
    lost = [name for name, tensor in (*model.named_parameters(), *model.named_buffers()) if tensor.is_meta]
    if lost:
        raise RuntimeError(f"this version of transformers has tensors that nothing fills: {', '.join(lost)}")
