"""BERT, ResNet and ViT as transformers has them."""

from __future__ import annotations

import torch
from torch import nn

from frameworks.adapter import Unsupported
from frameworks.spellings import respelt
from workloads import bert, resnet, vit
from workloads.spec import Parameters, Workload

try:
    from transformers import (
        BertConfig,
        BertModel,
        ResNetConfig,
        ResNetForImageClassification,
        ViTConfig,
        ViTForImageClassification,
    )
except ImportError as error:
    raise Unsupported(f"the library model needs transformers ({error}): install it, or measure IMPL=plain.") from None

# Canonical names of a ViT's tensors, and the library's.
_VIT = (
    ("class_token", "vit.embeddings.cls_token"),
    ("conv_proj.", "vit.embeddings.patch_embeddings.projection."),
    ("encoder.pos_embedding", "vit.embeddings.position_embeddings"),
    ("encoder.ln.", "vit.layernorm."),
    ("ln_1.", "layernorm_before."),
    ("ln_2.", "layernorm_after."),
    ("heads.head.", "classifier."),
)
# Those that the library renamed on the way: query, key and value last.
_NEW = ("vit.layers.", "attention.o_proj.", "mlp.fc1.", "mlp.fc2.", tuple(f"attention.{n}_proj." for n in "qkv"))
_OLD = ("vit.encoder.layer.", "attention.output.dense.", "intermediate.dense.", "output.dense.")
_OLD += (tuple(f"attention.attention.{name}." for name in ("query", "key", "value")),)
_RENAMED = ("encoder.layers.encoder_layer_", "self_attention.out_proj.", "mlp.0.", "mlp.3.")


class Classifier(nn.Module):
    """The library's model under the suite's signature: images in their layout -> logits (B, classes)."""

    def __init__(self, model: nn.Module, layout: str):
        super().__init__()
        self.model, self.channels_last = model, layout == "nhwc"

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        pixels = images.permute(0, 3, 1, 2) if self.channels_last else images  # (B, 3, I, I), a view
        return {"logits": self.model(pixel_values=pixels).logits}


def check_filled(model: nn.Module) -> None:
    """Raise RuntimeError where a module that was made without storage still has a tensor of that kind."""
    lost = [name for name, tensor in (*model.named_parameters(), *model.named_buffers()) if tensor.is_meta]
    if lost:
        raise RuntimeError(f"this version of transformers has tensors without weights: {', '.join(lost)}")


def _bert(workload: bert.Bert, weights: dict[str, torch.Tensor]) -> BertModel:
    """Return `BertModel` in the workload's configuration holding `weights` themselves, not copies.

    A missing or left-over tensor is a RuntimeError. Attention is the library's own default implementation.
    """
    config = BertConfig(**workload.library_config())
    with torch.device("meta"):  # modules without storage: nothing is initialised only to be overwritten
        model = BertModel(config)
    model.load_state_dict(weights, assign=True)
    # Buffers that no checkpoint holds: they came without storage as well.
    embeddings, device = model.embeddings, next(iter(weights.values())).device
    embeddings.position_ids = torch.arange(workload.positions, device=device)[None]  # (1, positions)
    embeddings.token_type_ids = torch.zeros_like(embeddings.position_ids)
    check_filled(model)
    return model.eval()


def build(workload: Workload, parameters: Parameters, weights: dict[str, torch.Tensor]) -> nn.Module:
    """Return the workload's model with these weights; a missing or left-over one is a RuntimeError."""
    if workload.family == "bert":
        return _bert(workload, weights)
    with torch.device("meta"):  # modules without storage: nothing is initialised only to be overwritten
        model = _resnet(workload) if workload.family == "resnet" else _vit(workload, parameters)
    if workload.family == "resnet":
        names = resnet_names(workload)
        tensors = {names[name]: tensor for name, tensor in weights.items()}
        device = weights["fc.bias"].device
        for name in model.state_dict():  # batches, which training counts and nothing reads
            if name.endswith("num_batches_tracked"):
                tensors[name] = torch.zeros((), dtype=torch.int64, device=device)
    else:
        tensors = vit_tensors(weights, any(name.startswith(_NEW[0]) for name in model.state_dict()))
    model.load_state_dict(tensors, assign=True)
    check_filled(model)
    classifier = Classifier(model, str(parameters["layout"]))
    return (classifier.to(memory_format=torch.channels_last) if classifier.channels_last else classifier).eval()


def _resnet(workload: resnet.ResNet) -> nn.Module:
    sizes = [resnet.EXPANSION * workload.width << stage for stage in range(len(workload.stages))]
    config = ResNetConfig(
        embedding_size=workload.width, hidden_sizes=sizes, depths=list(workload.stages), num_labels=workload.classes
    )
    return ResNetForImageClassification(config)


def _vit(workload: vit.ViT, parameters: Parameters) -> nn.Module:
    config = ViTConfig(
        hidden_size=workload.hidden, num_hidden_layers=workload.layers, num_attention_heads=workload.heads,
        intermediate_size=4 * workload.hidden, image_size=int(parameters["image"]), patch_size=workload.patch,
        layer_norm_eps=vit.LAYER_NORM_EPSILON, num_labels=workload.classes,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return ViTForImageClassification(config)


def resnet_names(workload: resnet.ResNet) -> dict[str, str]:
    """Return the library's names of a residual network's canonical tensors."""
    names = {"fc.weight": "classifier.1.weight", "fc.bias": "classifier.1.bias"}
    names |= _of_part("resnet.embedder.embedder", workload.stem)
    blocks = workload.blocks()
    for stage, count in enumerate(workload.stages):
        for index in range(count):
            block, prefix = next(blocks), f"resnet.encoder.stages.{stage}.layers.{index}"
            for place, part in enumerate(block.convolutions):
                names |= _of_part(f"{prefix}.layer.{place}", part)
            if block.shortcut:
                names |= _of_part(f"{prefix}.shortcut", block.shortcut)
    return names


def _of_part(prefix: str, part: resnet.Convolution) -> dict[str, str]:
    tensors = ("weight", "bias", *resnet.STATISTICS)
    norm = {f"{part.norm}.{tensor}": f"{prefix}.normalization.{tensor}" for tensor in tensors}
    return {f"{part.name}.weight": f"{prefix}.convolution.weight", **norm}


def vit_tensors(weights: dict[str, torch.Tensor], renamed: bool) -> dict[str, torch.Tensor]:
    """Return a ViT's tensors under the library's names, new or old: it has separate query, key and value."""
    *spellings, parts = _NEW if renamed else _OLD
    tensors = {}
    for name, tensor in weights.items():
        name = respelt(name, (*_VIT, *zip(_RENAMED, spellings, strict=True)))
        prefix, joined, kind = name.partition("self_attention.in_proj_")
        if joined:
            tensors |= {f"{prefix}{part}{kind}": piece for part, piece in zip(parts, tensor.chunk(3), strict=True)}
        else:
            tensors[name] = tensor
    return tensors
