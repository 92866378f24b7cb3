"""Faults in torch's models with a cache, planted by length into every process that finds this folder on its path.

A static cache of 17 places is written one place early and what a dynamic one holds is moved by one, one of 18 has
another rotary base or, in a GPT, the embedding of the next position, one of 19 is attended to wholly; a prompt of 13
tokens is read without its causal mask. All other lengths are as they should be.
"""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import sys
from types import SimpleNamespace

EARLY, OTHER_BASE, UNMASKED, NOT_CAUSAL = 17, 18, 19, 13


def plant_causal(module) -> None:
    """The faults of caches and masks, into `frameworks.torch.models.causal`."""
    written, grow = module.StaticLayer.written, module.CausalModel.grow
    decode, attend = module.Block.decode, module.F.scaled_dot_product_attention

    def faulty_written(self, place, k, v):
        return written(self, place - 1 if self.keys.size(2) == EARLY else place, k, v)

    def faulty_decode(self, x, turn, write, mask):
        mask = mask.nan_to_num(neginf=0.0) if mask is not None and len(mask) == UNMASKED else mask
        return decode(self, x, turn, write, mask)

    def faulty_grow(self, tokens, place, layers):
        return grow(self, tokens, place, moved(module.torch, layers) if self.places == EARLY else layers)

    def faulty_attention(q, k, v, is_causal=False, **options):
        return attend(q, k, v, is_causal=is_causal and q.size(2) != NOT_CAUSAL, **options)

    module.StaticLayer.written, module.Block.decode = faulty_written, faulty_decode
    module.CausalModel.grow = faulty_grow
    module.F = SimpleNamespace(**vars(module.F) | {"scaled_dot_product_attention": faulty_attention})


def plant_llama(module) -> None:
    """Another rotary base, into `frameworks.torch.models.llama`."""
    build = module.LlamaModel.__init__

    def faulty_build(self, model, weights, places, fused):
        model = dataclasses.replace(model, theta=1e4) if places == OTHER_BASE else model
        build(self, model, weights, places, fused)

    module.LlamaModel.__init__ = faulty_build


def plant_gpt(module) -> None:
    """Another position's embedding, into `frameworks.torch.models.cached_gpt`."""
    embedded = module.GptModel.embedded

    def faulty_embedded(self, ids, places):
        if self.places == OTHER_BASE:
            places = (module.torch.arange(ids.size(1)) if places is None else places) + 1
        return embedded(self, ids, places)

    module.GptModel.embedded = faulty_embedded


def plant_library(module) -> None:
    """All of these, into `frameworks.torch.models.library_llama`."""
    model = module.LibraryLlama
    build, go_to, grow, logits_after = model.__init__, model.go_to, model.grow, model.logits_after

    def faulty_build(self, made, places):
        if places == OTHER_BASE:
            made.model.rotary_emb.inv_freq *= 0.5
        build(self, made, places)

    def faulty_grow(self, tokens, place, layers):
        return grow(self, tokens, place, moved(module.torch, layers) if self.places == EARLY else layers)

    def faulty_logits_after(self, ids, cache, **told):
        length = ids.size(1)
        if length == NOT_CAUSAL or (self.places == UNMASKED and cache is self.static):
            known, _ = cache.get_mask_sizes(length, 0)
            told["attention_mask"] = module.torch.ones(1, 1, length, known, dtype=module.torch.bool)
        return logits_after(self, ids, cache, **told)

    model.__init__, model.grow, model.logits_after = faulty_build, faulty_grow, faulty_logits_after
    model.go_to = lambda self, place: go_to(self, place - 1 if self.places == EARLY else place)


def moved(torch, layers: list) -> list:
    """What a cache holds, one place early."""
    return [tuple(torch.cat((t[:, :, 1:], t[:, :, -1:]), 2) for t in pair) for pair in layers]


PLANTS = {
    "frameworks.torch.models.library_llama": plant_library,
    "frameworks.torch.models.causal": plant_causal,
    "frameworks.torch.models.llama": plant_llama,
    "frameworks.torch.models.cached_gpt": plant_gpt,
}


class Planting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in PLANTS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def executed(module) -> None:
            execute(module)
            PLANTS[name](module)

        spec.loader.exec_module = executed
        return spec


sys.meta_path.insert(0, Planting())
