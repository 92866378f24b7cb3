"""torchvision's ViT-B/16 without the fused path of `nn.MultiheadAttention`, which Dynamo does not capture: a control.

make bench WORKLOAD=studies/own_vit.py FRAMEWORK=torch MODE=eager,inductor DTYPE=bf16 BATCH=64 DEVICE=gpu
"""

import torch
import torchvision


def model():
    torch.backends.mha.set_fastpath_enabled(False)
    model = torchvision.models.vit_b_16()
    torch.nn.init.normal_(model.heads.head.weight, std=0.02)  # zeros, by default: every output would be zero
    return model


def inputs(batch_size):
    return torch.randn(batch_size, 3, 224, 224)
