import torch


class Linear8(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", (torch.randn(16, 16) / 4).to(torch.float8_e4m3fn))
        self.register_buffer("s", torch.full((16, 1), 0.1))

    def forward(self, x):
        assert self.w.dtype == torch.float8_e4m3fn
        return x @ (self.w.to(x.dtype) * self.s.to(x.dtype)).T


def model():
    return torch.nn.Sequential(Linear8(), Linear8())


def inputs(batch_size):
    return torch.randn(batch_size, 16)
