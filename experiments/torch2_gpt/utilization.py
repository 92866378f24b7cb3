"""MFU as the source counts it: (6 N + 12 L H Q T) FLOPs per token (Chowdhery et al. 2022, appendix B)."""

from __future__ import annotations

from dataclasses import dataclass

from records.record import Record

A100_TFLOPS = 312.0


@dataclass(frozen=True)
class Gpt:
    """N parameters without the position embedding, L layers, H heads of width Q, sequences of T tokens."""

    parameters: float
    layers: int
    heads: int
    head_width: int
    length: int
    sequences: int  # per iteration, accumulation steps included

    @property
    def flops_per_token(self) -> float:
        """Return the operations of forward and backward."""
        return 6 * self.parameters + 12 * self.layers * self.heads * self.head_width * self.length


# As published: 12 x 40 sequences of 1024 tokens, and 64 of 256.
GPTS = {
    "gpt2-124m": Gpt(123.6e6, 12, 12, 64, 1024, 12 * 40),
    "gpt-10m": Gpt(10.65e6, 6, 6, 64, 256, 64),
}


def tokens_of(model: str) -> int:
    """Return the tokens of a published iteration."""
    return GPTS[model].sequences * GPTS[model].length


def mfu_pct(record: Record) -> float | None:
    """Return percent of the datasheet's dense peak, or of the measured one where there is none; by the mean iteration.

    The model's sequence length is taken as published; shorter sequences make the attention's share a little too large.
    """
    peak = record.datasheet_tflops or record.peak_tflops
    mean, median, rate = record.latency_ms_mean, record.latency_ms_median, record.tokens_per_s
    if not (peak and mean and median and rate):
        return None
    tokens_per_s = rate * median / mean  # the record's rate is that of the median
    return 100 * GPTS[record.workload].flops_per_token * tokens_per_s / (peak * 1e12)
