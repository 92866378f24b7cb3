"""wav2vec 2.0 with a CTC head of transformers on a quarter of a second of sound."""

import torch
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC


def model():
    sizes = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}
    return Wav2Vec2ForCTC(Wav2Vec2Config(**sizes, conv_dim=(64,) * 7, num_conv_pos_embedding_groups=8))


def inputs(batch_size, samples=4000):
    return torch.randn(batch_size, samples)
