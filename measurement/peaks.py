"""Peak rates of the hardware: datasheet peaks with their source, and peaks measured on the machine itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

# A call that touches no more than this may find its data in the caches, with another bandwidth: an H200 has 50 MB of
# L2, processors have up to some tens of MB of L3.
CACHED_BYTES = {"cpu": 64e6, "gpu": 128e6}


def may_be_cached(bytes_touched: float, device: str) -> bool:
    """Return whether the caches of `cpu` or `gpu:<index>` may hold all data of a call."""
    return bytes_touched <= CACHED_BYTES.get(device.split(":")[0], 0)


@dataclass(frozen=True)
class Peaks:
    """Rates on one device in one dtype; None if they are not known.

    `cached_bytes_per_s` is the bandwidth of a vector that the caches hold. `transcendentals_per_s` is the rate of
    cosines. `matvec_bytes_per_s` is the rate at which a product of one row reads its weights from memory.
    """

    flops_per_s: float
    bytes_per_s: float
    source: str
    cached_bytes_per_s: float | None = None
    transcendentals_per_s: float | None = None
    matvec_bytes_per_s: float | None = None

    @property
    def are_rates(self) -> bool:
        """Return whether all are positive numbers, as a file may hold anything."""
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


_H200 = "https://www.nvidia.com/en-us/data-center/h200/"
_H100 = "https://www.nvidia.com/en-us/data-center/h100/"
_H100_PCIE = "https://resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet"
_A100 = "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf"


def _tflops(fp32: float, tf32: float, half: float) -> dict[str, float]:
    return {"fp32": fp32, "tf32": tf32, "bf16": half, "fp16": half}


_SXM, _NVL, _AMPERE = _tflops(67, 494.5, 989.5), _tflops(60, 417.5, 835.5), _tflops(19.5, 156, 312)
# By the driver's full name, since names contain each other: GH200 is no H200, and SXM, PCIe and NVL cards differ in
# clocks and memory. fp32 is the rate outside the matrix units; rates with sparsity are halved.
DATASHEETS = {
    "NVIDIA H200": Datasheet(_SXM, 4.8, _H200),
    "NVIDIA H200 NVL": Datasheet(_NVL, 4.8, _H200),
    "NVIDIA H100 80GB HBM3": Datasheet(_SXM, 3.35, _H100),
    "NVIDIA H100 NVL": Datasheet(_NVL, 3.9, _H100),
    "NVIDIA H100 PCIe": Datasheet(_tflops(51, 378, 756.5), 2.0, _H100_PCIE),
    "NVIDIA A100-SXM4-40GB": Datasheet(_AMPERE, 1.555, _A100),
    "NVIDIA A100-PCIE-40GB": Datasheet(_AMPERE, 1.555, _A100),
    "NVIDIA A100-SXM4-80GB": Datasheet(_AMPERE, 2.039, _A100),
    "NVIDIA A100 80GB PCIe": Datasheet(_AMPERE, 1.935, _A100),
}


def datasheet(device_name: str | None) -> Datasheet | None:
    """Return the data sheet of a device by its name, or None if the table lacks it (all CPUs)."""
    return DATASHEETS.get(device_name or "")


def least_seconds(
    flops: int,
    compulsory_bytes: int,
    device: str,
    device_name: str | None,
    dtype: str,
    tflops: float | None = None,
    gb_per_s: float | None = None,
) -> float | None:
    """Return the larger of a call's roofline terms at the highest rates known, in seconds: no implementation is faster.

    The rates are the data sheet's, or the measured `tflops` and `gb_per_s` if these are higher. Bytes count only if the
    caches cannot hold them. None if no needed rate is known.
    """
    sheet = datasheet(device_name)
    most_flops = max(tflops or 0.0, sheet.tflops.get(dtype, 0.0) if sheet else 0.0) * 1e12
    most_bytes = max(gb_per_s or 0.0, sheet.terabytes_per_s * 1e3 if sheet else 0.0) * 1e9
    moved = 0 if may_be_cached(compulsory_bytes, device) else compulsory_bytes
    terms = [amount / rate for amount, rate in ((flops, most_flops), (moved, most_bytes)) if rate]
    return max(terms, default=0.0) or None


def above_datasheet(device_name: str | None, dtype: str | None, tflops: float | None, gb_per_s: float | None) -> bool:
    """Return whether a measured peak of arithmetic or bandwidth is above the device's data sheet."""
    sheet = datasheet(device_name)
    if sheet is None:
        return False
    limits = sheet.tflops.get(dtype or ""), sheet.terabytes_per_s * 1e3
    measured = tflops, gb_per_s
    return any(peak and limit and peak > limit for peak, limit in zip(measured, limits, strict=True))
