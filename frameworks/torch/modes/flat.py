"""Arguments and outputs of a model, split into tensors and the rest, and joined again."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

Rest = tuple[list[Any], Any]  # the leaves, with a `Given` in place of each tensor, and their form


@dataclasses.dataclass(frozen=True)
class Given:
    """Replaces a tensor in the rest."""

    number: int


def apart(tree: Any) -> tuple[list[torch.Tensor], Rest]:
    """Return the tensors of a tree, each once, and the rest: its leaves and its form."""
    leaves, form = pytree.tree_flatten(tree)
    tensors = {id(leaf): leaf for leaf in leaves if isinstance(leaf, torch.Tensor)}
    numbers = {identity: Given(number) for number, identity in enumerate(tensors)}
    return list(tensors.values()), ([numbers.get(id(leaf), leaf) for leaf in leaves], form)


def joined(tensors: Sequence[torch.Tensor], rest: Rest) -> Any:
    """Return the tree of a rest from `apart`, with these tensors in it."""
    leaves, form = rest
    return pytree.tree_unflatten([tensors[leaf.number] if isinstance(leaf, Given) else leaf for leaf in leaves], form)
