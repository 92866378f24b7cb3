"""What an exception of a framework means for its cell, on errors as frameworks raise them."""

from __future__ import annotations

import pytest

from frameworks.adapter import Unsupported
from worker.channel import Untrustworthy, classify


class OutOfMemoryError(RuntimeError):
    """torch's name for it."""


class ResourceExhaustedError(Exception):
    """TensorFlow's name for it, whose message need not say it again."""


@pytest.mark.parametrize(
    "error",
    [
        OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 139.81 GiB"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        ResourceExhaustedError("OOM when allocating tensor with shape[256,512,3072] and type float [Op:AddV2]"),
        ResourceExhaustedError("{{function_node __wrapped__MatMul}} failed to allocate memory"),
        ValueError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1610612736 bytes."),
        MemoryError("Unable to allocate 1 TiB"),
    ],
)
def test_memory_that_ran_out_compares_from_other_errors(error):
    status, reason = classify(error)
    assert status == "oom"
    assert reason.startswith(type(error).__name__)


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (ValueError("the bloom filter\n  differs"), "error", "ValueError: the bloom filter differs"),
        (Unsupported("needs a GPU."), "unsupported", "needs a GPU."),
        (Untrustworthy("synchronize returned early."), "error", "synchronize returned early."),
    ],
)
def test_other_errors(error, status, reason):
    assert classify(error) == (status, reason)
