"""`nn.MultiheadAttention` in inference: its fused path, which eager mode takes, the path without it, and Inductor.

Blocks as torchvision's vision transformers have them, of ViT-B/16's sizes. Dynamo captures the path without fusion.
"""

import torch
import turns
from torch import nn

LAYERS, WIDTH, HEADS, INNER, TOKENS = 2, 768, 12, 3072, 197


class Block(nn.Module):
    """Attention and a perceptron, each behind a norm and added to the residual."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH, eps=1e-6), nn.LayerNorm(WIDTH, eps=1e-6)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.perceptron = nn.Sequential(nn.Linear(WIDTH, INNER), nn.GELU(), nn.Linear(INNER, WIDTH))

    def forward(self, x):
        y = self.before(x)
        y, _ = self.attention(y, y, y, need_weights=False)
        x = x + y
        return x + self.perceptron(self.after(x))


def trials(options):
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = nn.Sequential(*(Block() for _ in range(LAYERS))).eval()
    compiled = torch.compile(model, fullgraph=True, dynamic=False)

    def call(model, fused, x):
        torch.backends.mha.set_fastpath_enabled(fused)
        with torch.inference_mode():
            return model(x)

    for batch in (1, 8):
        x = torch.randn(batch, TOKENS, WIDTH)
        outputs = call(model, True, x), call(model, False, x), call(compiled, True, x)
        assert all(torch.allclose(outputs[0], other, atol=1e-4) for other in outputs[1:])
        yield (
            f"{LAYERS} blocks at batch {batch}",
            {
                "eager, fused path": lambda x=x: call(model, True, x),
                "eager without it": lambda x=x: call(model, False, x),
                "inductor": lambda x=x: call(compiled, True, x),
            },
        )


if __name__ == "__main__":
    turns.main(trials)
