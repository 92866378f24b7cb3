from paddle import nn, randn


def model():
    """Layers whose hooks put another weight into a buffer at each call."""
    first, second = nn.Linear(64, 64), nn.Linear(64, 64)
    return nn.Sequential(nn.utils.weight_norm(first), nn.ReLU(), nn.utils.spectral_norm(second), nn.Linear(64, 10))


def inputs(batch_size=8):
    return randn([batch_size, 64])


def loss(output):
    return output.square().mean()
