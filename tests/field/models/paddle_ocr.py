"""A recognition head for text in images: convolutions, an LSTM in both directions, and logits for CTC."""

import paddle
from paddle import nn


class Head(nn.Layer):
    def __init__(self, classes=100):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2D(3, 16, 3, padding=1), nn.BatchNorm2D(16), nn.ReLU(), nn.MaxPool2D(2, 2),
            nn.Conv2D(16, 32, 3, padding=1), nn.BatchNorm2D(32), nn.ReLU(), nn.MaxPool2D((16, 2), (16, 2)),
        )  # fmt: skip
        self.lstm, self.logits = nn.LSTM(32, 48, direction="bidirect"), nn.Linear(96, classes)

    def forward(self, images):
        sequence = self.features(images).squeeze(2).transpose([0, 2, 1])
        return self.logits(self.lstm(sequence)[0])


def model():
    return Head()


def inputs(batch_size):
    return paddle.randn([batch_size, 3, 32, 96])
