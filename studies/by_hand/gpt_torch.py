"""Training GPT-2 124M in torch, timed by hand: bf16 by autocast, fused attention, fused AdamW. Knows no suite.

Prints a line of JSON for each mode: `python gpt_torch.py --device gpu --batch 32 --seq 1024 --mode eager,inductor`.
"""

from __future__ import annotations

import argparse
import json

import loop
import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, POSITIONS = 50304, 1024
SIZES = {"gpt2-124m": (12, 768, 12), "gpt-tiny": (2, 64, 2)}  # layers, hidden, heads


class Block(nn.Module):
    def __init__(self, hidden: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden, bias=False), nn.LayerNorm(hidden, bias=False)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.up, self.down = nn.Linear(hidden, 4 * hidden, bias=False), nn.Linear(4 * hidden, hidden, bias=False)

    def forward(self, x):
        B, T, H = x.shape
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(H, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, H))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers: int, hidden: int, heads: int):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, hidden), nn.Embedding(POSITIONS, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden, bias=False)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1), device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def iteration(options: argparse.Namespace, mode: str, device: str):
    """A call that runs forward, backward and AdamW."""
    model = Gpt(*SIZES[options.workload]).to(device).train()
    forward = model if mode == "eager" else torch.compile(model, fullgraph=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def call(batch):
        with torch.autocast(device, torch.bfloat16, enabled=options.dtype == "bf16"):
            loss = forward(*batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", choices=SIZES, default="gpt2-124m")
    parser.add_argument("--mode", type=lambda text: text.split(","), default=["eager", "inductor"])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seq", type=int, default=1024)
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--seconds", type=float, default=5.0, help="of samples for each mode")
    options = parser.parse_args()
    device = "cuda" if options.device == "gpu" else "cpu"
    ids = [torch.randint(0, VOCABULARY, (options.batch, options.seq + 1), device=device) for _ in range(4)]
    batches = [(x[:, :-1].contiguous(), x[:, 1:].contiguous()) for x in ids]

    def synchronize(output):
        if device == "cuda":
            torch.cuda.synchronize()

    for mode in options.mode:
        call = iteration(options, mode, device)
        script = loop.Script({}, batches, synchronize)
        print(json.dumps({"mode": mode, **loop.measure(script, call, options.seconds)}), flush=True)


if __name__ == "__main__":
    main()
