import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.u = torch.nn.Sequential(torch.nn.Linear(3, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))

    def forward(self, points):
        with torch.inference_mode(False), torch.enable_grad():
            points = points.clone().requires_grad_()
            u = self.u(points)
            (slope,) = torch.autograd.grad(outputs=u, inputs=points, grad_outputs=torch.ones_like(u))
        return u + slope.sum(-1, keepdim=True)


def model():
    return Net()


def inputs(batch_size=64):
    return torch.rand(batch_size, 3)
