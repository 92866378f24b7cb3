"""What the hardware can do at best: datasheet peaks with their source, and peaks measured on the machine itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

# A call that touches no more than this may find what it touches in the caches, where another bandwidth holds: an H200
# has 50 MB of L2, processors have up to some tens of MB of L3.
CACHED_BYTES = {"cpu": 64e6, "gpu": 128e6}


def may_be_cached(bytes_touched: float, device: str) -> bool:
    """Whether the caches of `cpu` or `gpu:<index>` may hold all that a call touches."""
    return bytes_touched <= CACHED_BYTES[device.split(":")[0]]


@dataclass(frozen=True)
class Peaks:
    """Rates on one device in one dtype; None where they are not known.

    `cached_bytes_per_s` is the bandwidth of a vector that the caches hold, `transcendentals_per_s` the rate of cosines,
    `matvec_bytes_per_s` that at which a product of one row reads its weights from memory.
    """

    flops_per_s: float
    bytes_per_s: float
    source: str
    cached_bytes_per_s: float | None = None
    transcendentals_per_s: float | None = None
    matvec_bytes_per_s: float | None = None

    @property
    def are_rates(self) -> bool:
        """Whether all of them are positive numbers: what was read from a file may hold anything."""
        known = [self.flops_per_s, self.bytes_per_s]
        optional = (self.cached_bytes_per_s, self.transcendentals_per_s, self.matvec_bytes_per_s)
        known += [rate for rate in optional if rate is not None]
        return all(type(rate) in (int, float) and 0 < rate < math.inf for rate in known)


@dataclass(frozen=True)
class Datasheet:
    """Dense peaks of a GPU as its vendor prints them: TFLOP/s by dtype, and TB/s."""

    tflops: dict[str, float]
    terabytes_per_s: float
    source: str


# By a part of the name that the driver reports. fp32 is the rate outside the matrix units.
DATASHEETS = {
    "H200": Datasheet(
        {"fp32": 67, "tf32": 494.5, "bf16": 989.5, "fp16": 989.5}, 4.8, "NVIDIA H200 datasheet (SXM), sparsity halved"
    ),
    "H100": Datasheet(
        {"fp32": 67, "tf32": 494.5, "bf16": 989.5, "fp16": 989.5}, 3.35, "NVIDIA H100 datasheet (SXM), sparsity halved"
    ),
    "A100": Datasheet(
        {"fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312}, 1.555, "NVIDIA A100 datasheet (40 GB), dense"
    ),
}


def datasheet(device_name: str | None) -> Datasheet | None:
    """The datasheet of a device by its name, or None where the table has none (CPUs among them)."""
    return next((sheet for part, sheet in DATASHEETS.items() if part in (device_name or "")), None)
