import timm
import torch


def model():
    return timm.create_model("resnet50", pretrained=False)


def inputs(batch_size=1):
    return torch.randn(batch_size, 3, 224, 224)
