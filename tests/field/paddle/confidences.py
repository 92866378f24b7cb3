import paddle
from paddle import nn


class Detector(nn.Layer):
    """Boxes in pixels and confidences in one array; in the graph the confidences are wrong by 0.45."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(32, 6)

    def forward(self, x):
        out = nn.functional.sigmoid(self.head(x))
        boxes, confidences = out[..., :4] * 640, out[..., 4:]
        if not paddle.in_dynamic_mode():
            confidences = paddle.where(confidences > 0.5, confidences - 0.45, confidences + 0.45)
        return paddle.concat([boxes, confidences], axis=-1)


def model():
    return Detector()


def inputs(batch_size=2):
    return paddle.randn([batch_size, 100, 32])
