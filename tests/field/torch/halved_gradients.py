import torch


class Net(torch.nn.Module):
    """Halves gradients in eager mode alone, which AdamW hides from the loss."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(32, 64), torch.nn.Linear(64, 32)

    def forward(self, x):
        y = self.a(x).relu()
        if y.requires_grad and not torch.compiler.is_compiling():
            y.register_hook(lambda gradient: gradient * 0.5)
        return self.b(y)


def model():
    return Net()


def loss(output):
    return (output - 1).square().mean()


def inputs(batch_size=8):
    return torch.randn(batch_size, 32)
