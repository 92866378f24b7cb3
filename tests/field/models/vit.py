"""A vision transformer of transformers on images of 96 by 96."""

import torch
from transformers import ViTConfig, ViTForImageClassification


def model():
    config = ViTConfig(
        hidden_size=192, num_hidden_layers=6, num_attention_heads=3, intermediate_size=768, image_size=96
    )
    return ViTForImageClassification(config)


def inputs(batch_size):
    return {"pixel_values": torch.randn(batch_size, 3, 96, 96)}
