"""Llama and Qwen3 as transformers has them, on the library's own caches."""

from __future__ import annotations

import torch

from frameworks.adapter import Unsupported
from frameworks.torch.models.causal import CausalModel, Layers, of_each_sequence
from frameworks.torch.models.library import check_filled
from measurement.cells import Cell
from workloads.decode import PAST
from workloads.llama import EMBEDDING, HEAD, Llama
from workloads.spec import Workload

try:
    import transformers
    from transformers import DynamicCache, StaticCache
except ImportError as error:
    raise Unsupported(f"the library model needs transformers ({error}): install it, or measure IMPL=plain.") from None


class LibraryLlama(CausalModel):
    """The library's model, called as its users call it, on a `StaticCache` and on a `DynamicCache`.

    Each layer of a static cache counts its tokens: this count is the next place to write, and the end of attention. The
    suite's calls return to the same places, so each first sets every count to its place. A user's loop does not have
    this one operator.
    """

    def __init__(self, model: transformers.PreTrainedModel, places: int):
        super().__init__([], places)
        self.model = model
        self.static = StaticCache(config=model.config, max_cache_len=places)  # no memory yet
        self.growing = DynamicCache(config=model.config)
        if not all(hasattr(layer, "cumulative_length") for layer in self.static.layers):
            raise Unsupported(
                f"a static cache of transformers {transformers.__version__} does not count its tokens, which the "
                f"suite needs to set the position: install transformers 5.23."
            )

    def hold_static(self, batch: int, past: list[torch.Tensor] | None) -> None:
        """Allocate the static cache and copy `past` into it, if given: keys and values, each (layers, nkv, C, hs)."""
        config, like = self.model.config, self.model.lm_head.weight
        self.static.early_initialization(batch, config.num_key_value_heads, config.head_dim, like.dtype, like.device)
        self.hold([(layer.keys, layer.values) for layer in self.static.layers])  # counted among the module's memory
        for index, layer in enumerate(self.static.layers if past else []):
            layer.keys.copy_(past[0][index])
            layer.values.copy_(past[1][index])

    def read(self, input_ids: torch.Tensor, fills: bool) -> tuple[torch.Tensor, Layers]:
        if fills:
            torch._foreach_zero_([layer.cumulative_length for layer in self.static.layers])
            return self.logits_after(input_ids, self.static), []
        self.growing.reset()
        return self.logits_after(input_ids, self.growing), self._grown()

    def proceed(self, tokens: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        self.go_to(place)
        return self.logits_after(tokens[:, None], self.static, position_ids=place[None])

    def grow(self, tokens: torch.Tensor, place: torch.Tensor, layers: Layers) -> tuple[torch.Tensor, Layers]:
        for layer, (keys, values) in zip(self.growing.layers, layers, strict=True):
            layer.keys, layer.values, layer.is_initialized = keys, values, True
        return self.logits_after(tokens[:, None], self.growing, position_ids=place[None]), self._grown()

    def go_to(self, place: torch.Tensor) -> None:
        """Continue the static cache at this place (1,)."""
        counts = [layer.cumulative_length for layer in self.static.layers]
        torch._foreach_copy_(counts, [place[0]] * len(counts))

    def logits_after(self, ids: torch.Tensor, cache: StaticCache | DynamicCache, **given: torch.Tensor) -> torch.Tensor:
        """Return logits of the token after `ids` (B, T), whose keys and values go into the cache: (B, V)."""
        return self.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1, **given).logits[:, -1]

    def _grown(self) -> Layers:
        return [(layer.keys, layer.values) for layer in self.growing.layers]


def build(workload: Workload, cell: Cell, weights: dict[str, torch.Tensor]) -> LibraryLlama:
    """Return the library's model in the workload's configuration holding `weights` themselves, with the cell's cache.

    A missing or left-over tensor is a RuntimeError. Attention is the library's own default implementation.
    """
    parameters = dict(cell.parameters)
    batch = int(cell.parameter("batch_size"))
    past = [weights.pop(name) for name in PAST] if cell.pass_name == "decode" else None  # (layers, nkv, C, hs)
    model = LibraryLlama(causal_lm(workload.model, weights), workload.places(parameters)).eval()
    if cell.parameter("cache") != "dynamic":
        model.hold_static(batch, past)
    elif past:
        model.past = of_each_sequence(past, batch)
    return model


def causal_lm(model: Llama, weights: dict[str, torch.Tensor]) -> transformers.PreTrainedModel:
    """Return the library's module with these weights."""
    config = transformers.AutoConfig.for_model(model.family, **model.library_config())
    with torch.device("meta"):  # modules without storage: nothing is initialised only to be overwritten
        made = transformers.AutoModelForCausalLM.from_config(config)
    made.load_state_dict({HEAD: weights[EMBEDDING]} | weights if model.tied else weights, assign=True)
    if model.tied:
        made.lm_head.weight = made.model.embed_tokens.weight
    # Frequencies, which no checkpoint holds, came without storage as well.
    made.model.rotary_emb = type(made.model.rotary_emb)(config).to(weights[EMBEDDING].device)
    check_filled(made)
    return made
