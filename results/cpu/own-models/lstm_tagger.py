import torch
from torch import nn

torch._dynamo.config.allow_rnn = True  # Dynamo refuses nn.LSTM otherwise


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.tags = nn.Embedding(20000, 256), nn.Linear(512, 17)
        self.lstm = nn.LSTM(256, 256, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, tokens):
        return self.tags(self.lstm(self.words(tokens))[0])


def model():
    return Tagger()


def inputs(batch_size, seq_len):
    return torch.randint(0, 20000, (batch_size, seq_len))
