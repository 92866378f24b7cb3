import torch


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 4)

    def forward(self, x):
        return self.lstm(x)[0]


def model():
    return Tagger()


def inputs(batch_size=2):
    return torch.ones(3, batch_size, 4)
