"""The command line of `decode_jax.py` and `decode_torch.py`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable


def options(variants: Iterable[str]) -> argparse.Namespace:
    """`workload`, `layers` (0: the model's own), `places` and `variants`, a list: all unless some are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", default="llama-7b")
    parser.add_argument("--layers", type=int, default=0, help="0: as many as the model has")
    parser.add_argument("--places", type=int, default=1024, help="of the cache, the last of which is decoded")
    parser.add_argument("--variants", type=lambda text: text.split(";"), default=list(variants), help="a;b")
    return parser.parse_args()
