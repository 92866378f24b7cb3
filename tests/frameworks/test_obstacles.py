"""Why a GPU cannot be used, from messages of frameworks and drivers and from the driver; and tracers of Python."""

from __future__ import annotations

import ctypes

import pytest
from doubles.environment import MODELS, REAL, REFUSED, run_in

from frameworks import obstacles
from worker.channel import classify

# From torch 2.15.0+cu132 and jax-cuda13-plugin 0.11.2 run without a driver and under one of CUDA 12.4; the others from
# reports: jax-ml/jax 8731, 21998, 24866, 28376, 11967; microsoft/lisa 2823; rgommers/pixi-dev-scipystack 1;
# PaddlePaddle/PaddleNLP 2980; PaddlePaddle/Paddle 50195.
MESSAGES = [
    (
        "The NVIDIA driver on your system is too old (found version 12040). Please update your GPU driver by "
        "downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx "
        "Alternatively, go to: https://pytorch.org to install a PyTorch version that has been compiled with your "
        "version of the CUDA driver.",
        "too old for this build and supports CUDA 12.4 at most: update the NVIDIA driver, or install a build",
    ),
    ("The NVIDIA driver on your system is too old (found version 11080). Please", "supports CUDA 11.8 at most"),
    ("The NVIDIA driver on your system is too old (found version 9000).", "supports CUDA 9.0 at most"),
    (
        "INTERNAL: CustomCall failed: jaxlib/cuda_prng_kernels.cc:30: operation cudaGetLastError() failed: the "
        "provided PTX was compiled with an unsupported toolchain.",
        "driver is too old for this build: update",
    ),
    ("CUDA error: CUDA driver version is insufficient for CUDA runtime version", "driver is too old for this build"),
    (
        "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from "
        "http://www.nvidia.com/Download/index.aspx",
        "there is no NVIDIA driver: install one",
    ),
    (
        "jaxlib/cuda/versions_helpers.cc:135: operation cuInit(0) failed: Unknown CUDA error 303; cuGetErrorName "
        "failed. This probably means that JAX was unable to load the CUDA libraries.",
        "there is no NVIDIA driver: install one",
    ),
    ("No CUDA GPUs are available", "no GPU is visible: nvidia-smi must list one, and CUDA_VISIBLE_DEVICES (7)"),
    ("Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices.", "no GPU is visible"),
    (
        "failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable "
        "device is detected",
        "no GPU is visible",
    ),
    (
        "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() "
        "that might have already set an error? Error 802: system not yet initialized",
        "start nvidia-fabricmanager",
    ),
    ("Failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized", "start nvidia-fabricmanager"),
    ("Unknown: no kernel image is available for execution on the device", "no kernels for this GPU: install a build"),
    ("Torch not compiled with CUDA enabled", "supports the CPU only: install one for CUDA"),
    ("operator torchvision::nms does not exist", "install both from one package index, or set PYTHON"),
    ("Unable to load cuDNN. Is it installed?", "cuDNN cannot be loaded: install the build that includes NVIDIA's"),
    (
        "Outdated cuDNN installation found.\nVersion JAX was built against: 8907\nMinimum supported: 9100\n"
        "Installed version: 8907\nThe local installation version must be no lower than 9100.",
        "the cuDNN that was found is older than this build needs",
    ),
    (
        "(PreconditionNotMet) The third-party dynamic library (libcudnn.so) that Paddle depends on is not configured "
        "correctly. (error code is libcudnn.so: cannot open shared object file: No such file or directory)\n"
        "  Suggestions:\n  1. Check if the third-party dynamic library (e.g. CUDA, CUDNN) is installed correctly",
        "libcudnn.so, which Paddle takes from the system, cannot be loaded: install CUDA and cuDNN",
    ),
    (
        "(PreconditionNotMet) Cannot load cudnn shared library. Cannot invoke method cudnnGetVersion.\n"
        "  [Hint: cudnn_dso_handle should not be null.]",
        "cudnn, which Paddle takes from the system, cannot be loaded: install CUDA and cuDNN",
    ),
    (
        "torch.compile with aot_autograd does not currently support double backward",
        "compute them with torch.func.grad, or measure MODE=dynamo",
    ),
    (
        "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.",
        "let it write to a copy, such as x.clone()",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), MESSAGES, ids=[words[:40] for words, _ in MESSAGES])
