import torch


class Net(torch.nn.Module):
    """A convolution over time as fairseq's, which torch's counter of FLOPs does not know."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 8, 4))
        self.bias = torch.nn.Parameter(torch.zeros(4))

    def forward(self, x):
        return torch.conv_tbc(x.transpose(0, 1).contiguous(), self.weight, self.bias, 1)


def model():
    return Net()


def inputs(batch_size=2):
    return torch.randn(batch_size, 10, 8)
