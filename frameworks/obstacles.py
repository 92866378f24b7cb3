"""Why a GPU, build or mode cannot be used, with the way out: from the driver's answer, or an error's text.

Frameworks report the same few problems in many ways, some only in a log. Nothing here imports a framework.
"""

from __future__ import annotations

import ctypes
import os
import re

_OLD_DRIVER = "update the NVIDIA driver, or install a build for an older CUDA"
_OF_THE_SYSTEM = (
    "which Paddle takes from the system, cannot be loaded: install CUDA and cuDNN, with their folders in "
    "LD_LIBRARY_PATH, or set PADDLE_INDEX= to an index of Paddle's builds that include them."
)
# Pattern of an error's text -> its meaning. The groups fill the sentence.
_WORDS = (
    (
        r"driver on your system is too old \(found version (\d+)0(\d)\d\)",
        "the NVIDIA driver is too old for this build and supports CUDA {0}.{1} at most: " + _OLD_DRIVER + ".",
    ),
    (
        r"driver on your system is too old|driver version is insufficient for CUDA runtime"
        r"|UNSUPPORTED_PTX_VERSION|PTX was compiled with an unsupported toolchain",
        "the NVIDIA driver is too old for this build: " + _OLD_DRIVER + ".",
    ),
    (
        r"Found no NVIDIA driver|Unknown CUDA error 303",
        "there is no NVIDIA driver: install one (nvidia-smi then lists the GPUs), or measure with DEVICE=cpu.",
    ),
    (
        r"No CUDA GPUs are available|no CUDA-capable device|No visible GPU devices",
        "no GPU is visible: nvidia-smi must list one, and CUDA_VISIBLE_DEVICES ({visible}) must not hide it.",
    ),
    (
        r"system not yet initialized|SYSTEM_NOT_READY",
        "the driver reports that the host's GPUs are not initialized: start nvidia-fabricmanager.",
    ),
    (
        r"no kernel image is available",
        "this build holds no kernels for this GPU: install a build for a CUDA version that supports it.",
    ),
    (
        r"Torch not compiled with CUDA enabled",
        "this build supports the CPU only: install one for CUDA.",
    ),
    (
        r"Unable to load (\w+)\. Is it installed",
        "{0} cannot be loaded: install the build that includes NVIDIA's libraries, such as jax[cuda13].",
    ),
    (
        r"third-party dynamic library \((\S+)\) that Paddle depends on is not configured correctly",
        "{0}, " + _OF_THE_SYSTEM,
    ),
    (
        r"Cannot load (\w+) shared library",
        "{0}, " + _OF_THE_SYSTEM,
    ),
    (
        r"Outdated (\w+) installation found",
        "the {0} that was found is older than this build needs: install the build that includes NVIDIA's libraries, "
        "such as jax[cuda13], and remove other copies from LD_LIBRARY_PATH.",
    ),
    (
        r"aot_autograd does not currently support double backward",
        "the model differentiates gradients (create_graph=True), which torch.compile does not: compute them with "
        "torch.func.grad, or measure MODE=dynamo.",
    ),
    (
        r"a (?:view of a )?leaf Variable that requires grad is being used in an in-place operation",
        "the model writes to an input or a parameter that requires gradients, where they are recorded: let it write to "
        "a copy, such as x.clone().",
    ),
    (
        r"operator torchvision::\w+ does not exist",
        "torchvision is built for another torch version: install both from one package index, or set PYTHON to an "
        "interpreter in which both load.",
    ),
)


def from_words(words: str) -> str | None:
    """Return the meaning of an error's text for the use of a GPU, build or mode; None for other errors."""
    for pattern, sentence in _WORDS:
        if match := re.search(pattern, words):
            return sentence.format(
                *match.groups(), visible=os.environ.get("CUDA_VISIBLE_DEVICES", "not set") or "empty"
            )
    return None


def driver_cuda() -> tuple[int, int] | None:
    """Return the newest CUDA version that the installed driver supports, as (major, minor); None without a driver."""
    version = ctypes.c_int()
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return None
    return None if failed else (version.value // 1000, version.value % 1000 // 10)


def no_gpu(built_for: int | None, driver: tuple[int, int] | None) -> str:
    """Return why a build for CUDA `built_for` (its major version) sees no GPU under this driver.

    A driver runs code for its own major version of CUDA and for earlier ones (NVIDIA, "CUDA Compatibility").
    """
    if driver is None:
        return from_words("Found no NVIDIA driver") or "there is no NVIDIA driver."
    if built_for and driver[0] < built_for:
        return (
            f"the NVIDIA driver supports CUDA {driver[0]}.{driver[1]} at most, and this build is for CUDA {built_for}: "
            f"{_OLD_DRIVER}."
        )
    return from_words("No visible GPU devices") or "no GPU is visible."


def no_such(device: str, count: int, title: str) -> str:
    """Return a sentence: no GPU has this index."""
    return f"there is no {device}: {title} sees {count} GPU{'s' if count != 1 else ''}, from gpu:0."


def runs(architecture: str, capability: tuple[int, int]) -> bool:
    """Return whether code for `architecture`, as nvcc names it, runs on a GPU of `capability`.

    CUDA programming guide, "Binary Compatibility" and "PTX Compatibility". Binaries (sm_) run on the same major version
    and equal or later minor ones. PTX (compute_) runs on every equal or later one. Code for an architecture that ends
    in `a` runs on that one alone, in `f` on the same major version.
    """
    ((kind, major, minor, suffix),) = re.findall(r"^(\w+)_(\d+)(\d)([a-z]?)$", architecture)
    built = (int(major), int(minor))
    if suffix == "a":
        return built == capability
    return built <= capability and (built[0] == capability[0] or (kind == "compute" and not suffix))