def test_a_message_becomes_one_sentence_with_the_way_out(monkeypatch, words, sentence):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    obstacle = obstacles.from_words(words)
    assert sentence in obstacle
    assert ": " in obstacle and obstacle.endswith(".") and "\n" not in obstacle


@pytest.mark.parametrize(
    "words",
    [
        "CUDA out of memory. Tried to allocate 20.00 MiB",
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
        "an illegal memory access was encountered",
    ],
)
def test_other_errors_stay_what_they_are(words):
    assert obstacles.from_words(words) is None
    assert classify(RuntimeError(words))[0] in ("oom", "error")


def test_a_call_that_the_driver_cannot_run_is_unsupported_and_keeps_its_words():
    status, reason = classify(RuntimeError("the provided PTX was compiled with an unsupported toolchain."))
    assert status == "unsupported"
    assert reason.startswith("the NVIDIA driver is too old for this build")
    assert "(RuntimeError: the provided PTX was compiled with an unsupported toolchain.)" in reason


@pytest.mark.parametrize(
    ("built_for", "driver", "sentence"),
    [
        (13, None, "there is no NVIDIA driver"),
        (13, (12, 4), "the NVIDIA driver supports CUDA 12.4 at most, and this build is for CUDA 13: update"),
        (12, (12, 2), "no GPU is visible"),  # a driver runs later minor versions of its own major one
        (12, (13, 0), "no GPU is visible"),
        (None, (12, 0), "no GPU is visible"),
    ],
)
def test_what_the_driver_says_decides_where_words_are_missing(monkeypatch, built_for, driver, sentence):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert obstacles.no_gpu(built_for, driver).startswith(sentence)


class Driver:
    """libcuda as far as its version goes."""

    def __init__(self, version: int, failed: int = 0):
        self._version, self._failed = version, failed

    def cuDriverGetVersion(self, found) -> int:
        found._obj.value = self._version
        return self._failed


@pytest.mark.parametrize(
    ("driver", "version"), [(Driver(12040), (12, 4)), (Driver(13000), (13, 0)), (Driver(0, failed=999), None)]
)
def test_the_driver_is_asked_for_its_cuda_version(monkeypatch, driver, version):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    assert obstacles.driver_cuda() == version


def test_without_libcuda_there_is_no_driver(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert obstacles.driver_cuda() is None


def test_a_gpu_that_is_not_there():
    assert obstacles.no_such("gpu:3", 1, "torch 2") == "there is no gpu:3: torch 2 sees 1 GPU, from gpu:0."
    assert "sees 2 GPUs" in obstacles.no_such("gpu:3", 2, "torch 2")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("framework", REAL)
def test_a_tracer_of_python_is_refused_with_the_way_out(framework):
    run_in(
        framework,
        MODELS,
        REFUSED,
        f"""
        import sys
        from frameworks.{framework}.adapter import Adapter

        parameters = (("batch_size", 1), ("width", 8), ("depth", 1))
        cell = Cell("{framework}", "mlp", "plain", "inference", "cpu", "fp32", 1, parameters, "eager")
        assert refused(Adapter().refuse, cell) is None
        for switch in (sys.setprofile, sys.settrace):
            switch(lambda *event: None)
            reason = refused(Adapter().refuse, cell)
            switch(None)
            assert reason.startswith("sys.setprofile or sys.settrace is on") and "no debugger" in reason, reason
        """,
    )


@pytest.mark.parametrize(
    ("architecture", "capabilities"),
    [
        ("sm_80", [(8, 0), (8, 9)]),
        ("compute_80", [(8, 0), (8, 9), (9, 0), (12, 0)]),
        ("sm_90a", [(9, 0)]),
        ("sm_80f", [(8, 0), (8, 9)]),
        ("compute_80a", [(8, 0)]),
    ],
)
def test_binaries_run_on_their_major_version_and_ptx_on_later_ones(architecture, capabilities):
    gpus = [(7, 5), (8, 0), (8, 9), (9, 0), (12, 0)]
    assert [gpu for gpu in gpus if obstacles.runs(architecture, gpu)] == capabilities
