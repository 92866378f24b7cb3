"""MobileNet of paddle.vision on images of 64 by 64."""

import paddle


def model():
    return paddle.vision.models.mobilenet_v2(pretrained=False, num_classes=10)


def inputs(batch_size):
    return paddle.randn([batch_size, 3, 64, 64])
