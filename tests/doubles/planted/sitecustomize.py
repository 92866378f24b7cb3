"""Faults in torch's Llama, planted by length into every process that finds this folder on its path.

A cache of 17 places is written one place early, one of 18 has another rotary base, one of 19 is attended to wholly; a
prompt of 13 tokens is read without its causal mask. All other lengths are as they should be.
"""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import sys
from types import SimpleNamespace

EARLY, OTHER_BASE, UNMASKED, NOT_CAUSAL = 17, 18, 19, 13


def plant(module) -> None:
    """The faults, into `frameworks.torch.llama`."""
    decode, build, attend = module.Block.decode, module.LlamaModel.__init__, module.F.scaled_dot_product_attention

    def faulty_decode(self, x, turn, place, mask):
        places = self.keys.size(2)
        mask = mask.nan_to_num(neginf=0.0) if places == UNMASKED else mask
        return decode(self, x, turn, place - 1 if places == EARLY else place, mask)

    def faulty_build(self, model, weights, batch, places, fused):
        model = dataclasses.replace(model, theta=1e4) if places == OTHER_BASE else model
        build(self, model, weights, batch, places, fused)

    def faulty_attention(q, k, v, is_causal=False, **options):
        return attend(q, k, v, is_causal=is_causal and q.size(2) != NOT_CAUSAL, **options)

    module.Block.decode, module.LlamaModel.__init__ = faulty_decode, faulty_build
    module.F = SimpleNamespace(**vars(module.F) | {"scaled_dot_product_attention": faulty_attention})


class Planting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "frameworks.torch.llama":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def executed(module) -> None:
            execute(module)
            plant(module)

        spec.loader.exec_module = executed
        return spec


sys.meta_path.insert(0, Planting())
