import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.p, self.q = torch.nn.Linear(16, 32), torch.nn.Linear(16, 16)
        self.register_buffer("cache", torch.zeros(2, 8, 16))
        self.register_buffer("k", self.cache[0])
        self.register_buffer("v", self.cache[1])

    def forward(self, x):
        self.cache.copy_(self.p(x).view(8, 2, 16).transpose(0, 1))
        return (self.q(x) @ self.k.T / 4).softmax(-1) @ self.v + x


def model():
    return Net()


def inputs(batch_size):
    return torch.randn(8, 16)
